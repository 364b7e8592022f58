package node

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/shard"
	"github.com/shoalsearch/shoal/shard/query"
)

// GrepRequest asks for lines that match an expression, case-sensitively.
type GrepRequest struct {
	Pattern     string // RE2 syntax
	Path        string // directory prefix; "" means the root
	Include     string // anchored doublestar glob of paths (relative to Path when that is given)
	Repo        string // full name; "" for all
	Ref         string // any branch, tag or commit of the mirror; "" means HEAD
	Limit       int    // files, 1..10,000; 0 means 100
	GroupByRepo bool   // counts per repository instead of lines
}

// GrepResponse is what was found, in the total order of a search.
type GrepResponse struct {
	Files   []GrepFile
	Repos   []GrepRepo // with GroupByRepo
	Matches int        // lines in Files
	Cut     bool       // more files match than Limit lets through, or a part did not answer
	CutWhy  string     // one sentence, when Cut
	Over    bool       // a greater Limit gives more
}

// GrepFile is one file with matching lines.
type GrepFile struct {
	Repo   string
	Path   string
	WebURL string
	Lines  []GrepLine
}

// GrepLine is one matching line, without its end.
type GrepLine struct {
	Number int // from 1
	Text   []byte
}

// GrepRepo counts what a repository has.
type GrepRepo struct {
	Repo           string
	Files, Matches int
}

// GlobRequest asks for paths that match a glob.
type GlobRequest struct {
	Pattern string // anchored doublestar glob (relative to Path when that is given)
	Path    string
	Repo    string // "" for all
	Ref     string
	Limit   int // files; 0 means 100
}

// GlobResponse lists paths by repository.
type GlobResponse struct {
	Repos  []GlobRepo
	Files  int
	Cut    bool
	CutWhy string
	Over   bool // a greater Limit gives more
}

// GlobRepo is the paths of one repository.
type GlobRepo struct {
	Repo  string
	Paths []string
}

// ReadFileRequest asks for lines of a file.
type ReadFileRequest struct {
	Repo, Path, Ref string
	Offset          int // first line, from 1; 0 means 1
	Limit           int // lines, 1..500; 0 means 500
}

// ReadFileResponse is a run of lines.
type ReadFileResponse struct {
	Repo, Path     string
	WebURL         string
	ExternalWebURL string
	Language       string
	Commit         string
	First          int      // number of the first line
	Lines          [][]byte // without their ends
	Total          int      // lines of the file
	Binary         bool     // then Lines is empty
	Size           int      // bytes of the file
}

// ListTreeRequest asks for the entries below a directory.
type ListTreeRequest struct {
	Repo, Path, Ref string
	Depth           int // 1..10; 0 means 1
	NoFiles         bool
	NoDirectories   bool
	MaxEntries      int // 1..10,000; 0 means 1000
}

// ListTreeResponse lists entries in depth-first order, directories before
// files at each level.
type ListTreeResponse struct {
	Repo, Path string
	Commit     string
	Entries    []TreeEntry
	Cut        bool
}

// TreeEntry is one entry. Depth is 1 for the children of the asked directory.
type TreeEntry struct {
	Path  string // from the root of the repository
	Name  string
	Dir   bool
	Type  string // tree, blob, commit
	Depth int
}

// The bounds of the tools.
const (
	defaultFiles = 100
	maxFiles     = 10_000
	maxLines     = 500
	maxPattern   = 10_000 // bytes
)

// Grep finds matching lines. With a repository and a ref that is not indexed
// the mirror is read instead of the index.
func (n *Node) Grep(ctx context.Context, v Viewer, req GrepRequest) (*GrepResponse, error) {
	if req.Pattern == "" || len(req.Pattern) > maxPattern {
		return nil, fail(ErrInvalid, "pattern must have 1 to %d bytes", maxPattern)
	}
	if _, err := regexp.Compile(req.Pattern); err != nil {
		return nil, fail(ErrQuery, "pattern is not a regular expression in RE2 syntax: %v", err)
	}
	if err := checkFiles(&req.Limit, req.GroupByRepo); err != nil {
		return nil, err
	}
	names, err := pathPattern(req.Path, req.Include)
	if err != nil {
		return nil, err
	}
	rev, err := n.indexedRev(v, req.Repo, req.Ref)
	if err != nil {
		return nil, err
	}
	if rev == "" {
		return n.grepUnindexed(ctx, v, req, names)
	}
	return n.grepIndexed(ctx, v, req, names, rev)
}

func (n *Node) grepIndexed(ctx context.Context, v Viewer, req GrepRequest, names, rev string) (*GrepResponse, error) {
	r, err := n.toolSearch(ctx, v, grepAtoms(req), names, rev, req.Repo, req.Limit, req.GroupByRepo)
	if err != nil {
		return nil, err
	}
	defer r.close()
	answer, err := r.respond()
	if err != nil {
		return nil, err
	}
	if req.GroupByRepo {
		out := r.groupByRepo(answer, req.Limit)
		r.addLacking(req.Repo, req.Ref, &out.Cut, &out.CutWhy)
		return out, nil
	}
	out := &GrepResponse{}
	for _, f := range answer.Files[:min(len(answer.Files), req.Limit)] {
		out.add(GrepFile{Repo: f.Repository, Path: f.Path, WebURL: f.WebURL, Lines: linesOf(f.Chunks)})
	}
	out.Cut, out.CutWhy, out.Over = cutWhy(answer, len(answer.Files) > req.Limit, req.Limit)
	r.addLacking(req.Repo, req.Ref, &out.Cut, &out.CutWhy)
	return out, nil
}

func grepAtoms(req GrepRequest) []query.Q {
	return []query.Q{&query.Text{Pattern: req.Pattern, Regexp: true, Field: query.Content}}
}

func (r *GrepResponse) add(f GrepFile) {
	r.Files = append(r.Files, f)
	r.Matches += len(f.Lines)
}

func checkFiles(limit *int, grouped bool) error {
	if *limit == 0 {
		*limit = defaultFiles
		if grouped {
			*limit = maxFiles
		}
	}
	if *limit < 1 || *limit > maxFiles {
		return fail(ErrInvalid, "limit must be from 1 to %d", maxFiles)
	}
	return nil
}

// toolSearch runs a search of a tool: in the revision, in one repository or
// all, below paths that match.
func (n *Node) toolSearch(ctx context.Context, v Viewer, subs []query.Q, names, rev, repo string, files int, listing bool) (*root, error) {
	subs = append(subs, &query.Rev{Pattern: rev})
	if names != "" {
		subs = append(subs, &query.Text{Pattern: names, Regexp: true, Field: query.Name})
	}
	if repo != "" {
		subs = append(subs, &query.RepoSet{Names: []string{repo}})
	}
	return n.onOneIndex(ctx, func() (*root, error) {
		r, err := n.newRootOf(ctx, v, SearchRequest{Matches: maxMatches}, &query.Query{Q: &query.And{Subs: subs}, Count: query.NoCount})
		if err == nil {
			r.leaf.Files, r.leaf.NoChunks = files+1, listing
		}
		return r, err
	})
}

// indexedRev is the name under which a ref is indexed; "" when it is not, so
// that the mirror has to be read. Over all repositories it is the ref itself.
func (n *Node) indexedRev(v Viewer, name, ref string) (string, error) {
	if ref == "" {
		ref = "HEAD"
	}
	if name == "" {
		return ref, nil
	}
	repo, err := n.repoByName(n.cluster.View(), v, name)
	if err != nil {
		return "", err
	}
	if !repo.Indexed() {
		return "", nil
	}
	return nameOfRevision(repo, ref), nil
}

// nameOfRevision is the name under which a repository has a ref indexed; ""
// when it has not.
func nameOfRevision(repo *catalog.Repo, ref string) string {
	for _, r := range repo.Revisions {
		if r.Name == ref || r.Name == "refs/heads/"+ref || r.Name == "refs/tags/"+ref || r.Commit == ref {
			return r.Name
		}
	}
	return ""
}

// pathPattern is the expression for paths below a directory that match a
// glob; "" for all paths. Without a glob the path of a file is the file.
func pathPattern(dir, glob string) (string, error) {
	dir = strings.Trim(strings.TrimPrefix(dir, "./"), "/")
	if dir == "." {
		dir = ""
	}
	if dir == "" && glob == "" {
		return "", nil
	}
	if glob == "" { // a file is as good as a directory
		return "^" + regexp.QuoteMeta(dir) + "(?:/|$)", nil
	}
	prefix := "^"
	if dir != "" {
		prefix += regexp.QuoteMeta(dir) + "/"
	}
	glob = strings.TrimPrefix(strings.TrimPrefix(glob, "./"), "/")
	if len(glob) > maxPattern || !doublestar.ValidatePattern(glob) {
		return "", fail(ErrInvalid, "%q is not a valid glob", glob)
	}
	return prefix + globExpr(glob) + "$", nil
}

// linesOf lists the lines with a match, once each.
func linesOf(chunks []shard.Chunk) []GrepLine {
	var out []GrepLine
	for _, c := range chunks {
		lines := bytes.SplitAfter(c.Content, []byte("\n"))
		for _, r := range c.Ranges {
			last := r.End.Line
			if r.End.Line > r.Start.Line && r.End.Column == 1 {
				last-- // the match ends with a line break
			}
			for at := r.Start.Line; at <= last; at++ {
				i := int(at) - int(c.Start.Line)
				if i < 0 || i >= len(lines) || len(out) > 0 && out[len(out)-1].Number >= int(at) {
					continue
				}
				out = append(out, GrepLine{Number: int(at), Text: bytes.TrimRight(lines[i], "\r\n")})
			}
		}
	}
	return out
}

// groupByRepo counts what each repository has.
func (r *root) groupByRepo(answer *SearchResponse, limit int) *GrepResponse {
	out := &GrepResponse{}
	at := map[string]int{}
	for _, f := range r.files[:min(len(r.files), limit)] {
		i, ok := at[f.RepoName]
		if !ok {
			i = len(out.Repos)
			at[f.RepoName] = i
			out.Repos = append(out.Repos, GrepRepo{Repo: f.RepoName})
		}
		out.Repos[i].Files++
		out.Repos[i].Matches += f.Matches
		out.Matches += f.Matches
	}
	slices.SortFunc(out.Repos, func(a, b GrepRepo) int { return strings.Compare(a.Repo, b.Repo) })
	out.Cut, out.CutWhy, out.Over = cutWhy(answer, len(r.files) > limit, limit)
	return out
}

// cutWhy tells whether the answer of a tool lacks something, what, and
// whether a greater limit would give it.
func cutWhy(answer *SearchResponse, over bool, limit int) (cut bool, why string, more bool) {
	switch missing := len(answer.Cluster.ShardsMissing); {
	case missing > 0:
		return true, fmt.Sprintf("%d of %d parts of the index did not answer.", answer.Stats.ShardsRequired-answer.Stats.ShardsAnswered, answer.Stats.ShardsRequired), false
	case answer.Stats.FlushReason == FlushTimeout:
		return true, "The search ran out of time; a more specific path or pattern helps.", false
	case over || answer.Stats.FlushReason == FlushLimit:
		return true, fmt.Sprintf("More files match than the limit of %d shows.", limit), true
	case len(answer.Cluster.ReposMissing) > 0:
		return true, fmt.Sprintf("At least %d repositories are not indexed yet, %s among them.", len(answer.Cluster.ReposMissing), answer.Cluster.ReposMissing[0]), false
	case !answer.Exhaustive:
		return true, "The answer may not be complete.", false
	}
	return false, "", false
}

// addLacking notes, where all repositories were searched at a ref and nothing
// else was left out, that it is not indexed everywhere.
func (r *root) addLacking(repo, ref string, cut *bool, why *string) {
	if repo != "" || ref == "" || ref == "HEAD" || *cut {
		return
	}
	*why = r.lacking(ref)
	*cut = *why != ""
}

// lacking says in how many repositories a revision is not indexed, as a
// sentence; "" when there are none.
func (r *root) lacking(rev string) string {
	all, without := 0, 0
	for it := r.view.Visible(r.viewer.catalog()).Iterator(); it.HasNext(); {
		if repo := r.view.Repo(it.Next()); repo != nil && repo.Indexed() {
			all++
			if nameOfRevision(repo, rev) == "" {
				without++
			}
		}
	}
	if without == 0 {
		return ""
	}
	return fmt.Sprintf("%q is not indexed in %d of %d repositories; with repo it is searched wherever it exists.", rev, without, all)
}

// Glob finds paths.
func (n *Node) Glob(ctx context.Context, v Viewer, req GlobRequest) (*GlobResponse, error) {
	if req.Pattern == "" {
		return nil, fail(ErrInvalid, "pattern must not be empty")
	}
	if err := checkFiles(&req.Limit, false); err != nil {
		return nil, err
	}
	names, err := pathPattern(req.Path, req.Pattern)
	if err != nil {
		return nil, err
	}
	rev, err := n.indexedRev(v, req.Repo, req.Ref)
	if err != nil {
		return nil, err
	}
	if rev == "" {
		return n.globUnindexed(ctx, v, req, names)
	}
	r, err := n.toolSearch(ctx, v, nil, names, rev, req.Repo, req.Limit, true)
	if err != nil {
		return nil, err
	}
	defer r.close()
	answer, err := r.respond()
	if err != nil {
		return nil, err
	}
	out := &GlobResponse{}
	for _, f := range answer.Files[:min(len(answer.Files), req.Limit)] {
		out.add(f.Repository, f.Path)
	}
	out.sort()
	out.Cut, out.CutWhy, out.Over = cutWhy(answer, len(answer.Files) > req.Limit, req.Limit)
	r.addLacking(req.Repo, req.Ref, &out.Cut, &out.CutWhy)
	return out, nil
}

func (r *GlobResponse) add(repo, path string) {
	i := slices.IndexFunc(r.Repos, func(g GlobRepo) bool { return g.Repo == repo })
	if i < 0 {
		i = len(r.Repos)
		r.Repos = append(r.Repos, GlobRepo{Repo: repo})
	}
	r.Repos[i].Paths = append(r.Repos[i].Paths, path)
	r.Files++
}

// sort puts repositories and paths in the order of their names.
func (r *GlobResponse) sort() {
	slices.SortFunc(r.Repos, func(a, b GlobRepo) int { return strings.Compare(a.Repo, b.Repo) })
	for i := range r.Repos {
		slices.Sort(r.Repos[i].Paths)
	}
}

// globExpr turns a valid doublestar glob into an expression.
func globExpr(glob string) string {
	var b strings.Builder
	depth := 0
	for i := 0; i < len(glob); i++ {
		switch c := glob[i]; {
		case strings.HasPrefix(glob[i:], "**/") && (i == 0 || glob[i-1] == '/'):
			b.WriteString("(?:.*/)?")
			i += 2
		case strings.HasPrefix(glob[i:], "**"):
			b.WriteString(".*")
			i++
		case c == '*':
			b.WriteString("[^/]*")
		case c == '?':
			b.WriteString("[^/]")
		case c == '{':
			depth++
			b.WriteString("(?:")
		case c == '}' && depth > 0:
			depth--
			b.WriteString(")")
		case c == ',' && depth > 0:
			b.WriteString("|")
		case c == '[':
			end := i + 1
			if end < len(glob) && (glob[end] == '!' || glob[end] == '^') {
				end++
			}
			if end < len(glob) && glob[end] == ']' {
				end++
			}
			for end < len(glob) && glob[end] != ']' {
				if glob[end] == '\\' {
					end++
				}
				end++
			}
			class := glob[i+1 : min(end, len(glob))]
			if strings.HasPrefix(class, "!") {
				class = "^" + class[1:]
			}
			b.WriteString("[" + strings.ReplaceAll(class, "[", `\[`) + "]")
			i = end
		case c == '\\' && i+1 < len(glob):
			i++
			b.WriteString(regexp.QuoteMeta(glob[i : i+1]))
		default:
			b.WriteString(regexp.QuoteMeta(glob[i : i+1]))
		}
	}
	return b.String()
}
