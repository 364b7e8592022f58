package browse

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/clustertest"
	"github.com/shoalsearch/shoal/cluster/wire"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/shard/git"
)

// agreed is a catalog that all nodes have.
type agreed struct{ view *catalog.View }

func (a agreed) View() *catalog.View                 { return a.view }
func (a agreed) Await(context.Context, uint64) error { return nil }
func (a agreed) Outlived() error                     { return nil }

// untouched has every mirror, and none may be opened.
type untouched struct{ t *testing.T }

func (untouched) Has(catalog.RepoID) bool { return true }

func (u untouched) Get(id catalog.RepoID) *git.Mirror {
	u.t.Errorf("the mirror of %d was opened", id)
	return nil
}

// A node with the mirror checks permissions with its own catalog, whichever node asks.
func TestNodeWithTheMirror_checksPermissionsBeforeItReads(t *testing.T) {
	t.Parallel()
	w := clustertest.New(t, `{"connections": {"c": {"type": "git", "url": "file:///srv/*", "enforcePermissions": true}}}`, 1)
	w.Do(&catalog.EnqueueJob{Kind: catalog.JobSync, Subject: "c", Urgent: true})
	w.Do(&catalog.GrantJob{Kind: catalog.JobSync, Subject: "c", Node: "n1", Epoch: clustertest.Epoch})
	w.Do(&catalog.SyncPage{Connection: "c", Fence: w.View().Job(catalog.JobSync, "c").Fence, Repos: []catalog.ListedRepo{{Name: "secret"}}})
	secret := w.View().RepoByName("secret").ID

	b := &Browser{d: Deps{Gate: account.NewGate(agreed{w.View()}), Mirrors: untouched{t}, Reads: call.NewLane("reads", 1, 1)}}
	for who, want := range map[*catalog.Viewer]error{
		{Role: catalog.RoleGuest}:  call.ErrRepoNotFound,
		{Role: catalog.RoleMember}: call.ErrRepoNotFound,
		{}:                         call.ErrUnavailable,
	} {
		_, err := readHere(t.Context(), b, branchesOperation, &readAt[RefsRequest]{Pass: account.Pass{Viewer: *who, Index: w.View().Index()}, Repo: secret})
		if !errors.Is(err, want) {
			t.Errorf("%s gets %v, want %v", who.Role, err, want)
		}
	}
}

// sea is a cluster as n1 calls its nodes. Each node runs work for a read and a hello, and the
// reads are recorded.
type sea struct {
	*clustertest.Node
	handlers map[string]cluster.Handler
	work     func(ctx context.Context, node string, hello bool) error
	alive    func(node string) bool
	gate     account.Agreed // nil means the cluster's catalog

	mu    sync.Mutex // guards the field below
	asked []string
}

// Handle implements call.Network.
func (*sea) Lacks(string) bool { return false }

func (s *sea) Handle(method string, h cluster.Handler) { s.handlers[method] = h }

// Call implements call.Network.
func (s *sea) Call(ctx context.Context, node, method string, in []byte) ([]byte, error) {
	if method != "hello" {
		s.mu.Lock()
		s.asked = append(s.asked, node)
		s.mu.Unlock()
	}
	if err := s.work(ctx, node, method == "hello"); err != nil {
		return nil, err
	}
	return s.handlers[method](ctx, cluster.Peer{}, in)
}

// readOnce routes a read from a node without the mirror. It returns the asked nodes, the time and
// the error.
func readOnce[Req, Resp any](t *testing.T, s *sea, op operation[Req, Resp]) (asked string, took time.Duration, err error) {
	t.Helper()
	s.handlers, s.asked = map[string]cluster.Handler{}, nil
	op.method().Serve(s, func(context.Context, *readAt[Req]) (*Resp, error) { return new(Resp), nil })
	gate := s.gate
	if gate == nil {
		gate = agreed{s.View()}
	}
	b := &Browser{readers: newReaders(), d: Deps{
		Cluster: s,
		Gate:    account.NewGate(gate),
		Peers:   call.NewPeers(s, s.alive),
		Fresh:   func(*catalog.View, *catalog.Repo) bool { return true },
		Log:     slog.New(slog.DiscardHandler),
	}}

	began := time.Now()
	var req Req
	_, err = route(t.Context(), b, catalog.Operator(), "r", op, req)
	return strings.Join(s.asked, " "), time.Since(began), err
}

// mirrored is a cluster in which n2 and n3 have the mirror of a repository that n2 has indexed.
func mirrored(t *testing.T) *clustertest.World {
	t.Helper()
	w := clustertest.New(t, `{"connections": {"c": {"type": "git", "url": "file:///srv/*"}}}`, 3)
	w.Repos("c", "r")
	w.Index(1, "n2", catalog.ShardRef{ID: strings.Repeat("ab", 32)})
	w.Confirm("n2", catalog.MirrorKey(1))
	w.Confirm("n3", catalog.MirrorKey(1))
	return w
}

// A busy holder takes three seconds and says so. Cheap reads are also sent to the other holder;
// others are not.
func TestReadRouting_repeatsOnlyCheapReadsElsewhere(t *testing.T) {
	t.Parallel()
	w := mirrored(t)
	synctest.Test(t, func(t *testing.T) {
		s := &sea{Node: w.Node("n1"), alive: func(string) bool { return true }}
		s.work = func(ctx context.Context, node string, hello bool) error {
			if node != "n2" || hello || clock.Wait(ctx, 3*time.Second) {
				return nil
			}
			return ctx.Err()
		}

		light := func(name, asked string, took time.Duration, err error) {
			if asked != "n2 n3" || took != call.StallTime || err != nil {
				t.Errorf("%s asks %s, and takes %v (%v); want n2 n3, and %v", name, asked, took, err, call.StallTime)
			}
		}
		heavy := func(name, asked string, took time.Duration, err error) {
			if asked != "n2" || took != 3*time.Second || err != nil {
				t.Errorf("%s asks %s, and takes %v (%v); want n2 alone, and 3s", name, asked, took, err)
			}
		}
		row(t, s, readFileOperation, light)
		row(t, s, listTreeOperation, light)
		row(t, s, treeOperation, light)
		row(t, s, commitOperation, light)
		row(t, s, branchesOperation, light)
		row(t, s, tagsOperation, light)

		row(t, s, sourceOperation, heavy)
		row(t, s, outlineOperation, heavy)
		row(t, s, scanOperation, heavy)
		row(t, s, pastOperation, heavy)
		row(t, s, trendOperation, heavy)
		row(t, s, traceOperation, heavy)
		row(t, s, lastSeenOperation, heavy)
		row(t, s, commitsOperation, heavy)
		row(t, s, authorsOperation, heavy)
		row(t, s, diffOperation, heavy)
		row(t, s, blameOperation, heavy)
	})
}

func row[Req, Resp any](t *testing.T, s *sea, op operation[Req, Resp], want func(name, asked string, took time.Duration, err error)) {
	t.Helper()
	asked, took, err := readOnce(t, s, op)
	want(op.name, asked, took, err)
}

func TestReadRouting_continuesAtTheNextHolder(t *testing.T) {
	t.Parallel()
	w := mirrored(t)
	from := func(kind error) error { return &wire.RemoteError{Node: "n2", Text: "no", Kind: kind} }

	for name, tt := range map[string]struct {
		n2, n3 error // nil: it answers; errSilence: no answer
		dead   string
		asked  string
		took   time.Duration
		err    error
	}{
		"it answers":                  {asked: "n2"},
		"it is silent":                {n2: errSilence, asked: "n2 n3", took: call.StallTime},
		"it cannot be reached":        {n2: wire.ErrUnreachable, asked: "n2 n3"},
		"it has it not yet":           {n2: from(call.ErrUnavailable), asked: "n2 n3"},
		"it cannot read its disk":     {n2: from(nil), asked: "n2 n3"},
		"there is no such file":       {n2: from(call.ErrFileNotFound), asked: "n2", err: call.ErrFileNotFound},
		"there is no such commit":     {n2: from(call.ErrRef), asked: "n2", err: call.ErrRef},
		"the file is too large":       {n2: from(call.ErrTooLarge), asked: "n2", err: call.ErrTooLarge},
		"it knows of no such thing":   {n2: from(call.ErrRepoNotFound), asked: "n2", err: call.ErrRepoNotFound},
		"none can be reached":         {n2: wire.ErrUnreachable, n3: wire.ErrBroken, asked: "n2 n3", err: call.ErrUnavailable},
		"none answers":                {n2: errSilence, n3: errSilence, asked: "n2 n3", took: 3 * call.StallTime / 2, err: call.ErrUnavailable},
		"all are called dead":         {dead: "n2 n3", n2: errSilence, asked: "n3", took: call.StallTime},
		"all are dead":                {dead: "n2 n3", n2: errSilence, n3: errSilence, took: call.StallTime, err: call.ErrUnavailable},
		"the other one counts as so":  {dead: "n3", n2: errSilence, asked: "n2 n3", took: call.StallTime},
		"and so it does for no cause": {dead: "n2", asked: "n3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &sea{Node: w.Node("n1"), alive: func(node string) bool { return !strings.Contains(tt.dead, node) }}
				s.work = func(ctx context.Context, node string, hello bool) error {
					err := map[string]error{"n2": tt.n2, "n3": tt.n3}[node]
					if errors.Is(err, errSilence) {
						<-ctx.Done()
						return ctx.Err()
					}
					return err
				}

				asked, took, err := readOnce(t, s, readFileOperation)
				if asked != tt.asked || took != tt.took || !errors.Is(err, tt.err) {
					t.Errorf("asked %q in %v, got %v; want %q in %v, and %v", asked, took, err, tt.asked, tt.took, tt.err)
				}
			})
		})
	}
}

// A read of a repository that was never indexed returns the reason, and only temporary reasons
// can be retried. For a viewer without access the repository does not exist.
func TestReadRouting_saysWhyARepositoryWasNeverIndexed(t *testing.T) {
	t.Parallel()
	w := clustertest.New(t, `{"connections": {"c": {"type": "git", "url": "file:///srv/*", "enforcePermissions": true}}}`, 1)
	w.Do(&catalog.EnqueueJob{Kind: catalog.JobSync, Subject: "c", Urgent: true})
	w.Do(&catalog.GrantJob{Kind: catalog.JobSync, Subject: "c", Node: "n1", Epoch: clustertest.Epoch})
	w.Do(&catalog.SyncPage{Connection: "c", Fence: w.View().Job(catalog.JobSync, "c").Fence, Repos: []catalog.ListedRepo{{Name: "r"}, {Name: "disabled", RepoFacts: catalog.RepoFacts{Unfetchable: "it is disabled"}}}})
	subject := catalog.RepoSubject(w.View().RepoByName("r").ID)
	end := func(permanent bool) {
		w.Do(&catalog.EnqueueJob{Kind: catalog.JobIndex, Subject: subject, Urgent: true})
		w.Do(&catalog.GrantJob{Kind: catalog.JobIndex, Subject: subject, Node: "n1", Epoch: clustertest.Epoch})
		w.Do(&catalog.FinishJob{Kind: catalog.JobIndex, Subject: subject, Fence: w.View().Job(catalog.JobIndex, subject).Fence, Error: "300,000 branches", Permanent: permanent})
	}
	read := func(v catalog.Viewer, name string) error {
		s := &sea{Node: w.Node("n1"), handlers: map[string]cluster.Handler{}, alive: func(string) bool { return true }}
		b := &Browser{readers: newReaders(), d: Deps{Cluster: s, Gate: account.NewGate(agreed{w.View()}), Peers: call.NewPeers(s, s.alive), Log: slog.New(slog.DiscardHandler)}}
		_, err := route(t.Context(), b, v, name, readFileOperation, ReadFileRequest{})
		return err
	}
	check := func(name string, kind error, says string) {
		t.Helper()
		if err := read(catalog.Operator(), name); !errors.Is(err, kind) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %v with %q", name, err, kind, says)
		}
		if err := read(catalog.Viewer{Role: catalog.RoleMember}, name); !errors.Is(err, call.ErrRepoNotFound) || strings.Contains(err.Error(), says) {
			t.Errorf("%s, not for this viewer: %v", name, err)
		}
	}
	check("r", call.ErrUnavailable, "has not been fetched yet")
	check("disabled", call.ErrUnable, "cannot be fetched: it is disabled")
	end(false)
	check("r", call.ErrUnavailable, "failed and is repeated: 300,000 branches")
	end(true)
	check("r", call.ErrUnable, "was refused when it was indexed: 300,000 branches")
}

// followed is a catalog that changes while the node reads.
type followed struct {
	agreed
	now atomic.Pointer[catalog.View]
}

func (f *followed) View() *catalog.View { return f.now.Load() }

// At first the node only knows a holder that answers nothing but hello. It learns of the other
// one while it waits.
func TestReadRouting_triesAHolderThatItLearnsOfWhileWaiting(t *testing.T) {
	t.Parallel()
	w := clustertest.New(t, `{"connections": {"c": {"type": "git", "url": "file:///srv/*"}}}`, 3)
	w.Repos("c", "r")
	w.Index(1, "n2", catalog.ShardRef{ID: strings.Repeat("ab", 32)})
	w.Confirm("n2", catalog.MirrorKey(1))
	view := new(followed)
	view.now.Store(w.View())
	w.Confirm("n3", catalog.MirrorKey(1))

	synctest.Test(t, func(t *testing.T) {
		s := &sea{Node: w.Node("n1"), alive: func(string) bool { return true }, gate: view}
		s.work = func(ctx context.Context, node string, hello bool) error {
			if node != "n2" || hello {
				return nil
			}
			clock.Wait(ctx, 2500*time.Millisecond)
			view.now.Store(w.View())
			<-ctx.Done()
			return ctx.Err()
		}

		asked, took, err := readOnce(t, s, readFileOperation)
		if asked != "n2 n3" || took != 3*time.Second || err != nil {
			t.Errorf("asked %q in %v, got %v; want n2 n3 in 3s", asked, took, err)
		}
	})
}

// errSilence stands for a node without an answer.
var errSilence = errors.New("silence")
