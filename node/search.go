package node

import (
	"context"
	"time"

	"github.com/shoalsearch/shoal/shard"
)

// SearchRequest is one search.
type SearchRequest struct {
	Query         string
	Matches       int // most ranges returned, 1..1,000,000; 0 means the default (1000, or DEFAULT_MAX_MATCH_COUNT)
	ContextLines  int // lines around each match, 0..100
	Whole         bool
	Regexp        bool
	CaseSensitive bool
	// RequireComplete fails with ErrIncomplete where an answer would lack a
	// shard that should have answered.
	RequireComplete bool
}

// SearchResponse is the answer to a search. Files are in the total order:
// score descending, repository name, path.
type SearchResponse struct {
	Stats        SearchStats
	Files        []SearchFile
	Repositories []RepositoryInfo // of Files, by number
	Exhaustive   bool
	Cluster      ClusterInfo
}

// SearchFile is one file of an answer.
type SearchFile struct {
	RepoID         uint32
	Repository     string
	Path           string // bytes as git has them
	NameRanges     []shard.Range
	Language       string
	WebURL         string // page of this service
	ExternalWebURL string // page of the code host; "" when unknown
	Chunks         []shard.Chunk
	Branches       []string // full ref names
	Content        []byte   // with Whole
	OID            string
	Score          float64
}

// RepositoryInfo describes a repository of an answer.
type RepositoryInfo struct {
	ID           uint32
	Name         string
	DisplayName  string
	WebURL       string // of the code host; "" when unknown
	CodeHostType string // genericGitHost, github, ...
}

// SearchStats is the work of a search. The shard counts what it did, the root
// the rest; each counter is filled in one place.
//
// With type:repo the answer is repositories, and so are the counts: Files and
// TotalMatches are the repositories that have a match, ActualMatches those
// that were returned. With type:file, Files is the files that match and
// TotalMatches the matches in them, of which the files show none but those of
// their names; the limit of matches is one of files.
type SearchStats struct {
	shard.Stats
	Duration       time.Duration // root: from the call to the answer
	Wait           time.Duration // root: in the admission queue
	Crashes        int           // root: shards whose search failed
	ShardsRequired int           // root: shards that had to answer
	ShardsAnswered int           // root: shards that did, completely
	FlushReason    FlushReason   // root
}

// FlushReason says why the answer ended where it did.
type FlushReason string

// The reasons.
const (
	FlushFinal       FlushReason = "final"              // everything was looked at
	FlushLimit       FlushReason = "limit"              // a limit of matches or memory was reached
	FlushTimeout     FlushReason = "timeout"            // the deadline passed
	FlushUnavailable FlushReason = "shards_unavailable" // a shard had no holder that answered
	FlushCancelled   FlushReason = "cancelled"          // the caller left
)

// ClusterInfo tells on what the answer stands.
type ClusterInfo struct {
	CatalogIndex  uint64
	CatalogAge    time.Duration // how old this node's catalog may be
	ShardsMissing []string      // at most 20 ids of shards that did not answer
	ReposMissing  []string      // at most 20 names of repositories that have no index yet
	NodesFailed   []string      // nodes that did not answer
	Hedged        int           // calls sent twice
}

// SearchChunk is a part of a streamed answer.
type SearchChunk struct {
	Stats        SearchStats // of this part
	Files        []SearchFile
	Repositories []RepositoryInfo
}

// Search finds what the query asks for in all that the viewer may see.
func (n *Node) Search(ctx context.Context, v Viewer, req SearchRequest) (*SearchResponse, error) {
	out, err := n.search(ctx, v, req)
	n.metrics.search(out, err)
	return out, err
}

func (n *Node) search(ctx context.Context, v Viewer, req SearchRequest) (*SearchResponse, error) {
	r, err := n.onOneIndex(ctx, func() (*root, error) { return n.newRoot(ctx, v, req) })
	if err != nil {
		return nil, err
	}
	defer r.close()
	return r.respond()
}

// onOneIndex runs a search that begin makes. Where a generation was replaced
// while it was on its way, all of it is done again on the newer catalog, so
// that the answer stands on one index. The caller closes what it returns.
func (n *Node) onOneIndex(ctx context.Context, begin func() (*root, error)) (*root, error) {
	for try := 0; ; try++ {
		r, err := begin()
		if err != nil {
			return nil, err
		}
		r.scatter(r.targets())
		if len(r.lost) == 0 || try == maxTries || ctx.Err() != nil || !r.overtaken(n.cluster.View()) {
			return r, nil
		}
		r.close()
	}
}

// maxTries is how often a search begins anew.
const maxTries = 3

// StreamSearch is Search with parts sent as they come, in no order between
// parts. Nothing is sent before the query is known to be good. The returned
// response has the sums and no files. A send that fails stops the search.
func (n *Node) StreamSearch(ctx context.Context, v Viewer, req SearchRequest, send func(*SearchChunk) error) (*SearchResponse, error) {
	r, err := n.newRoot(ctx, v, req)
	if err != nil {
		return nil, err
	}
	defer r.close()
	out, err := r.stream(send)
	n.metrics.search(out, err)
	return out, err
}
