package search

import (
	"context"
	"log/slog"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/shard"
)

// Cluster is what searching takes of the agreement of nodes; *cluster.Cluster
// has it.
type Cluster interface {
	call.Network
	// View is the catalog as this node has applied it, Age how old it may be.
	View() *catalog.View
	Age() time.Duration
	// Ready says why this node should not answer yet.
	Ready() error
	// Await waits until this node has applied an index.
	Await(ctx context.Context, index uint64) error
}

// Scanner looks at commits that are not indexed; *browse.Browser does.
type Scanner interface {
	Scan(ctx context.Context, v catalog.Viewer, repo string, req browse.ScanRequest) (*browse.ScanResponse, error)
	Past(ctx context.Context, v catalog.Viewer, repo string, req browse.PastRequest) (*browse.PastResponse, error)
}

// Deps is what a Searcher works with.
type Deps struct {
	Cluster Cluster
	Gate    *account.Gate
	Set     *shard.Set
	Scanner Scanner
	Peers   *call.Peers

	Light, Heavy, Long *call.Lane // searches of shards here: cheap ones never wait behind expensive ones

	Matches func() int                     // ranges returned where a request names no number
	Done    func(out *Response, err error) // is told of every search that was asked here
	Batch   int                            // shards that a part of a stream comes from; 0 means 64
	Time    time.Duration                  // of a search of a tool; 0 means 5 seconds

	BaseURL func() string // prefix of every link, without a trailing slash
	Slow    call.Slow     // searches of shards here
	Log     *slog.Logger

	lost *lostCalls // made by New
}
