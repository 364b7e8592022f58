package search

import (
	"context"
	"log/slog"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/history"
	"github.com/shoalsearch/shoal/node/trace"
	"github.com/shoalsearch/shoal/shard"
	"github.com/shoalsearch/shoal/shard/change"
)

// Cluster is what searching needs of the cluster; *cluster.Cluster implements it.
type Cluster interface {
	call.Network
	// View returns the catalog as this node has applied it, Age how old it may be.
	View() *catalog.View
	Age() time.Duration
	// Ready returns an error while this node should not answer yet.
	Ready() error
	// Await waits until this node has applied a catalog index.
	Await(ctx context.Context, index uint64) error
}

// Scanner searches commits that are not indexed; *browse.Browser implements it.
type Scanner interface {
	Scan(ctx context.Context, v catalog.Viewer, repo string, req browse.ScanRequest) (*browse.ScanResponse, error)
	Past(ctx context.Context, v catalog.Viewer, repo string, req browse.PastRequest) (*browse.PastResponse, error)
	Trend(ctx context.Context, v catalog.Viewer, repo string, req browse.TrendRequest) (*browse.TrendResponse, error)
}

// Deps are the parts that a Searcher uses.
type Deps struct {
	Cluster Cluster
	Gate    *account.Gate
	Set     *shard.Set
	Scanner Scanner
	// Histories answer searches of commits.
	Histories Histories
	Peers     *call.Peers

	Light, Heavy, Long *call.Lane // admission queues for searches of shards on this node: cheap searches never wait behind expensive ones

	Matches func() int                     // limit of ranges if a request has none
	Done    func(out *Response, err error) // called after every search that a client asked of this node
	Batch   int                            // shards in a part of a stream; 0 means 64
	Time    time.Duration                  // time limit of a tool's search; 0 means 5 seconds

	BaseURL func() string // prefix of every link, without a trailing slash
	Slow    call.Slow     // searches of shards here
	Tracer  *trace.Tracer // nil traces nothing
	Log     *slog.Logger

	lost *lostCalls // set by New
}

// Histories are the changes of this node; *history.Keeper has them.
type Histories interface {
	Reader(id catalog.RepoID, revisions string, req change.LogSearch) (*change.LogReader, history.Reach, error)
	Rest(ctx context.Context, id catalog.RepoID, revisions string, req change.LogSearch) (*change.LogMatches, history.Reach)
	Releases(ctx context.Context, id catalog.RepoID, commits []change.CommitMatch)
}
