package search

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/clustertest"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
)

// behind is a node whose catalog is older than those of the others until it
// waits for them. Calls are answered by answer, and noted.
type behind struct {
	*clustertest.Node
	old, now *catalog.View
	caughtUp bool
	answer   func(node string) (*leafResponse, error)
	asked    []string
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
func (b *behind) Call(ctx context.Context, node, _ string, in []byte) (out []byte, err error) {
	b.asked = append(b.asked, node)
	leafCall.Serve(handler(func(h cluster.Handler) { out, err = h(ctx, cluster.Peer{}, in) }), func(context.Context, *leafRequest) (*leafResponse, error) {
		return b.answer(node)
	})
	return out, err
}

// Handle implements call.Network.
func (b *behind) Handle(string, cluster.Handler) {}

// handler is a network that is told who answers calls.
type handler func(cluster.Handler)

func (handler) Self() string                                                 { return "" }
func (handler) Call(context.Context, string, string, []byte) ([]byte, error) { return nil, nil }
func (h handler) Handle(_ string, answer cluster.Handler)                    { h(answer) }

// A file has moved from n2 to n4 while n1 was behind, and the other holder, n3,
// is away. The search goes on where the file is now, as far as that is known.
func TestASearchFollowsAFileThatHasMoved(t *testing.T) {
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
		index uint64 // of the catalog by which n2 lacks the file
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

			r.scatter(r.targets())

			slices.Sort(b.asked) // of two holders either may be the first
			if got := strings.Join(b.asked, " "); got != tt.asked || len(r.lost) != tt.lost {
				t.Errorf("asked are %s, and %d lost; want %s, and %d", got, len(r.lost), tt.asked, tt.lost)
			}
		})
	}
}

// rootOn is a search at a node of the one repository that there is.
func rootOn(t *testing.T, b *behind) *root {
	t.Helper()
	registerQueries()
	d := &Deps{Cluster: b, Peers: call.NewPeers(b, func(string) bool { return true }), lost: &lostCalls{log: slog.New(slog.DiscardHandler)}}
	r := &root{
		d: d, leaves: &leaves{d: *d}, layouts: &layouts{},
		seen: &account.Repos{View: b.old, Set: roaring.BitmapOf(1)}, repos: roaring.BitmapOf(1),
		shape: shapeOf(0),
	}
	r.ctx, r.cancel = context.WithCancel(t.Context())
	t.Cleanup(r.cancel)
	return r
}
