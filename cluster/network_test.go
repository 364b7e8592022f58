package cluster

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/cluster/gossip"
)

// A call to an absent node lasts as long as the absence, so that raft counts one failure and not a
// thousand.
func TestAbsentNode_aCallWaitsUntilTheNodeIsBack(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name                      string
		alive, useless, reachable int // the number of the wait from which on it holds
		want                      int // number of waits
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
		}.waitUntilBack()
		if waits != c.want || back != c.back {
			t.Errorf("%s: %d waits, back %t, want %d, %t", c.name, waits, back, c.want, c.back)
		}
	}
}

// When a cluster key is retired, every connection under it ends.
func TestCall_isRepeatedOnANewConnection(t *testing.T) {
	t.Parallel()
	f := newTestNodes(t)
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

// A machine that lost its disk returns as another node while gossip still considers the old node
// alive.
func TestSharedAddress_onlyTheNewestNodeIsAlive(t *testing.T) {
	t.Parallel()
	numbers := map[string]uint32{"old": 1, "other": 2, "new": 3, "newer": 4}
	joined := func(node string) uint32 {
		if n, ok := numbers[node]; ok {
			return n
		}
		return math.MaxUint32
	}

	for _, c := range []struct {
		name  string
		peers string // node@address; a leading minus: dead according to gossip
		want  string // the live nodes
	}{
		{"each at its own", "old@1 other@2", "old other"},
		{"the disk was lost", "old@1 other@2 new@1", "other new"},
		{"lost again and again", "newer@1 old@1 other@2 new@1", "newer other"},
		{"the new one has not joined yet", "old@1 other@2 stranger@1", "other stranger"},
		{"the new one is dead, and an image of the old one was put back", "old@1 other@2 -new@1", "old other"},
		{"this node has taken the place", "old@self other@2", "other"},
		{"two that no catalog knows", "stranger@1 foreigner@1", "stranger foreigner"},
	} {
		var peers []peer
		for _, text := range strings.Fields(c.peers) {
			name, dead := strings.CutPrefix(text, "-")
			node, addr, _ := strings.Cut(name, "@")
			peers = append(peers, peer{Peer: gossip.Peer{Node: node, Addr: addr, Alive: !dead}})
		}

		killSharedAddresses(peers, "self", joined)
		var alive []string
		for _, p := range peers {
			if p.Alive {
				alive = append(alive, p.Node)
			}
		}
		if got := strings.Join(alive, " "); got != c.want {
			t.Errorf("%s: alive are %q, want %q", c.name, got, c.want)
		}
	}
}
