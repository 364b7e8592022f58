package call

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoalsearch/shoal/cluster/wire"
)

// order returns the preferred order of n1 to n3; gossip reports all as alive.
func order(p *Peers) string { return strings.Join(p.Prefer([]string{"n1", "n2", "n3"}, "key"), " ") }

func TestPeerOrder_aNodeWithoutAnswerIsLast(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err  error
		last bool
	}{
		"there is no connection":        {fmt.Errorf("dial: %w", wire.ErrUnreachable), true},
		"the connection broke":          {fmt.Errorf("%w: reset", wire.ErrBroken), true},
		"the caller gave up":            {context.Canceled, false},
		"the caller gave up on the way": {fmt.Errorf("%w: %w", context.Canceled, wire.ErrUnreachable), false},
		"it has answered with an error": {remote(ErrFileNotFound), false},
		"it has answered":               {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := NewPeers(newTown(nil), func(string) bool { return true })
				before := order(p)
				first, rest, _ := strings.Cut(before, " ")

				p.Heard(first, tt.err)
				if now := order(p); (now == rest+" "+first) != tt.last || (now == before) == tt.last || p.Misses(first) != tt.last {
					t.Errorf("%s became %s", before, now)
				}

				time.Sleep(missedTime) // of the bubble
				if now := order(p); now != before {
					t.Errorf("%s is %s after a while", before, now)
				}

				// An answer of any kind counts.
				p.Missed(first)
				p.Begin(first)
				p.Observe(first, 0, remote(ErrOverloaded))
				if now := order(p); now != before {
					t.Errorf("%s is %s when it has answered", before, now)
				}
			})
		})
	}
}

// Gossip reports all of them as dead. Such a node is only called once in a while.
func TestPeerOrder_deadNodesAreTriedOnceInAWhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex // guards asked
		asked := map[string]int{}
		node := func(name string, do doing) doing {
			return func(ctx context.Context, method string) error {
				mu.Lock()
				asked[name]++
				mu.Unlock()
				return do(ctx, method)
			}
		}
		w := newTown(map[string]doing{
			"silent": node("silent", silent),
			"off":    node("off", func(context.Context, string) error { return wire.ErrUnreachable }),
			"old":    node("old", func(context.Context, string) error { return remote(wire.ErrNoMethod) }),
			"there":  node("there", func(context.Context, string) error { return nil }),
		})
		p := NewPeers(w, func(string) bool { return false })
		ids := []string{"off", "old", "there"}

		// For each round: the node called first, and its duration.
		for round, want := range []struct {
			ids    []string
			took   time.Duration
			counts string
		}{
			{ids, 0, "map[off:1 old:1 there:1]"},
			{append(ids, "silent"), StallTime, "map[off:1 old:2 silent:1 there:2]"},
			{append(ids, "silent"), 0, "map[off:1 old:3 silent:1 there:3]"},
		} {
			began := time.Now()
			got := p.Answering(t.Context(), want.ids)
			if !slices.Equal(got, []string{"old", "there"}) || time.Since(began) != want.took || fmt.Sprint(asked) != want.counts {
				t.Errorf("round %d: %q after %v, asked %v; want old and there after %v, asked %v", round, got, time.Since(began), asked, want.took, want.counts)
			}
		}

		time.Sleep(goneTime) // of the bubble
		p.Answering(t.Context(), []string{"silent"})
		if asked["silent"] != 2 {
			t.Errorf("a node that was silent once is asked %d times, want a second time after a while", asked["silent"])
		}
		if got := p.Prefer([]string{"there", "self"}, "key"); !slices.Equal(got, []string{"self"}) {
			t.Errorf("preferred are %q: what gossip calls dead is asked when nobody else is left", got)
		}
	})
}

// A cancelled search does not count against the nodes that it called last.
func TestPeerOrder_ignoresCancelledCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newTown(map[string]doing{"n1": silent})
		p := NewPeers(w, func(string) bool { return false })
		ctx, cancel := context.WithTimeoutCause(t.Context(), StallTime/4, errors.New("enough"))
		defer cancel()
		if got := p.Answering(ctx, []string{"n1"}); len(got) > 0 || p.Misses("n1") {
			t.Errorf("got %q, and n1 counts as silent: %t", got, p.Misses("n1"))
		}
	})
}
