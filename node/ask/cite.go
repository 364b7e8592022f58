package ask

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/search"
)

// Citation is a place in a file that an answer points to. The file was looked
// at when the answer was made, at this commit, so the link never drifts.
type Citation struct {
	Repo, Path  string
	Commit      string
	First, Last int // lines; 0 for the whole file
	State       CiteState
}

// CiteState is what the check of a citation came to.
type CiteState string

// The states.
const (
	Cited      CiteState = "cited"      // as the model wrote it
	Moved      CiteState = "moved"      // to the lines where that stands of which the sentence speaks
	Unverified CiteState = "unverified" // there is no such place: it has no link
)

// Label is the name of the place.
func (c *Citation) Label() string {
	switch {
	// The whole file is meant, or the lines were not there.
	case c.First == 0:
		return c.Path
	case c.Last == c.First:
		return fmt.Sprintf("%s:%d", c.Path, c.First)
	}
	return fmt.Sprintf("%s:%d-%d", c.Path, c.First, c.Last)
}

// URL is the page of the place; "" for one that is not verified.
func (c *Citation) URL(base string) string {
	if c.State == Unverified {
		return ""
	}
	u := browse.WebURL(base, c.Repo, c.Commit, "blob", c.Path)
	switch {
	case c.First == 0:
		return u
	case c.Last == c.First:
		return fmt.Sprintf("%s#L%d", u, c.First)
	}
	return fmt.Sprintf("%s#L%d-L%d", u, c.First, c.Last)
}

// marker begins a citation in what a model writes: @file:{repo::path:10-20}.
const marker = "@file:{"

// longestCite is how many bytes of a citation are waited for.
const longestCite = 400

// citer parts what a model writes into text and citations, and checks these.
type citer struct {
	check func(mark, sentence string) *Citation
	give  func(Piece)
	held  string // what could be, or is, the beginning of a citation
	near  string // the end of the text before, for its sentence
}

// write takes a piece of what the model writes.
func (c *citer) write(text string) {
	// A mark may be cut anywhere between two pieces, so the end of the last one comes first.
	text = c.held + clean(text)
	c.held = ""

	for text != "" {
		at := strings.Index(text, marker)
		if at < 0 {
			// The end may be the beginning of a mark: the next piece tells.
			keep := partOf(text, marker)
			c.text(text[:len(text)-keep])
			c.held = text[len(text)-keep:]
			return
		}

		c.text(text[:at])
		text = text[at:]
		end := strings.IndexAny(text, "}\n")

		// A mark that has ended, one too long to be a mark, or one that goes on.
		switch {
		case end >= 0 && end <= longestCite:
			mark := text[len(marker):end]
			if text[end] == '}' {
				end++
			}
			text = text[end:]
			c.cite(mark)
		case len(text) > longestCite:
			c.text(text[:len(marker)])
			text = text[len(marker):]
		default:
			c.held = text
			return
		}
	}
}

// close gives out what was held back.
func (c *citer) close() {
	held := c.held
	c.held = ""
	if mark, ok := strings.CutPrefix(held, marker); ok {
		c.cite(mark) // cut by the limit of output
		return
	}
	c.text(held)
}

func (c *citer) text(text string) {
	if text == "" {
		return
	}
	// Kept for the next citation, which belongs to the sentence before it: the end is enough.
	c.near += text
	if len(c.near) > 2000 {
		c.near = strings.ToValidUTF8(c.near[len(c.near)-1000:], "")
	}
	c.give(Piece{Text: text})
}

func (c *citer) cite(mark string) {
	c.give(Piece{Cite: c.check(mark, sentence(c.near))})
	c.near = "" // the next one is about what comes next
}

// partOf is how many bytes at the end of a text could begin a word.
func partOf(text, word string) int {
	for n := min(len(text), len(word)-1); n > 0; n-- {
		if strings.HasSuffix(text, word[:n]) {
			return n
		}
	}
	return 0
}

// sentence is the last one of a text.
func sentence(text string) string {
	text = strings.TrimRight(text, " \t(")
	at := max(strings.LastIndex(text, ". "), strings.LastIndex(text, "\n"))
	return text[at+1:]
}

// mark is a citation as the model wrote it.
type mark struct {
	repo, path, rev string
	first, last     int
}

var lineRange = regexp.MustCompile(`^(.*?):L?(\d+)(?:-L?(\d+))?(?:,.*)?$`)

// parseMark reads a citation, and mends what models get wrong: repo::path:10-20,
// repo::path::rev:10, repo/path:10, back-quotes, trailing signs.
func parseMark(text string) (m mark, ok bool) {
	text = strings.Trim(text, " `'\"<>{}")
	text = strings.TrimRight(text, ":).,")
	if found := lineRange.FindStringSubmatch(text); found != nil {
		text = found[1]
		m.first, _ = strconv.Atoi(found[2]) // digits; one too large is 0
		m.last, _ = strconv.Atoi(found[3])
	}

	if m.last < m.first {
		m.last = m.first
	}

	parts := strings.Split(text, "::")
	switch len(parts) {
	case 1:
		m.path = parts[0]
	case 2:
		m.repo, m.path = parts[0], parts[1]
	default:
		m.repo, m.path, m.rev = parts[0], parts[1], parts[2]
	}

	m.path = strings.TrimPrefix(strings.Trim(m.path, "` "), "/")
	m.repo = strings.Trim(m.repo, "` /")
	return m, m.path != "" && len(m.path) < 1000
}

// checker looks at the places that an answer cites.
type checker struct {
	gate   *account.Gate
	viewer catalog.Viewer
	ledger *ledger
	left   int // places that may still be looked at
}

const maxChecks = 300

// check finds the place that a citation means.
func (k *checker) check(ctx context.Context, text, sentence string) *Citation {
	m, ok := parseMark(text)
	wrong := &Citation{Path: path.Base(m.path), State: Unverified}
	if m.first > 0 {
		wrong.First, wrong.Last = m.first, m.last
	}

	// Each place is looked up in its repository: an answer of nothing but marks has a bound.
	if k.left--; !ok || k.left < 0 {
		return wrong
	}

	c := k.place(ctx, &m)
	if c == nil {
		return wrong
	}
	if m.first > 0 {
		k.lines(ctx, c, &m, sentence)
	}
	return c
}

// place finds repository and file: at the commit at which it was read, else as
// the model wrote it.
func (k *checker) place(ctx context.Context, m *mark) *Citation {
	seen, err := k.gate.Repos(k.viewer)
	if err != nil {
		return nil
	}

	// What the model writes is looked up as the asker, narrowed as the tools are: a citation shows
	// no more than they do.
	repo := ""
	if found, err := seen.ByEnding(m.repo); err == nil {
		repo = found.Name
	} else if m.repo != "" {
		// The repository may stand before the path with one colon or none.
		if r, ok := k.ledger.ending("", m.repo+"/"+m.path); ok {
			repo, m.path = r.Repo, r.Path
		}
	}

	// What was read is meant, at the commit at which it was.
	if r, ok := k.ledger.ending(repo, m.path); ok {
		repo, m.path = r.Repo, r.Path
		if r.Commit != "" && m.rev == "" {
			m.rev = r.Commit
		}
	}
	if repo == "" {
		return nil
	}

	// A path that is not there may be the end of the only one that has it.
	for range 2 {
		f, err := k.ledger.Browser.ReadFile(ctx, k.viewer, browse.ReadFileRequest{Repo: repo, Path: m.path, Ref: m.rev, Limit: 1})
		if err == nil {
			return &Citation{Repo: f.Repo, Path: f.Path, Commit: f.Commit, State: Cited, Last: f.Total}
		}
		if m.path = k.onlyPath(ctx, repo, m); m.path == "" {
			return nil
		}
	}
	return nil
}

// onlyPath is the one path of a repository that ends as the model wrote it.
func (k *checker) onlyPath(ctx context.Context, repo string, m *mark) string {
	g, err := k.ledger.Searcher.Glob(ctx, k.viewer, search.GlobRequest{Pattern: "**/" + globText(m.path), Repo: repo, Ref: m.rev, Limit: 2})
	if err != nil || len(g.Repos) != 1 || len(g.Repos[0].Paths) != 1 {
		return ""
	}
	return g.Repos[0].Paths[0]
}

// globText is a glob that matches a text as it stands.
func globText(text string) string {
	var b strings.Builder
	for _, r := range text {
		if strings.ContainsRune(`*?[]{}\!`, r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// slack is how many lines a citation may be off.
const slack = 3

// lines checks that what the sentence names stands in the lines, and finds
// where it stands if not.
func (k *checker) lines(ctx context.Context, c *Citation, m *mark, sentence string) {
	total := c.Last
	c.First, c.Last = m.first, min(m.last, total)
	// What a sentence names in back-quotes is what can be checked; without names the lines are
	// believed.
	names := quotedNames(sentence)
	inside := c.First <= total
	if !inside {
		c.First, c.Last = 0, 0
	}

	if inside && len(names) == 0 {
		return
	}

	// One of the names stands there, or not far from it.
	text := k.text(ctx, c, max(1, c.First-slack), c.Last+slack)
	if inside && slices.ContainsFunc(names, func(name string) bool { return mentions(text, name) }) {
		return
	}

	// Else it is looked for in the file.
	for _, name := range names {
		if first, last, ok := k.find(ctx, c, name); ok {
			c.First, c.Last, c.State = first, last, Moved
			return
		}
	}
	if !inside {
		c.First, c.Last, c.State = m.first, m.last, Unverified
		return
	}

	// A name that stands in the file, but not in these lines and in more than
	// one place, proves the lines wrong. One that is not in the file is of
	// something else, and says nothing.
	if slices.ContainsFunc(names, func(name string) bool { return k.has(ctx, c, name) }) {
		c.State = Unverified
	}
}

// text is lines of the file, at most a page.
func (k *checker) text(ctx context.Context, c *Citation, first, last int) string {
	f, err := k.ledger.Browser.ReadFile(ctx, k.viewer, browse.ReadFileRequest{
		Repo: c.Repo, Path: c.Path, Ref: c.Commit, Offset: first, Limit: min(max(last-first+1, 1), 500),
	})
	if err != nil {
		return ""
	}
	var b strings.Builder
	for _, line := range f.Lines {
		b.Write(line)
		b.WriteByte('\n')
	}
	return b.String()
}

// find is where a name is defined in the file, else the only line that has it.
func (k *checker) find(ctx context.Context, c *Citation, name string) (first, last int, ok bool) {
	short := name[strings.LastIndexAny(name, ".:")+1:]

	// Better where it is defined than where it is used, if that is one place.
	o, err := k.ledger.Browser.Outline(ctx, k.viewer, browse.OutlineRequest{Repo: c.Repo, Ref: c.Commit, Paths: []string{c.Path}})
	if err == nil && len(o.Files) == 1 {
		found := 0
		for _, s := range o.Files[0].Symbols {
			if s.Name == short {
				found++
				first, last = s.First, s.Last
			}
		}

		if found == 1 {
			return first, max(first, last), true
		}
	}

	// No single definition: a page at a time, until a second line has it.
	at := 0
	for from := 1; from < 20_000; from += 500 {
		text := k.text(ctx, c, from, from+499)
		if text == "" {
			break
		}
		for i, line := range strings.Split(text, "\n") {
			if mentions(line, short) {
				if at > 0 {
					return 0, 0, false
				}
				at = from + i
			}
		}
	}
	return at, at, at > 0
}

// has reports whether the first lines of the file have a name.
func (k *checker) has(ctx context.Context, c *Citation, name string) bool {
	short := name[strings.LastIndexAny(name, ".:")+1:]
	// One page is enough: it only decides whether a doubt is told.
	return mentions(k.text(ctx, c, 1, 500), short)
}

var (
	quoted     = regexp.MustCompile("`([^`\n]{2,80})`")
	identifier = regexp.MustCompile(`^[A-Za-z_$][\w$]*(?:(?:\.|::|#|->)[A-Za-z_$][\w$]*)*$`)
)

// quotedNames are the names of code in a sentence, those nearest to its end
// first.
func quotedNames(sentence string) []string {
	var names []string
	for _, m := range quoted.FindAllStringSubmatch(sentence, 20) {
		name := strings.TrimSuffix(strings.TrimSpace(m[1]), "()")
		if identifier.MatchString(name) {
			names = append(names, name)
		}
	}
	slices.Reverse(names)
	return names
}

// mentions reports whether a text has a name as a word, or its last part.
func mentions(text, name string) bool {
	// Code says Close where prose says Store.Close.
	if at := strings.LastIndexAny(name, ".:#>"); at >= 0 {
		name = name[at+1:]
	}

	for from := 0; ; {
		at := strings.Index(text[from:], name)
		if at < 0 {
			return false
		}

		at += from
		end := at + len(name)

		// As a word: Close does not stand in a line that has CloseAll.
		if (at == 0 || !isWord(text[at-1])) && (end == len(text) || !isWord(text[end])) {
			return true
		}

		from = at + 1
	}
}

func isWord(b byte) bool {
	return b == '_' || b == '$' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
}

// clean takes out characters that are not seen: controls, and those that turn
// the direction of text around.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r < 0x20 || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0x200e || r == 0x200f || r == 0xfeff || r >= 0xe0000 && r <= 0xe007f:
			return -1
		}
		return r
	}, text)
}
