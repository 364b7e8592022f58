package chaostest

import (
	"context"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

var (
	length = flag.Duration("chaos", 0, "length of each run; 0 runs none")
	seed   = flag.Uint64("seed", 1, "first seed")
	runs   = flag.Int("runs", 1, "number of runs, each with the next seed")
	size   = flag.Int("nodes", 3, "nodes of the cluster")
	race   = flag.Bool("racebinary", false, "build the nodes with the race detector")
	faults = flag.String("faults", "", "faults to choose from, comma-separated; all without")
)

func TestChaos(t *testing.T) {
	if *length == 0 {
		t.Skip("takes minutes: run it with -chaos 2m, or by make chaos")
	}
	for i := range *runs {
		t.Run(fmt.Sprintf("seed%d", *seed+uint64(i)), func(t *testing.T) { chaos(t, *seed+uint64(i)) })
	}
}

func chaos(t *testing.T, seed uint64) {
	c := startCluster(t, *size, seed)
	repos := filepath.Join(c.dir, "repos")
	w := &workload{c: c, repos: newRepositories(t, repos, 12), keys: map[string]bool{}}
	if err := writeConfig(c, repos); err != nil {
		t.Fatal(err)
	}
	for i := range c.nodes {
		if err := c.start(i); err != nil {
			t.Fatal(err)
		}
	}
	ctx := t.Context()
	if err := w.converged(ctx, 2*time.Minute); err != nil {
		t.Fatalf("before any fault: %v\n%s", err, tail(c.nodes[0].dir+".log"))
	}
	during, stop := context.WithTimeout(ctx, *length)
	defer stop()
	wait := w.run(during, seed)
	nemesis(during, t, c, rand.New(rand.NewPCG(seed, 1000)))
	<-during.Done()
	wait()
	if err := c.hosts.heal(); err != nil {
		t.Fatal(err)
	}
	for i := range c.nodes {
		c.signal(i, syscall.SIGCONT)
		if err := c.start(i); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.converged(ctx, 2*time.Minute); err != nil {
		t.Errorf("after the cluster has healed: %v", err)
	}
	w.acknowledgedKeysAreThere(ctx, t)
	w.report(t)
}

// report prints the counts and fails on a violation or on too little traffic.
func (w *workload) report(t *testing.T) {
	slices.Sort(w.slow)
	p := func(q float64) time.Duration {
		if len(w.slow) == 0 {
			return 0
		}
		return w.slow[int(q*float64(len(w.slow)-1))]
	}
	t.Logf("%d searches: %d exhaustive, %d incomplete, %d failed; %d keys acknowledged, %d refused; median %s, p99 %s",
		w.searches.Load(), w.exhaustive.Load(), w.incomplete.Load(), w.failed.Load(), w.writes.Load(), w.refused.Load(), p(0.5), p(0.99))
	for _, b := range w.broken {
		t.Error(b)
	}
	if w.exhaustive.Load() < int64(length.Seconds())*5 || w.writes.Load() < int64(length.Seconds())/4 {
		t.Errorf("too little traffic for a verdict")
	}
}

// converged waits until every node finds the newest version of every
// repository and names the same leader.
func (w *workload) converged(ctx context.Context, limit time.Duration) error {
	for i := range w.c.nodes {
		var last string
		err := until(ctx, fmt.Sprintf("node %d to find every newest commit", i+1), limit, func() bool {
			versions, err := w.search(ctx, i)
			last = fmt.Sprint(versions, err)
			if err != nil || versions == nil {
				return false
			}
			for _, r := range w.repos {
				if versions[r.name] != r.newest() {
					last = fmt.Sprintf("%s at v%d, newest v%d", r.name, versions[r.name], r.newest())
					return false
				}
			}
			return true
		})
		if err != nil {
			return fmt.Errorf("%w: %s", err, last)
		}
	}
	return until(ctx, "one leader", limit, func() bool {
		leaders := map[string]bool{}
		for i := range w.c.nodes {
			var s struct{ Leader any }
			if w.c.call(ctx, i, "GET", "/api/status", nil, &s) != nil {
				return false
			}
			leaders[fmt.Sprint(s.Leader)] = true
		}
		return len(leaders) == 1 && !leaders[""] && !leaders["<nil>"]
	})
}

func (w *workload) acknowledgedKeysAreThere(ctx context.Context, t *testing.T) {
	for i := range w.c.nodes {
		out, err := w.c.shoal(ctx, i, "key", "list")
		if err != nil {
			t.Errorf("node %d: %v", i+1, err)
			continue
		}
		there := map[string]bool{}
		for _, field := range strings.Fields(out) {
			there[field] = true
		}
		for name := range w.keys {
			if !there[name] {
				t.Errorf("node %d lost the acknowledged key %s", i+1, name)
			}
		}
	}
}

// fault breaks something and returns how to mend it.
type fault struct {
	name string
	run  func(c *cluster, rng *rand.Rand) (mend func() error, err error)
}

func allFaults() []fault {
	return []fault{
		{"kill", func(c *cluster, rng *rand.Rand) (func() error, error) {
			i := rng.IntN(len(c.nodes))
			c.kill(i)
			return func() error { return c.start(i) }, nil
		}},
		{"kill-all", func(c *cluster, _ *rand.Rand) (func() error, error) {
			var wg sync.WaitGroup
			for i := range c.nodes {
				wg.Go(func() { c.kill(i) })
			}
			wg.Wait()
			return func() error {
				for i := range c.nodes {
					if err := c.start(i); err != nil {
						return err
					}
				}
				return nil
			}, nil
		}},
		{"stop", func(c *cluster, rng *rand.Rand) (func() error, error) {
			i := rng.IntN(len(c.nodes))
			c.signal(i, syscall.SIGSTOP)
			return func() error { c.signal(i, syscall.SIGCONT); return nil }, nil
		}},
		{"isolate", func(c *cluster, rng *rand.Rand) (func() error, error) {
			i := rng.IntN(len(c.nodes))
			for j := range c.nodes {
				if j != i {
					if err := cutBoth(c, i, j); err != nil {
						return nil, err
					}
				}
			}
			return c.hosts.heal, nil
		}},
		{"one-way", func(c *cluster, rng *rand.Rand) (func() error, error) {
			i := rng.IntN(len(c.nodes))
			for j := range c.nodes {
				if j != i {
					if err := c.hosts.cut(i, j); err != nil {
						return nil, err
					}
				}
			}
			return c.hosts.heal, nil
		}},
		{"bridge", func(c *cluster, rng *rand.Rand) (func() error, error) {
			i := rng.IntN(len(c.nodes))
			return c.hosts.heal, cutBoth(c, i, (i+1)%len(c.nodes))
		}},
		{"flip", flip},
		{"wipe", func(c *cluster, rng *rand.Rand) (func() error, error) {
			i := rng.IntN(len(c.nodes))
			c.kill(i)
			err := os.RemoveAll(filepath.Join(c.nodes[i].dir, "shards"))
			return func() error { return c.start(i) }, err
		}},
	}
}

func cutBoth(c *cluster, i, j int) error {
	if err := c.hosts.cut(i, j); err != nil {
		return err
	}
	return c.hosts.cut(j, i)
}

// flip kills a node and flips a bit in one of its shard files.
func flip(c *cluster, rng *rand.Rand) (func() error, error) {
	i := rng.IntN(len(c.nodes))
	c.kill(i)
	mend := func() error { return c.start(i) }
	var files []string
	err := filepath.WalkDir(filepath.Join(c.nodes[i].dir, "shards"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files = append(files, path)
		}
		return err
	})
	if err != nil || len(files) == 0 {
		return mend, err
	}
	path := files[rng.IntN(len(files))]
	data, err := os.ReadFile(path)
	if err != nil || len(data) == 0 {
		return mend, err
	}
	data[rng.IntN(len(data))] ^= 1 << rng.IntN(8)
	return mend, os.WriteFile(path, data, 0o644)
}

// nemesis breaks one thing at a time until ctx ends, and mends the last.
func nemesis(ctx context.Context, t *testing.T, c *cluster, rng *rand.Rand) {
	all := allFaults()
	if *faults != "" {
		all = slices.DeleteFunc(all, func(f fault) bool { return !slices.Contains(strings.Split(*faults, ","), f.name) })
	}
	for pause(ctx, time.Duration(2+rng.IntN(6))*time.Second) {
		f := all[rng.IntN(len(all))]
		t.Logf("%s: %s", time.Now().Format("15:04:05"), f.name)
		mend, err := f.run(c, rng)
		if err != nil {
			t.Errorf("fault %s: %v", f.name, err)
		}
		pause(ctx, time.Duration(1+rng.IntN(10))*time.Second)
		if err := mend(); err != nil {
			t.Errorf("mend %s: %v", f.name, err)
		}
	}
}
