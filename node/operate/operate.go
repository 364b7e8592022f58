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

// Cluster is the part of *cluster.Cluster that operations use. Its methods are safe for concurrent
// use.
type Cluster interface {
	call.Network

	// View returns the catalog as this node has applied it.
	View() *catalog.View
	// Sync brings the view up to date. It fails without a leader.
	Sync(ctx context.Context) (index uint64, err error)
	// Propose changes the catalog. It returns when this node has applied the change.
	Propose(ctx context.Context, cmds ...catalog.Command) (index uint64, err error)

	// Alive reports whether a node is reachable.
	Alive(node string) bool
	// NameOf returns a node's name, or "" if it has none.
	NameOf(node string) string
	// Drain makes a node give away its data and roles.
	Drain(ctx context.Context, node string) error
	// Undrain makes a draining node an ordinary one again.
	Undrain(ctx context.Context, node string) error
	// Lead makes a node the leader.
	Lead(ctx context.Context, node string) error
	// Remove forgets a node for good.
	Remove(ctx context.Context, node string) error

	// KnownSecret returns a secret as this node has it, or false if there is none of that name.
	KnownSecret(name string) (plain []byte, known bool, err error)
	// SetSecret creates or replaces a secret. It returns when this node has applied it.
	SetSecret(ctx context.Context, name string, plain []byte) error
}

// Deps are the other parts that operations use.
type Deps struct {
	Cluster Cluster
	Gate    *account.Gate

	Running     func() []job.Progress                                                   // attempts on this node
	Following   func(connection string) job.FollowingState                              // how pushes are found
	Called      func(connection string)                                                 // called for each call of a webhook
	Hint        func(connection string)                                                 // lists a connection soon
	FirstSecret func(connection string) (secret string, err error)                      // webhook's secret, if it was never replaced
	KnownSecret func(ctx context.Context, connection string) (secret string, err error) // the same, or "" if nobody was ever shown it

	Snapshot func(ctx context.Context, w io.Writer) error // writes the catalog
	Chats    func(ctx context.Context, w io.Writer) error // writes the conversations
	Audited  func() bool                                  // whether changes record events

	Backup   string // file that remembers when this node gave the newest back-up
	Replicas int    // wanted copies of each thing
	Now      func() time.Time
	Log      *slog.Logger
}

// Operations are the operations for owners, by subject. Their methods are safe for concurrent use.
type Operations struct {
	*Drainer
	*Queue
	*Syncer
	*Hooks
	*Archive
	*Past
}

// Operator lists the operations for owners. *Operations implements it. Its methods are safe for
// concurrent use.
type Operator interface {
	Drain(ctx context.Context, by account.Owner, node string) (*DrainResponse, error)
	Undrain(ctx context.Context, by account.Owner, node string) (*NodeResponse, error)
	Lead(ctx context.Context, by account.Owner, node string) (*NodeResponse, error)
	Remove(ctx context.Context, by account.Owner, node string, acceptLoss bool) (*RemoveResponse, error)
	Snapshot(context.Context, account.Owner, io.Writer) error
	SnapshotChats(context.Context, account.Owner, io.Writer) error

	Jobs(context.Context, catalog.Viewer, JobsRequest) (*JobsResponse, error)
	Job(ctx context.Context, v catalog.Viewer, id string) (*JobInfo, error)
	RetryJob(ctx context.Context, by account.Owner, id string) (*JobInfo, error)
	CancelJob(ctx context.Context, by account.Owner, id string) (*JobInfo, error)
	Reindex(ctx context.Context, by account.Owner, repo uint32) (*ReindexResponse, error)

	Connections(context.Context, account.Owner) ([]ConnectionStatus, error)
	Connection(ctx context.Context, by account.Owner, name string) (*ConnectionResponse, error)
	SyncConnection(ctx context.Context, by account.Owner, name string) (*ConnectionStatus, error)
	AcceptListing(ctx context.Context, by account.Owner, name string) (*ConnectionStatus, error)

	HistoryRules(context.Context, account.Owner) (*HistoryResponse, error)
	SetHistory(ctx context.Context, by account.Owner, req HistoryRequest) (*HistoryResponse, error)

	// webhooks of connections
	Webhook(context.Context, account.Owner, WebhookRequest) (*WebhookResponse, error)
	WebhookKeys(ctx context.Context, connection string) (WebhookKeys, error)
	DeliveryKeys(ctx context.Context, connection string) (WebhookKeys, error)
	RotateWebhook(ctx context.Context, by account.Owner, connection string) (WebhookKeys, error)
	Hook(connection string) host.Hook
}

// New returns the operations, and registers the handlers by which other nodes ask for this node's
// attempts and listings. Call it before the cluster runs.
func New(d Deps) *Operations {
	queue := &Queue{cluster: d.Cluster, gate: d.Gate, running: d.Running, log: d.Log}
	// Register before the cluster runs, so that no call finds no handler.
	progressCall.Serve(d.Cluster, queue.serveProgress)
	syncer := &Syncer{cluster: d.Cluster, following: d.Following, syncs: newSyncLog()}
	syncsCall.Serve(d.Cluster, syncer.serveSyncs)

	archive := &Archive{cluster: d.Cluster, write: d.Snapshot, chats: d.Chats, audited: d.Audited, now: d.Now, file: d.Backup, log: d.Log}
	archive.readBackupTime()
	return &Operations{
		Drainer: &Drainer{cluster: d.Cluster, gate: d.Gate, replicas: d.Replicas},
		Queue:   queue,
		Syncer:  syncer,

		Hooks: &Hooks{
			cluster:     d.Cluster,
			gate:        d.Gate,
			firstSecret: d.FirstSecret,
			shownSecret: d.KnownSecret,
			called:      d.Called,
			hint:        d.Hint,
			seen:        newDeliveries(d.Now),
			now:         d.Now,
			log:         d.Log,
		},
		Archive: archive,
		Past:    &Past{cluster: d.Cluster},
	}
}
