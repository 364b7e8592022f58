package node_test

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/nodetest"
)

// TestMain runs a node instead of the tests if the environment says so.
// TestKilledNode_losesNothing kills this process.
func TestMain(m *testing.M) {
	if dir := os.Getenv("SHOAL_TEST_CHILD"); dir != "" {
		if err := child(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	// Cluster tests mostly wait, so run more of them than there are processors.
	if f := flag.Lookup("test.parallel"); f != nil && f.Value.String() == f.DefValue {
		f.Value.Set(strconv.Itoa(3 * runtime.GOMAXPROCS(0)))
	}
	os.Exit(m.Run())
}

// child runs a node on dir/data and makes keys. It records each acknowledged key, and prints a
// line at the first.
func child(dir string) error {
	n, err := node.New(node.Options{
		Dir: filepath.Join(dir, "data"), ConfigPath: filepath.Join(dir, "config.json"),
		ClusterListen: "127.0.0.1:0", GossipListen: "127.0.0.1:0", Ctags: "off", Timing: 0.2, Backoff: 20 * time.Millisecond,
	})
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx) }()
	acked, err := os.OpenFile(filepath.Join(dir, "acked"), os.O_APPEND|os.O_CREATE|os.O_WRONLY|os.O_SYNC, 0o600)
	if err != nil {
		return err
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	var first sync.Once
	for i := 0; ctx.Err() == nil; i++ {
		made, err := n.Keys.CreateKey(ctx, account.Operator(), account.CreateKeyRequest{Name: fmt.Sprintf("%d-%d", os.Getpid(), i)})
		if err == nil {
			fmt.Fprintln(acked, made.Key)
			first.Do(func() { fmt.Println("acknowledged") })
		}
		<-tick.C
	}
	return <-done
}

func TestKilledNode_losesNothing(t *testing.T) {
	t.Parallel()
	rounds := 4
	if text := os.Getenv("SHOAL_KILL_ROUNDS"); text != "" {
		rounds, _ = strconv.Atoi(text)
	}
	dir := t.TempDir()
	src := filepath.Join(dir, "src")
	var repos []*nodetest.Repo
	for i := range 4 {
		repos = append(repos, nodetest.NewRepo(t, filepath.Join(src, fmt.Sprintf("r%d", i)), map[string]string{"a.txt": "seal 0\n", "b.txt": "otter\n"}))
	}
	rng := rand.New(rand.NewPCG(1, 2))
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(local(src)), 0o600); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// Stop a process that acknowledges nothing, so that the test fails with a message.
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	for round := range rounds {
		cmd := exec.CommandContext(ctx, self)
		cmd.Env = append(os.Environ(), "SHOAL_TEST_CHILD="+dir)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}

		// Odd rounds wait for an acknowledged write. Even rounds kill the node while it starts,
		// which takes longer than these pauses on a busy machine.
		if round%2 == 1 {
			if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
				t.Fatalf("the process ended before it acknowledged a write: %v", err)
			}
		}
		repos[rng.IntN(len(repos))].Commit(map[string]string{"a.txt": fmt.Sprintf("seal %d\n", round)})
		nodetest.Moment(time.Duration(100+rng.IntN(900)) * time.Millisecond)
		cmd.Process.Kill()
		if err := cmd.Wait(); err == nil {
			t.Fatal("the process ended before it was killed")
		}
	}
	n := nodetest.Open(t, filepath.Join(dir, "data"), filepath.Join(dir, "config.json"))
	n.WaitIndexed(4)
	var want []string
	for i := range repos {
		want = append(want, fmt.Sprintf("local/r%d:a.txt", i))
	}
	n.Wait("the last commits", func() error {
		for i, r := range repos {
			text, err := os.ReadFile(filepath.Join(r.Dir, "a.txt"))
			if err != nil {
				return err
			}
			if err := found(n, fmt.Sprintf("repo:r%d %q", i, strings.TrimSpace(string(text))), want[i])(); err != nil {
				return err
			}
		}
		return nil
	})
	checkAcked(t, n, filepath.Join(dir, "acked"))
	n.Wait("orphan files to go", func() error { return orphans(n) })
}

// checkAcked checks that every acknowledged key still works.
func checkAcked(t *testing.T, n *nodetest.Node, path string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatalf("no write was acknowledged: %v", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if _, err := n.Keys.Authenticate(context.Background(), lines.Text()); err != nil {
			t.Errorf("an acknowledged key is lost: %v", err)
		}
	}
}

// orphans returns an error if there are files that no repository has.
func orphans(n *nodetest.Node) error {
	files, err := os.ReadDir(filepath.Join(n.Dir, "shards"))
	if err != nil {
		return err
	}
	s := n.Status()
	var names []string
	for _, f := range files {
		if !f.IsDir() {
			names = append(names, f.Name())
		}
	}
	live := n.LiveFiles()
	slices.Sort(names)
	slices.Sort(live)
	if !slices.Equal(names, live) {
		return fmt.Errorf("files %q, want %q; %+v", names, live, s.Storage)
	}
	return nil
}
