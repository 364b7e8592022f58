package cluster

import (
	"context"
	"testing"
)

// A call to a node that is away lasts as long as that, so that raft counts one
// failure and not a thousand.
func TestAnAbsenceIsOutlasted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name                      string
		alive, useless, reachable int // from which wait on
		want                      int // waits
		back                      bool
	}{
		{"it comes back", 7, 1000, 1000, 7, true},
		{"it is there", 0, 1000, 1000, 0, false},
		{"this node leads no more", 1000, 5, 1000, 5, false},
		{"gossip is wrong", 1000, 1000, 150, 2 * reachEvery, true},
	} {
		waits := 0
		back := absence{
			alive: func() bool { return waits >= c.alive },
			wait:  func() bool { waits++; return waits < c.useless },
			reach: func() bool { return waits >= c.reachable },
		}.outlast()
		if waits != c.want || back != c.back {
			t.Errorf("%s: %d waits, back %t, want %d, %t", c.name, waits, back, c.want, c.back)
		}
	}
}

// While a key of the cluster is retired every connection under it ends.
func TestACallOutlivesItsConnection(t *testing.T) {
	t.Parallel()
	f := newFlock(t)
	first := f.add(1)
	calls := make(chan struct{}, 2)
	c, err := New(f.with(t.TempDir(), 1))
	if err != nil {
		t.Fatal(err)
	}
	c.Handle("test", func(ctx context.Context, _ Peer, in []byte) ([]byte, error) {
		calls <- struct{}{}
		if len(calls) == 1 {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return in, nil
	})
	second := run(t, c)
	f.settled(1, first, second)
	type answer struct {
		out []byte
		err error
	}
	got := make(chan answer)
	go func() {
		out, err := first.Call(context.Background(), second.Self(), "test", []byte("x"))
		got <- answer{out, err}
	}()
	until(t, "the call has arrived", func() bool { return len(calls) == 1 })
	first.network.port.Drop(second.Self())
	if a := <-got; a.err != nil || string(a.out) != "x" {
		t.Fatalf("%q, %v", a.out, a.err)
	}
}
