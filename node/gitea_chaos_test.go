package node_test

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/host/giteatest"
	"github.com/shoalsearch/shoal/node/nodetest"
)

// chaosHosts names the variable with the duration of the chaos test with a real Gitea, such as
// 2m; make chaos-hosts sets it.
const chaosHosts = "SHOAL_CHAOS_HOSTS"

// Three nodes follow a real server while nodes crash, the server stops and fails, and
// repositories are made, renamed, swapped, hidden and deleted. The nodes never drop what the
// server has, and at the end the catalog matches the server.
func TestRealGitea_catalogMatchesItAfterRandomFaults(t *testing.T) {
	lasts, err := time.ParseDuration(os.Getenv(chaosHosts))
	if err != nil {
		t.Skipf("set %s, or run make chaos-hosts", chaosHosts)
	}

	c := startTrouble(t)
	until := clock.Now().Add(lasts)
	for clock.Now().Before(until) {
		c.trouble()
		c.agrees()
	}
	c.heal()
	c.settles()
	c.hidesItsToken()
	fmt.Printf("%d troubles in %v: %v\n", c.count, lasts, c.done)
}

// trouble is a Gitea, its proxy, and three nodes that follow it.
type trouble struct {
	t      *testing.T
	rng    *rand.Rand
	gitea  *giteatest.Server
	fails  atomic.Int32 // status of all answers; 0 for none
	fleet  *nodetest.Fleet
	prefix string // of repository names

	down    int               // stopped node; -1 for none
	stopped bool              // whether the server is stopped
	words   map[string]string // word in the file of each repository, by name without owner
	numbers map[string]uint32 // repository number in the catalog, by word, once it was there
	made    int
	count   int
	done    map[string]int
}

func startTrouble(t *testing.T) *trouble {
	c := &trouble{
		t: t, rng: rand.New(rand.NewPCG(uint64(clock.Now().UnixNano()), 1)), gitea: giteatest.Start(t), down: -1,
		words: map[string]string{}, numbers: map[string]uint32{}, done: map[string]int{},
	}
	c.gitea.Org("acme")

	target, err := url.Parse(c.gitea.URL)
	if err != nil {
		t.Fatal(err)
	}
	onward := httputil.NewSingleHostReverseProxy(target)
	onward.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if status := int(c.fails.Load()); status != 0 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(status)
			return
		}
		onward.ServeHTTP(w, r)
	}))
	t.Cleanup(proxy.Close)
	c.prefix = strings.TrimPrefix(proxy.URL, "http://") + "/acme/"

	for range 6 {
		c.create()
	}
	c.fleet = nodetest.StartFleet(t, 3, nodetest.Config{
		Env: map[string]string{"GITEA_TOKEN": c.gitea.Token},
		File: fmt.Sprintf(`{"settings": {"resyncConnectionIntervalMs": 1000, "resyncConnectionPollingIntervalMs": 50},
			"connections": {"main": {"type": "gitea", "url": %q, "token": {"env": "GITEA_TOKEN"}, "orgs": ["acme"]}}}`, proxy.URL),
	})
	c.fleet.Nodes[0].WaitIndexed(6)
	return c
}

// trouble makes one change, and gives the nodes a moment to notice.
func (c *trouble) trouble() {
	kinds := []struct {
		name string
		do   func()
	}{
		{"made", c.create}, {"made", c.create}, {"renamed", c.rename}, {"swapped", c.swap}, {"deleted", c.remove}, {"made private", c.hide},
		{"a node crashed or came back", c.crash}, {"the server stopped or came back", c.stop}, {"answers of 500 began or ended", func() { c.fail(500) }},
		{"answers of 429 began or ended", func() { c.fail(429) }},
	}
	k := kinds[c.rng.IntN(len(kinds))]
	k.do()
	c.count++
	c.done[k.name]++
	nodetest.Moment(time.Duration(c.rng.IntN(1500)) * time.Millisecond)
}

// name returns an existing repository.
func (c *trouble) name() string {
	names := make([]string, 0, len(c.words))
	for name := range c.words {
		names = append(names, name)
	}
	slices.Sort(names)
	return names[c.rng.IntN(len(names))]
}

// few reports whether the server is down or has few repositories, so that nothing may be removed.
func (c *trouble) few() bool { return c.stopped || len(c.words) < 3 }

func (c *trouble) create() {
	if c.stopped || len(c.words) > 15 {
		return
	}
	c.made++
	name, word := fmt.Sprintf("r%d", c.made), fmt.Sprintf("zqw%dxk", c.made)
	c.gitea.Repo("acme", name, giteatest.Options{})
	c.gitea.Push("acme/"+name, map[string]string{"a.txt": word + "\n"})
	c.words[name] = word
}

func (c *trouble) move(from, to string) {
	c.gitea.Edit("acme/"+from, map[string]any{"name": to})
	c.words[to] = c.words[from]
	delete(c.words, from)
}

func (c *trouble) rename() {
	if c.few() {
		return
	}
	c.made++
	c.move(c.name(), fmt.Sprintf("n%d", c.made))
}

func (c *trouble) swap() {
	a, b := c.name(), c.name()
	if c.few() || a == b {
		return
	}
	c.move(a, "between")
	c.move(b, a)
	c.move("between", b)
}

func (c *trouble) remove() {
	if c.few() {
		return
	}
	name := c.name()
	c.gitea.Delete("acme/" + name)
	delete(c.numbers, c.words[name])
	delete(c.words, name)
}

func (c *trouble) hide() {
	if !c.few() {
		c.gitea.Edit("acme/"+c.name(), map[string]any{"private": true})
	}
}

// crash stops a node, or starts the stopped one. Two of three always run.
func (c *trouble) crash() {
	if c.down >= 0 {
		c.fleet.Nodes[c.down].Launch()
		c.fleet.Nodes[c.down].WaitReady()
		c.down = -1
		return
	}
	c.down = c.rng.IntN(3)
	c.fleet.Crash(c.down)
}

func (c *trouble) stop() {
	if c.stopped {
		c.gitea.Launch()
	} else {
		c.gitea.Stop()
	}
	c.stopped = !c.stopped
}

func (c *trouble) fail(status int32) {
	if !c.fails.CompareAndSwap(0, status) {
		c.fails.Store(0)
	}
}

// listed returns the numbers of repositories in the catalog of a running node, by name.
func (c *trouble) listed() (map[string]uint32, error) {
	n := c.fleet.Nodes[(c.down+1)%3]
	out := map[string]uint32{}
	r, err := n.Browse.Repos(c.t.Context(), catalog.Operator(), browse.ReposRequest{PerPage: 100})
	if err != nil {
		return nil, err
	}
	for _, repo := range r.Repos {
		out[strings.TrimPrefix(repo.Name, c.prefix)] = repo.ID
	}
	return out, nil
}

// agrees fails if a repository of the server that was listed once is no longer in the catalog, by
// any name.
func (c *trouble) agrees() {
	now, err := c.listed()
	if err != nil {
		return // a node that has just started may not answer yet
	}

	there := map[uint32]bool{}
	for _, number := range now {
		there[number] = true
	}
	for word, number := range c.numbers {
		if !there[number] {
			c.t.Fatalf("%s (number %d) was let go, and the server has it; the catalog has %v, the server %v", word, number, now, c.words)
		}
	}

	// Record repositories that were found under their own name and not renamed meanwhile.
	for name, word := range c.words {
		number, ok := now[name]
		if ok && c.numbers[word] == 0 && strings.TrimPrefix(name, "r") == strings.TrimSuffix(strings.TrimPrefix(word, "zqw"), "xk") {
			c.numbers[word] = number
		}
	}
}

// heal ends all trouble.
func (c *trouble) heal() {
	c.fails.Store(0)
	if c.stopped {
		c.stop()
	}
	if c.down >= 0 {
		c.crash()
	}
}

// settles waits until each node has the repositories of the server, by name, and finds their
// contents.
func (c *trouble) settles() {
	for i := range c.fleet.Nodes {
		n := c.fleet.Nodes[i]
		n.Wait("the catalog to be what the server has", func() error {
			c.down = i - 1
			now, err := c.listed()
			if err != nil || len(now) != len(c.words) {
				return fmt.Errorf("%v; the catalog has %v, the server %v", err, now, c.words)
			}
			for name, word := range c.words {
				if got := n.Find(word); !slices.Equal(got, []string{c.prefix + name + ":a.txt"}) {
					return fmt.Errorf("%s is found in %v, want %s", word, got, name)
				}
				if number := c.numbers[word]; number != 0 && now[name] != number {
					return fmt.Errorf("%s has number %d, and had %d", name, now[name], number)
				}
			}
			return nil
		})
	}
	c.down = -1
}

// hidesItsToken checks that the token is not in files and output of the nodes.
func (c *trouble) hidesItsToken() {
	token := c.gitea.Token
	for _, n := range c.fleet.Nodes {
		if text := fmt.Sprintf("%+v", n.Status()); strings.Contains(text, token) {
			c.t.Errorf("the status has the token: %s", text)
		}
		err := filepath.WalkDir(n.Dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !entry.Type().IsRegular() {
				return nil // files come and go while nodes run
			}
			text, err := os.ReadFile(path)
			if err == nil && strings.Contains(string(text), token) {
				c.t.Errorf("%s has the token", path)
			}
			return nil
		})
		if err != nil {
			c.t.Error(err)
		}
	}
}
