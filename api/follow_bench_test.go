package api

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/node/host/giteatest"
	"github.com/shoalsearch/shoal/node/nodetest"
)

// benchHosts names the variable that enables measurements of code hosts, which take minutes; make
// bench-hosts sets it.
const benchHosts = "SHOAL_BENCH_HOSTS"

// TestPushToSearchable_takesSecondsWithARealGitea measures the time from a push to a server until a search finds
// it: 200 pushes to 50 repositories, with and without a webhook.
func TestPushToSearchable_takesSecondsWithARealGitea(t *testing.T) {
	if os.Getenv(benchHosts) == "" {
		t.Skipf("set %s, or run make bench-hosts", benchHosts)
	}
	const repos, pushes = 50, 200
	for _, c := range []struct {
		name   string
		hook   bool
		pause  time.Duration // between two pushes
		median time.Duration // promised
		worst  time.Duration
	}{
		{"with a webhook", true, 300 * time.Millisecond, 5 * time.Second, 30 * time.Second},
		{"without a webhook", false, 900 * time.Millisecond, 35 * time.Second, time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := giteatest.Start(t)
			g.Org("acme")
			for i := range repos {
				g.Repo("acme", fmt.Sprintf("r%d", i), giteatest.Options{})
			}
			n := nodetest.Start(t, nodetest.Config{
				Env:  map[string]string{"GITEA_TOKEN": g.Token},
				File: fmt.Sprintf(`{"connections": {"main": {"type": "gitea", "url": %q, "token": {"env": "GITEA_TOKEN"}, "orgs": ["acme"]}}}`, g.URL),
			})
			n.WaitIndexed(repos)
			if c.hook {
				hookTo(t, g, n)
			}

			pushed, stop := make(chan push), make(chan struct{})
			go func() {
				defer close(pushed)
				next := time.NewTicker(c.pause)
				defer next.Stop()
				for i := range pushes {
					p := push{word: fmt.Sprintf("zq%dxw", i)}
					g.Push(fmt.Sprintf("acme/r%d", i%repos), map[string]string{p.word + ".txt": p.word + "\n"})
					p.at = clock.Now()
					pushed <- p
					select {
					case <-next.C:
					case <-stop:
						return
					}
				}
			}()
			took := found(t, n, pushed)
			close(stop)
			slices.Sort(took)
			median, p99 := took[len(took)/2], took[len(took)*99/100]
			fmt.Printf("%d pushes %s: searchable after %.1f s (median), %.1f s (p99), %.1f s at most\n", len(took), c.name, median.Seconds(), p99.Seconds(), took[len(took)-1].Seconds())
			if len(took) != pushes || median > c.median || p99 > c.worst {
				t.Errorf("%d of %d pushes were found; median %v, want at most %v; p99 %v, want at most %v", len(took), pushes, median, c.median, p99, c.worst)
			}
		})
	}
}

// push is a pushed word.
type push struct {
	word string
	at   time.Time
}

// found searches until everything pushed is found, and returns how long each push took. It stops
// a quarter of an hour after the last push.
func found(t *testing.T, n *nodetest.Node, pushed <-chan push) (took []time.Duration) {
	t.Helper()
	var waiting []push
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	last := clock.Now()
	for pushed != nil || len(waiting) > 0 {
		select {
		case p, ok := <-pushed:
			if !ok {
				pushed = nil
				continue
			}
			waiting, last = append(waiting, p), p.at
		case <-tick.C:
			waiting = slices.DeleteFunc(waiting, func(p push) bool {
				if len(n.Find(p.word)) == 0 {
					return false
				}
				took = append(took, clock.Since(p.at))
				return true
			})
			if clock.Since(last) > 15*time.Minute {
				t.Fatalf("%d pushes are not found", len(waiting))
			}
		}
	}
	return took
}
