package cluster

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// history is a cluster and one of its nodes over time: how far each has come.
type history struct {
	at                 time.Time
	committed, applied uint64
	first              map[uint64]time.Time // by index: when the cluster reached it
	asked              *contact             // the question under way, with its future answer
}

// step makes one random event happen.
func (h *history) step(r *rand.Rand, f *freshness) {
	h.at = h.at.Add(time.Duration(r.IntN(50)) * time.Millisecond)
	switch r.IntN(6) {
	case 0:
		h.committed++
		h.first[h.committed] = h.at
	case 1, 2:
		h.applied = min(h.committed, h.applied+uint64(r.IntN(4)))

	// The leader answers at any moment between the question and the arrival of the answer.
	case 3:
		if h.asked == nil {
			h.asked = &contact{At: h.at}
		}
	case 4:
		if h.asked != nil && h.asked.Index == 0 {
			h.asked.Index = h.committed
		}
	case 5:
		if h.asked != nil && h.asked.Index > 0 {
			f.recordAnswer(*h.asked)
			h.asked = nil
		}
	}
}

// age returns for how long the node has really missed something; 0: it has everything.
func (h *history) age() time.Duration {
	if h.applied == h.committed {
		return 0
	}
	return h.at.Sub(h.first[h.applied+1])
}

func TestCatalogAge_isNeverLessThanTheTrueDelay(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		h := &history{at: time.Unix(1_700_000_000, 0), committed: 1, first: map[uint64]time.Time{}}
		var f freshness
		for range 2000 {
			h.step(r, &f)
			if got := f.age(h.at, h.applied); got < h.age() {
				t.Fatalf("seed %d: an age of %v, and the node has missed changes for %v", seed, got, h.age())
			}
		}

		// Once everything is applied, one more question and its answer make the node current.
		sent := h.at
		f.recordAnswer(contact{sent, h.committed})
		h.applied = h.committed
		if got := f.age(h.at, h.applied); got != 0 {
			t.Fatalf("seed %d: an age of %v after it has caught up", seed, got)
		}
	}
}

func TestCatalogAge_dependsOnTheLastContactAndTheStart(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	for name, c := range map[string]struct {
		kept    contact
		applied uint64
		want    time.Duration
	}{
		"nothing is known":                      {contact{}, 9, UnknownAge},
		"caught up before the start":            {contact{now.Add(-time.Hour), 9}, 9, time.Hour},
		"the log has lost what it had then":     {contact{now.Add(-time.Hour), 9}, 8, UnknownAge},
		"the clock was set back since":          {contact{now.Add(time.Hour), 9}, 9, UnknownAge},
		"the clock was set back a little since": {contact{now.Add(time.Second), 9}, 9, 0},
	} {
		var f freshness
		f.recordAnswer(c.kept)
		if got := f.age(now, c.applied); got != c.want {
			t.Errorf("%s: an age of %v, want %v", name, got, c.want)
		}
	}
}

func TestCatalogAge_countsTheTimeAMachineSlept(t *testing.T) {
	t.Parallel()
	var f freshness
	at := time.Now()
	f.recordAnswer(contact{at.Add(-time.Hour), 1}) // both the wall clock and the monotonic clock
	f.newestAppliedContact(1)
	if got := f.age(at, 1); got != time.Hour {
		t.Errorf("an age of %v after an hour", got)
	}

	// The monotonic clock stood still, but the wall clock went on.
	f = freshness{}
	f.recordAnswer(contact{at, 1})
	if got := f.age(at.Round(0).Add(time.Hour), 1); got != time.Hour {
		t.Errorf("an age of %v after an hour of sleep", got)
	}
}

// A node far behind drops questions, but its age still falls as it catches up.
func TestCatalogAge_fallsWhileABacklogIsApplied(t *testing.T) {
	t.Parallel()
	var f freshness
	start := time.Unix(1_700_000_000, 0)
	const asked = 10 * maxWaiting
	for i := range asked {
		f.recordAnswer(contact{start.Add(time.Duration(i) * time.Second), uint64(i)})
	}
	now := start.Add(asked * time.Second)
	last := f.age(now, 0)
	for i := range uint64(maxWaiting - 1) {
		age := f.age(now, i)
		if age > last || age != now.Sub(start)-time.Duration(i)*time.Second {
			t.Fatalf("an age of %v with %d entries applied, %v before", age, i, last)
		}
		last = age
	}
	if age := f.age(now, asked); age != time.Second {
		t.Errorf("an age of %v with everything applied", age)
	}
}

// cutOff starts three nodes. The cutter can cut off each of them; the victim does not lead.
func cutOff(t *testing.T) (f *testNodes, c *linkCutter, victim *testNode) {
	c = &linkCutter{node: -1}
	f = newTestNodes(t)
	for i := range 3 {
		o := f.with(t.TempDir(), 3)
		o.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			return c.dial(ctx, i, network, addr)
		}
		f.dirs = append(f.dirs, o.DataDir)
		f.n = append(f.n, start(t, o))
	}
	f.settled(3, f.n...)
	return f, c, others(f.n, f.leader())[0]
}

// After a partition the leader is heard at once, but its entries come later. Until then the age
// stays as it was.
func TestCatalogAge_staysHighAfterAPartitionUntilEntriesAreApplied(t *testing.T) {
	t.Parallel()
	f, cutter, victim := cutOff(t)
	cutter.cut(slices.Index(f.n, victim), victim.ClusterAddr())
	f.leader().propose(set("revoked", "v"))
	acknowledged := time.Now()
	for i := range 12 { // a backlog
		f.leader().propose(set(fmt.Sprint("big", i), strings.Repeat("x", 1<<19)))
	}
	until(t, "the node is old", func() bool { return victim.Age() > 2*time.Second })

	cutter.cut(-1, "")
	until(t, "the node has caught up", func() bool {
		// Read the view last: it may only be newer.
		missed, age := time.Since(acknowledged), victim.Age()
		has := secretOf(victim.View(), "revoked") == "v"
		if !has && age < missed {
			t.Fatalf("an age of %v, and the node has missed a change for %v", age, missed)
		}
		return has && age < time.Second
	})
}

// With a slow disk or a large snapshot the leader is heard all the time.
func TestCatalogAge_growsWhileNothingIsApplied(t *testing.T) {
	t.Parallel()
	f, _, victim := cutOff(t)
	until(t, "the node is current", func() bool { return victim.Age() < time.Second })
	victim.replica.machine.applyMu.Lock()
	release := sync.OnceFunc(victim.replica.machine.applyMu.Unlock)
	defer release()
	f.leader().propose(set("revoked", "v"))
	acknowledged := time.Now()
	until(t, "the node is old", func() bool {
		missed, age := time.Since(acknowledged), victim.Age()
		if age < missed {
			t.Fatalf("an age of %v, and the node has missed a change for %v", age, missed)
		}
		return time.Since(acknowledged) > 2*time.Second
	})
	release()
	until(t, "the node is current again", func() bool {
		age := victim.Age()
		return age < time.Second && secretOf(victim.View(), "revoked") == "v"
	})
}

// A node's age survives a restart of its process.
func TestCatalogAge_survivesARestart(t *testing.T) {
	t.Parallel()
	f, _, victim := cutOff(t)
	until(t, "the node is current", func() bool { return victim.Age() < time.Second })
	i := slices.Index(f.n, victim)
	victim.stop()
	stopped := time.Now()
	for _, n := range others(f.n, victim) {
		n.stop()
	}
	o := f.with(f.dirs[i], 3)
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	n := run(t, c)
	if age := n.Age(); age < time.Since(stopped) || age > time.Since(stopped)+time.Minute {
		t.Errorf("an age of %v, %v after the end of the last start", age, time.Since(stopped))
	}
}
