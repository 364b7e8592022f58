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

// checker checks the places that an answer cites.
type checker struct {
	gate     *account.Gate
	viewer   catalog.Viewer
	ledger   *ledger
	left     int           // checks left
	patience time.Duration // total time left for waiting for unreachable nodes
}

const (
	maxChecks     = 300
	checkPatience = 15 * time.Second // a cluster notices within seconds that a node is gone
	lookTime      = 5 * time.Second  // for one read: a node that has just died does not answer
	lookAgain     = 200 * time.Millisecond
)

// errNoPlace reports that a citation points to no existing place.
var errNoPlace = call.Fail(call.ErrNotFound, "there is no such place")

// checkCitation finds the place that a citation means.
func (k *checker) checkCitation(ctx context.Context, text, sentence string) *Citation {
	m, ok := parseMark(text)
	unverified := &Citation{Path: path.Base(m.path), State: Unverified}
	if m.first > 0 {
		unverified.First, unverified.Last = m.first, m.last
	}

	// Each check reads a repository, so limit their number.
	if k.left--; !ok || k.left < 0 {
		return unverified
	}

	c, err := k.resolvePlace(ctx, &m)
	proved := false
	if err == nil && m.first > 0 {
		proved, err = k.checkLines(ctx, c, &m, sentence)
	}

	switch {
	// Without a proof from the file, lines count only if a tool has shown them. A whole file
	// needs a tool too.
	case err == nil && c.State == Cited && !proved && (c.First == 0 || !k.ledger.hasShown(c)):
		c.State = Unchecked
		return c
	case err == nil:
		return c
	// Nothing was found to be wrong: only a place that does not exist counts against the model.
	case isUncertain(err):
		unverified.State = Unchecked
	}
	return unverified
}

// isUncertain reports whether a failed read says nothing about the place, because a node was gone,
// busy or slow.
func isUncertain(err error) bool {
	row := call.KindOf(err)
	return row == nil || row.Elsewhere || row.Status >= 500
}

// retry calls look until it succeeds or its failure is certain, as long as the checker has
// patience.
func retry[T any](ctx context.Context, k *checker, look func(ctx context.Context) (T, error)) (T, error) {
	for {
		began := clock.Now()
		limited, cancel := context.WithTimeout(ctx, lookTime)
		found, err := look(limited)
		cancel()
		if err == nil || !isUncertain(err) {
			return found, err
		}

		// All places share the patience, so that an answer with a hundred citations does not wait
		// a hundred times.
		k.patience -= clock.Since(began) + lookAgain
		if k.patience < 0 || !clock.Wait(ctx, lookAgain) {
			return found, err
		}
	}
}

// read reads lines of a cited file.
func (k *checker) read(ctx context.Context, req browse.ReadFileRequest) (*browse.ReadFileResponse, error) {
	return retry(ctx, k, func(ctx context.Context) (*browse.ReadFileResponse, error) {
		return k.ledger.Reader.ReadFile(ctx, k.viewer, req)
	})
}

// resolvePlace resolves the repository and file of a citation, at the commit that the tools read, or
// else as the model wrote it.
func (k *checker) resolvePlace(ctx context.Context, m *mark) (*Citation, error) {
	repo, err := k.resolveRepo(m)
	if err != nil {
		return nil, err
	}

	f, err := k.read(ctx, browse.ReadFileRequest{Repo: repo, Path: m.path, Ref: m.rev, Limit: 1})
	if err != nil && !isUncertain(err) {
		// A missing path may be the end of exactly one path in the repository.
		if m.path, err = k.singlePath(ctx, repo, m); err != nil {
			return nil, err
		}
		f, err = k.read(ctx, browse.ReadFileRequest{Repo: repo, Path: m.path, Ref: m.rev, Limit: 1})
	}
	if err != nil {
		return nil, err
	}
	return &Citation{Repo: f.Repo, Path: f.Path, Commit: f.Commit, State: Cited, Last: f.Total}, nil
}

// resolveRepo returns the repository that a citation means. If the ledger knows the file, it also sets
// the mark's path and commit.
func (k *checker) resolveRepo(m *mark) (repo string, err error) {
	visible, err := k.gate.Repos(k.viewer)
	if err != nil {
		return "", err
	}

	// Resolve names with the asker's permissions and the question's repositories, so that a
	// citation shows no more than the tools do.
	if found, err := visible.ByEnding(m.repo); err == nil {
		repo = found.Name
	} else if m.repo != "" {
		// The model may have written the repository before the path with one colon or none.
		if r, ok := k.ledger.fileEnding("", m.repo+"/"+m.path); ok {
			repo, m.path = r.Repo, r.Path
		}
	}

	// Prefer a file that the tools have read, at that commit.
	if r, ok := k.ledger.fileEnding(repo, m.path); ok {
		repo, m.path = r.Repo, r.Path
		if r.Commit != "" && m.rev == "" {
			m.rev = r.Commit
		}
	}
	if repo == "" {
		repo = cutRepo(visible, m)
	}
	if repo == "" {
		return "", errNoPlace
	}
	return repo, nil
}

// cutRepo returns the repository at the start of the mark's path, and removes it from the path. The
// name must have at least two elements. It returns "" if there is none.
func cutRepo(visible *account.Repos, m *mark) (repo string) {
	for at := strings.LastIndexByte(m.path, '/'); at > 0; at = strings.LastIndexByte(m.path[:at], '/') {
		if found, err := visible.ByEnding(m.path[:at]); err == nil && strings.Contains(m.path[:at], "/") {
			m.path = m.path[at+1:]
			return found.Name
		}
	}
	return ""
}

// singlePath returns the only path of a repository that ends as the model wrote it.
func (k *checker) singlePath(ctx context.Context, repo string, m *mark) (string, error) {
	req := search.GlobRequest{Pattern: "**/" + globText(m.path), Repo: repo, Ref: m.rev, Limit: 2}
	g, err := retry(ctx, k, func(ctx context.Context) (*search.GlobResponse, error) {
		g, err := k.ledger.Searcher.Glob(ctx, k.viewer, req)
		// A partial answer cannot prove that a path is missing or the only one.
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

// globText escapes a text for a glob.
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

// checkLines checks whether the cited lines contain a name of the sentence. If so, proved is true. If
// not, it searches the file and moves the citation.
func (k *checker) checkLines(ctx context.Context, c *Citation, m *mark, sentence string) (proved bool, err error) {
	total := c.Last
	c.First, c.Last = m.first, min(m.last, total)
	// Only names in back-quotes can be checked. Without any, accept the lines unproved.
	names := quotedNames(sentence)
	inside := c.First <= total
	if !inside {
		c.First, c.Last = 0, 0
	}

	if inside && len(names) == 0 {
		return false, nil
	}

	// Accept if one of the names is in or near the lines.
	if inside {
		text, err := k.readLines(ctx, c, max(1, c.First-slack), c.Last+slack)
		if err != nil || slices.ContainsFunc(names, func(name string) bool { return mentions(text, name) }) {
			return true, err
		}
	}

	for _, name := range names {
		first, last, err := k.findName(ctx, c, name)
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

	// If a name occurs in the file, but not in these lines and not in one place only, the lines
	// are wrong. If it does not occur, it names something else and proves nothing. The first page
	// of the file is enough for this doubt.
	text, err := k.readLines(ctx, c, 1, page)
	if err == nil && slices.ContainsFunc(names, func(name string) bool { return mentions(text, lastName(name)) }) {
		c.State = Unverified
	}
	return false, err
}

// page is how many lines are read at a time.
const page = 500

// readLines returns lines of the file, at most a page; "" if there are none.
func (k *checker) readLines(ctx context.Context, c *Citation, first, last int) (string, error) {
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

// findName returns the definition of a name in the file, or else the only line with the name; 0 if
// there is none.
func (k *checker) findName(ctx context.Context, c *Citation, name string) (first, last int, err error) {
	short := lastName(name)
	if first, last = k.findDefinition(ctx, c, short); first > 0 {
		return first, last, nil
	}

	// No single definition: read page by page until a second line has the name.
	at := 0
	for from := 1; from < 20_000; from += page {
		text, err := k.readLines(ctx, c, from, from+page-1)
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

// findDefinition returns the only definition of a name in the file; 0 if there is none.
func (k *checker) findDefinition(ctx context.Context, c *Citation, name string) (first, last int) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()

	// Do not retry: a node without ctags always fails, and searching the lines tells as much.
	o, err := k.ledger.Reader.Outline(ctx, k.viewer, browse.OutlineRequest{Repo: c.Repo, Ref: c.Commit, Paths: []string{c.Path}})
	if err != nil || len(o.Files) != 1 {
		return 0, 0
	}

	// A definition counts only if it is the single one.
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

// lastName returns the last part of a name, as written in its definition.
func lastName(name string) string { return name[strings.LastIndexAny(name, ".:")+1:] }

var (
	quoted     = regexp.MustCompile("`([^`\n]{2,80})`")
	identifier = regexp.MustCompile(`^[A-Za-z_$][\w$]*(?:(?:\.|::|#|->)[A-Za-z_$][\w$]*)*$`)
)

// quotedNames returns the identifiers in back-quotes, the last ones first.
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

// mentions reports whether a text contains a name, or its last part, as a word.
func mentions(text, name string) bool {
	// Code has Close where prose says Store.Close.
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

		// A whole word only: CloseAll does not mention Close.
		if (at == 0 || !isWord(text[at-1])) && (end == len(text) || !isWord(text[end])) {
			return true
		}

		from = at + 1
	}
}

func isWord(b byte) bool {
	return b == '_' || b == '$' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
}
