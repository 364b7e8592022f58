package chaostest

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
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
	length    = flag.Duration("chaos", 0, "length of each run; 0 runs none")
	seed      = flag.Uint64("seed", 1, "first seed")
	runs      = flag.Int("runs", 1, "number of runs, each with the next seed; -parallel says how many at once")
	size      = flag.Int("nodes", 3, "nodes that found the cluster; one more joins and leaves")
	race      = flag.Bool("racebinary", false, "build the nodes with the race detector")
	faults    = flag.String("faults", "", "faults to choose from, comma-separated; all without")
	prebuilt  = flag.String("binary", "", "binary to run; built without")
	other     = flag.String("other", "", "binary of another release of the same level, which half of the nodes run")
	rootless  = flag.Bool("rootless", false, "use loopback addresses and proxies, even as root")
	results   = flag.String("results", "", "file to which a line of JSON is added for each run")
	keep      = flag.String("keep", "", "directory to which the logs of failed runs are copied")
	searchers = flag.Int("searchers", 6, "clients that search at the same time")
	pace      = flag.Duration("pace", 20*time.Millisecond, "pause of a client between two searches")
)

func TestChaos_answersStayCorrectUnderFaults(t *testing.T) {
	if *length == 0 {
		t.Skip("takes minutes: run it with -chaos 2m, or by make chaos")
	}
	for _, name := range chosenFaults() {
		if !slices.ContainsFunc(allFaults(), func(f fault) bool { return f.name == name }) {
			t.Fatalf("there is no fault %q", name)
		}
	}

	all := &reach{able: map[string]bool{}, done: map[string]int{}}
	t.Cleanup(func() { all.report(t) })
	for i := range *runs {
		t.Run(fmt.Sprintf("seed%d", *seed+uint64(i)), func(t *testing.T) {
			t.Parallel()
			chaos(t, *seed+uint64(i), all)
		})
	}
}

// chosenFaults are the names that -faults gives; none means all.
func chosenFaults() []string {
	return strings.FieldsFunc(*faults, func(r rune) bool { return r == ',' })
}

// reach is which faults the runs could do, and how often they did. It is safe for
// concurrent use.
type reach struct {
	mu   sync.Mutex
	able map[string]bool
	done map[string]int
}

func (r *reach) add(n *nemesis) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.Copy(r.able, n.able)
	for name := range n.able {
		r.done[name] += n.count[name]
	}
}

// report fails where a fault was never done although there was every occasion: a
// list of faults says nothing of what was tried.
func (r *reach) report(t *testing.T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	sum := 0
	for _, times := range r.done {
		sum += times
	}

	t.Logf("%d faults of %d kinds: %v", sum, len(r.able), r.done)
	if sum < 15*len(r.able) {
		return // too few to say
	}
	for name := range r.able {
		if r.done[name] == 0 {
			t.Errorf("the fault %s was never done in %d", name, sum)
		}
	}
}

func chaos(t *testing.T, seed uint64, all *reach) {
	c := newCluster(t, *size, 1)
	t.Cleanup(func() { c.keepLogs(seed) })
	repos := filepath.Join(c.dir, "repos")
	for _, dir := range []string{"making", "linked"} {
		if err := os.MkdirAll(filepath.Join(c.dir, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	w := newWorkload(c, repos, makeRepositories(t, repos, 12))
	if err := w.configure(); err != nil {
		t.Fatal(err)
	}
	ctx, rng := t.Context(), rand.New(rand.NewPCG(seed, 1000))
	began := time.Now()
	founders := slices.Clone(c.members())
	rng.Shuffle(len(founders), func(i, j int) { founders[i], founders[j] = founders[j], founders[i] })
	if err := c.startAll(founders); err != nil {
		t.Fatal(err)
	}
	if err := w.converged(ctx, convergeLimit); err != nil {
		t.Fatalf("before any fault: %v\n%s", err, tail(c.nodes[0].log()))
	}
	// While voters are added one by one there is a moment with two, which cannot
	// lose either.
	if err := until(ctx, convergeLimit, func() error { return c.voters(ctx, founders) }); err != nil {
		t.Fatalf("before any fault: %v\n%s", err, tail(c.nodes[0].log()))
	}
	formed := time.Since(began)
	w.settled.Store(true)
	during, stop := context.WithTimeout(ctx, *length)
	defer stop()
	wait := w.run(during, seed)
	n := &nemesis{ctx: during, c: c, w: w, rng: rng}
	n.run()
	all.add(n)
	wait()
	if err := c.net.heal(); err != nil {
		t.Fatal(err)
	}
	for _, p := range c.members() {
		p.signal(syscall.SIGCONT)
	}
	if err := c.startAll(c.members()); err != nil {
		t.Fatal(err)
	}
	gossip := w.audit(ctx)
	c.report(w, n, &result{Seed: seed, Formed: formed.Seconds(), Gossip: gossip.Seconds()})
}

// result is the line that tells of a run.
type result struct {
	Seed       uint64
	At         string
	Length     float64
	Links      string
	Verdict    string
	Faults     map[string]int
	Searches   int64
	Exhaustive int64
	Young      int64 // lacked only what was never indexed
	Incomplete int64
	Failed     int64
	Unserved   map[string]int     // by fault: no complete answer from any node in 10 s
	Waited     map[string]float64 // by fault: longest wait for one, seconds
	Calm99     float64            // milliseconds, of exhaustive answers
	Kill99     float64            // the same while one node was down
	Acked      int64
	Refused    int64
	Pushes     int64
	Configs    int64
	KeyOps     int
	Moments    int // different indices with a proved answer
	Elections  int
	Election   float64 // longest, seconds
	Recoveries int
	Recovery   float64 // longest until all serve after all were killed, seconds
	Formed     float64
	Gossip     float64
	Broken     []string
}

// The least traffic for a verdict, each second.
const (
	leastExhaustive = 8.5 // 1,000 in two minutes
	leastAcked      = 1.7 // 200
)

// report prints what a run has shown and fails on a violation or on too
// little traffic.
func (c *cluster) report(w *workload, n *nemesis, r *result) {
	elections := n.elections(c.leaderships())
	c.limits(w, elections)
	if s := length.Seconds(); float64(w.exhaustive.Load()) < s*leastExhaustive || float64(w.writes.Load()) < s*leastAcked {
		c.violation("too little traffic for a verdict: %d exhaustive answers, %d acknowledged writes", w.exhaustive.Load(), w.writes.Load())
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	r.At, r.Length, r.Links = time.Now().UTC().Format(time.RFC3339), length.Seconds(), strings.TrimPrefix(fmt.Sprintf("%T", c.net), "*chaostest.")
	r.Faults, r.Unserved, r.Waited = n.count, w.without, map[string]float64{}
	for fault, d := range w.waited {
		r.Waited[fault] = rounded(d, time.Second)
	}
	r.Searches, r.Exhaustive, r.Young, r.Incomplete, r.Failed = w.searches.Load(), w.exhaustive.Load(), w.young.Load(), w.incomplete.Load(), w.failed.Load()
	r.Acked, r.Refused, r.Pushes, r.Configs = w.writes.Load(), w.refused.Load(), w.pushes.Load(), w.configs.Load()
	r.KeyOps, r.Moments = len(w.keys.ops), len(w.history.at)
	r.Calm99, r.Kill99 = percentile(w.took[calm]), percentile(append(slices.Clone(w.took["kill"]), w.took["kill-leader"]...))
	r.Elections, r.Election = len(elections), rounded(longest(elections), time.Second)
	r.Recoveries, r.Recovery = len(n.recovered), rounded(longest(n.recovered), time.Second)
	r.Broken, r.Verdict = c.violations(), "pass"
	if len(r.Broken) > 0 {
		r.Verdict = "FAIL"
	}
	text, err := json.Marshal(r)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Logf("result: %s", text)
	if *results != "" {
		if err := appendLine(*results, text); err != nil {
			c.t.Error(err)
		}
	}
	for _, b := range r.Broken {
		c.t.Error(b)
	}
}

// limits notes what took longer than it may. One node of a cluster that has all
// its copies may die without a search that stays incomplete, and be replaced by
// an empty one as often as the copies have been made again.
func (c *cluster) limits(w *workload, elections []time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, fault := range []string{"kill", "kill-leader", "replace-same"} {
		if n := w.without[fault]; n > 0 {
			c.violation("%d searches found no complete answer in %s while one node was down (%s)", n, clientPatience, fault)
		}
	}
	if d := longest(elections); d > leaderLimit {
		c.violation("a new leader took %s", d)
	}
}

func appendLine(path string, line []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.Write(append(line, '\n'))
	return err
}

func longest(list []time.Duration) time.Duration {
	if len(list) == 0 {
		return 0
	}
	return slices.Max(list)
}

func rounded(d, unit time.Duration) float64 {
	return float64(int64(1000*d.Seconds()/unit.Seconds())) / 1000
}

// percentile is the 99th, in milliseconds.
func percentile(took []time.Duration) float64 {
	if len(took) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(took))
	return rounded(sorted[len(sorted)*99/100], time.Millisecond)
}

// keepLogs copies the logs of a failed run.
func (c *cluster) keepLogs(seed uint64) {
	if *keep == "" || !c.t.Failed() {
		return
	}
	to := filepath.Join(*keep, fmt.Sprintf("seed%d", seed))
	if err := os.MkdirAll(to, 0o755); err != nil {
		c.t.Error(err)
	}
	for _, p := range c.nodes {
		try("cp", p.log(), to)
	}
	if len(c.violations()) > 0 {
		for _, p := range c.nodes { // what an audit may want to look at
			try("cp", "-a", p.dir, to)
		}
	}
}
