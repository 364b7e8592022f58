package chaostest

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// token is a word that stands once in every file of every repository.
const token = "shoalchaostoken"

// repository is a bare repository whose every version is known: version v has
// filesOf(v) files, each with one line that names the repository, the file
// and v.
type repository struct {
	name string
	dir  string

	mu     sync.Mutex
	pushed int // last version that is in the repository
	begun  int // last version whose push has begun
}

func filesOf(version int) int { return 3 + version%3 }

func line(repo string, file, version int) string {
	return fmt.Sprintf("%s %s f%d v%d", token, repo, file, version)
}

func newRepositories(t *testing.T, dir string, n int) []*repository {
	t.Helper()
	var all []*repository
	for i := range n {
		r := &repository{name: fmt.Sprintf("r%02d", i), dir: filepath.Join(dir, fmt.Sprintf("r%02d.git", i))}
		must(t, "git", "init", "-q", "--bare", "-b", "main", r.dir)
		if err := r.push(); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

// push commits the next version.
func (r *repository) push() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	v := r.begun + 1
	r.begun = v
	var s strings.Builder
	fmt.Fprintf(&s, "commit refs/heads/main\ncommitter chaos <chaos@localhost> %d +0000\ndata 1\nv\n", 1700000000+v)
	if v > 1 {
		s.WriteString("from refs/heads/main^0\ndeleteall\n")
	}
	for f := range filesOf(v) {
		text := line(r.name, f, v) + "\n"
		fmt.Fprintf(&s, "M 100644 inline dir/f%d.txt\ndata %d\n%s\n", f, len(text), text)
	}
	cmd := exec.Command("git", "-C", r.dir, "fast-import", "--quiet")
	cmd.Stdin = strings.NewReader(s.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("push %s v%d: %w: %s", r.name, v, err, out)
	}
	r.pushed = v
	return nil
}

// newest returns the last version whose push has begun: no answer shows a later one.
func (r *repository) newest() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.begun
}

// workload is what users do during a run, and what was acknowledged.
type workload struct {
	c     *cluster
	repos []*repository

	searches, exhaustive, incomplete, failed, writes, refused atomic.Int64

	mu     sync.Mutex
	keys   map[string]bool // names acknowledged
	slow   []time.Duration
	broken []string // violations
}

func (w *workload) violation(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.broken) < 20 {
		w.broken = append(w.broken, fmt.Sprintf(format, args...))
	}
}

func writeConfig(c *cluster, dir string) error {
	data, err := json.Marshal(map[string]any{
		"settings":    map[string]any{"reindexIntervalMs": 1000, "reindexRepoPollingIntervalMs": 100, "resyncConnectionIntervalMs": 5000, "repoGarbageCollectionGracePeriodMs": 1000},
		"connections": map[string]any{"chaos": map[string]any{"type": "git", "url": "file://" + dir + "/*.git"}},
	})
	if err != nil {
		return err
	}
	return os.WriteFile(c.configFile(), data, 0o644)
}

// run starts the users; they stop when ctx ends, and wait returns after them.
func (w *workload) run(ctx context.Context, seed uint64) (wait func()) {
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() { w.searcher(ctx, rand.New(rand.NewPCG(seed, uint64(i)))) })
	}
	wg.Go(func() { w.pusher(ctx, rand.New(rand.NewPCG(seed, 100))) })
	wg.Go(func() { w.keymaker(ctx, rand.New(rand.NewPCG(seed, 101))) })
	return wg.Wait
}

// pusher pushes a commit to some repository a few times a second.
func (w *workload) pusher(ctx context.Context, rng *rand.Rand) {
	for pause(ctx, 150*time.Millisecond) {
		if err := w.repos[rng.IntN(len(w.repos))].push(); err != nil {
			w.violation("%v", err)
		}
	}
}

// keymaker makes keys and remembers what was acknowledged. A key whose making
// failed may or may not be there.
func (w *workload) keymaker(ctx context.Context, rng *rand.Rand) {
	for n := 0; pause(ctx, 100*time.Millisecond); n++ {
		name := fmt.Sprintf("key%d", n)
		callCtx, cancel := context.WithTimeout(ctx, 15*time.Second)
		_, err := w.c.shoal(callCtx, rng.IntN(len(w.c.nodes)), "key", "create", name)
		cancel()
		if err != nil {
			w.refused.Add(1)
			continue
		}
		w.writes.Add(1)
		w.mu.Lock()
		w.keys[name] = true
		w.mu.Unlock()
	}
}

// seen is the newest version of each repository that one life of a node has shown.
type seen struct {
	life     int
	versions map[string]int
}

func (w *workload) searcher(ctx context.Context, rng *rand.Rand) {
	last := make([]seen, len(w.c.nodes))
	for ctx.Err() == nil {
		i := rng.IntN(len(w.c.nodes))
		life := w.c.nodes[i].lives()
		start := time.Now()
		versions, err := w.search(ctx, i)
		if ctx.Err() != nil {
			return
		}
		w.searches.Add(1)
		switch {
		case err != nil:
			w.failed.Add(1)
			pause(ctx, 20*time.Millisecond)
			continue
		case versions == nil:
			w.incomplete.Add(1)
			continue
		}
		w.exhaustive.Add(1)
		w.mu.Lock()
		w.slow = append(w.slow, time.Since(start))
		w.mu.Unlock()
		if life != last[i].life || life != w.c.nodes[i].lives() {
			last[i] = seen{life: life, versions: map[string]int{}}
		}
		for repo, v := range versions {
			if v < last[i].versions[repo] {
				w.violation("node %d went back: %s at v%d after v%d", i+1, repo, v, last[i].versions[repo])
			}
			last[i].versions[repo] = v
		}
	}
}

// answer is the part of a search response that is checked.
type answer struct {
	IsSearchExhaustive bool
	Files              []struct {
		Repository string
		FileName   struct{ Text string }
		Chunks     []struct{ Content string }
	}
}

// search asks node i for every file of every repository. It returns the
// version of each repository that the answer shows, nil when the answer says
// that it is not complete, and reports every lie.
func (w *workload) search(ctx context.Context, i int) (map[string]int, error) {
	var a answer
	if err := w.c.call(ctx, i, "POST", "/api/search", map[string]any{"query": token, "matches": 100000}, &a); err != nil {
		return nil, err
	}
	found := map[string]map[string]string{} // repository, file, line
	for _, f := range a.Files {
		repo := f.Repository[strings.LastIndexByte(f.Repository, '/')+1:]
		repo = strings.TrimSuffix(repo, ".git")
		if found[repo] == nil {
			found[repo] = map[string]string{}
		}
		if _, twice := found[repo][f.FileName.Text]; twice {
			w.violation("node %d: %s of %s twice in one answer", i+1, f.FileName.Text, repo)
		}
		if len(f.Chunks) != 1 {
			w.violation("node %d: %s of %s has %d chunks, want one", i+1, f.FileName.Text, repo, len(f.Chunks))
			continue
		}
		found[repo][f.FileName.Text] = strings.TrimSpace(f.Chunks[0].Content)
	}
	if !a.IsSearchExhaustive {
		return nil, nil
	}
	versions := map[string]int{}
	for _, r := range w.repos {
		v, err := r.version(found[r.name])
		if err != nil {
			w.violation("node %d, exhaustive answer: %v", i+1, err)
			continue
		}
		versions[r.name] = v
	}
	return versions, nil
}

// version finds the one version whose files are exactly those.
func (r *repository) version(files map[string]string) (int, error) {
	if len(files) == 0 {
		return 0, fmt.Errorf("%s is missing", r.name)
	}
	var v int
	for name, text := range files {
		if _, err := fmt.Sscanf(text[strings.LastIndexByte(text, ' ')+1:], "v%d", &v); err != nil {
			return 0, fmt.Errorf("%s: line %q of %s: %w", r.name, text, name, err)
		}
		break
	}
	if v < 1 || v > r.newest() {
		return 0, fmt.Errorf("%s shows v%d, which was never pushed (newest v%d)", r.name, v, r.newest())
	}
	if len(files) != filesOf(v) {
		return 0, fmt.Errorf("%s at v%d shows %d files, want %d: %v", r.name, v, len(files), filesOf(v), files)
	}
	for f := range filesOf(v) {
		if got, want := files[fmt.Sprintf("dir/f%d.txt", f)], line(r.name, f, v); got != want {
			return 0, fmt.Errorf("%s mixes versions: file f%d is %q, want %q", r.name, f, got, want)
		}
	}
	return v, nil
}

// pause waits and reports whether the run still goes on.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
