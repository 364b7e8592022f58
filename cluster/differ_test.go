package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

func TestCatalogCheck_findsTheMajorityOfRandomHashesLikeATrialOfEachState(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		voters := 1 + r.IntN(5)
		hashes, counts := map[string]uint64{}, map[uint64]int{}
		for i := range voters {
			if hash := r.Uint64N(4); hash > 0 || i == 0 { // 0: it has not answered
				hashes[fmt.Sprint("n", i)] = hash
				counts[hash]++
			}
		}

		// The naive model: try each state.
		want, most := unproved, -1
		if len(counts) > 1 {
			want = disputed
		}
		for hash, n := range counts {
			if 2*n > voters {
				want, most = outvoted, n
				if hashes["n0"] == hash {
					want = agreed
				}
			}
		}
		got, nodes := standingOf("n0", hashes, voters)
		if got != want || most >= 0 && len(nodes) != most {
			t.Fatalf("%v of %d voters: got %v of %v, want %v", hashes, voters, got, nodes, want)
		}
	}
}

// lines collects log output for a test.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// restartAs restarts a node with another program.
func (f *testNodes) restartAs(i int, b catalog.Build) *testNode {
	f.t.Helper()
	f.n[i].stop()
	all := f.n
	f.n = others(all, all[i])
	n := f.build(f.dirs[i], b)
	f.n = all
	f.n[i] = n
	return n
}

// lead makes a node the leader.
func (f *testNodes) lead(n *testNode) {
	f.t.Helper()
	until(f.t, "the node leads", func() bool {
		if !n.Leading() {
			_ = f.leader().replica.raft.LeadershipTransferToServer(raft.ServerID(n.Self()), raft.ServerAddress(n.Self())).Error()
		}
		return n.Leading()
	})
}

// One of three nodes applies a command wrongly, once as follower and once as leader. It takes the
// state of the others without a restart, keeps a copy, and reports what differed. After a restart
// it does not have the wrong state again.
func TestDifferingCatalog_onAMinorityOfNodesIsReplaced(t *testing.T) {
	t.Parallel()
	for _, leads := range []bool{false, true} {
		t.Run(fmt.Sprintf("it leads %t", leads), func(t *testing.T) {
			t.Parallel()
			f, log := newTestNodes(t), &lines{}
			f.add(3)
			f.add(3)
			o := f.with(t.TempDir(), 3)
			o.Build, o.Log = wrongBuild(), slog.New(slog.NewTextHandler(log, nil))
			wrong := start(t, o)
			f.dirs, f.n = append(f.dirs, o.DataDir), append(f.n, wrong)
			f.settled(3, f.n...)
			if leads {
				f.lead(wrong)
			} else {
				f.lead(f.n[0])
			}

			f.push("one")
			until(t, "the wrong state is replaced", func() bool { return wrong.arbiter.replaced.Load() > 0 })
			if leads {
				until(t, "another node leads", func() bool { l := f.leader(); return l != wrong })
			}
			f.n[0].propose(set("after", "v"))
			f.equal()
			if got := secretOf(wrong.View(), "trace"); got != "" {
				t.Errorf("the wrong record is still there: %q", got)
			}
			if text := log.String(); !strings.Contains(text, "secret (1): trace") {
				t.Errorf("the log does not name the table and the key:\n%s", text)
			}

			// A limited number of copies of its wrong states stay.
			for i := range maxCopies + 1 {
				before := wrong.arbiter.replaced.Load()
				f.push(fmt.Sprint("more", i))
				until(t, "the wrong state is replaced again", func() bool { return wrong.arbiter.replaced.Load() > before })
			}
			copies, err := os.ReadDir(filepath.Join(f.dirs[2], differing))
			if err != nil || len(copies) != maxCopies {
				t.Errorf("%d copies of former states, %v", len(copies), err)
			}

			// Its own log would lead it to the wrong state again.
			f.equal()
			wrong = f.restartAs(2, wrongBuild())
			if got := secretOf(wrong.View(), "trace"); got != "" {
				t.Errorf("after a restart the wrong record is back: %q", got)
			}
			f.n[1].propose(set("end", "v"))
			f.equal()
		})
	}
}

// Three nodes have three states. Writes stop, reads continue, and nodes may join and leave. It ends
// when two of them have the same state.
func TestDifferingCatalogs_withoutAMajorityStopWrites(t *testing.T) {
	t.Parallel()
	other := wrongBuild()
	other.Also = func(v *catalog.View, c catalog.Command) []catalog.Command {
		if len(traceOf(v, c)) == 0 {
			return nil
		}
		return []catalog.Command{set("other", "v")}
	}
	f := testNodesOf(t, catalog.ThisBuild(), wrongBuild(), other)
	f.n[0].propose(set("before", "v"))
	f.push("one")
	until(t, "a leader sees the dispute", func() bool { return f.leader().arbiter.disputed.Load() })

	for i, n := range f.n {
		began := time.Now()
		if _, err := n.Propose(t.Context(), set("during", "v")); !errors.Is(err, ErrDisputed) || !errors.Is(err, ErrNoLeader) {
			t.Errorf("a write at node %d: %v", i, err)
		}
		if took := time.Since(began); took > patience/3 {
			t.Errorf("node %d refuses a write after %v", i, took)
		}
		if secretOf(n.View(), "before") != "v" || n.Ready() != nil {
			t.Errorf("node %d does not serve", i)
		}
	}

	// With the right program, a restarted node computes the right state from its log.
	f.restartAs(2, catalog.ThisBuild())
	until(t, "writes are taken", func() bool {
		_, err := f.n[0].Propose(t.Context(), set("after", "v"))
		return err == nil
	})
	until(t, "all nodes have one state", func() bool { return f.n[1].arbiter.replaced.Load() > 0 })
	f.equal()
}
