package node_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/host"
	"github.com/shoalsearch/shoal/node/nodetest"
	"github.com/shoalsearch/shoal/node/operate"
)

var (
	seedCount = flag.Int("seeds", 2, "seeded runs of a cluster in this process")
	firstSeed = flag.Uint64("seed", 1, "seed of the first of them; each further one has the next")
	together  = flag.Int("together", 2, "seeded runs at a time")
)

// TestRandomFaults_answersStillEqualAScan breaks clusters in this process in ways chosen by a seed, and compares every
// answer with a scan of what the catalog names. `make seeds` runs 2,000 seeds. A failure
// names its seed, which -seed repeats. With an even seed the nodes are of two releases, and
// a restart may change a node's release.
//
//	checked throughout   an exhaustive answer is just what the scan finds, no answer has anything else
//	                     catalogs have equal hashes at equal indices; generations do not go back
//	checked at the end   every node finds the newest commits, has every acknowledged write, once
func TestRandomFaults_answersStillEqualAScan(t *testing.T) {
	t.Parallel()
	host := newSeedHost(t)
	var next atomic.Int64
	var mu sync.Mutex
	var sum tally
	var wg sync.WaitGroup
	began := time.Now()
	for range *together {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(*seedCount) && !t.Failed(); i = next.Add(1) - 1 {
				seed := *firstSeed + uint64(i)
				var one tally
				t.Run(fmt.Sprint("seed", seed), func(t *testing.T) { one = seeded(t, host, seed) })
				mu.Lock()
				sum.add(one)
				t.Logf("seed %d: %s", seed, one)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	t.Logf("together in %.0f s, %.0f s of processors: %s", time.Since(began).Seconds(), processors(), sum)
}

// processors returns the CPU time of this process and its finished children.
func processors() float64 {
	var sum float64
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var used syscall.Rusage
		if syscall.Getrusage(who, &used) == nil {
			sum += time.Duration(used.Utime.Nano() + used.Stime.Nano()).Seconds()
		}
	}
	return sum
}

// tally counts what a run did.
type tally struct {
	runs, nodes                     int
	searches, exhaustive, failed    int64
	writes, refused, pushes, faults int64
	took                            time.Duration
}

func (a *tally) add(b tally) {
	a.runs, a.nodes = a.runs+b.runs, a.nodes+b.nodes
	a.searches, a.exhaustive, a.failed = a.searches+b.searches, a.exhaustive+b.exhaustive, a.failed+b.failed
	a.writes, a.refused, a.pushes, a.faults = a.writes+b.writes, a.refused+b.refused, a.pushes+b.pushes, a.faults+b.faults
	a.took += b.took
}

func (a tally) String() string {
	return fmt.Sprintf("%d runs, %d nodes, %d faults, %d searches checked (%d exhaustive), %d failed, %d writes acknowledged, %d not, %d pushes, %.1f s",
		a.runs, a.nodes, a.faults, a.searches, a.exhaustive, a.failed, a.writes, a.refused, a.pushes, a.took.Seconds())
}

// seedRun is one run.
type seedRun struct {
	t         *testing.T
	rng       *rand.Rand // for the goroutine that breaks things
	fleet     *nodetest.Fleet
	up        []atomic.Pointer[node.Node] // by index; nil while stopped
	repos     []*seedRepo
	check     *checker
	ends      []context.CancelFunc // stops following each node
	following sync.WaitGroup

	searches, exhaustive, failed, writes, refused, pushes, faults atomic.Int64

	clocks sync.Map // by data directory: how far the node's clock is off
	mixed  bool     // the nodes are of two releases
	later  sync.Map // data directories of nodes of the next release

	// writing is held by each write and while catalogs are compared. At 50 writes a second, five
	// nodes that are read one after the other are hardly ever at one index.
	writing sync.RWMutex

	mu    sync.Mutex // guards the fields below
	acked []string
	tried map[string]bool
	log   []string // what was broken when, to print after a failure
	began time.Time
}

func seeded(t *testing.T, host *seedHost, seed uint64) tally {
	r := &seedRun{t: t, rng: rand.New(rand.NewPCG(seed, 0)), tried: map[string]bool{}, began: time.Now()}
	nodes := 3
	if r.rng.IntN(6) == 0 {
		nodes = 5
	}
	dir := t.TempDir()
	r.repos = host.repositories(t, dir, 4)
	r.check = newChecker(r.repos)
	cfg := nodetest.Config{File: unpolled(dir)}
	cfg.Edit = func(o *node.Options) {
		skew := r.clock(o.Dir)
		o.Now = func() time.Time { return time.Now().Add(time.Duration(skew.Load())) }
		if r.mixed {
			r.guise(o)
		}
	}
	r.mixed = seed%2 == 0
	r.fleet = nodetest.NewFleet(t, nodes, cfg)
	r.up, r.ends = make([]atomic.Pointer[node.Node], nodes), make([]context.CancelFunc, nodes)
	for i := range nodes {
		if n := r.fleet.Add(); i%2 == 1 {
			r.later.Store(n.Dir, true)
		}
	}
	defer func() {
		r.fleet.Heal()
		if t.Failed() {
			t.Logf("seed %d:\n%s", seed, strings.Join(r.log, "\n"))
		}
	}()
	r.form()
	r.converge("after forming")
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { r.searchLoop(ctx, rand.New(rand.NewPCG(seed, 1))) })
	wg.Go(func() { r.writeLoop(ctx, rand.New(rand.NewPCG(seed, 3))) })
	wg.Go(func() { r.pushLoop(ctx, rand.New(rand.NewPCG(seed, 4))) })
	for range 4 + r.rng.IntN(5) {
		r.breakSomething()
	}
	r.mend()
	r.converge("after all was mended")
	r.searched(150)
	stop()
	wg.Wait()
	r.converge("at the end")
	r.acknowledged()
	for _, end := range r.ends {
		end()
	}
	r.following.Wait()
	r.check.report(t)
	if r.exhaustive.Load() < 50 {
		t.Errorf("only %d exhaustive answers: too little traffic for a verdict", r.exhaustive.Load())
	}
	return tally{1, nodes, r.searches.Load(), r.exhaustive.Load(), r.failed.Load(), r.writes.Load(), r.refused.Load(), r.pushes.Load(), r.faults.Load(), time.Since(r.began)}
}

func (r *seedRun) note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log = append(r.log, fmt.Sprintf("%7.3f  ", time.Since(r.began).Seconds())+fmt.Sprintf(format, args...))
}

// clock returns how far a node's clock is off, in nanoseconds.
func (r *seedRun) clock(dir string) *atomic.Int64 {
	skew, _ := r.clocks.LoadOrStore(dir, new(atomic.Int64))
	return skew.(*atomic.Int64)
}

// guise makes a node one of the next release, or one of this release that lacks a call and a part
// of queries.
func (r *seedRun) guise(o *node.Options) {
	if _, ok := r.later.Load(o.Dir); ok {
		laterProgram(o)
		return
	}
	o.Build = catalog.ThisBuild()
	o.Build.Lacks = map[string]bool{"syncs": true, "progress": true, "Text.Regexp": true}
}

// swap sometimes moves a stopped node to the other release. The first node stays, so the level
// does not rise; a higher level would refuse all others.
func (r *seedRun) swap(i int) {
	if !r.mixed || i == 0 || r.rng.IntN(2) == 0 {
		return
	}
	dir := r.fleet.Nodes[i].Dir
	if _, was := r.later.LoadAndDelete(dir); !was {
		r.later.Store(dir, true)
	}
	r.note("n%d changes its release", i+1)
}

// pause waits a random time before the next break.
func (r *seedRun) pause(atMost time.Duration) {
	nodetest.Moment(time.Duration(r.rng.Int64N(int64(atMost))))
}

func (r *seedRun) start(i int) {
	r.fleet.Nodes[i].Launch()
	n := r.fleet.Nodes[i].Node
	r.up[i].Store(n)
	ctx, cancel := context.WithCancel(context.Background())
	r.ends[i] = cancel
	r.following.Go(func() { r.check.follow(ctx, n) })
}

func (r *seedRun) stop(i int, crash bool) {
	r.up[i].Store(nil)
	r.ends[i]()
	if crash {
		r.fleet.Crash(i)
	} else {
		r.fleet.Nodes[i].Stop()
	}
}

// form starts the nodes in any order; sometimes one crashes meanwhile.
func (r *seedRun) form() {
	order := r.rng.Perm(len(r.up))
	r.note("start in the order %v", order)
	for _, i := range order {
		r.start(i)
		r.pause(100 * time.Millisecond)
	}
	if r.rng.IntN(3) == 0 {
		i := r.rng.IntN(len(r.up))
		r.pause(time.Second)
		r.note("crash n%d while the cluster forms", i+1)
		r.stop(i, true)
		r.start(i)
	}
}

// breakSomething breaks one thing, waits, and repairs some of what is broken.
func (r *seedRun) breakSomething() {
	r.faults.Add(1)
	i := r.rng.IntN(len(r.up))
	j := (i + 1 + r.rng.IntN(len(r.up)-1)) % len(r.up)
	switch kind := r.rng.IntN(10); kind {
	case 0, 1, 2:
		r.note("%s n%d", [...]string{"stop", "crash", "crash and move"}[kind], i+1)
		r.stop(i, kind > 0)
		r.pause(400 * time.Millisecond)
		if kind == 2 {
			r.fleet.Nodes[i].Move()
		}
		r.swap(i)
		r.note("start n%d", i+1)
		r.start(i)
	case 3:
		r.note("cut n%d n%d", i+1, j+1)
		r.fleet.Cut(i, j)
	case 4:
		r.note("cut n%d > n%d", i+1, j+1)
		r.fleet.CutOneWay(i, j)
	case 5:
		r.note("isolate n%d", i+1)
		r.fleet.Isolate(i)
	case 6:
		d := time.Duration(1+r.rng.IntN(30)) * time.Millisecond
		r.note("slow n%d n%d %s", i+1, j+1, d)
		r.fleet.Slow(i, j, d)
	case 7:
		d := time.Duration(10+r.rng.IntN(200)) * time.Millisecond
		r.note("flap n%d n%d %s", i+1, j+1, d)
		r.fleet.Flap(i, j, d)
	case 9:
		d := time.Duration(r.rng.Int64N(int64(4*time.Hour))) - 2*time.Hour
		r.note("clock of n%d off by %s", i+1, d)
		r.clock(r.fleet.Nodes[i].Dir).Store(int64(d))
	case 8:
		r.note("crash all")
		for k := range r.up {
			r.stop(k, true)
		}
		for _, k := range r.rng.Perm(len(r.up)) {
			r.start(k)
		}
	}
	r.pause(300 * time.Millisecond)
	r.searched(60)
	if r.rng.IntN(2) == 0 {
		r.note("heal")
		r.fleet.Heal()
	}
}

// searched waits for so many more answers, or for a while if nobody can answer.
func (r *seedRun) searched(more int64) {
	want := r.searches.Load() + more
	nodetest.Eventually(3*time.Second, func() bool { return r.searches.Load() >= want })
}

func (r *seedRun) mend() {
	r.note("mend everything")
	r.fleet.Heal()
}

// converge waits until every node finds the newest commit of everything, all agree on the leader,
// and their catalogs are equal.
func (r *seedRun) converge(when string) {
	r.t.Helper()
	nodetest.Wait(r.t, "the nodes to agree "+when, func() error {
		r.writing.Lock()
		defer r.writing.Unlock()
		leaders, hashes := map[string]bool{}, map[uint64]map[uint64]bool{}
		for i := range r.up {
			n := r.up[i].Load()
			s, err := n.Status(context.Background(), catalog.Operator())
			if err != nil {
				return err
			}
			if s.Repos.Indexed != len(r.repos) || s.Jobs.Pending+s.Jobs.Running > 0 || s.Placement.UnderReplicated > 0 {
				return fmt.Errorf("n%d: %+v %+v %+v %+v", i+1, s.Repos, s.Jobs, s.Placement, s.Failed)
			}
			leaders[s.Leader] = true
			v := n.View()
			if hashes[v.Index()] == nil {
				hashes[v.Index()] = map[uint64]bool{}
			}
			hashes[v.Index()][v.Hash()] = true
			for _, repo := range r.repos {
				if got := repo.versionIn(v); got != repo.newest() {
					// The push may have reached a node that could not confirm it: send it again,
					// as a poll would.
					r.tell(n, repo)
					return fmt.Errorf("n%d: %s is at %d, newest %d", i+1, repo.name, got, repo.newest())
				}
			}
		}
		if len(leaders) != 1 || leaders[""] {
			return fmt.Errorf("leaders %v", leaders)
		}
		if len(hashes) != 1 {
			return fmt.Errorf("at indices %v", hashes)
		}
		return nil
	})
	r.note("converged %s", when)
}

func (r *seedRun) tell(n *node.Node, repo *seedRepo) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, err := n.Operate.Webhook(ctx, account.Operator(), operate.WebhookRequest{Connection: "local", Event: host.Event{Pushed: true, Paths: []string{repo.name}}})
	return err
}

// acknowledged checks that every acknowledged write exists once, and no other.
func (r *seedRun) acknowledged() {
	for i := range r.up {
		got, err := r.up[i].Load().Keys.Keys(context.Background(), account.Operator(), false)
		if err != nil {
			r.t.Errorf("n%d: %v", i+1, err)
			continue
		}
		count := map[string]int{}
		for _, k := range got {
			count[k.Name]++
			if !r.tried[k.Name] {
				r.t.Errorf("n%d has a key %s that nobody made", i+1, k.Name)
			}
		}
		for _, name := range r.acked {
			if count[name] != 1 {
				r.t.Errorf("n%d has the acknowledged key %s %d times", i+1, name, count[name])
			}
		}
	}
}

// backOff is the pause of a client without an answer.
const backOff = 5 * time.Millisecond

func (r *seedRun) searchLoop(ctx context.Context, rng *rand.Rand) {
	tick := time.NewTicker(backOff)
	defer tick.Stop()
	for ctx.Err() == nil {
		if n := r.up[rng.IntN(len(r.up))].Load(); n != nil {
			q := r.check.query(rng)
			exhaustive, err := r.check.search(n, q)
			switch {
			case err != nil:
				r.failed.Add(1)
				<-tick.C
			case exhaustive:
				r.exhaustive.Add(1)
				r.searches.Add(1)
			default:
				r.searches.Add(1)
			}
		} else {
			<-tick.C
		}
	}
}

// writeEvery is the least pause between writes of a client.
const writeEvery = 20 * time.Millisecond

func (r *seedRun) writeLoop(ctx context.Context, rng *rand.Rand) {
	tick := time.NewTicker(writeEvery)
	defer tick.Stop()
	for i := 0; ctx.Err() == nil; i++ {
		name := fmt.Sprint("k", i)
		r.mu.Lock()
		r.tried[name] = true
		r.mu.Unlock()
		if n := r.up[rng.IntN(len(r.up))].Load(); n != nil {
			r.writing.RLock()
			short, cancel := context.WithTimeout(ctx, 700*time.Millisecond)
			_, err := n.Keys.CreateKey(short, account.Operator(), account.CreateKeyRequest{Name: name})
			cancel()
			r.writing.RUnlock()
			if err == nil {
				r.writes.Add(1)
				r.mu.Lock()
				r.acked = append(r.acked, name)
				r.mu.Unlock()
			} else {
				r.refused.Add(1)
			}
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

func (r *seedRun) pushLoop(ctx context.Context, rng *rand.Rand) {
	for ctx.Err() == nil {
		nodetest.Moment(time.Duration(200+rng.IntN(500)) * time.Millisecond)
		repo := r.repos[rng.IntN(len(r.repos))]
		if !repo.push(r.t) {
			continue
		}
		r.pushes.Add(1)
		r.note("push %s v%d", repo.name, repo.newest())
		if n := r.up[rng.IntN(len(r.up))].Load(); n != nil {
			r.tell(n, repo)
		}
	}
}

// among reports whether a sorted list of files is one of several.
func among(got []string, wants [][]string) bool {
	return slices.ContainsFunc(wants, func(want []string) bool { return slices.Equal(got, want) })
}
