package browse

import (
	"context"
	"log/slog"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/shard"
	"github.com/shoalsearch/shoal/shard/change"
	"github.com/shoalsearch/shoal/shard/git"
	"github.com/shoalsearch/shoal/shard/query"
	"github.com/shoalsearch/shoal/shard/symbol"
)

// Cluster is the part of *cluster.Cluster that a Browser uses.
type Cluster interface {
	call.Network
	// View returns the catalog as this node has applied it.
	View() *catalog.View
}

// Mirrors are the git mirrors on this node.
type Mirrors interface {
	// Has reports whether the complete mirror is on this node.
	Has(id catalog.RepoID) bool
	// Get opens the mirror.
	Get(id catalog.RepoID) *git.Mirror
}

// Deps are the parts that a Browser uses.
type Deps struct {
	Cluster  Cluster
	Gate     *account.Gate
	Mirrors  Mirrors
	Peers    *call.Peers
	Outlines *symbol.Pool // finds definitions and where they end; nil if ctags is not installed
	Reads    *call.Lane   // limits reads of mirrors on this node; each runs a git process or two

	// Fresh reports whether this node's mirror has all commits of the repository's newest index.
	Fresh func(view *catalog.View, repo *catalog.Repo) bool

	// Paths returns the paths at which a file of an indexed revision of a repository, or of one of its
	// ancestors, can match a query.
	Paths func(ctx context.Context, repo *catalog.Repo, q query.Q) (*change.Paths, error)

	Scratch string                                            // directory of small indexes for commits without an index; only the Browser may use it
	Options func(settings config.Settings) shard.BuildOptions // build options of these small indexes

	BaseURL func() string // prefix of every link, without a trailing slash
	Now     func() time.Time
	Log     *slog.Logger
}

// Browser reads repositories for viewers. It is safe for concurrent use.
type Browser struct {
	d       Deps
	readers *readers
	scratch *scratch
	kept    *blobCache
	orders  orders
}

// New makes a Browser and registers its operations, so that other nodes can read here. The caller
// must do this before the cluster runs.
func New(d Deps) *Browser {
	b := &Browser{d: d, readers: newReaders(), scratch: newScratch(d.Scratch), kept: newKeptFiles()}

	serve(b, scanOperation)
	serve(b, pastOperation)
	serve(b, trendOperation)
	serve(b, readFileOperation)
	serve(b, listTreeOperation)
	serve(b, outlineOperation)
	serve(b, traceOperation)
	serve(b, lastSeenOperation)
	serve(b, sourceOperation)

	serve(b, treeOperation)
	serve(b, commitsOperation)
	serve(b, commitOperation)
	serve(b, authorsOperation)
	serve(b, togetherOperation)
	serve(b, diffOperation)
	serve(b, blameOperation)
	serve(b, branchesOperation)
	serve(b, tagsOperation)
	serve(b, refOperation)
	serve(b, lastCommitsOperation)
	return b
}

// CloseScratch removes the small indexes of commits that are not indexed.
func (b *Browser) CloseScratch() { b.scratch.close() }
