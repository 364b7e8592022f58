package call

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/cluster/wire"
)

// doing is a node's behaviour when a method is called.
type doing func(ctx context.Context, method string) error

// town is a network of nodes. It records the calls with their times, and the cancelled ones.
type town struct {
	began time.Time
	nodes map[string]doing

	mu    sync.Mutex // guards the fields below
	asked []string
	ended []string
}

func newTown(nodes map[string]doing) *town {
	return &town{began: time.Now(), nodes: nodes}
}

func (w *town) Self() string { return "self" }

func (*town) Lacks(string) bool { return false }

func (w *town) Handle(string, cluster.Handler) {}

func (w *town) Call(ctx context.Context, node, method string, _ []byte) ([]byte, error) {
	if err := w.nodes[node](ctx, method); err != nil {
		return nil, err
	}
	return new(codec).encode(new(Nothing))
}

// ask is the call of the races. Each node answers with its name.
func (w *town) ask(ctx context.Context, node string) (string, error) {
	w.mu.Lock()
	w.asked = append(w.asked, fmt.Sprintf("%s@%v", node, time.Since(w.began)))
	w.mu.Unlock()

	_, err := To[Nothing, Nothing]("ask").Ask(ctx, w, node, new(Nothing))
	w.mu.Lock()
	defer w.mu.Unlock()
	if errors.Is(err, context.Canceled) {
		w.ended = append(w.ended, node)
	}
	return node, err
}

// Behaviours of nodes.

// after works for some time and answers; it answers a hello at once.
func after(d time.Duration) doing { return failing(d, nil) }

// failing is after with an error.
func failing(d time.Duration, err error) doing {
	return func(ctx context.Context, method string) error {
		if method == "hello" {
			return nil
		}
		select {
		case <-time.After(d):
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// silent never answers, not even a hello.
func silent(ctx context.Context, _ string) error {
	<-ctx.Done()
	return ctx.Err()
}

// back does not answer until some time after its first call.
func back(after time.Duration) doing {
	began := sync.OnceValue(time.Now)
	return func(ctx context.Context, method string) error {
		if time.Since(began()) < after {
			return silent(ctx, method)
		}
		return nil
	}
}

// cutOff works for long, and stops answering some time after its first call.
func cutOff(after time.Duration) doing {
	began := sync.OnceValue(time.Now)
	return func(ctx context.Context, method string) error {
		if time.Since(began()) < after && method == "hello" {
			return nil
		}
		return silent(ctx, method)
	}
}

// onceThen fails the first times, with one error each.
func onceThen(errs ...error) doing {
	var calls atomic.Int64
	return func(context.Context, string) error {
		if n := int(calls.Add(1)); n <= len(errs) {
			return errs[n-1]
		}
		return nil
	}
}

// lateThen fails the first call after some time, and answers no hello until then.
func lateThen(d time.Duration, err error) doing {
	var failed atomic.Bool
	return func(ctx context.Context, method string) error {
		switch {
		case failed.Load():
			return nil
		case method == "hello":
			return silent(ctx, method)
		}
		defer failed.Store(true)
		return failing(d, err)(ctx, method)
	}
}

// remote returns an error of another node.
func remote(kind error) error { return &wire.RemoteError{Node: "n", Text: "no", Kind: kind} }

func TestHedgedCall_callsTheNextNodeInTime(t *testing.T) {
	t.Parallel()
	refused := fmt.Errorf("%w: connection refused", wire.ErrUnreachable)

	for name, tt := range map[string]struct {
		nodes  []doing // n1, n2, ...
		beyond []doing // d1, d2, ...: dead according to gossip
		missed string  // node without an answer a moment ago
		heavy  bool
		signs  bool   // the caller sends hellos
		asked  string // called nodes with times
		ended  string // nodes whose calls were cancelled
		answer string // a name, or the error
		took   time.Duration
	}{
		"a fast answer is one call": {
			nodes: []doing{after(0), after(0)},
			asked: "n1@0s", answer: "n1",
		},
		"a holder that is slow, but not late": {
			nodes: []doing{after(900 * time.Millisecond), after(0)},
			asked: "n1@0s", answer: "n1", took: 900 * time.Millisecond,
		},
		"a silent holder has the next one beside it": {
			nodes: []doing{silent, after(20 * time.Millisecond)},
			asked: "n1@0s n2@1s", ended: "n1", answer: "n2", took: 1020 * time.Millisecond,
		},
		"the first one is the faster after all": {
			nodes: []doing{after(1100 * time.Millisecond), after(time.Second)},
			asked: "n1@0s n2@1s", ended: "n2", answer: "n1", took: 1100 * time.Millisecond,
		},
		"two are silent": {
			nodes: []doing{silent, silent, after(0)},
			asked: "n1@0s n2@1s n3@2s", ended: "n1 n2", answer: "n3", took: 2 * time.Second,
		},
		"a failure of the second, while the first is silent": {
			nodes: []doing{silent, failing(0, refused), after(0)},
			asked: "n1@0s n2@1s n3@1s", ended: "n1", answer: "n3", took: time.Second,
		},
		"the second has it a moment later, while the first is silent": {
			nodes: []doing{silent, onceThen(remote(ErrUnavailable))},
			asked: "n1@0s n2@1s n2@2s", ended: "n1", answer: "n2", took: 2 * time.Second,
		},
		"the second is late, and has it a moment later, while the first is silent": {
			nodes: []doing{silent, lateThen(1500*time.Millisecond, remote(ErrUnavailable))},
			asked: "n1@0s n2@1s n2@3s", ended: "n1", answer: "n2", took: 3 * time.Second,
		},
		"the second lacks it twice, while the first is silent": {
			nodes: []doing{silent, onceThen(remote(ErrUnavailable), remote(ErrUnavailable))},
			asked: "n1@0s n2@1s n2@2s n2@3s", ended: "n1", answer: "n2", took: 3 * time.Second,
		},
		"a late failure of the first does not ask twice": {
			nodes: []doing{failing(1100*time.Millisecond, refused), after(200 * time.Millisecond), after(0)},
			asked: "n1@0s n2@1s", answer: "n2", took: 1200 * time.Millisecond,
		},

		"no connection":         {nodes: []doing{failing(0, refused), after(0)}, asked: "n1@0s n2@0s", answer: "n2"},
		"a broken one":          {nodes: []doing{failing(0, wire.ErrBroken), after(0)}, asked: "n1@0s n2@0s", answer: "n2"},
		"it has it not yet":     {nodes: []doing{failing(0, remote(ErrUnavailable)), after(0)}, asked: "n1@0s n2@0s", answer: "n2"},
		"it has too much to do": {nodes: []doing{failing(0, remote(ErrOverloaded)), after(0)}, asked: "n1@0s n2@0s", answer: "n2"},
		"it is of a version that does not know the question": {
			nodes: []doing{failing(0, remote(wire.ErrNoMethod)), after(0)}, asked: "n1@0s n2@0s", answer: "n2",
		},
		"no such file":   {nodes: []doing{failing(0, remote(ErrFileNotFound)), after(0)}, asked: "n1@0s", answer: "no"},
		"no such commit": {nodes: []doing{failing(0, remote(ErrRef)), after(0)}, asked: "n1@0s", answer: "no"},
		"not allowed":    {nodes: []doing{failing(0, remote(ErrForbidden)), after(0)}, asked: "n1@0s", answer: "no"},
		"too large":      {nodes: []doing{failing(0, remote(ErrTooLarge)), after(0)}, asked: "n1@0s", answer: "no"},
		"the error of the second is the answer": {
			nodes: []doing{silent, failing(0, remote(ErrRef))},
			asked: "n1@0s n2@1s", ended: "n1", answer: "no", took: time.Second,
		},

		"heavy: it works for long": {
			nodes: []doing{after(20 * time.Second), after(0)}, heavy: true,
			asked: "n1@0s", answer: "n1", took: 20 * time.Second,
		},
		"heavy: it is silent": {
			nodes: []doing{silent, after(3 * time.Second)}, heavy: true,
			asked: "n1@0s n2@1s", ended: "n1", answer: "n2", took: 4 * time.Second,
		},
		"heavy: it goes silent on the way": {
			nodes: []doing{cutOff(3200 * time.Millisecond), after(0)}, heavy: true,
			asked: "n1@0s n2@4s", ended: "n1", answer: "n2", took: 4 * time.Second,
		},

		"nobody is left but one that gossip calls dead": {
			nodes:  []doing{failing(0, refused)},
			beyond: []doing{silent, after(time.Minute / 4)}, heavy: true,
			asked: "n1@0s d2@1s", answer: "d2", took: 16 * time.Second,
		},
		"one that gossip calls dead beside a silent one": {
			nodes:  []doing{silent},
			beyond: []doing{after(0)},
			asked:  "n1@0s d1@1s", ended: "n1", answer: "d1", took: time.Second,
		},
		"one that gossip calls dead, and that was silent a moment ago, beside a silent one": {
			nodes:  []doing{silent},
			beyond: []doing{after(0)}, missed: "d1",
			asked: "n1@0s d1@1s", ended: "n1", answer: "d1", took: time.Second,
		},
		"it is back only after a while": {
			nodes:  []doing{silent},
			beyond: []doing{back(2500 * time.Millisecond)},
			asked:  "n1@0s d1@5s", ended: "n1", answer: "d1", took: 5 * time.Second,
		},
		"nobody is waited for, and it was silent a moment ago": {
			nodes:  []doing{failing(0, refused)},
			beyond: []doing{after(0)}, missed: "d1",
			asked: "n1@0s", answer: refused.Error(),
		},
		"those that are dead in truth cost a second": {
			beyond: []doing{silent, silent},
			answer: ErrNobody.Error(), took: time.Second,
		},
		"a silent one may answer yet": {
			nodes: []doing{after(5 * time.Second)}, beyond: []doing{silent},
			asked: "n1@0s", answer: "n1", took: 5 * time.Second,
		},
		"the bound of the request": {
			nodes: []doing{silent, silent},
			asked: "n1@0s n2@1s", answer: context.DeadlineExceeded.Error(), took: 30 * time.Second,
		},
		"no nodes": {answer: ErrNobody.Error()},

		"all are silent": {
			nodes: []doing{silent, silent}, beyond: []doing{silent}, signs: true,
			asked: "n1@0s n2@1s", ended: "n1 n2", answer: ErrNobody.Error(), took: 1500 * time.Millisecond,
		},
		"the only one is silent as it was a moment ago": {
			nodes: []doing{silent}, signs: true, missed: "n1",
			asked: "n1@0s", ended: "n1", answer: ErrNobody.Error(), took: 500 * time.Millisecond,
		},
		"one that gossip calls dead says hello": {
			nodes: []doing{silent}, beyond: []doing{after(700 * time.Millisecond)}, signs: true,
			asked: "n1@0s d1@1s", ended: "n1", answer: "d1", took: 1700 * time.Millisecond,
		},
		"one works for long and says hello": {
			nodes: []doing{after(20 * time.Second)}, heavy: true, signs: true,
			asked: "n1@0s", answer: "n1", took: 20 * time.Second,
		},
		"all go silent on the way": {
			nodes: []doing{cutOff(3200 * time.Millisecond)}, heavy: true, signs: true,
			asked: "n1@0s", ended: "n1", answer: ErrNobody.Error(), took: 4500 * time.Millisecond,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				all, nodes, dead := map[string]doing{}, []string{}, []string{}
				for i, n := range tt.nodes {
					nodes = append(nodes, fmt.Sprintf("n%d", i+1))
					all[nodes[i]] = n
				}
				for i, n := range tt.beyond {
					dead = append(dead, fmt.Sprintf("d%d", i+1))
					all[dead[i]] = n
				}
				w := newTown(all)
				peers := NewPeers(w, func(node string) bool { return node[0] == 'n' })
				if tt.missed != "" {
					peers.Missed(tt.missed)
				}
				silence := peers.Late
				if tt.heavy {
					silence = peers.Gone
				}

				var signs func(context.Context, []string) bool
				if tt.signs {
					signs = func(ctx context.Context, _ []string) bool {
						return peers.Signs(ctx, append(slices.Clone(nodes), dead...))
					}
				}

				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				answer, err := Race[string]{
					Signs: signs,
					Nodes: nodes, Ask: w.ask, Silent: silence, Next: Elsewhere,
					Beyond: func(ctx context.Context, waiting bool) []string {
						if waiting {
							return peers.There(ctx, dead)
						}
						return peers.Answering(ctx, dead)
					},
					Failed: func(string, error) {},
				}.Run(ctx)
				if err != nil {
					answer = err.Error()
				}

				slices.Sort(w.ended)
				asked, ended := strings.Join(w.asked, " "), strings.Join(w.ended, " ")
				if asked != tt.asked || ended != tt.ended || answer != tt.answer || time.Since(w.began) != tt.took {
					t.Errorf("asked %q, cancelled %q, got %q after %v; want %q, %q, %q after %v",
						asked, ended, answer, time.Since(w.began), tt.asked, tt.ended, tt.answer, tt.took)
				}
			})
		})
	}
}

// A call on this node is not repeated, here or elsewhere, however long it takes.
func TestHedgedCall_ofThisNodeIsNotRepeated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		peers := NewPeers(newTown(nil), func(string) bool { return true })
		if peers.Late(t.Context(), "self") || peers.Gone(t.Context(), "self") {
			t.Error("a call of this node to itself counts as silent")
		}
	})
}

// A panic while reading this node's own mirrors ends the request, and not the node.
func TestHedgedCall_panicEndsOnlyTheRequest(t *testing.T) {
	t.Parallel()
	defer func() {
		if p := recover(); p == nil || !strings.Contains(fmt.Sprint(p), "out of range") || !strings.Contains(fmt.Sprint(p), "race_test.go") {
			t.Errorf("the caller of the race sees %v, want what the call panicked with, and where", p)
		}
	}()
	_, err := Race[int]{
		Nodes:  []string{"self"},
		Ask:    func(context.Context, string) (int, error) { return []int{}[len(t.Name())], nil },
		Silent: func(context.Context, string) bool { return false },
	}.Run(t.Context())
	t.Errorf("the race ended with %v", err)
}
