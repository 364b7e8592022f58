package ask

import (
	"context"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/coverage"
	"github.com/shoalsearch/shoal/node/search"
)

// checker looks at the places that an answer cites.
type checker struct {
	gate     *account.Gate
	viewer   catalog.Viewer
	ledger   *ledger
	left     int           // places that may still be looked at
	patience time.Duration // with nodes that are gone, for all places together
}

const (
	maxChecks     = 300
	checkPatience = 15 * time.Second // a cluster notices within some seconds that a node is gone
	lookTime      = 5 * time.Second  // of one look: a node that has just died says nothing at all
	lookAgain     = 200 * time.Millisecond
)

// errNoPlace says that a citation means no place that is there.
var errNoPlace = call.Fail(call.ErrNotFound, "there is no such place")

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

	c, err := k.place(ctx, &m)
	proved := false
	if err == nil && m.first > 0 {
		proved, err = k.lines(ctx, c, &m, sentence)
	}

	switch {
	// A whole file is no place, and lines that nobody has seen prove nothing.
	case err == nil && c.State == Cited && !proved && (c.First == 0 || !k.ledger.shown(c)):
		c.State = Unchecked
		return c
	case err == nil:
		return c
	// Nothing speaks against it: only a place that is not there is held against the model.
	case uncertain(err):
		wrong.State = Unchecked
	}
	return wrong
}

// uncertain reports whether a look that failed says nothing of what is there:
// a node was gone, busy or slow.
func uncertain(err error) bool {
	row := call.KindOf(err)
	return row == nil || row.Elsewhere || row.Status >= 500
}

// again looks for something, and looks again where that failed by a node and
// not by what was looked for, for as long as the checker has patience.
func again[T any](ctx context.Context, k *checker, look func(ctx context.Context) (T, error)) (T, error) {
	for {
		began := clock.Now()
		one, cancel := context.WithTimeout(ctx, lookTime)
		found, err := look(one)
		cancel()
		if err == nil || !uncertain(err) {
			return found, err
		}

		// One patience for all: an answer that cites a hundred places does not wait a hundred times.
		k.patience -= clock.Since(began) + lookAgain
		if k.patience < 0 || !clock.Wait(ctx, lookAgain) {
			return found, err
		}
	}
}

// read is ReadFile of what is cited.
func (k *checker) read(ctx context.Context, req browse.ReadFileRequest) (*browse.ReadFileResponse, error) {
	return again(ctx, k, func(ctx context.Context) (*browse.ReadFileResponse, error) {
		return k.ledger.Reader.ReadFile(ctx, k.viewer, req)
	})
}

// place finds repository and file: at the commit at which it was read, else as
// the model wrote it.
func (k *checker) place(ctx context.Context, m *mark) (*Citation, error) {
	repo, err := k.meant(m)
	if err != nil {
		return nil, err
	}

	f, err := k.read(ctx, browse.ReadFileRequest{Repo: repo, Path: m.path, Ref: m.rev, Limit: 1})
	if err != nil && !uncertain(err) {
		// A path that is not there may be the end of the only one that has it.
		if m.path, err = k.onlyPath(ctx, repo, m); err != nil {
			return nil, err
		}
		f, err = k.read(ctx, browse.ReadFileRequest{Repo: repo, Path: m.path, Ref: m.rev, Limit: 1})
	}
	if err != nil {
		return nil, err
	}
	return &Citation{Repo: f.Repo, Path: f.Path, Commit: f.Commit, State: Cited, Last: f.Total}, nil
}

// meant is the repository that a citation means. Where what was read tells path
// and commit, the mark gets them.
func (k *checker) meant(m *mark) (repo string, err error) {
	seen, err := k.gate.Repos(k.viewer)
	if err != nil {
		return "", err
	}

	// What the model writes is looked up as the asker, narrowed as the tools are: a citation shows
	// no more than they do.
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
		repo = beginning(seen, m)
	}
	if repo == "" {
		return "", errNoPlace
	}
	return repo, nil
}

// beginning takes the name of a repository, of two parts at least, from the beginning of a
// path; "" for none.
func beginning(seen *account.Repos, m *mark) (repo string) {
	for at := strings.LastIndexByte(m.path, '/'); at > 0; at = strings.LastIndexByte(m.path[:at], '/') {
		if found, err := seen.ByEnding(m.path[:at]); err == nil && strings.Contains(m.path[:at], "/") {
			m.path = m.path[at+1:]
			return found.Name
		}
	}
	return ""
}

// onlyPath is the one path of a repository that ends as the model wrote it.
func (k *checker) onlyPath(ctx context.Context, repo string, m *mark) (string, error) {
	req := search.GlobRequest{Pattern: "**/" + globText(m.path), Repo: repo, Ref: m.rev, Limit: 2}
	g, err := again(ctx, k, func(ctx context.Context) (*search.GlobResponse, error) {
		g, err := k.ledger.Searcher.Glob(ctx, k.viewer, req)
		// Part of an answer proves neither that there is no such path nor that it is the only one.
		if err == nil && g.Coverage.Has(coverage.Lost, coverage.Late) {
			err = call.Fail(call.ErrIncomplete, "a part of the index did not answer")
		}
		return g, err
	})

	switch {
	case err != nil:
		return "", err
	case len(g.Repos) != 1 || len(g.Repos[0].Paths) != 1:
		return "", errNoPlace
	}
	return g.Repos[0].Paths[0], nil
}

// globText is a glob that matches a text as it stands.
func globText(text string) string {
	var b strings.Builder
	for _, r := range text {
		if strings.ContainsRune(`*?[]{}()\!,`, r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// slack is how many lines a citation may be off.
const slack = 3

// lines checks that what the sentence names stands in the lines, which proves them, and
// finds where it stands if not.
func (k *checker) lines(ctx context.Context, c *Citation, m *mark, sentence string) (proved bool, err error) {
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
		return false, nil
	}

	// One of the names stands there, or not far from it.
	if inside {
		text, err := k.text(ctx, c, max(1, c.First-slack), c.Last+slack)
		if err != nil || slices.ContainsFunc(names, func(name string) bool { return mentions(text, name) }) {
			return true, err
		}
	}

	// Else it is looked for in the file.
	for _, name := range names {
		first, last, err := k.find(ctx, c, name)
		if err != nil {
			return false, err
		}
		if first > 0 {
			c.First, c.Last, c.State = first, last, Moved
			return true, nil
		}
	}
	if !inside {
		c.First, c.Last, c.State = m.first, m.last, Unverified
		return false, nil
	}

	// A name that stands in the file, but not in these lines and in more than
	// one place, proves the lines wrong. One that is not in the file is of
	// something else, and says nothing. The first page is enough: it only decides
	// whether a doubt is told.
	text, err := k.text(ctx, c, 1, page)
	if err == nil && slices.ContainsFunc(names, func(name string) bool { return mentions(text, lastName(name)) }) {
		c.State = Unverified
	}
	return false, err
}

// page is how many lines are read at a time.
const page = 500

// text is lines of the file, at most a page; "" where there are none.
func (k *checker) text(ctx context.Context, c *Citation, first, last int) (string, error) {
	f, err := k.read(ctx, browse.ReadFileRequest{
		Repo:   c.Repo,
		Path:   c.Path,
		Ref:    c.Commit,
		Offset: first,
		Limit:  min(max(last-first+1, 1), page),
	})
	if err != nil {
		return "", err
	}

	var b strings.Builder
	for _, line := range f.Lines {
		b.Write(line)
		b.WriteByte('\n')
	}
	return b.String(), nil
}

// find is where a name is defined in the file, else the only line that has it;
// 0 for nowhere.
func (k *checker) find(ctx context.Context, c *Citation, name string) (first, last int, err error) {
	short := lastName(name)
	if first, last = k.definition(ctx, c, short); first > 0 {
		return first, last, nil
	}

	// No single definition: a page at a time, until a second line has it.
	at := 0
	for from := 1; from < 20_000; from += page {
		text, err := k.text(ctx, c, from, from+page-1)
		if err != nil {
			return 0, 0, err
		}
		if text == "" {
			break
		}

		for i, line := range strings.Split(text, "\n") {
			if mentions(line, short) {
				if at > 0 {
					return 0, 0, nil
				}
				at = from + i
			}
		}
	}
	return at, at, nil
}

// definition is the only place of the file that defines a name; 0 for none.
func (k *checker) definition(ctx context.Context, c *Citation, name string) (first, last int) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()

	// Not tried again where it fails: a node without the program for it never can, and the lines
	// tell as much.
	o, err := k.ledger.Reader.Outline(ctx, k.viewer, browse.OutlineRequest{Repo: c.Repo, Ref: c.Commit, Paths: []string{c.Path}})
	if err != nil || len(o.Files) != 1 {
		return 0, 0
	}

	// Better where it is defined than where it is used, if that is one place.
	for _, s := range o.Files[0].Symbols {
		if s.Name != name {
			continue
		}
		if first > 0 {
			return 0, 0
		}
		first, last = s.First, max(s.First, s.Last)
	}
	return first, last
}

// lastName is the last part of a name: what stands where it is defined.
func lastName(name string) string { return name[strings.LastIndexAny(name, ".:")+1:] }

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
