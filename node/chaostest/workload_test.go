package chaostest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// workload is what users do during a run, and what they were told.
type workload struct {
	c       *cluster
	dir     string        // holds the repositories of the first connection
	stable  []*repository // are there all the time
	history history
	keys    register

	searches, exhaustive, young, incomplete, failed, pushes, configs, writes, refused atomic.Int64

	during  atomic.Pointer[string] // the fault that is on
	settled atomic.Bool            // everything was found once

	mu      sync.Mutex // guards the fields below
	all     map[string]*repository
	gone    map[string]bool            // was taken away
	linked  map[string]bool            // has a connection of its own
	turn    int                        // of the context
	texts   map[string][]byte          // of configuration files, by hash
	acked   map[string]bool            // names of keys that are never revoked
	took    map[string][]time.Duration // of exhaustive answers, by fault
	waited  map[string]time.Duration   // longest wait for a complete answer, by fault
	without map[string]int             // searches that found no complete answer, by fault
}

const calm = "calm"

func newWorkload(c *cluster, dir string, stable []*repository) *workload {
	w := &workload{
		c: c, dir: dir, stable: stable, all: map[string]*repository{}, gone: map[string]bool{}, linked: map[string]bool{},
		texts: map[string][]byte{}, acked: map[string]bool{}, took: map[string][]time.Duration{}, waited: map[string]time.Duration{}, without: map[string]int{},
	}
	for _, r := range stable {
		w.all[r.name] = r
	}
	w.setDuring(calm)
	return w
}

func (w *workload) setDuring(fault string) { w.during.Store(&fault) }

// run starts the users; they stop when ctx ends, and wait returns after them.
func (w *workload) run(ctx context.Context, seed uint64) (wait func()) {
	var wg sync.WaitGroup
	for i := range *searchers {
		wg.Go(func() { w.searcher(ctx, rand.New(rand.NewPCG(seed, uint64(i)))) })
	}
	wg.Go(func() { w.pusher(ctx, rand.New(rand.NewPCG(seed, 100))) })
	for i := range 3 {
		wg.Go(func() { w.keymaker(ctx, i, rand.New(rand.NewPCG(seed, 110+uint64(i)))) })
	}
	wg.Go(func() { w.changer(ctx, rand.New(rand.NewPCG(seed, 102))) })
	for i := range 3 {
		wg.Go(func() { w.registrar(ctx, i, rand.New(rand.NewPCG(seed, 200+uint64(i)))) })
	}
	return wg.Wait
}

// pusher pushes a commit to some repository a few times a second.
func (w *workload) pusher(ctx context.Context, rng *rand.Rand) {
	for pause(ctx, 250*time.Millisecond) {
		if err := w.stable[rng.IntN(len(w.stable))].push(); err != nil {
			w.c.violation("%v", err)
		}
		w.pushes.Add(1)
	}
}

// keymaker makes keys and remembers what was acknowledged. A key whose making
// failed may or may not be there.
func (w *workload) keymaker(ctx context.Context, client int, rng *rand.Rand) {
	for n := 0; pause(ctx, 200*time.Millisecond); n++ {
		name := fmt.Sprintf("key%d-%d", client, n)
		if w.write(ctx, w.some(rng), "POST", "/api/keys", map[string]string{"name": name}) != nil {
			continue
		}
		w.mu.Lock()
		w.acked[name] = true
		w.mu.Unlock()
	}
}

// write asks for a change and counts the answer.
func (w *workload) write(ctx context.Context, p *process, method, path string, in any) error {
	ctx, cancel := context.WithTimeout(ctx, 8*time.Second)
	defer cancel()
	_, err := w.c.raw(ctx, p, method, path, in)
	if err == nil {
		w.writes.Add(1)
	} else {
		w.refused.Add(1)
	}
	return err
}

// some is any node that should answer.
func (w *workload) some(rng *rand.Rand) *process {
	in := w.c.members()
	return in[rng.IntN(len(in))]
}

// The number of repositories that come and go.
const maxPassing = 5

// changer adds and takes away repositories and connections, and changes a
// context, all by way of the configuration file and the file system.
func (w *workload) changer(ctx context.Context, rng *rand.Rand) {
	for n := 0; pause(ctx, time.Duration(3000+rng.IntN(5000))*time.Millisecond); n++ {
		var err error
		switch passing := w.passing(); {
		case rng.IntN(4) == 0:
			w.mu.Lock()
			w.turn++
			w.mu.Unlock()
		case len(passing) < maxPassing && rng.IntN(2) == 0 || len(passing) == 0:
			err = w.add(fmt.Sprintf("x%03d", n), rng.IntN(2) == 0)
		default:
			err = w.take(passing[rng.IntN(len(passing))])
		}
		if err == nil {
			err = w.configure()
		}
		if err != nil {
			w.c.violation("change: %v", err)
		}
		w.configs.Add(1)
	}
}

// passing is the names of the repositories that are there for a while.
func (w *workload) passing() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var names []string
	for name := range w.all {
		if !w.gone[name] && !slices.Contains(w.stable, w.all[name]) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// add makes a repository that no other had the name of: one of the first
// connection, or with a connection of its own.
func (w *workload) add(name string, linked bool) error {
	r, err := makeRepository(filepath.Join(w.c.dir, "making"), name)
	if err != nil {
		return err
	}
	to := filepath.Join(w.dir, name+".git")
	if linked {
		to = filepath.Join(w.c.dir, "linked", name+".git")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all[name], w.linked[name] = r, linked
	return os.Rename(r.dir, to)
}

// take takes a repository away: its connection where it has one of its own,
// else its directory.
func (w *workload) take(name string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gone[name] = true
	if w.linked[name] {
		return nil
	}
	return os.Rename(filepath.Join(w.dir, name+".git"), filepath.Join(w.c.dir, "taken-"+name))
}

// expected is the names that an answer has once everything has settled.
func (w *workload) expected() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(func(yield func(string) bool) {
		for name := range w.all {
			if !w.gone[name] && !yield(name) {
				return
			}
		}
	})
}

// The two forms of the context "pair", as globs and as the names that match.
var pairs = [2][2]int{{0, 5}, {3, 8}}

// configure writes the configuration file as it should be now.
func (w *workload) configure() error {
	w.mu.Lock()
	connections := map[string]any{"chaos": map[string]any{"type": "git", "url": "file://" + w.dir + "/*.git"}}
	for name := range w.linked {
		if w.linked[name] && !w.gone[name] {
			connections["of-"+name] = map[string]any{"type": "git", "url": "file://" + filepath.Join(w.c.dir, "linked", name+".git")}
		}
	}
	pair := pairs[w.turn%2]
	w.mu.Unlock()
	data, err := json.Marshal(map[string]any{
		"settings": map[string]any{"reindexIntervalMs": 3000, "reindexRepoPollingIntervalMs": 100, "resyncConnectionIntervalMs": 3000,
			"resyncConnectionPollingIntervalMs": 500, "repoGarbageCollectionGracePeriodMs": 1000},
		"connections": connections,
		"contexts":    map[string]any{"pair": map[string]any{"include": []string{fmt.Sprintf("local/r0[%d-%d]", pair[0], pair[1])}}},
	})
	if err != nil {
		return err
	}
	w.remember(data)
	if err := os.WriteFile(w.c.configFile()+".new", data, 0o644); err != nil {
		return err
	}
	return os.Rename(w.c.configFile()+".new", w.c.configFile())
}

// clientPatience is how long a user, or the load balancer before the nodes,
// asks one node after the other for a complete answer.
const (
	clientPatience = 10 * time.Second
	tryTime        = 4 * time.Second
)

// searcher searches at any node, and at the others where the answer is not
// complete.
func (w *workload) searcher(ctx context.Context, rng *rand.Rand) {
	indices := make([]indexOfLife, len(w.c.nodes))
	for pause(ctx, *pace) {
		fault, began := *w.during.Load(), time.Now()
		q := query{text: token}
		if rng.IntN(5) == 0 {
			q = query{text: "context:pair " + token, pair: true}
		}
		served, said := false, ""
		for round := 0; !served && (round == 0 || time.Since(began) < clientPatience); round++ {
			if round > 0 && !pause(ctx, 50*time.Millisecond) {
				return
			}
			in := w.c.members()
			rng.Shuffle(len(in), func(i, j int) { in[i], in[j] = in[j], in[i] })
			for _, p := range in {
				var why string
				if why = w.try(ctx, p, q, fault, &indices[p.index]); why == "" {
					served = true
					break
				}
				said = fmt.Sprintf("%s; node %d: %s", said[max(0, len(said)-400):], p.index+1, why)
			}
		}
		if ctx.Err() != nil {
			return
		}
		fault = worse(fault, *w.during.Load())
		w.mu.Lock()
		w.waited[fault] = max(w.waited[fault], time.Since(began))
		if !served {
			w.without[fault]++
			w.c.t.Logf("%s to %s: no complete answer, %s%s", began.Format("15:04:05.000"), time.Now().Format("15:04:05.000"), fault, said)
		}
		w.mu.Unlock()
	}
}

// worse is the fault that a search which saw two phases is counted for.
func worse(a, b string) string {
	if a == calm {
		return b
	}
	return a
}

// indexOfLife is the newest index that one life of a node has answered with.
type indexOfLife struct {
	life  int
	index uint64
}

// try asks one node and checks what it says. It returns why that is no
// complete answer; one that lacks only what was never indexed is.
func (w *workload) try(ctx context.Context, p *process, q query, fault string, last *indexOfLife) (why string) {
	life, began := p.lives(), time.Now()
	a, err := w.ask(ctx, p, q)
	if ctx.Err() != nil {
		return "the run is over"
	}
	w.searches.Add(1)
	if err != nil {
		w.failed.Add(1)
		return err.Error()
	}
	if life == p.lives() {
		if life == last.life && a.Cluster.CatalogIndex < last.index {
			w.c.violation("node %d went back from index %d to %d", p.index+1, last.index, a.Cluster.CatalogIndex)
		}
		*last = indexOfLife{life, a.Cluster.CatalogIndex}
	}
	switch {
	case a.IsSearchExhaustive:
		w.exhaustive.Add(1)
		w.mu.Lock()
		w.took[fault] = append(w.took[fault], time.Since(began))
		w.mu.Unlock()
		return ""
	case len(a.Cluster.ShardsMissing) == 0 && len(a.Cluster.ReposMissing) > 0:
		w.young.Add(1)
		return ""
	}
	w.incomplete.Add(1)
	return fmt.Sprintf("at %d lacks %d shards", a.Cluster.CatalogIndex, len(a.Cluster.ShardsMissing))
}

// converged waits until every member finds the newest version of every
// repository and no other, and names the same leader.
func (w *workload) converged(ctx context.Context, limit time.Duration) error {
	deadline := time.Now().Add(limit)
	for _, p := range w.c.members() {
		err := until(ctx, time.Until(deadline), func() error { return w.current(ctx, p) })
		if err != nil {
			return fmt.Errorf("node %d does not find every newest commit: %w", p.index+1, err)
		}
	}
	return until(ctx, max(time.Until(deadline), time.Second), func() error {
		leaders := map[string]bool{}
		for _, p := range w.c.members() {
			s, err := w.c.status(ctx, p)
			if err != nil {
				return err
			}
			leaders[s.Leader] = true
		}
		if len(leaders) != 1 || leaders[""] {
			return fmt.Errorf("the leaders are %v", slices.Collect(maps.Keys(leaders)))
		}
		return nil
	})
}

// current says how the answer of a node differs from the newest state.
func (w *workload) current(ctx context.Context, p *process) error {
	a, err := w.ask(ctx, p, query{text: token})
	if err != nil {
		return err
	}
	if !a.IsSearchExhaustive {
		return fmt.Errorf("not exhaustive: %+v", a.Cluster)
	}
	names := w.expected()
	if got := slices.Sorted(maps.Keys(a.versions)); !slices.Equal(got, names) {
		return fmt.Errorf("repositories are %v, want %v", got, names)
	}
	for _, name := range names {
		w.mu.Lock()
		r := w.all[name]
		w.mu.Unlock()
		if v := a.versions[name]; v != r.newest() {
			return fmt.Errorf("%s at v%d, newest v%d", name, v, r.newest())
		}
	}
	return nil
}
