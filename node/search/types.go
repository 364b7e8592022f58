package search

import (
	"time"

	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/coverage"
	"github.com/shoalsearch/shoal/shard"
)

// Request is one search.
type Request struct {
	Query         string
	Matches       int // limit of ranges, 1..1,000,000; 0 means the default (1000, or DEFAULT_MAX_MATCH_COUNT)
	PerFile       int // limit of ranges in one file, from its best lines; 0 means none
	ContextLines  int // lines around each match, 0..100
	Whole         bool
	Regexp        bool
	CaseSensitive bool
	Words         bool // texts match whole words only
	// Facets asks to count all matching files by their properties, also those that the answer does
	// not have.
	Facets bool
	// Lexed asks for what is open at the start of each chunk, such as a comment, to color it.
	Lexed bool
	// RequireComplete makes the search fail with ErrIncomplete if a required shard does not answer.
	RequireComplete bool
	// Best asks a search of commits for the best first, and not for the newest.
	Best bool
	// Exact asks a search of commits to count everything, as count:all does.
	Exact bool
	// Releases asks a search of commits for the first release with each.
	Releases bool

	// Moves asks it whether files with the texts were moved into or out of the paths of the query.
	Moves bool
	// Progress reports how far the search has come; nil means that nobody watches. A viewer who may
	// not see everything gets no progress.
	Progress *Progress
	// Pages asks for files in order, as with count:all, and for the cursor where the answer ends.
	// After is the cursor of an earlier answer to the same query, and the search continues there.
	// Only Search supports Pages, and not with PerFile. After needs Pages, but for SearchCommits.
	Pages bool
	After string

	// Only narrows the search; nil searches everywhere.
	Only *Only

	counting bool // list every file, whatever type: and count: of the query say
}

// Response is the answer to a search. Files are in order: score descending, repository name, path.
type Response struct {
	Stats        Stats
	Files        []File
	Repositories []browse.RepoInfo // repositories of Files, by name
	Coverage     coverage.Coverage
	Cluster      ClusterInfo
	Past         []PastRepo // by name; empty if the index had everything that the query asked for
	Hints        []string   // where the query was probably meant in another way
	Facets       *Facets    // counts of all matching files; nil unless requested

	// Next is the After of the next page. It is "" without Pages, on the last page, and if the
	// answer lacks something.
	Next string
}

// Together reports whether a file of the answer has the words of the query next to each other, in
// the order of the query.
func (r *Response) Together() bool { return len(r.Files) > 0 && shard.Together(r.Files[0].Score) }

// UnknownRevision reports whether no repository has the revision of the query, so that nothing was
// searched.
func (r *Response) UnknownRevision() bool { return r.Stats.UnknownRevision != "" }

// PastRepo is a repository in which a commit was searched that is not indexed. In Files the commit
// takes the place of a branch.
type PastRepo struct {
	Repository string    `json:"repository"`
	Commit     string    `json:"commit"`
	Time       time.Time `json:"committedAt"`              // of the commit
	Beside     string    `json:"indexedRevision,omitzero"` // the indexed revision that the other files come from; "" if there is none
	Read       int       `json:"filesScanned"`             // number of files read from git
	Bytes      int64     `json:"bytesScanned"`             // bytes of those files
}

// File is one file of an answer.
type File struct {
	RepoID         uint32
	Repository     string
	Path           string // bytes as git has them
	NameRanges     []shard.Range
	Language       string
	Encoding       string // as in [shard.File.Encoding]
	Ref            string // the first of Branches as links write it; see browse.LinkRef
	WebURL         string // page of this service
	ExternalWebURL string // page of the code host; "" when unknown
	Chunks         []shard.Chunk
	Matches        int      // number of matches in the content, also those beyond a limit
	Branches       []string // full ref names
	Content        []byte   // with Whole
	OID            string
	Score          float64
}

// Stats is the work of a search. The shards fill the embedded counters, the root the others.
//
// With type:repo the counts are about repositories. Files and TotalMatches are the repositories
// with a match, and ActualMatches are those returned. With type:file, Files are the matching files,
// and TotalMatches the places in them. Of these only places in names are returned, and the limit of
// matches counts files.
type Stats struct {
	shard.Stats
	Duration       time.Duration `json:"duration,format:nano"` // root: from the call to the answer
	Wait           time.Duration `json:"wait,format:nano"`     // root: in the admission queue
	Crashes        int           `json:"crashes"`              // root: shards whose search failed
	ShardsRequired int           `json:"shardsRequired"`       // root: shards that had to answer
	ShardsAnswered int           `json:"shardsAnswered"`       // root: shards that did, completely
	FlushReason    FlushReason   `json:"flushReason"`          // root

	// UnknownRevision is the rev: of a query that found nothing because none of its repositories
	// has it. The root sets it.
	UnknownRevision string `json:"unknownRevision,omitzero"`
}

// FlushReason is the reason why the answer ended where it did.
type FlushReason string

// The values of FlushReason.
const (
	FlushFinal       FlushReason = "final"               // everything was looked at
	FlushLimit       FlushReason = "limit"               // a limit of matches or memory was reached
	FlushTimeout     FlushReason = "timeout"             // the deadline passed
	FlushUnavailable FlushReason = "shards_unavailable"  // a shard had no holder that answered
	FlushUntagged    FlushReason = "symbols_unavailable" // symbols were asked for, and some files have none yet, or ctags is missing
)

// ClusterInfo describes the catalog and the nodes behind an answer.
type ClusterInfo struct {
	CatalogIndex  uint64        `json:"catalogIndex"`
	CatalogAge    time.Duration `json:"catalogAgeMs,format:milli"` // how old this node's catalog may be
	ShardsMissing []string      `json:"shardsMissing"`             // at most 20 ids of shards that did not answer; none for a viewer who may not see all
	ReposMissing  []string      `json:"reposMissing"`              // at most 20 names of repositories that have no index yet, or of which a shard did not answer
	NodesFailed   []string      `json:"nodesFailed"`               // nodes that did not answer; none for a viewer who may not see all
	Hedged        int           `json:"-"`                         // calls sent twice
}

// Chunk is a part of a streamed answer.
type Chunk struct {
	Stats        Stats // of this part
	Files        []File
	Repositories []browse.RepoInfo
}

// Facets are the numbers of files for each value of a property. A file in several revisions counts
// for each of them.
type Facets struct {
	Repositories []FacetValue
	Languages    []FacetValue
	Paths        []FacetValue // first directories, with a slash
	Revisions    []FacetValue

	Exact bool // every matching file was counted; otherwise there may be more files and other values
}

// FacetValue is a value of a property and its number of files. A list starts with the most frequent
// value; equal values are sorted by name.
type FacetValue struct {
	Value string `json:"value"`
	Files int    `json:"count"` // or commits
}
