package node

import "context"

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

// Grep finds matching lines. With a repository and a ref that is not indexed
// the mirror is read instead of the index.
func (n *Node) Grep(ctx context.Context, v Viewer, req GrepRequest) (*GrepResponse, error) {
	return nil, errUnfinished
}

// Glob finds paths.
func (n *Node) Glob(ctx context.Context, v Viewer, req GlobRequest) (*GlobResponse, error) {
	return nil, errUnfinished
}

// ReadFile returns lines of a file.
func (n *Node) ReadFile(ctx context.Context, v Viewer, req ReadFileRequest) (*ReadFileResponse, error) {
	return nil, errUnfinished
}

// ListTree lists a directory.
func (n *Node) ListTree(ctx context.Context, v Viewer, req ListTreeRequest) (*ListTreeResponse, error) {
	return nil, errUnfinished
}

// ListCommits lists commits; it is Commits under the tool's name.
func (n *Node) ListCommits(ctx context.Context, v Viewer, req CommitsRequest) (*CommitsResponse, error) {
	return n.Commits(ctx, v, req)
}

// ListBranches lists branches; it is Branches under the tool's name.
func (n *Node) ListBranches(ctx context.Context, v Viewer, req RefsRequest) (*RefsResponse, error) {
	return n.Branches(ctx, v, req)
}

// GetDiff compares; it is Diff under the tool's name.
func (n *Node) GetDiff(ctx context.Context, v Viewer, req DiffRequest) (*DiffResponse, error) {
	return n.Diff(ctx, v, req)
}

// ListRepos lists repositories; it is Repos under the tool's name.
func (n *Node) ListRepos(ctx context.Context, v Viewer, req ReposRequest) (*ReposResponse, error) {
	return n.Repos(ctx, v, req)
}

// Model is a configured language model.
type Model struct{ Provider, Model, DisplayName string }

// Models lists the configured language models, in the order of the configuration.
func (n *Node) Models(ctx context.Context, v Viewer) ([]Model, error) { return nil, errUnfinished }
