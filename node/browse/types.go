package browse

import (
	"time"

	"github.com/shoalsearch/shoal/shard/git"
)

// SourceRequest asks for the content of a file.
type SourceRequest struct {
	Repo string
	Path string
	Ref  string // any branch, tag or commit of the mirror; "" means HEAD

	FirstLine int // from 1; 0 means 1
	Lines     int // 0 means all

	Raw bool // Content is the bytes in git, not their text in UTF-8
}

// SourceResponse is a file.
type SourceResponse struct {
	Content        []byte `json:"-"`
	Encoding       string `json:"encoding,omitzero"` // of the file in git, as "utf-16le"; "" for UTF-8 and where no mark tells
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
	Binary         bool   `json:"isBinary"`  // a NUL byte near the beginning of the text
	LFS            bool   `json:"-"`         // Content is a pointer of Git LFS
	Link           bool   `json:"-"`         // a symbolic link: Content is what it leads to
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
	Cut      bool // Max was reached
	Detailed bool // Details are there: a node of an older version has none
}

// TreeNode is a file or directory. Type is "tree", "blob" or "commit" (a submodule).
type TreeNode struct {
	Type     string
	Path     string
	Name     string
	OID      string
	Mode     uint32
	Children []TreeNode

	// With Details.
	Size   int64  // bytes of a file, or of the target of a symlink
	Target string // of a symlink; "" where it is too long, or one of too many
}

// CommitsRequest asks for a page of the history of a revision.
type CommitsRequest struct {
	Repo    string
	Ref     string // or a range of refs, A..B: what B has in its history and A has not
	Path    string
	Query   string   // in the message, case-insensitive
	Words   []string // all of them in the message, case-insensitive; not beside Query
	Author  string   // part of name or e-mail, case-insensitive
	Since   string   // ISO 8601 or relative
	Until   string
	Page    int // from 1; 0 means 1
	PerPage int // 1..100; 0 means 50

	NoMerges bool // only commits with less than two parents
	Follow   bool // Path is a file, whose history goes on through its renames; beside no filter
	Verbatim bool // authors are as their commits have them, whatever .mailmap says
}

// CommitsResponse is a page of commits, newest first, with the count of all.
type CommitsResponse struct {
	Commits []CommitInfo
	Total   int
	AtLeast bool      // counting took too long: there are Total or more
	Shallow bool      // the remote, and so the mirror, lacks the history before some commit; false from nodes of older versions
	Reached time.Time // when looking took too long: what is of this time and older was not looked at, or not all of it
	Page    int
	Per     int
}

// CommitInfo is one commit.
type CommitInfo struct {
	Hash        string    `json:"hash"`
	Date        time.Time `json:"date"`    // the author's
	Committed   time.Time `json:"-"`       // what since, until and the order go by
	Message     string    `json:"message"` // first line
	Refs        string    `json:"refs"`
	Body        string    `json:"body"`
	AuthorName  string    `json:"authorName"`
	AuthorEmail string    `json:"authorEmail"`
	Parents     []string  `json:"parents,omitempty"`
	Path        string    `json:"path,omitzero"` // of a file that is followed: its name in this commit
}

// CommitRequest asks for one commit.
type CommitRequest struct {
	Repo, Ref string
	Verbatim  bool // as of CommitsRequest
}

// AuthorsRequest asks who wrote a revision, or a path of it.
type AuthorsRequest struct {
	Repo, Ref, Path string
	Page, PerPage   int
	Verbatim        bool // as of CommitsRequest
}

// AuthorsResponse lists authors by their number of commits.
type AuthorsResponse struct {
	Authors []AuthorInfo
	Shallow bool // as of CommitsResponse
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

// TogetherRequest asks which files changed in the commits that changed a path.
type TogetherRequest struct {
	Repo, Ref, Path string
	Max             int // files; 0 means 100
}

// TogetherResponse lists files by their number of commits.
type TogetherResponse struct {
	Commits int // that changed the path, without merges and commits of very many files
	Files   []git.FileCount
	Total   int  // files
	Cut     bool // only the newest commits were looked at
	Shallow bool // as of CommitsResponse
}

// DiffRequest asks for the difference of two references.
type DiffRequest struct {
	Repo, Base, Head string
	Path             string // directory prefix or file; "" for all
	MaxBytes         int    // of hunks; 0 means 16 MiB
	Context          int    // lines around a change; 0 means 3, -1 none
	Stat             bool   // count lines and leave out hunks

	MergeBase    bool // from where the two parted (three dots), not from Base itself (two)
	IgnoreBlanks bool // lines that differ in blanks alone are alike

	// A page of the files; not beside Stat, which tells of all.
	Page, PerPage int // PerPage 1..100; both 0: all of them

	Message bool // tell of the commit Head, where Base is a parent of it
}

// DiffResponse is a difference.
type DiffResponse struct {
	Files []DiffFile
	Cut   bool // the bound of size was reached

	BaseCommit, HeadCommit string // what was compared: with MergeBase the first is where they parted

	// Of a page: the files on all pages.
	Total   int
	AtLeast bool // there are Total or more

	Commit CommitInfo // with Message, where the difference is what one commit changed

	FirstTag *FirstTag // of Commit; nil where the repository has no tags, and from nodes of older versions
}

// FirstTag is the tag that had a commit in its history first.
type FirstTag struct {
	Name    string // "" where no tag has the commit
	Release string // where Name is that of a pre-release: the first that is none; "" for none yet
	Late    bool   // not all was looked at in time: what is not named is not known
	Whole   string // where Name is of a part of the repository, as globset-0.4.17: the first release named by its version alone; "" for none
}

// DiffFile is one changed file. OldPath is "" when added, NewPath "" when deleted.
type DiffFile struct {
	OldPath, NewPath string
	Status           byte // A added, M modified, D deleted, R renamed, T of another type
	OldMode, NewMode string
	Binary           bool
	Added, Removed   int // lines in Hunks
	Hunks            []DiffHunk
	Cut              bool // hunks were left out
	Similarity       int  // of a renamed file, in percent
}

// DiffHunk is one changed run of lines. Body has the lines with their ' ', '+' or '-'.
type DiffHunk struct {
	OldStart, OldLines int
	NewStart, NewLines int
	Heading            string
	Body               string
}

// BlameRequest asks which commit each line of a file comes from.
type BlameRequest struct {
	Repo, Path, Ref string
	First, Lines    int // a run of lines, from 1; 0 means the whole file

	Texts bool // of a run of few lines, with what they say and with bodies of messages

	Verbatim bool // whatever .mailmap and .git-blame-ignore-revs of the default branch say
}

// BlameResponse is the blame of a file.
type BlameResponse struct {
	Ranges  []BlameRange
	Commits map[string]BlameCommit // by hash
	Commit  string
	Past    int // lines that an ignored commit changed last: they are those of the commits before it

	// Of a run of lines.
	Total int  // lines of the file
	Late  bool // not all lines were found in time: they are in no range

	Shallow bool // some lines are of commits at the Edge, and may be of older ones

	Texts []byte // with Texts: the lines, of which very long ones may be cut
}

// BlameRange is a run of lines from one commit.
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
	PreviousHash string    `json:"-"` // "" when none
	PreviousPath string    `json:"-"`

	Body string `json:"-"` // with Texts
	Edge bool   `json:"-"` // the repository is shallow and has nothing before it: older commits may have brought its lines
}

// RefsRequest asks for a page of branches or tags.
type RefsRequest struct {
	Repo          string
	Query         string // case-insensitive part of the name
	Page, PerPage int    // PerPage 1..100; 0 means 50

	Contains string // a branch, tag or commit: only what has it in its history; "" for all
}

// RefsResponse lists refs, newest first.
type RefsResponse struct {
	Repo          string
	DefaultBranch string
	IndexedAt     time.Time
	Refs          []RefInfo
	Total         int
	Page, Per     int

	Contains string // the commit that all have in their history, where that was asked for
	Late     bool   // not all were looked at in time: what is missing may have it too
}

// RefInfo is a branch or a tag.
type RefInfo struct {
	Name        string    `json:"name"`   // short
	Ref         string    `json:"-"`      // in links: the name, or the full one where the name means something else
	Commit      string    `json:"commit"` // hex; of the commit, also for an annotated tag
	CommittedAt time.Time `json:"committedAt,omitzero"`
	Default     bool      `json:"isDefault"`
	Indexed     bool      `json:"isIndexed"`
}
