package browse

import (
	"time"

	"github.com/shoalsearch/shoal/shard/git"
	"github.com/shoalsearch/shoal/shard/lex"
)

// SourceRequest asks for the content of a file.
type SourceRequest struct {
	Repo string
	Path string
	Ref  string // any branch, tag or commit of the mirror; "" means HEAD

	FirstLine int // from 1; 0 means 1
	Lines     int // 0 means all

	Raw bool // Content is the file's bytes in git, not UTF-8 text
}

// SourceResponse is a file.
type SourceResponse struct {
	Content        []byte `json:"-"`
	Encoding       string `json:"encoding,omitzero"` // of the file in git, such as "utf-16le"; "" for UTF-8 or unknown
	Language       string `json:"language"`
	Path           string `json:"path"`
	Repo           string `json:"repo"`
	HostKind       string `json:"repoCodeHostType"` // genericGitHost, github, ...
	DisplayName    string `json:"repoDisplayName,omitzero"`
	RepoWebURL     string `json:"repoExternalWebUrl,omitzero"` // of the code host
	WebURL         string `json:"webUrl"`                      // of this service
	ExternalWebURL string `json:"externalWebUrl,omitzero"`     // of the code host
	OID            string `json:"blobSha,omitzero"`
	Commit         string `json:"commit,omitzero"`
	Size           int64  `json:"-"`         // bytes of the whole file
	FirstLine      int    `json:"startLine"` // of Content, from 1
	Total          int    `json:"lineCount"` // lines of the file
	Binary         bool   `json:"isBinary"`  // a NUL byte near the beginning
	LFS            bool   `json:"-"`         // Content is a Git LFS pointer
	Link           bool   `json:"-"`         // a symbolic link: Content is its target

	Open lex.State `json:"-"` // what the lines before FirstLine leave open, such as a comment
}

// TreeRequest asks for a tree: the entries of each of Paths, and the
// directories that connect them.
type TreeRequest struct {
	Repo      string
	Ref       string
	Paths     []string // "" is the root
	Recursive bool     // with everything below
	Max       int      // entries; 0 means 100,000
	Details   bool     // with the sizes of files and the targets of symlinks
}

// TreeResponse is a tree. Entries are sorted: directories first, then by name.
type TreeResponse struct {
	Root     TreeNode
	Commit   string
	Cut      bool // there are more than Max entries
	Detailed bool // Details are filled in; false from a node of an older version
}

// TreeNode is a file or directory. Type is "tree", "blob" or "commit" (a submodule).
type TreeNode struct {
	Type     string
	Path     string
	Name     string
	OID      string
	Mode     uint32
	Children []TreeNode

	// Only with Details.
	Size   int64  // bytes of a file, or of a symlink's target
	Target string // of a symlink; "" if it is too long or beyond the limit
}

// CommitsRequest asks for a page of the history of a revision.
type CommitsRequest struct {
	Repo    string
	Ref     string // a ref, or a range A..B: the commits in B's history and not in A's
	Path    string
	Query   string   // part of the message, case-insensitive
	Words   []string // all must occur in the message, each from the start of a word, in either case; not with Query
	Author  string   // part of name or e-mail, case-insensitive
	Since   string   // ISO 8601 or relative
	Until   string
	Page    int // from 1; 0 means 1
	PerPage int // 1..100; 0 means 50

	NoMerges bool // skip commits with two or more parents
	Follow   bool // Path is a file; follow it through renames. Not with filters
	Verbatim bool // authors as in their commits, ignoring .mailmap
}

// CommitsResponse is a page of commits, newest first; Total counts all pages.
type CommitsResponse struct {
	Commits []CommitInfo
	Total   int
	AtLeast bool      // counting took too long: there are at least Total
	Shallow bool      // the remote, and so the mirror, lacks older history; false from nodes of older versions
	Reached time.Time // if time ran out: commits of this time and older were not all searched
	Page    int
	Per     int
}

// CommitInfo is one commit.
type CommitInfo struct {
	Hash        string    `json:"hash"`
	Date        time.Time `json:"date"`    // the author's
	Committed   time.Time `json:"-"`       // since, until and the order use it
	Message     string    `json:"message"` // first line
	Refs        string    `json:"refs"`
	Body        string    `json:"body"`
	AuthorName  string    `json:"authorName"`
	AuthorEmail string    `json:"authorEmail"`
	Parents     []string  `json:"parents,omitempty"`
	Path        string    `json:"path,omitzero"` // with Follow: the file's name in this commit
}

// CommitRequest asks for one commit.
type CommitRequest struct {
	Repo, Ref string
	Verbatim  bool // as in CommitsRequest
}

// AuthorsRequest asks for the authors of a revision, or of a path in it.
type AuthorsRequest struct {
	Repo, Ref, Path string
	Page, PerPage   int
	Verbatim        bool // as in CommitsRequest
}

// AuthorsResponse lists authors by their number of commits.
type AuthorsResponse struct {
	Authors []AuthorInfo
	Shallow bool // as in CommitsResponse
	Total   int
	Page    int
	Per     int
}

// AuthorInfo is one author.
type AuthorInfo struct {
	Name    string `json:"name"`
	Email   string `json:"email"`
	Commits int    `json:"commitCount"`
}

// TogetherRequest asks which files changed in the same commits as a path.
type TogetherRequest struct {
	Repo, Ref, Path string
	Max             int // files; 0 means 100
}

// TogetherResponse lists files by their number of commits.
type TogetherResponse struct {
	Commits int // commits that changed the path, without merges and very large commits
	Files   []git.FileCount
	Total   int  // files
	Cut     bool // only the newest commits were counted
	Shallow bool // as in CommitsResponse
}

// DiffRequest asks for the diff of two references.
type DiffRequest struct {
	Repo, Base, Head string
	Path             string // directory prefix or file; "" for all
	MaxBytes         int    // of hunks; 0 means 16 MiB
	Context          int    // context lines; 0 means 3, -1 means none
	Stat             bool   // count lines and leave out hunks

	MergeBase    bool // compare with the merge base (three dots) instead of Base (two)
	IgnoreBlanks bool // ignore changes in whitespace

	// A page of the files. Not with Stat, which returns all.
	Page, PerPage int // PerPage 1..100; both 0: all files

	Message bool // also return the commit Head, if Base is its parent
}

// DiffResponse is a diff.
type DiffResponse struct {
	Files []DiffFile
	Cut   bool // the limit of bytes was reached

	BaseCommit, HeadCommit string // the commits compared; BaseCommit is the merge base with MergeBase

	// With pages: files on all pages.
	Total   int
	AtLeast bool // there are at least Total

	Commit CommitInfo // with Message, if the diff is the change of one commit

	FirstTag *FirstTag // of Commit; nil if the repository has no tags, and from nodes of older versions
}

// FirstTag is the earliest tag that contains a commit.
type FirstTag struct {
	Name    string // "" if no tag contains the commit
	Release string // if Name is a pre-release: the first full release; "" if none yet
	Late    bool   // time ran out: an empty name may only mean unknown
	Whole   string // if Name tags a part of the repository, as globset-0.4.17: the first release tagged by version alone; "" if none
	Parts   string // if there are such tags: the first release of each part, separated by spaces
}

// DiffFile is one changed file. OldPath is "" when added, NewPath "" when deleted.
type DiffFile struct {
	OldPath, NewPath string
	Status           byte // A added, M modified, D deleted, R renamed, T type changed
	OldMode, NewMode string
	Binary           bool
	Added, Removed   int // lines in Hunks
	Hunks            []DiffHunk
	Cut              bool // hunks were left out
	Similarity       int  // of a renamed file, in percent

	// With pages of files: the language of the file. "" if it is unknown, or if the hunks do not
	// say what is open.
	Language string
}

// DiffHunk is one run of changed lines. Body has the lines with their ' ', '+' or '-'.
type DiffHunk struct {
	OldStart, OldLines int
	NewStart, NewLines int
	Heading            string
	Body               string

	OldOpen, NewOpen lex.State // comment or text that is open at the first line of each side, if the file has a Language
}

// BlameRequest asks for the commit that wrote each line of a file.
type BlameRequest struct {
	Repo, Path, Ref string
	First, Lines    int // range of lines, from 1; 0 means the whole file

	Texts bool // with a short range: also return the lines and the messages' bodies

	Verbatim bool // ignore .mailmap and .git-blame-ignore-revs of the default branch
}

// BlameResponse is the blame of a file.
type BlameResponse struct {
	Ranges  []BlameRange
	Commits map[string]BlameCommit // by hash
	Commit  string
	Past    int // lines last changed by an ignored commit, and so attributed to an earlier one

	// Only with a range of lines.
	Total int  // lines of the file
	Late  bool // time ran out: some lines are in no range

	Shallow bool // some lines belong to Edge commits and may be older

	Texts []byte // with Texts: the lines; very long ones may be cut
}

// BlameRange is a run of lines of one commit.
type BlameRange struct {
	Hash      string `json:"hash"`
	Path      string `json:"path"`      // of the file in that commit
	StartLine int    `json:"startLine"` // from 1
	LineCount int    `json:"lineCount"`
}

// BlameCommit is a commit of a blame.
type BlameCommit struct {
	Hash         string    `json:"hash"`
	Date         time.Time `json:"date"`
	Message      string    `json:"message"`
	AuthorName   string    `json:"authorName"`
	AuthorEmail  string    `json:"authorEmail"`
	PreviousHash string    `json:"-"` // "" means none
	PreviousPath string    `json:"-"`

	Body string `json:"-"` // with Texts
	Edge bool   `json:"-"` // the oldest commit of a shallow mirror: an older one may have written its lines
}

// RefsRequest asks for a page of branches or tags.
type RefsRequest struct {
	Repo          string
	Query         string // case-insensitive part of the name
	Page, PerPage int    // PerPage 1..100; 0 means 50

	Contains string // a branch, tag or commit: only refs whose history contains it; "" for all
}

// RefsResponse lists refs, newest first.
type RefsResponse struct {
	Repo          string
	DefaultBranch string
	IndexedAt     time.Time
	Refs          []RefInfo
	Total         int
	Page, Per     int

	Contains string // with Contains: the commit
	Late     bool   // time ran out: refs not listed may contain it too
}

// RefInfo is a branch or a tag.
type RefInfo struct {
	Name        string    `json:"name"`   // short
	Ref         string    `json:"-"`      // for links: the short name, or the full name if the short one is ambiguous
	Commit      string    `json:"commit"` // hex; also for an annotated tag, the commit
	CommittedAt time.Time `json:"committedAt,omitzero"`
	Default     bool      `json:"isDefault"`
	Indexed     bool      `json:"isIndexed"`
}
