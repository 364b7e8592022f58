package symbols

import (
	"bytes"
	"sort"
	"strings"

	"github.com/shoalsearch/shoal/shard/file"
	"github.com/shoalsearch/shoal/shard/match"
	"github.com/shoalsearch/shoal/trigram"
)

// Pattern is an expression to search names for.
type Pattern struct {
	Matcher *match.Matcher
	Formula *trigram.Formula // the condition that every match implies
	InLine  bool             // the expression matches in a line of a longer text as it does in the line alone
}

// Hit is a name, and where in it a pattern first matches.
type Hit struct {
	Name       uint32 // its number
	Start, End uint16
}

// Match returns the names in which a pattern matches, sorted by number, and calls use with
// each document that defines one of them.
func (y *File) Match(p Pattern, use func(doc int)) ([]Hit, error) {
	s := nameSearch{y: y, p: p, use: use, refs: pageRefs{y: y}}
	var scratch trigram.Scratch
	var units trigram.Bitmap

	base := 0 // first page of the segment
	for seg := range y.post.Segments() {
		units.Clear()
		if _, err := y.post.Search(seg, p.Formula, nil, &scratch, &units); err != nil {
			return nil, y.damagedFile(err)
		}

		for u := units.Next(0); u >= 0 && u < y.post.Units(seg); u = units.Next(u + 1) {
			if err := s.matchPage(base + u); err != nil {
				return nil, err
			}
		}
		base += y.post.Units(seg)
	}
	return s.hits, nil
}

// nameSearch is a call of Match in progress.
type nameSearch struct {
	y    *File
	p    Pattern
	use  func(doc int)
	refs pageRefs
	buf  []byte // of the page
	hits []Hit
}

// matchPage appends the matching names of a page to s.hits.
func (s *nameSearch) matchPage(number int) error {
	var err error
	if s.buf, err = s.y.decodePage(number, s.buf); err != nil {
		return err
	}
	s.refs.goToPage(number)
	first := s.y.pageName.At(number)

	text := s.buf
	for n := 0; len(text) > 0; n++ {
		// In most pages few names match. With InLine, match all names at once and skip to the first
		// line that matches.
		if s.p.InLine {
			at, _, ok := s.p.Matcher.Next(text, 0)
			if !ok {
				return nil
			}
			line := bytes.LastIndexByte(text[:at], '\n') + 1
			n += bytes.Count(text[:line], newline)
			text = text[line:]
		}

		name, rest, _ := bytes.Cut(text, newline)
		text = rest

		start, end, ok := s.p.Matcher.Next(name, 0)
		if !ok {
			continue
		}

		s.hits = append(s.hits, Hit{first + uint32(n), uint16(start), uint16(end)})
		if err := s.refs.forEach(n, s.use); err != nil {
			return err
		}
	}
	return nil
}

// FindName finds the names equal to name; with fold it ignores case. It calls use with the number of
// each such name and each document that defines it. exact says that the name has the case of name.
func (y *File) FindName(name string, fold bool, use func(number int, exact bool, doc int)) error {
	lower := strings.ToLower(name)
	first := func(page int) string { return strings.ToLower(string(file.Entry(y.first, y.firstEnd, page))) }

	// Names are sorted by their lower case. Start one page before the first page that begins with
	// such a name, because the page before may end with one.
	p := max(sort.Search(y.firstEnd.Len(), func(i int) bool { return first(i) >= lower })-1, 0)

	refs := pageRefs{y: y}
	var buf []byte
	var err error
	for ; p < y.firstEnd.Len() && first(p) <= lower; p++ {
		if buf, err = y.decodePage(p, buf); err != nil {
			return err
		}

		refs.goToPage(p)
		n := 0
		for text := buf; len(text) > 0; n++ {
			line, rest, _ := bytes.Cut(text, newline)
			text = rest
			exact := string(line) == name
			if !exact && !(fold && len(line) == len(name) && strings.ToLower(string(line)) == lower) {
				continue
			}

			number := int(y.pageName.At(p)) + n
			if err := refs.forEach(n, func(doc int) { use(number, exact, doc) }); err != nil {
				return err
			}
		}
	}
	return nil
}
