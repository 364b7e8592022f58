package job

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/host"
	"github.com/shoalsearch/shoal/node/host/hosttest"
)

// benchListings is the variable that enables this measurement, which takes minutes. make
// bench-listings sets it.
const benchListings = "SHOAL_BENCH_LISTINGS"

// listings has the deployments, the form of a connection to each, and the maximal number of calls
// for a listing of 10,000 repositories.
var listings = []struct {
	host  *hosttest.Deployment
	owner string
	conn  string
	most  int
}{
	{hosttest.GitHub(), "acme", `"type": "github", "token": {"env": "T"}, "orgs": ["acme"]`, 100},
	{hosttest.GitHubServer(), "acme", `"type": "github", "url": "URL", "token": {"env": "T"}, "orgs": ["acme"]`, 100},
	{hosttest.GitLab(), "acme", `"type": "gitlab", "url": "URL", "token": {"env": "T"}, "groups": ["acme"]`, 101},
	{hosttest.Gitea(), "acme", `"type": "gitea", "url": "URL", "token": {"env": "T"}, "orgs": ["acme"]`, 200},
	{hosttest.Gerrit(), "acme", `"type": "gerrit", "url": "http://ann:sekret@HOST"`, 22},
	{hosttest.BitbucketCloud(), "acme", `"type": "bitbucket", "user": "ann@example.com", "token": {"env": "T"}, "workspaces": ["acme"]`, 100},
	{hosttest.BitbucketServer(), "ACME", `"type": "bitbucket", "deploymentType": "server", "url": "URL", "token": {"env": "T"}, "projects": ["ACME"]`, 10},
	{hosttest.AzureServices(), "acme", `"type": "azuredevops", "deploymentType": "cloud", "token": {"env": "T"}, "orgs": ["acme"]`, 1},
	{hosttest.AzureServer(), "acme", `"type": "azuredevops", "deploymentType": "server", "useTfsPath": true, "url": "URL", "token": {"env": "T"}, "orgs": ["acme"]`, 1},
}

// TestListings_ofManyRepositoriesAreMeasured lists 10,000 repositories of each deployment and 100,000 of one
// into a catalog, and then lists them again unchanged. It prints the table in
// bench/report/listings.md.
func TestListings_ofManyRepositoriesAreMeasured(t *testing.T) {
	if os.Getenv(benchListings) == "" {
		t.Skipf("set %s, or run make bench-listings", benchListings)
	}
	fmt.Println("| host | repositories | calls | calls of the second listing | entries of the second | wall | CPU | most memory | the same without garbage | of it stays | most of the second | the same without garbage | catalog on disk |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|---|---|---|---|")
	for i, l := range listings {
		listMany(t, i, 10_000)
		if l.host.Name == "github" {
			listMany(t, i, 100_000)
		}
	}
}

// listMany measures a listing of n repositories. The host runs in another process, so that its cost
// does not count.
func listMany(t *testing.T, row, n int) {
	l := listings[row]
	s := serveMany(t, row, n)
	conn := strings.NewReplacer("URL", strings.TrimSuffix(s.URL, "/tfs"), "HOST", strings.TrimPrefix(s.URL, "http://")).Replace(l.conn)
	w := newWorld(t, `{"connections": {"a": {`+conn+`}}}`, 1)
	c := w.View().File().Connection("a")
	h, err := host.Open(c, scaleTools(s))
	if err != nil {
		t.Fatal(err)
	}

	idle := memory()
	peak := watchHeap()
	began, cpu := clock.Now(), used()
	w.syncBy(h)
	took, spent := clock.Since(began), used()-cpu
	most, live := peak()
	most, live = most-idle, live-min(live, idle)
	kept := memory() - idle
	calls := s.calls.Load()
	size := &byteCount{}
	if err := w.View().Save(size); err != nil {
		t.Fatal(err)
	}

	before := w.View().Index()
	peak = watchHeap()
	w.syncBy(h)
	second, liveSecond := peak()
	second, liveSecond = second-min(second, idle+kept), liveSecond-min(liveSecond, idle+kept)
	entries, again := w.View().Index()-before, s.calls.Load()-calls

	if got := w.View().Connection("a").Repos; int(got) != n && int(got) != n+1 {
		t.Errorf("%s: %d of %d repositories are listed: %+v", l.host.Name, got, n, w.View().Connection("a").Issues)
	}
	if allowed := int64(l.most * n / 10_000); calls > allowed+1 || again > allowed+1 {
		t.Errorf("%s: %d and %d calls, %d are allowed", l.host.Name, calls, again, allowed)
	}
	if entries != 3 {
		t.Errorf("%s: a listing without a change writes %d entries, want 3: asked for, given to a node, ended", l.host.Name, entries)
	}

	// Limits on the memory of a listing, with its catalog and all garbage, and of an unchanged one.
	if most > 200<<20 || second > 100<<20 {
		t.Errorf("%s: %d MiB of memory with the catalog, %d MiB beside it for the second listing", l.host.Name, most>>20, second>>20)
	}
	fmt.Printf("| %s | %d | %d | %d | %d | %.1f s | %.1f s | %.0f MB | %.0f MB | %.0f MB | %.0f MB | %.0f MB | %.1f MB |\n", l.host.Name, n, calls, again, entries,
		took.Seconds(), spent.Seconds(), float64(most)/1e6, float64(live)/1e6, float64(kept)/1e6, float64(second)/1e6, float64(liveSecond)/1e6, float64(size.n)/1e6)
}

// serving is the variable that makes a process serve a row of listings.
const serving = "SHOAL_BENCH_SERVE"

// served is a host in another process, with the number of calls to it.
type served struct {
	URL, Address string
	by           http.RoundTripper
	calls        atomic.Int64
}

// RoundTrip counts a call.
func (s *served) RoundTrip(r *http.Request) (*http.Response, error) {
	s.calls.Add(1)
	return s.by.RoundTrip(r)
}

// serveMany starts a process that serves n repositories until the test ends.
func serveMany(t *testing.T, row, n int) *served {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestListingsServer_runsInAnotherProcess$")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d %d", serving, row, n))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); cmd.Wait() })

	s := &served{}
	if _, err := fmt.Fscanf(out, "%q %q\n", &s.URL, &s.Address); err != nil {
		t.Fatal(err)
	}
	go io.Copy(io.Discard, out)
	s.by = listings[row].host.Transport(s.Address)
	return s
}

// TestListingsServer_runsInAnotherProcess is the other process.
func TestListingsServer_runsInAnotherProcess(t *testing.T) {
	var row, n int
	if _, err := fmt.Sscan(os.Getenv(serving), &row, &n); err != nil {
		t.Skip("it serves TestListings_ofManyRepositoriesAreMeasured")
	}
	l := listings[row]
	s := hosttest.Start(t, l.host, manyRepos(l.owner, n)...)
	s.Do(func(s *hosttest.State) {
		*s.Trust, *s.Page = true, n
		if l.host.Most > 0 {
			*s.Page = l.host.Most
		}
	})
	fmt.Printf("%q %q\n", s.URL, s.Address())
	io.Copy(io.Discard, os.Stdin)
}

func manyRepos(owner string, n int) []hosttest.Repo {
	out := make([]hosttest.Repo, n)
	for i := range out {
		out[i] = hosttest.Repo{
			ID: int64(i + 1), Owner: owner, Project: "CORE", Name: fmt.Sprintf("service-%06d", i), Branch: "main", Size: 1_000_000,
			Description: "one of many services", Topics: []string{"service"}, Pushed: time.Date(2026, 1, 1, 0, 0, i, 0, time.UTC),
		}
	}
	return out
}

// scaleTools returns tools with a clock that each wait advances.
func scaleTools(s *served) host.Tools {
	var mu sync.Mutex
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now
	}
	return host.Tools{
		Secret:    func(context.Context, config.Token) (string, error) { return hosttest.Token, nil },
		Transport: s, Now: clock, Budgets: host.NewBudgets(clock),
		Wait: func(ctx context.Context, d time.Duration) error {
			mu.Lock()
			defer mu.Unlock()
			now = now.Add(max(d, 0))
			return ctx.Err()
		},
		LookupEnv: func(string) (string, bool) { return "", false },
	}
}

// memory returns the memory in use after a garbage collection.
func memory() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse
}

// watchHeap samples the memory in use until its result is called. That returns the maximum, and the
// maximum after a collection.
func watchHeap() func() (used, live uint64) {
	var used, live uint64
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		marked := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			metrics.Read(marked)
			used, live = max(used, m.HeapInuse), max(live, marked[0].Value.Uint64())
			select {
			case <-tick.C:
			case <-stop:
				return
			}
		}
	}()
	return func() (uint64, uint64) {
		close(stop)
		<-ended
		return used, live
	}
}

// used returns the CPU time of this process.
func used() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// byteCount counts written bytes.
type byteCount struct{ n int64 }

func (c *byteCount) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return len(p), nil
}
