package change

import (
	"context"
	"encoding/binary"
	"fmt"
	"sort"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/shoalsearch/shoal/shard/query"
	"github.com/shoalsearch/shoal/trigram"
)

// value is the set of commits, or of files of commits, that match a part of a query.
type value struct {
	set   *roaring.Bitmap
	files bool
}

// evaluation evaluates a query over one file of changes. Each part of the query becomes its exact
// set of matches. Cheap parts are evaluated first, and texts are only searched where the other
// parts match.
//
//	type:diff      The answer has files. A condition on a commit holds for all of its files.
//	type:commit    The answer has commits. Conditions on files hold for a commit if one of its
//	               files satisfies all of them. A negation holds for a commit if none of its
//	               files satisfies the negated condition.
type evaluation struct {
	x        *index
	s        *generation
	diff     bool
	patterns map[*query.Text]*pattern
	buf      []byte
	scratch  trigram.Scratch
	ctx      context.Context
}

// all returns the set of all commits, or of all files.
func (e *evaluation) all(files bool) value {
	n := e.x.m.Commits
	if files {
		n = e.x.m.Files
	}
	set := roaring.New()
	set.AddRange(0, uint64(n))
	return value{set, files}
}

// as converts a set of commits to the set of their files, or a set of files to the set of their
// commits.
func (e *evaluation) as(v value, files bool) value {
	if v.files == files {
		return v
	}
	out := roaring.New()
	for it := v.set.Iterator(); it.HasNext(); {
		if n := it.Next(); files {
			from, to := e.x.filesOf(n)
			out.AddRange(uint64(from), uint64(to))
		} else {
			c := e.x.commitOf(n)
			out.Add(c)
			_, to := e.x.filesOf(c)
			it.AdvanceIfNeeded(to)
		}
	}
	return value{out, files}
}

// eval returns the matches of q. Only those in within need to be right.
func (e *evaluation) eval(q query.Q, within value) (value, error) {
	if err := e.ctx.Err(); err != nil {
		return value{}, err
	}
	switch n := q.(type) {
	case query.Const:
		if n {
			return within, nil
		}
		return value{roaring.New(), within.files}, nil
	case *query.And:
		return e.and(n, within)
	case *query.Or:
		return e.or(n, within)
	case *query.Not:
		return e.not(n, within)

	// Conditions on commits.
	case *query.Rev:
		return value{e.s.reachedBy(e.x, n.Pattern), false}, nil
	case *query.Dates:
		return e.commits(func(c int) bool { return inDates(n, int64(e.x.times.At(2*c+1))) }), nil
	case *query.Merge:
		return e.merges(n), nil
	case *query.Lang:
		return e.byPath(func(path uint32) bool { return e.x.m.Languages[e.x.pathLangs.At(int(path))] == n.Name }), nil
	case *query.Text:
		return e.text(n, within)
	}
	return value{}, fmt.Errorf("BUG: %T is not about changes", q)
}

func inDates(d *query.Dates, committed int64) bool {
	return (d.Since.IsZero() || committed >= d.Since.Unix()) && (d.Until.IsZero() || committed <= d.Until.Unix())
}

// commits returns the commits for which is returns true.
func (e *evaluation) commits(is func(c int) bool) value {
	set := roaring.New()
	for c := range e.x.m.Commits {
		if is(c) {
			set.Add(uint32(c))
		}
	}
	return value{set, false}
}

func (e *evaluation) merges(n *query.Merge) value {
	if n.Value == "yes" {
		return e.all(false)
	}
	return e.commits(func(c int) bool { return (len(e.x.parentsOf(uint32(c))) > 1) == (n.Value == "only") })
}

// byPath returns the files whose path, or path before a rename, fits.
func (e *evaluation) byPath(fits func(path uint32) bool) value {
	known := make([]bool, e.x.paths.ends.Len())
	for i := range known {
		known[i] = fits(uint32(i))
	}
	set := roaring.New()
	for f := range e.x.m.Files {
		row := e.x.entry(uint32(f))
		if known[row.path] || row.from != none && known[row.from] {
			set.Add(uint32(f))
		}
	}
	return value{set, true}
}

// and returns the matches of all parts of n.
func (e *evaluation) and(n *query.And, within value) (value, error) {
	// Evaluate cheap parts first; they narrow the others.
	subs := append([]query.Q(nil), n.Subs...)
	sort.SliceStable(subs, func(i, j int) bool { return cost(subs[i]) < cost(subs[j]) })

	out := within
	for _, s := range subs {
		v, err := e.eval(s, out)
		if err != nil {
			return v, err
		}
		if v.files || out.files {
			v, out = e.as(v, true), e.as(out, true)
		}
		out = value{roaring.And(out.set, v.set), v.files}
		if out.set.IsEmpty() {
			break
		}
	}
	return out, nil
}

// cost orders the parts of an and by effort.
func cost(q query.Q) int {
	switch n := q.(type) {
	case *query.And, *query.Or:
		return 4
	case *query.Not:
		return 5
	case *query.Text:
		switch n.Field {
		case query.Author, query.Committer:
			return 1
		case query.Name:
			return 2
		}
		return 3
	}
	return 0
}

// or returns the matches of any part of n.
func (e *evaluation) or(n *query.Or, within value) (value, error) {
	files := e.ofFiles(n)
	if !files {
		within = e.as(within, false) // an arm about files is one about all files of the commit
	}
	out := value{roaring.New(), files}
	for _, s := range n.Subs {
		v, err := e.eval(s, within)
		if err != nil {
			return v, err
		}
		out.set.Or(e.as(v, files).set)
	}
	return out, nil
}

// ofFiles reports whether the matches of q are files instead of commits.
func (e *evaluation) ofFiles(q query.Q) bool {
	any, all := false, true
	var subs []query.Q
	switch n := q.(type) {
	case *query.Lang:
		return true
	case *query.Text:
		return n.Field != query.Message && n.Field != query.Author && n.Field != query.Committer
	case *query.Not:
		return e.diff && e.ofFiles(n.Sub)
	case *query.And:
		subs = n.Subs
	case *query.Or:
		subs = n.Subs
	}
	for _, s := range subs {
		files := e.ofFiles(s)
		any, all = any || files, all && files
	}
	if _, or := q.(*query.Or); or && !e.diff {
		return all
	}
	return any
}

// not returns the commits or files that do not match n.Sub.
func (e *evaluation) not(n *query.Not, within value) (value, error) {
	// A negation must consider all files of a commit, not only those that match other conditions.
	if !e.diff {
		within = e.as(within, false)
	}
	v, err := e.eval(n.Sub, within)
	if err != nil {
		return v, err
	}
	if !e.diff {
		v = e.as(v, false)
	}
	return value{roaring.AndNot(e.all(v.files).set, v.set), v.files}, nil
}

// text returns the matches of a text.
func (e *evaluation) text(t *query.Text, within value) (value, error) {
	p := e.patterns[t]
	switch t.Field {
	case query.Name:
		return e.byPath(func(path uint32) bool { return p.m.Matches(e.x.paths.at(path)) }), nil
	case query.Author:
		return e.byPerson(p, 0), nil
	case query.Committer:
		return e.byPerson(p, 1), nil
	case query.Message:
		return e.search(&e.x.messages, p, e.as(within, false))
	case query.Added, query.Removed, query.Content:
		return e.search(&e.x.lines, p, e.as(within, true))
	}
	return value{}, fmt.Errorf("BUG: field %d is not about changes", t.Field)
}

// byPerson returns the commits whose author (role 0) or committer (role 1) matches.
func (e *evaluation) byPerson(p *pattern, role int) value {
	known := make([]bool, e.x.people.ends.Len())
	for i := range known {
		known[i] = p.m.Matches(e.x.people.at(uint32(i)))
	}
	return e.commits(func(c int) bool { return known[e.x.who.At(2*c+role)] })
}

// search returns the texts in within that match: commits by their messages, or files by their
// lines. It skips pages without candidates.
func (e *evaluation) search(pages *pageColumn, p *pattern, within value) (value, error) {
	out := value{roaring.New(), within.files}
	var units trigram.Bitmap
	next := 0 // page
	for seg := range pages.post.Segments() {
		last := uint32(seg)<<16 | uint32(pages.post.Units(seg)-1)
		if p.formula == nil {
			units.Clear()
			units.AddRange(0, pages.post.Units(seg))
		} else if _, err := pages.post.Search(seg, p.formula, nil, &e.scratch, &units); err != nil {
			return out, e.x.f.Damaged("postings: %v", err)
		}

		for ; next < pages.len(); next++ {
			unit, n := pages.units(next)
			if unit != none && unit > last {
				break
			}
			if unit == none || !anyUnit(&units, int(unit&0xffff), int(n)) {
				continue
			}
			if err := e.page(pages, next, p, within, out); err != nil {
				return out, err
			}
		}
	}
	return out, nil
}

// units returns the first unit of page i in the postings, or none for an empty page, and the number
// of its units.
func (p *pageColumn) units(i int) (first, n uint32) {
	row := p.table[i*pageEntry:]
	return binary.LittleEndian.Uint32(row[4:]), binary.LittleEndian.Uint32(row[8:])
}

// anyUnit reports whether any of n units from a number on is in the set.
func anyUnit(units *trigram.Bitmap, from, n int) bool {
	if from >= trigram.SegmentUnits {
		return false
	}
	u := units.Next(from)
	return u >= 0 && u < from+n
}

// page adds the matching texts of a page.
func (e *evaluation) page(pages *pageColumn, i int, p *pattern, within, out value) error {
	if err := e.ctx.Err(); err != nil {
		return err
	}
	first, end := pages.first(i), pages.end(i)
	var wanted []uint32
	it := within.set.Iterator()
	for it.AdvanceIfNeeded(first); it.HasNext() && it.PeekNext() < end; {
		wanted = append(wanted, it.Next())
	}
	if len(wanted) == 0 {
		return nil
	}
	read, buf, err := e.x.decode(pages, i, e.buf)
	e.buf = buf
	if err != nil {
		return err
	}
	for _, t := range wanted {
		if p.in(read.texts[t-first]) {
			out.set.Add(t)
		}
	}
	return nil
}
