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

// Agreement is what the nodes agree on. Its methods are safe for concurrent use.
type Agreement interface {
	// View is the catalog as this node has applied it.
	View() *catalog.View
	// Sync brings the view up to date; it fails without a leader.
	Sync(ctx context.Context) (index uint64, err error)
	// Propose changes the catalog. It returns when this node has the change.
	Propose(ctx context.Context, cmds ...catalog.Command) (index uint64, err error)
}

// Deps is what a Configurer works with.
type Deps struct {
	Catalog Agreement
	Members func() []cluster.Member
	Net     call.Network
	Gate    *account.Gate
	File    *File            // of this node
	Allowed config.Allowance // for configurations that come over the network
	Log     *slog.Logger
}

// Configurer tells of the configuration in force, and changes it. It is safe for
// concurrent use.
type Configurer struct{ d Deps }

// New makes a Configurer, which tells other nodes of the file of this one from
// now on. It must be called before the cluster runs.
func New(d Deps) *Configurer {
	c := &Configurer{d}
	fileCall.Serve(d.Net, c.serveFile)
	return c
}
