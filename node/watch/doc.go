// Package watch keeps saved searches, and notifies their owners of what is new.
//
//	FinishIndex ── the catalog notes a backlog: the revisions before, if there are watches
//	Watches.Run ── a holder of the mirror searches only what is new since these revisions
//	FinishChecks ── one entry stores the notices and removes the backlog
//	Watches.Watch, Feed ── what a viewer may see of them at that moment
//	Watches.Send ── the leader sends them to webhooks and by mail, with the owner's rights at that moment
//	NoteDeliveries ── how far it came; what is not stored is sent again, with the same id
//
// The catalog has the backlog and the notices, so a killed node or a move of a repository loses
// nothing: another holder checks again, and the entry of the slower one is refused.
package watch

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/mail"
	"github.com/shoalsearch/shoal/node/seal"
	"github.com/shoalsearch/shoal/shard/change"
)

// Cluster is the part of *cluster.Cluster that watches use.
type Cluster interface {
	View() *catalog.View
	Propose(ctx context.Context, cmds ...catalog.Command) (uint64, error)
	Self() string
	Alive(node string) bool
	Leading() bool
	Secret(ctx context.Context, name string) ([]byte, error)
}

// Histories are the changes of this node; *history.Keeper has them.
type Histories interface {
	// Off reports whether this node keeps no changes.
	Off() bool
	// News finds the commits that are new since some revisions; nil means not yet.
	News(repo *catalog.Repo, before []catalog.Revision) (*change.News, error)
}

// Deps are the parts that Watches uses.
type Deps struct {
	Cluster   Cluster
	Gate      *account.Gate
	Current   func() error // why this node cannot decide about rights; nil: it can
	Histories Histories
	Mirrors   MirrorDir
	Search    FileSearcher
	Lookup    func(name string) (string, bool)         // a variable of the environment
	Mail      func(context.Context, mail.Letter) error // nil: no mail server is named
	BaseURL   func() string                            // prefix of every link, without a trailing slash
	Now       func() time.Time
	Log       *slog.Logger
}

// Watches makes, shows and checks watches. It is safe for concurrent use.
type Watches struct {
	d      Deps
	box    *seal.Box // of the secrets of webhooks
	client *http.Client
	news   func(repo *catalog.Repo, before []catalog.Revision) (newCommits, bool, error) // newsOf; another one in tests

	// Only Send uses these fields.
	receivers map[string]*receiver // by watch
	quiet     *catalog.View        // of the last look, if nothing was to be sent

	mu     sync.Mutex // guards the fields below
	counts Counts

	// Only Run uses these fields.
	sets    groups
	pending map[catalog.RepoID]*turn
	calm    *catalog.View // of the last round, if that left nothing to do
}

// New returns the watches of a node. The caller must call Run and Send.
func New(d Deps) *Watches {
	w := &Watches{d: d, pending: map[catalog.RepoID]*turn{}, receivers: map[string]*receiver{}}
	w.box = seal.New("watch webhooks", "secret of a webhook", d.Cluster.Secret)
	w.client, w.news = w.newClient(), w.newsOf
	return w
}

// Counts counts what this node did for watches since it started.
type Counts struct {
	Checked int64 // repositories that were checked after an index
	Found   int64 // notices that these checks stored
	Failed  int64 // attempts to check that failed

	Sent, SendFailed int64 // requests to webhooks and letters
}

// Counts returns what this node did.
func (w *Watches) Counts() Counts {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.counts
}

func (w *Watches) count(add func(c *Counts)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	add(&w.counts)
}

// Total returns the number of watches, and how many of them fail.
func (w *Watches) Total() (all, failing int) {
	for x := range w.d.Cluster.View().Watches() {
		all++
		if !x.Failing.IsZero() {
			failing++
		}
	}
	return all, failing
}
