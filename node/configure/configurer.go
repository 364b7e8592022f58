package configure

import (
	"context"
	"log/slog"

	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
)

// Agreement is the part of *cluster.Cluster that this package uses. Its methods are safe for
// concurrent use.
type Agreement interface {
	// View returns the catalog as this node has applied it.
	View() *catalog.View
	// Sync brings the view up to date. It fails without a leader.
	Sync(ctx context.Context) (index uint64, err error)
	// Propose changes the catalog. It returns when this node has applied the change.
	Propose(ctx context.Context, cmds ...catalog.Command) (index uint64, err error)
}

// Deps are the other parts that a Configurer uses.
type Deps struct {
	Catalog Agreement
	Members func() []cluster.Member
	Net     call.Network
	Gate    *account.Gate
	File    *File            // of this node
	Allowed config.Allowance // limits configurations that come over the network
	Log     *slog.Logger
}

// Configurer describes and changes the cluster's configuration. It is safe for concurrent use.
type Configurer struct{ d Deps }

// New returns a Configurer, and registers the handler by which other nodes ask for this node's
// file. Call it before the cluster runs.
func New(d Deps) *Configurer {
	c := &Configurer{d}
	fileCall.Serve(d.Net, c.serveFile)
	return c
}
