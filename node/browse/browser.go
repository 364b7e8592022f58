package browse

import (
	"log/slog"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/shard"
	"github.com/shoalsearch/shoal/shard/git"
	"github.com/shoalsearch/shoal/shard/symbol"
)

// Cluster is what reading takes of the agreement of nodes; *cluster.Cluster
// has it.
type Cluster interface {
	call.Network
	// View is the catalog as this node has applied it.
	View() *catalog.View
}

// Mirrors is the repositories that this node has.
type Mirrors interface {
	// Has reports whether the mirror is here, whole.
	Has(id catalog.RepoID) bool
	// Get opens it.
	Get(id catalog.RepoID) *git.Mirror
}

// Deps is what a Browser works with.
type Deps struct {
	Cluster  Cluster
	Gate     *account.Gate
	Mirrors  Mirrors
	Peers    *call.Peers
	Outlines *symbol.Pool // finds definitions with their extents; nil where the program is missing
	Reads    *call.Lane   // of mirrors on this node, each with a process of git or two

	// Fresh reports whether the mirror of this node has all that the newest
	// index of the repository was made from.
	Fresh func(view *catalog.View, repo *catalog.Repo) bool

	Scratch string                                            // directory for small indexes of commits that are not indexed; its content is nobody else's
	Options func(settings config.Settings) shard.BuildOptions // of indexes

	BaseURL func() string // prefix of every link, without a trailing slash
	Now     func() time.Time
	Log     *slog.Logger
}

// Browser reads repositories for viewers. It is safe for concurrent use.
type Browser struct {
	d       Deps
	readers *readers
	scratch *scratch
	kept    *keptFiles
	orders  orders
}

// New makes a Browser, which answers the reads of other nodes from now on. It
// must be called before the cluster runs.
func New(d Deps) *Browser {
	b := &Browser{d: d, readers: newReaders(), scratch: newScratch(d.Scratch), kept: newKeptFiles()}

	// Reads of files and trees.
	serve(b, scanOperation)
	serve(b, pastOperation)
	serve(b, readFileOperation)
	serve(b, listTreeOperation)
	serve(b, outlineOperation)
	serve(b, traceOperation)
	serve(b, lastSeenOperation)
	serve(b, sourceOperation)

	// Reads of the history.
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

// CloseScratch lets go of what was kept of commits that are not indexed.
func (b *Browser) CloseScratch() { b.scratch.close() }
