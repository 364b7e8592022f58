package ask

import (
	"context"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/search"
)

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
