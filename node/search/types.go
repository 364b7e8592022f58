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
	Matches       int // most ranges returned, 1..1,000,000; 0 means the default (1000, or DEFAULT_MAX_MATCH_COUNT)
	PerFile       int // most ranges returned of one file, those of its best lines; 0 for no limit of its own
	ContextLines  int // lines around each match, 0..100
	Whole         bool
	Regexp        bool
	CaseSensitive bool
	Words         bool // texts match whole words alone
	// Facets asks for all files to be counted by their properties, also those that
	// the answer does not have.
	Facets bool
	// RequireComplete fails with ErrIncomplete where an answer would lack a
	// shard that should have answered.
	RequireComplete bool
	// Progress tells whoever looks on how far the search has come; nil for nobody.
	// A viewer who may not see everything is told nothing before the answer.
	Progress *Progress
	// Pages asks for files in the total order, as with count:all, and for the cursor where
	// the answer ends. After is the cursor of an answer to the same query: the search goes
	// on behind it. Pages goes with Search alone, and without PerFile; After with Pages.
	Pages bool
	After string

	counting bool // every file is listed, whatever the query says of its type and number
}

// Response is the answer to a search. Files are in the total order:
// score descending, repository name, path.
type Response struct {
	Stats        Stats
	Files        []File
	Repositories []browse.RepoInfo // of Files, by name
	Coverage     coverage.Coverage
	Cluster      ClusterInfo
	Past         []PastRepo // by name; none where the index had all that was asked for
	Hints        []string   // what of the query was meant in another way, as it seems
	Facets       *Facets    // of all files that were counted; nil where they were not asked for

	// Next is the After of the next page; "" without Pages, where nothing stands behind
	// this answer, or where it lacks something.
	Next string
}

// Together reports whether a file of the answer has the words of the query next to each
// other, in its order.
func (r *Response) Together() bool { return len(r.Files) > 0 && shard.Together(r.Files[0].Score) }

// UnknownRevision reports whether nothing was searched, because no repository has the
// revision of the query.
func (r *Response) UnknownRevision() bool { return r.Stats.UnknownRevision != "" }

// PastRepo is a repository in which a commit was searched that is not indexed.
// Its files come with the commit for a branch.
type PastRepo struct {
	Repository string    `json:"repository"`
	Commit     string    `json:"commit"`
	Time       time.Time `json:"committedAt"`              // of the commit
	Beside     string    `json:"indexedRevision,omitzero"` // the indexed revision from which the other files come; "" for none
	Read       int       `json:"filesScanned"`             // files that were read from git
	Bytes      int64     `json:"bytesScanned"`             // of those
}

// File is one file of an answer.
type File struct {
	RepoID         uint32
	Repository     string
	Path           string // bytes as git has them
	NameRanges     []shard.Range
	Language       string
	Encoding       string // as [shard.File.Encoding]
	Ref            string // in links, the first of Branches: as browse.LinkRef has it
	WebURL         string // page of this service
	ExternalWebURL string // page of the code host; "" when unknown
	Chunks         []shard.Chunk
	Matches        int      // in the content, also those beyond a limit
	Branches       []string // full ref names
	Content        []byte   // with Whole
	OID            string
	Score          float64
}

// Stats is the work of a search. The shard counts what it did, the root
// the rest; each counter is filled in one place.
//
// With type:repo the answer is repositories, and so are the counts: Files and
// TotalMatches are the repositories that have a match, ActualMatches those
// that were returned. With type:file, Files is the files that match and
// TotalMatches the places in them, of which the files show none but those of
// their names; the limit of matches is one of files.
type Stats struct {
	shard.Stats
	Duration       time.Duration `json:"duration,format:nano"` // root: from the call to the answer
	Wait           time.Duration `json:"wait,format:nano"`     // root: in the admission queue
	Crashes        int           `json:"crashes"`              // root: shards whose search failed
	ShardsRequired int           `json:"shardsRequired"`       // root: shards that had to answer
	ShardsAnswered int           `json:"shardsAnswered"`       // root: shards that did, completely
	FlushReason    FlushReason   `json:"flushReason"`          // root

	// UnknownRevision is the rev: of a query that found nothing because none of its
	// repositories has it. Root.
	UnknownRevision string `json:"unknownRevision,omitzero"`
}

// FlushReason says why the answer ended where it did.
type FlushReason string

// The reasons.
const (
	FlushFinal       FlushReason = "final"               // everything was looked at
	FlushLimit       FlushReason = "limit"               // a limit of matches or memory was reached
	FlushTimeout     FlushReason = "timeout"             // the deadline passed
	FlushUnavailable FlushReason = "shards_unavailable"  // a shard had no holder that answered
	FlushUntagged    FlushReason = "symbols_unavailable" // symbols were asked for, and some files have none yet, or ctags is missing
)

// ClusterInfo tells on what the answer stands.
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

// Facets tell how many files have each value of a property. A file in several
// revisions counts for each of them.
type Facets struct {
	Repositories []FacetValue
	Languages    []FacetValue
	Paths        []FacetValue // first directories, each with its slash
	Revisions    []FacetValue

	Exact bool // every file was counted; else there may be more of each value, and other values
}

// FacetValue is a value of a property, and the files that have it. In a list the
// most frequent stands first, among equals the first by name.
type FacetValue struct {
	Value string
	Files int
}
