package operate

import (
	"context"
	"io"
	"log/slog"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/host"
	"github.com/shoalsearch/shoal/node/job"
)

// Cluster is what operations take of the agreement of nodes; *cluster.Cluster is one. Its
// methods are safe for concurrent use.
type Cluster interface {
	call.Network

	// View is the catalog as this node has applied it.
	View() *catalog.View
	// Sync brings the view up to date; it fails without a leader.
	Sync(ctx context.Context) (index uint64, err error)
	// Propose changes the catalog. It returns when this node has the change.
	Propose(ctx context.Context, cmds ...catalog.Command) (index uint64, err error)

	// Alive reports whether a node can be reached.
	Alive(node string) bool
	// NameOf is how people call a node; "" where it has no name.
	NameOf(node string) string
	// Drain makes a node give away what it holds, and its roles.
	Drain(ctx context.Context, node string) error
	// Undrain makes a node that drains an ordinary one again.
	Undrain(ctx context.Context, node string) error
	// Lead makes a node the leader.
	Lead(ctx context.Context, node string) error
	// Remove forgets a node for good.
	Remove(ctx context.Context, node string) error

	// KnownSecret is a secret as this node has it; false where there is none of that name.
	KnownSecret(name string) (plain []byte, known bool, err error)
	// SetSecret replaces a secret, or makes it. It returns when this node has it.
	SetSecret(ctx context.Context, name string, plain []byte) error
}

// Deps is what operations work with.
type Deps struct {
	Cluster Cluster
	Gate    *account.Gate

	Running     func() []job.Progress                                                   // attempts on this node
	Following   func(connection string) job.FollowingState                              // how pushes are found
	Called      func(connection string)                                                 // is told of a webhook's call
	Hint        func(connection string)                                                 // has a connection listed soon
	FirstSecret func(connection string) (secret string, err error)                      // of a webhook whose secret was never replaced
	KnownSecret func(ctx context.Context, connection string) (secret string, err error) // the same where it was ever told to anybody, else ""

	Snapshot func(ctx context.Context, w io.Writer) error // writes the catalog
	Audited  func() bool                                  // whether changes leave events

	Replicas int // copies of everything that are wanted
	Now      func() time.Time
	Log      *slog.Logger
}

// Operations is what owners do with a cluster, by what it is done with. Its
// methods are safe for concurrent use.
type Operations struct {
	*Drainer
	*Queue
	*Syncer
	*Hooks
	*Archive
}

// Operator is what owners do with a cluster; *Operations implements it. Its methods are
// safe for concurrent use.
type Operator interface {
	Drain(ctx context.Context, by account.Owner, node string) (*DrainResponse, error)
	Undrain(ctx context.Context, by account.Owner, node string) (*NodeResponse, error)
	Lead(ctx context.Context, by account.Owner, node string) (*NodeResponse, error)
	Remove(ctx context.Context, by account.Owner, node string, acceptLoss bool) (*RemoveResponse, error)
	Snapshot(context.Context, account.Owner, io.Writer) error

	Jobs(context.Context, catalog.Viewer, JobsRequest) (*JobsResponse, error)
	Job(ctx context.Context, v catalog.Viewer, id string) (*JobInfo, error)
	RetryJob(ctx context.Context, by account.Owner, id string) (*JobInfo, error)
	CancelJob(ctx context.Context, by account.Owner, id string) (*JobInfo, error)
	Reindex(ctx context.Context, by account.Owner, repo uint32) (*ReindexResponse, error)

	Connections(context.Context, account.Owner) ([]ConnectionStatus, error)
	Connection(ctx context.Context, by account.Owner, name string) (*ConnectionResponse, error)
	SyncConnection(ctx context.Context, by account.Owner, name string) (*ConnectionStatus, error)
	AcceptListing(ctx context.Context, by account.Owner, name string) (*ConnectionStatus, error)

	// The events that the host of a connection sends.
	Webhook(context.Context, account.Owner, WebhookRequest) (*WebhookResponse, error)
	WebhookKeys(ctx context.Context, connection string) (WebhookKeys, error)
	DeliveryKeys(ctx context.Context, connection string) (WebhookKeys, error)
	RotateWebhook(ctx context.Context, by account.Owner, connection string) (WebhookKeys, error)
	Hook(connection string) host.Hook
}

// New makes the operations, which tell other nodes of the jobs and listings of this one from
// now on. It must be called before the cluster runs.
func New(d Deps) *Operations {
	queue := &Queue{cluster: d.Cluster, gate: d.Gate, running: d.Running, log: d.Log}
	// Before the cluster runs: a node that asks must find somebody who answers.
	progressCall.Serve(d.Cluster, queue.serveProgress)
	syncer := &Syncer{cluster: d.Cluster, following: d.Following, syncs: newSyncLog()}
	syncsCall.Serve(d.Cluster, syncer.serveSyncs)

	archive := &Archive{cluster: d.Cluster, write: d.Snapshot, audited: d.Audited, now: d.Now, log: d.Log}
	archive.saved.Store(d.Now().Unix()) // until the first one, the age is that of the node
	return &Operations{
		Drainer: &Drainer{cluster: d.Cluster, gate: d.Gate, replicas: d.Replicas},
		Queue:   queue,
		Syncer:  syncer,

		Hooks: &Hooks{
			cluster: d.Cluster,
			gate:    d.Gate,
			first:   d.FirstSecret,
			told:    d.KnownSecret,
			called:  d.Called,
			hint:    d.Hint,
			came:    newDeliveries(d.Now),
			now:     d.Now,
			log:     d.Log,
		},
		Archive: archive,
	}
}
