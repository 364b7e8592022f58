package cluster

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/wire"
)

const killChild = "SHOAL_TEST_KILL_CHILD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(killChild); dir != "" {
		os.Exit(writeForEver(dir))
	}
	os.Exit(m.Run())
}

// writeForEver runs a lone node, writes counters, and prints each one once it is acknowledged. It
// takes snapshots in between.
func writeForEver(dir string) int {
	c, err := New(Options{DataDir: dir, HoldTime: patience, ClusterListen: "127.0.0.1:0", GossipListen: "127.0.0.1:0"})
	if err != nil {
		fmt.Println("error", err)
		return 1
	}
	ctx := context.Background()
	go c.Run(ctx)
	n, _ := strconv.Atoi(secretOf(c.View(), "counter"))
	fmt.Println("begin", n)
	for {
		n++
		if _, err := c.Propose(ctx, set("counter", strconv.Itoa(n)), set(fmt.Sprint("k", n%1000), strconv.Itoa(n))); err != nil {
			fmt.Println("error", err)
			return 1
		}
		fmt.Println("done", n)
		if n%7 == 0 {
			go c.replica.raft.Snapshot()
		}
	}
}

// A real process is killed at random points, again and again. It always starts again, with
// everything it has acknowledged.
func TestKilledNode_losesNoAcknowledgedWrite(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(7, 7))
	dir := t.TempDir()
	acked := 0
	rounds := 12
	if testing.Short() {
		rounds = 4
	}
	for round := range rounds {
		acked = killOnce(t, dir, acked, rng.IntN(25), time.Duration(rng.IntN(3000))*time.Microsecond)
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
	c, err := New(options(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got, _ := strconv.Atoi(secretOf(c.View(), "counter")); got < acked {
		t.Fatalf("at the end the counter is %d, but %d was acknowledged", got, acked)
	}
}

// killOnce starts the process, and kills it some time after it has acknowledged a number of writes.
// With 0 writes it may be killed while it starts. It returns the last acknowledged number.
func killOnce(t *testing.T, dir string, acked, writes int, after time.Duration) int {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), killChild+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill := func() { cmd.Process.Kill() }
	defer time.AfterFunc(patience, kill).Stop()
	if writes == 0 {
		time.AfterFunc(after*10, kill)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		n, _ := strconv.Atoi(rest)
		switch {
		case word == "error":
			t.Errorf("the process says: %s", rest)
		case word == "begin" && n < acked:
			t.Errorf("the process begins with %d, but %d was acknowledged", n, acked)
		case word == "done":
			acked = n
		}
		if writes--; writes == 0 {
			time.AfterFunc(after, kill)
		}
	}
	io.Copy(io.Discard, out)
	cmd.Wait()
	return acked
}

// A node killed at any point while it founded its cluster finishes that at the next start.
func TestFormation_isFinishedAfterAKill(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]func(s *store) error{
		"with the identity":   nil,
		"with an empty log":   func(*store) error { return nil },
		"with raft's term":    func(s *store) error { return s.SetUint64(currentTerm, 1) },
		"with a term of none": func(s *store) error { return s.SetUint64(currentTerm, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			h, err := openHome(dir)
			if err != nil {
				t.Fatal(err)
			}
			id, err := h.loadIdentity()
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "cluster.key"), []byte(wire.NewKey().Text()+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			id.ClusterID, id.Founding = randomID(), true
			if err := id.countStart(); err != nil {
				t.Fatal(err)
			}

			if cut != nil {
				s, err := openStore(h.raft, offlineWatchdog())
				if err != nil {
					t.Fatal(err)
				}
				if err := errors.Join(cut(s), s.Close()); err != nil {
					t.Fatal(err)
				}
			}
			h.close()

			n := start(t, options(t, dir))
			until(t, "the cluster stands", func() bool { return n.Ready() == nil && n.founded() })
			if got := n.View().ClusterID(); got != id.ClusterID {
				t.Errorf("the cluster is %s, want %s", got, id.ClusterID)
			}
		})
	}
}
