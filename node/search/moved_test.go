package search

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/clustertest"
	"github.com/shoalsearch/shoal/cluster/wire"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
)

// behind is a node whose catalog is older than the others' until it waits for them. answer answers
// its calls, and it records them.
type behind struct {
	*clustertest.Node
	old, now *catalog.View
	caughtUp bool
	answer   func(node string) (*leafResponse, error)
	asked    []string
	dead     []string // nodes that gossip calls dead
	hellos   func(ctx context.Context, node string) error
	cut      bool // calls to other nodes get no answer
}

// View implements Cluster.
func (b *behind) View() *catalog.View {
	if b.caughtUp {
		return b.now
	}
	return b.old
}

// Await implements Cluster.
func (b *behind) Await(_ context.Context, index uint64) error {
	if index > b.now.Index() {
		return errors.New("nobody has got so far")
	}
	b.caughtUp = true
	return nil
}

// Call implements call.Network.
func (b *behind) Call(ctx context.Context, node, method string, in []byte) (out []byte, err error) {
	if method == "hello" {
		return nil, b.hellos(ctx, node)
	}
	if b.cut {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	b.asked = append(b.asked, node)
	leafCall.Serve(handler(func(h cluster.Handler) { out, err = h(ctx, cluster.Peer{}, in) }), func(context.Context, *leafRequest) (*leafResponse, error) {
		return b.answer(node)
	})
	return out, err
}

// Handle implements call.Network.
func (*behind) Lacks(string) bool { return false }

func (b *behind) Handle(string, cluster.Handler) {}

// handler is a network that learns who answers calls.
type handler func(cluster.Handler)

func (handler) Self() string                                                 { return "" }
func (handler) Call(context.Context, string, string, []byte) ([]byte, error) { return nil, nil }
func (handler) Lacks(string) bool                                            { return false }

func (h handler) Handle(_ string, answer cluster.Handler) { h(answer) }

// A file has moved from n2 to n4 while the catalog of n1 was old, and the other holder n3 is away.
// The search finds the file where it is now, as far as that is known.
func TestSearch_followsAMovedFile(t *testing.T) {
	t.Parallel()
	w := clustertest.New(t, `{"connections": {"c": {"type": "git", "url": "file:///srv/*"}}}`, 4)
	w.Repos("c", "r")
	file := strings.Repeat("ab", 32)
	w.Index(1, "n3", catalog.ShardRef{ID: file})
	w.Confirm("n3", catalog.ShardKey(file))
	w.Confirm("n2", catalog.ShardKey(file))
	old := w.View()
	w.Confirm("n4", catalog.ShardKey(file))
	w.Drop("n2", catalog.ShardKey(file))
	now := w.View()

	for name, tt := range map[string]struct {
		index uint64 // index of the catalog by which n2 lacks the file
		asked string
		lost  int
	}{
		"n2 tells of the move":                     {now.Index(), "n2 n3 n4", 0},
		"n2 lacks the file by the same catalog":    {old.Index(), "n2 n3", 1},
		"n2 is of a catalog that is not to be had": {now.Index() + 1, "n2 n3", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &behind{Node: w.Node("n1"), old: old, now: now, answer: func(node string) (*leafResponse, error) {
				switch node {
				case "n2":
					return &leafResponse{Verdicts: []verdict{verdictMissing}, Index: tt.index}, nil
				case "n4":
					return &leafResponse{Verdicts: []verdict{verdictDone}}, nil
				}
				return nil, errors.New("connection refused")
			}}
			r := rootOn(t, b)

			r.scatter(r.targets(), r.q.leaf)

			slices.Sort(b.asked) // either of two holders may be asked first
			if got := strings.Join(b.asked, " "); got != tt.asked || len(r.a.lost) != tt.lost {
				t.Errorf("asked are %s, and %d lost; want %s, and %d", got, len(r.a.lost), tt.asked, tt.lost)
			}
		})
	}
}

// Gossip calls all holders of a file dead except for n2, which cannot be reached. The search asks
// the others for a sign of life, and n2 too before asking it again.
func TestSearch_callsDeadNodesLast(t *testing.T) {
	t.Parallel()
	w := clustertest.New(t, `{"connections": {"c": {"type": "git", "url": "file:///srv/*"}}}`, 4)
	w.Repos("c", "r")
	file := strings.Repeat("ab", 32)
	w.Index(1, "n3", catalog.ShardRef{ID: file})
	for _, n := range []string{"n2", "n3", "n4"} {
		w.Confirm(n, catalog.ShardKey(file))
	}

	for name, tt := range map[string]struct {
		there  string // nodes that answer a hello
		lacks  bool   // it lacks the file
		refuse bool   // n2 is there but overloaded
		asked  []string
		lost   int
		took   [2]time.Duration // time of the first search, and of the next
	}{
		"one of them is there":  {there: "n4", asked: []string{"n2 n4", "n4"}, took: [2]time.Duration{call.StallTime, call.StallTime}},
		"it lacks the file":     {there: "n4", lacks: true, asked: []string{"n2 n4", "n4"}, lost: 1, took: [2]time.Duration{call.StallTime, call.StallTime}},
		"they are dead":         {asked: []string{"n2", ""}, lost: 1, took: [2]time.Duration{call.StallTime, call.StallTime}},
		"the live one is there": {there: "n4", refuse: true, asked: []string{"n2", "n2"}, lost: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := &behind{Node: w.Node("n1"), old: w.View(), now: w.View(), dead: []string{"n3", "n4"}}
				b.hellos = func(ctx context.Context, node string) error {
					if node == tt.there {
						return &wire.RemoteError{Node: node, Text: "unknown method", Kind: wire.ErrNoMethod}
					}
					<-ctx.Done()
					return ctx.Err()
				}
				b.answer = func(node string) (*leafResponse, error) {
					switch {
					case node == "n2" && tt.refuse:
						return nil, call.Fail(call.ErrOverloaded, "busy")
					case node == "n2":
						return nil, wire.ErrUnreachable
					case tt.lacks:
						return &leafResponse{Verdicts: []verdict{verdictMissing}, Index: b.now.Index()}, nil
					}
					return &leafResponse{Verdicts: []verdict{verdictDone}}, nil
				}

				r := rootOn(t, b)
				for i, want := range tt.asked {
					r.a.lost, b.asked = nil, nil
					began := time.Now()
					r.scatter(r.targets(), r.q.leaf)
					if got := strings.Join(b.asked, " "); got != want || len(r.a.lost) != tt.lost || time.Since(began) != tt.took[i] {
						t.Errorf("search %d: asked are %s, and %d lost, in %v; want %s, %d, %v", i, got, len(r.a.lost), time.Since(began), want, tt.lost, tt.took[i])
					}
				}
			})
		})
	}
}

// No holder answers, and gossip has not noticed that yet. A search waits for a sign of life from
// all holders at once, however many there are. Later searches check for signs of life first.
func TestSearch_onAnIsolatedNodeWaitsOnce(t *testing.T) {
	t.Parallel()
	for holders := 1; holders <= 4; holders++ {
		w := clustertest.New(t, `{"connections": {"c": {"type": "git", "url": "file:///srv/*"}}}`, 6)
		w.Repos("c", "r")
		file := strings.Repeat("ab", 32)
		w.Index(1, "n3", catalog.ShardRef{ID: file})
		for n := range holders {
			w.Confirm(fmt.Sprintf("n%d", n+2), catalog.ShardKey(file))
		}

		synctest.Test(t, func(t *testing.T) {
			b := &behind{Node: w.Node("n1"), old: w.View(), now: w.View(), cut: true}
			b.hellos = func(ctx context.Context, _ string) error {
				if b.cut {
					<-ctx.Done()
					return ctx.Err()
				}
				return &wire.RemoteError{Text: "unknown method", Kind: wire.ErrNoMethod}
			}
			b.answer = func(string) (*leafResponse, error) { return &leafResponse{Verdicts: []verdict{verdictDone}}, nil }
			r := rootOn(t, b)

			search := func(when string, lost int, atMost time.Duration) {
				began := time.Now()
				r.a.lost, r.a.failed = nil, nil
				r.scatter(r.targets(), r.q.leaf)
				if took := time.Since(began); len(r.a.lost) != lost || took > atMost {
					t.Errorf("%d holders, %s: %d lost after %v, want %d after %v", holders, when, len(r.a.lost), took, lost, atMost)
				}
			}
			search("cut off", 1, 1500*time.Millisecond)
			if len(r.a.failed) > 0 != (r.a.stats.Crashes > 0) || r.a.stats.Crashes == 0 {
				t.Errorf("%d holders: the silent ones are not named: %q, %d crashes", holders, r.a.failed, r.a.stats.Crashes)
			}
			time.Sleep(time.Second)
			search("a moment later", 1, call.StallTime)
			b.cut = false
			search("healed", 0, 0)
		})
	}
}

// A search waits for a node that works for long but answers a hello.
func TestSearch_waitsForABusyNode(t *testing.T) {
	t.Parallel()
	w := clustertest.New(t, `{"connections": {"c": {"type": "git", "url": "file:///srv/*"}}}`, 2)
	w.Repos("c", "r")
	file := strings.Repeat("ab", 32)
	w.Index(1, "n2", catalog.ShardRef{ID: file})
	w.Confirm("n2", catalog.ShardKey(file))

	synctest.Test(t, func(t *testing.T) {
		b := &behind{Node: w.Node("n1"), old: w.View(), now: w.View()}
		b.hellos = func(context.Context, string) error {
			return &wire.RemoteError{Text: "unknown method", Kind: wire.ErrNoMethod}
		}
		b.answer = func(string) (*leafResponse, error) {
			time.Sleep(9 * time.Second)
			return &leafResponse{Verdicts: []verdict{verdictDone}}, nil
		}
		r := rootOn(t, b)
		if r.scatter(r.targets(), r.q.leaf); len(r.a.lost) > 0 || r.d.Peers.Misses("n2") {
			t.Errorf("%d shards are lost", len(r.a.lost))
		}
	})
}

// rootOn prepares a search on a node for the only repository.
func rootOn(t *testing.T, b *behind) *root {
	t.Helper()
	registerQueries()
	d := &Deps{Cluster: b, Peers: call.NewPeers(b, func(node string) bool { return !slices.Contains(b.dead, node) }), lost: &lostCalls{log: slog.New(slog.DiscardHandler)}}
	q := &question{visible: &account.Repos{View: b.old, Set: roaring.BitmapOf(1)}, repos: roaring.BitmapOf(1), shape: shapeOf(0)}
	r := &root{d: d, leaves: &leaves{d: *d}, layouts: &layouts{}, q: q, a: &answer{q: q}}
	r.ctx, r.cancel = context.WithCancel(t.Context())
	t.Cleanup(r.cancel)
	return r
}
