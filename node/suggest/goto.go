package suggest

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/paste"
	"github.com/shoalsearch/shoal/node/paths"
	"github.com/shoalsearch/shoal/node/search"
	"github.com/shoalsearch/shoal/node/symbols"
	"github.com/shoalsearch/shoal/shard"
	"github.com/shoalsearch/shoal/shard/lex"
	"github.com/shoalsearch/shoal/shard/query"
)

// Target is what a pasted text names, if it exists for the viewer.
type Target struct {
	Kind       TargetKind `json:"kind"`
	Repository string     `json:"repository,omitzero"` // "" if files are in several
	Revision   string     `json:"revision,omitzero"`   // "" means HEAD; of a comparison both, as a...b
	Path       string     `json:"path,omitzero"`
	Line       int        `json:"line,omitzero"`    // from 1; 0 for none
	EndLine    int        `json:"endLine,omitzero"` // 0 for one line
	Text       string     `json:"text,omitzero"`    // source line, subject of the commit, or kind and name of the symbol
	Frame      bool       `json:"frame,omitzero"`   // of a call stack
	Query      string     `json:"query,omitzero"`   // of files: a search that lists them
	Language   string     `json:"language,omitzero"`

	// Around is the lines of a frame from First on, for pages.
	Around string    `json:"-"`
	Open   lex.State `json:"-"` // what the lines before Around, or Text, leave open
	First  int       `json:"-"`
}

// TargetKind is the kind of a target.
type TargetKind string

// Kinds of targets.
const (
	FileTarget       TargetKind = "file"
	DirectoryTarget  TargetKind = "directory"
	FilesTarget      TargetKind = "files"
	CommitTarget     TargetKind = "commit"
	CompareTarget    TargetKind = "compare"
	SymbolTarget     TargetKind = "symbol"
	RepositoryTarget TargetKind = "repository"
)

// Limits of targets.
const (
	mostTargets   = 4                      // without frames
	mostFrames    = 60                     // of a call stack
	pathFiles     = 100                    // files of one name that are compared with a path
	textBytes     = 200                    // of a source line
	FrameLines    = 2                      // lines shown before and after it
	maxLookups    = 4                      // look-ups at once
	targetsTime   = 250 * time.Millisecond // for all look-ups
	tracesTime    = time.Second
	commitRepos   = 100 // repositories where a commit is looked up
	readHistories = 20  // above this number of repositories only indexed commits are searched by number
	maxOfNumber   = 10  // commits that are searched for a number; #12 is in #123 too
	maxModule     = 8   // parts of a path that may name a repository
	filesCommand  = "type:file "
)

// GoTo finds what a text names: files with lines, commits, symbols, pages of hosts, and files of a
// glob. It returns only what the viewer may see. Filters in the text limit the search. Results that
// take too long are left out; there are no errors.
func (s *Suggester) GoTo(ctx context.Context, v catalog.Viewer, text string) []Target {
	text, filters := withoutFilters(text)
	m := paste.Read(text)
	if m.Empty() {
		return nil
	}

	within := targetsTime
	if m.Trace() || m.Change != "" {
		within = tracesTime
	}
	ctx, cancel := context.WithTimeout(ctx, max(within, s.d.Within))
	defer cancel()

	g := &targets{s: s, ctx: ctx, viewer: v, filters: filters, text: text, trace: m.Trace()}
	out := g.findPages(m.Addresses)
	out = append(out, g.findPlaces(m)...)
	out = append(out, g.findGlobs(m.Globs)...)
	if len(out) == 0 {
		out = append(g.findCommits(m.Commits), g.names(m.Names)...)
		out = append(out, g.findChange(m.Change)...)
	}

	if !m.Trace() {
		out = out[:min(len(out), mostTargets)]
	}
	g.addText(out)
	return out
}

// oneFilter matches a filter with its value. Filters of one letter are left out, because in
// pasted text they are more often something else.
var oneFilter = regexp.MustCompile(`(?:^|\s)(-?(?:` + strings.Join(longFilters(), "|") + `):(?:"(?:[^"\\]|\\.)*"|[^\s/"][^\s]*))`)

// longFilters returns the names of filters, the longest first.
func longFilters() (names []string) {
	for _, f := range query.Filters() {
		for _, name := range f.Names {
			if len(name) > 2 {
				names = append(names, name)
			}
		}
	}
	return names
}

// withoutFilters splits a query into its text and its filters.
func withoutFilters(query string) (text, filters string) {
	for _, m := range oneFilter.FindAllStringSubmatch(query, -1) {
		filters += m[1] + " "
	}
	return strings.TrimSpace(oneFilter.ReplaceAllString(query, " ")), filters
}

// targets is one call of GoTo.
type targets struct {
	s       *Suggester
	ctx     context.Context
	viewer  catalog.Viewer
	filters string // ends with a space
	text    string // without filters
	trace   bool   // the text has a call stack
}

// findPlaces finds the files of places, in order. A frame of a call stack gets one file.
func (g *targets) findPlaces(m *paste.Meaning) []Target {
	byPath := map[string][]Target{}
	var wanted []paste.Place
	for _, p := range m.Places[:min(len(m.Places), mostFrames)] {
		if _, known := byPath[p.Path]; !known {
			byPath[p.Path] = nil
			wanted = append(wanted, p)
		}
	}

	found := make([][]Target, len(wanted))
	inParallel(len(wanted), func(i int) { found[i] = g.findFiles(&wanted[i]) })
	for i := range wanted {
		byPath[wanted[i].Path] = found[i]
	}

	var out []Target
	for _, p := range m.Places {
		most := mostTargets - 1
		if g.trace {
			most = 1
		}
		files := g.preferNamed(&p, byPath[p.Path])
		for _, t := range files[:min(len(files), most)] {
			t.Line, t.EndLine, t.Frame = p.Line, p.End, g.trace
			if !slices.Contains(out, t) {
				out = append(out, t)
			}
		}
	}
	return out
}

// inParallel calls f for each number below n, a few at the same time.
func inParallel(n int, f func(i int)) {
	all, _ := call.NewGroup(context.Background(), maxLookups)
	for i := range n {
		all.Go(func() error { f(i); return nil })
	}
	_ = all.Wait() // f has no error
}

// findGlobs returns a search for each pattern that matches files.
func (g *targets) findGlobs(globs []string) []Target {
	var out []Target
	for _, glob := range globs {
		for _, pattern := range []string{glob, "**/" + glob} {
			e, err := paths.OfGlob("", pattern)
			if err != nil || len(e.Must) == 0 {
				break
			}
			q := filesCommand + g.filters
			for _, expr := range e.Must {
				q += "file:" + query.QuoteRegexp(expr) + " "
			}
			q = strings.TrimSpace(q)
			if r, err := g.s.d.Search.Search(g.ctx, g.viewer, search.Request{Query: q, Matches: 1}); err == nil && len(r.Files) > 0 {
				out = append(out, Target{Kind: FilesTarget, Query: q, Text: glob})
				break
			}
		}
	}
	return out
}

// findCommits finds commits by prefixes of their hashes.
func (g *targets) findCommits(hashes []string) []Target {
	var out []Target
	for _, hash := range hashes {
		out = append(out, g.findCommit(hash)...)
	}
	return out
}

func (g *targets) findCommit(hash string) []Target {
	repos := g.reposWithCommit(hash)
	found := make([]Target, len(repos))
	inParallel(len(repos), func(i int) { found[i] = g.commitIn(repos[i], hash) })
	return slices.DeleteFunc(found, func(t Target) bool { return t.Kind == "" })
}

// findChange finds in each repository the newest commit with a number in its subject. With few
// repositories it reads histories, with more it searches the indexed commits.
func (g *targets) findChange(number string) []Target {
	if number == "" {
		return nil
	}
	whole := regexp.MustCompile(regexp.QuoteMeta(number) + `\b`) // not in a longer number
	names := []string{g.s.onlyRepository(g.ctx, g.viewer, g.filters)}
	if names[0] == "" {
		r, err := g.s.d.Browse.Repos(g.ctx, g.viewer, browse.ReposRequest{Sort: "pushed", Desc: true, PerPage: readHistories})
		if err != nil {
			return nil
		}
		if r.Total > readHistories {
			return g.findIndexedChange(number, whole)
		}
		names = nil
		for i := range r.Repos {
			names = append(names, r.Repos[i].Name)
		}
	}

	found := make([]Target, len(names))
	inParallel(len(names), func(i int) {
		r, err := g.s.d.Browse.Commits(g.ctx, g.viewer, browse.CommitsRequest{Repo: names[i], Query: number, PerPage: maxOfNumber})
		if err != nil {
			return
		}
		for _, c := range r.Commits {
			if whole.MatchString(c.Message) {
				found[i] = Target{Kind: CommitTarget, Repository: names[i], Revision: c.Hash, Text: c.Message}
				return
			}
		}
	})
	return slices.DeleteFunc(found, func(t Target) bool { return t.Kind == "" })
}

// findIndexedChange finds the newest commit of each repository with a number in its subject, among
// the indexed commits. whole matches the number.
func (g *targets) findIndexedChange(number string, whole *regexp.Regexp) []Target {
	q := "type:commit " + g.filters + query.Quote(number)
	r, err := g.s.d.Search.SearchCommits(g.ctx, g.viewer, search.Request{Query: q, Matches: maxOfNumber})
	if err != nil {
		return nil
	}
	var out []Target
	for _, c := range r.Commits {
		subject, _, _ := strings.Cut(c.Message, "\n")
		newer := slices.ContainsFunc(out, func(t Target) bool { return t.Repository == c.Repository })
		if !newer && whole.MatchString(subject) {
			out = append(out, Target{Kind: CommitTarget, Repository: c.Repository, Revision: c.ID, Text: subject})
		}
	}
	return out
}

// reposWithCommit returns the repositories that may have a commit: those where it is an indexed
// revision, or else those that changed last.
func (g *targets) reposWithCommit(hash string) (names []string) {
	if onlyRepo := g.s.onlyRepository(g.ctx, g.viewer, g.filters); onlyRepo != "" {
		return []string{onlyRepo}
	}
	r, err := g.s.d.Browse.Repos(g.ctx, g.viewer, browse.ReposRequest{Sort: "pushed", Desc: true, PerPage: commitRepos})
	if err != nil {
		return nil
	}
	var indexed []string
	for i := range r.Repos {
		names = append(names, r.Repos[i].Name)
		if slices.ContainsFunc(r.Repos[i].Revisions, func(rev browse.RevisionInfo) bool { return strings.HasPrefix(rev.Commit, hash) }) {
			indexed = append(indexed, r.Repos[i].Name)
		}
	}
	if len(indexed) > 0 {
		return indexed
	}
	return names
}

// commitIn returns the commit of a repository whose hash begins with hash; the zero value for
// none.
func (g *targets) commitIn(repo, hash string) Target {
	c, err := g.s.d.Browse.Commit(g.ctx, g.viewer, browse.CommitRequest{Repo: repo, Ref: hash})
	// A branch may have a name like a hash.
	if err != nil || !strings.HasPrefix(c.Hash, hash) {
		return Target{}
	}
	return Target{Kind: CommitTarget, Repository: repo, Revision: c.Hash, Text: c.Message}
}

// names finds definitions of names in a matching package, file or type.
func (g *targets) names(names []paste.Name) []Target {
	found := make([][]Target, len(names))
	inParallel(len(names), func(i int) { found[i] = g.findDefinitions(&names[i]) })
	return slices.Concat(found...)
}

// findDefinitions finds the definitions that fit a name best; for a frame only one.
func (g *targets) findDefinitions(n *paste.Name) []Target {
	r, err := g.s.d.Search.Definitions(g.ctx, g.viewer, symbols.SymbolRequest{Symbol: n.Name, Repo: g.s.onlyRepository(g.ctx, g.viewer, g.filters)})
	if err != nil {
		return nil
	}
	best := 0
	var of []Target
	for i := range r.Files {
		f := &r.Files[i]
		for _, m := range f.Matches {
			fit := 1 // a kernel names no file and no package
			if len(n.Scope) > 0 {
				fit = scopeFit(n.Scope, f.Repository, f.Path, m.ParentName)
			}
			score := fit*(shard.RankVendored+1) - shard.PathRank(f.Path) // sources before copies of them
			if m.Name != n.Name || fit == 0 || score < best {
				continue
			}
			if score > best {
				best, of = score, nil
			}
			of = append(of, Target{Kind: SymbolTarget, Repository: f.Repository, Path: f.Path, Line: int(m.Range.Start.Line), Frame: n.Frame, Text: m.Kind + " " + strings.Join(append(slices.Clone(n.Scope[max(0, len(n.Scope)-1):]), n.Name), ".")})
		}
	}
	if n.Frame {
		return of[:min(len(of), 1)]
	}
	return of[:min(len(of), mostTargets-1)]
}

// scopeFit rates how much of a name's scope is around a definition: in its parent, path or
// repository. The innermost part counts most.
func scopeFit(scope []string, repo, path, parent string) (score int) {
	around := strings.FieldsFunc(strings.ToLower(repo+"/"+path), func(r rune) bool { return strings.ContainsRune("/.-", r) })
	parents := strings.FieldsFunc(strings.ToLower(parent), func(r rune) bool { return strings.ContainsRune(".:", r) })
	for i, part := range scope {
		// Many repositories share the host of a module's path.
		if i < 2 && len(scope) > 3 {
			continue
		}
		part = strings.ToLower(part)
		weight := 2
		if i == len(scope)-1 {
			weight = 2 * len(scope)
		}
		switch {
		case slices.Contains(parents, part):
			score += 2 * weight
		case slices.Contains(around, part):
			score += weight
		}
	}
	// Plug.Adapters.Test.Conn has all parts of Plug.Conn.
	if score > 0 && strings.EqualFold(strings.Join(parents, "."), strings.Join(scope, ".")) {
		score++
	}
	return score
}

// findPages finds the pages of addresses.
func (g *targets) findPages(list []paste.Address) []Target {
	var out []Target
	for i := range list {
		a := &list[i]
		if a.Kind == paste.Module {
			out = append(out, g.splitModule(a.Rest)...)
			continue
		}
		repo, err := g.s.d.Browse.Repo(g.ctx, g.viewer, a.Repo)
		if err != nil {
			continue
		}
		if t, ok := g.findPage(a, repo.Name); ok {
			out = append(out, t)
		}
	}
	return out
}

// findPage returns the target in a repository that a pasted URL leads to; false if there is none.
func (g *targets) findPage(a *paste.Address, repo string) (Target, bool) {
	t := Target{Repository: repo, Line: a.Line, EndLine: a.End}
	switch a.Kind {
	case paste.Commit:
		t = g.commitIn(repo, a.Rest)
		return t, t.Kind != ""
	case paste.Compare:
		t.Kind, t.Revision = CompareTarget, a.Rest
		return t, true
	case paste.File:
		return g.splitRevision(t, a)
	}
	t.Kind, t.Revision = RepositoryTarget, a.Rev
	return t, true
}

// majorVersion matches the major version in a module's path.
var majorVersion = regexp.MustCompile(`^v[0-9]+$`)

// splitModule splits a path into the name of a repository and a directory.
func (g *targets) splitModule(path string) []Target {
	parts := slices.DeleteFunc(strings.Split(path, "/"), majorVersion.MatchString)
	for i := min(len(parts), maxModule); i > 1; i-- {
		repo, err := g.s.d.Browse.Repo(g.ctx, g.viewer, strings.Join(parts[:i], "/"))
		if err != nil {
			continue
		}
		t := Target{Kind: RepositoryTarget, Repository: repo.Name}
		if dir := strings.Join(parts[i:], "/"); dir != "" {
			if in, ok := g.pathAt(t, "", dir); ok {
				t = in
			}
		}
		return []Target{t}
	}
	return nil
}

// splitRevision finds the file or directory of a pasted URL: it tries where the revision, which may have
// slashes, ends and the path begins. If no such revision is here, it tries HEAD. false: nothing exists.
func (g *targets) splitRevision(t Target, a *paste.Address) (Target, bool) {
	if a.Rev != "" {
		return g.pathAt(t, a.Rev, a.Rest)
	}
	parts := strings.Split(a.Rest, "/")
	for i := 1; i <= min(len(parts), 4); i++ {
		if found, ok := g.pathAt(t, strings.Join(parts[:i], "/"), strings.Join(parts[i:], "/")); ok {
			return found, true
		}
	}
	return g.pathAt(t, "", strings.Join(parts[1:], "/"))
}

// pathAt returns t for the file or directory at a path and revision; false if there is none.
func (g *targets) pathAt(t Target, rev, path string) (Target, bool) {
	if rev == "HEAD" {
		rev = ""
	}
	// A default branch needs no revision in an address.
	if info, err := g.s.d.Browse.Repo(g.ctx, g.viewer, t.Repository); err == nil && info.DefaultBranch == rev {
		rev = ""
	}
	t.Kind, t.Revision, t.Path = FileTarget, rev, path
	if path != "" {
		if _, err := g.s.d.Browse.Source(g.ctx, g.viewer, browse.SourceRequest{Repo: t.Repository, Ref: rev, Path: path, FirstLine: 1, Lines: 1}); err == nil {
			return t, true
		}
	}
	t.Kind, t.Line, t.EndLine = DirectoryTarget, 0, 0
	_, err := g.s.d.Browse.Tree(g.ctx, g.viewer, browse.TreeRequest{Repo: t.Repository, Ref: rev, Paths: []string{path}, Max: 1})
	return t, err == nil
}

// addText reads the source line of each file. It drops a line number beyond the end of the file: such
// a file comes after the others, unless it is a frame.
func (g *targets) addText(list []Target) {
	withoutLine := slices.ContainsFunc(list, Target.lacksLine)
	inParallel(len(list), func(i int) {
		t := &list[i]
		if t.Kind != FileTarget || t.Line == 0 {
			return
		}
		first, lines := t.Line, 1
		if t.Frame {
			first = max(1, t.Line-FrameLines)
			lines = t.Line - first + 1 + FrameLines
		}
		r, err := g.s.d.Browse.Source(g.ctx, g.viewer, browse.SourceRequest{Repo: t.Repository, Ref: t.Revision, Path: t.Path, FirstLine: first, Lines: lines})
		switch {
		case err != nil:
			return // the file exists, but reading took too long
		case r.Total < t.Line || r.Binary:
			t.Line, t.EndLine = 0, 0
			return
		}
		if t.Language, t.Open = r.Language, r.Open; t.Frame {
			t.Around, t.First = string(r.Content), first
		}
		all := strings.SplitN(string(r.Content), "\n", t.Line-first+2)
		line := strings.TrimRight(all[min(t.Line-first, len(all)-1)], "\r")
		t.Text = strings.ToValidUTF8(line[:min(len(line), textBytes)], "\ufffd")
	})

	// Without a line from the start, nothing tells which files are too short.
	if !withoutLine {
		rank := func(t Target) int {
			if t.lacksLine() {
				return 1
			}
			return 0
		}
		slices.SortStableFunc(list, func(a, b Target) int { return rank(a) - rank(b) })
	}
}

// lacksLine reports whether a target is a file without a line, and no frame.
func (t Target) lacksLine() bool { return t.Kind == FileTarget && t.Line == 0 && !t.Frame }
