package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/wire"
	"github.com/shoalsearch/shoal/node/nodetest"
)

// Every node of three is restarted in turn, and then one is killed, while clients send requests
// through the balancers of examples/. No request fails and no answer is incomplete. Only an
// answer that has partly arrived when its node is killed breaks off, and the client repeats it;
// no balancer can prevent that.
func TestLoadBalancerExamples_loseNoRequestWhenNodesRestart(t *testing.T) {
	t.Parallel()
	c := startProcesses(t)
	var balancers []*crowd
	for _, b := range []struct {
		name, example string
		command       func(file, dir string) []string
	}{
		{"haproxy", "haproxy.cfg", func(file, dir string) []string { return []string{"-db", "-f", file} }},
		{"nginx", "nginx.conf", func(file, dir string) []string {
			return []string{"-p", dir, "-c", file, "-e", filepath.Join(dir, "error.log"), "-g", "daemon off; pid " + filepath.Join(dir, "nginx.pid") + ";"}
		}},
	} {
		url := c.balance(t, b.name, b.example, b.command)
		balancers = append(balancers, c.load(t, b.name, url))
	}
	for i := range c.nodes {
		c.stop(t, i, syscall.SIGTERM)
		c.start(t, i)
		nodetest.Wait(t, fmt.Sprintf("node %d is back", i+1), func() error { return c.settled() })
	}
	for _, b := range balancers {
		b.report(t, "while every node was restarted")
	}
	for _, b := range balancers {
		b.mayCut.Store(true)
	}
	c.stop(t, 0, syscall.SIGKILL)
	for _, b := range balancers {
		b.more(t, 100)
		b.report(t, "after a node was killed")
	}
}

// processes has three nodes on their own loopback addresses.
type processes struct {
	binary, dir string
	config      string // of all nodes
	repos       int
	patience    time.Duration // to wait until all is settled
	subnet      string
	user        *syscall.Credential // of the nodes; nil is that of the test
	keyFiles    map[int]string      // of nodes that do not share one
	clocks      map[int]*wrongClock // of nodes that do not have the machine's
	nodes       []*exec.Cmd
	http        *http.Client
}

// startProcesses starts three nodes with two copies of a repository.
func startProcesses(t *testing.T) *processes {
	t.Helper()
	c := newProcesses(t, binary(t))
	c.launch(t)
	return c
}

// newProcesses prepares three nodes of one program, with a repository.
func newProcesses(t *testing.T, program string) *processes {
	t.Helper()
	dir := t.TempDir()
	c := &processes{
		repos: 1, patience: nodetest.Patience,
		binary: program, dir: dir, subnet: fmt.Sprintf("127.%d.%d", 1+rand.IntN(254), rand.IntN(256)),
		nodes: make([]*exec.Cmd, 3), http: &http.Client{Timeout: 10 * time.Second},
	}
	repo := filepath.Join(dir, "repos", "app")
	files := map[string]string{}
	for i := range wantFiles {
		files[fmt.Sprintf("f%02d.txt", i)] = fmt.Sprintf("whale number %d\n", i)
	}
	nodetest.NewRepo(t, repo, files)
	c.config = fmt.Sprintf(`{"connections": {"local": {"type": "git", "url": "file://%s/repos/*"}}}`, dir)
	return c
}

func (c *processes) launch(t *testing.T) {
	t.Helper()
	write(t, filepath.Join(c.dir, "config.json"), c.config)
	write(t, filepath.Join(c.dir, "cluster.key"), wire.NewKey().Text()+"\n")
	c.own(t)
	for i := range c.nodes {
		c.start(t, i)
		t.Cleanup(func() { c.end(i, syscall.SIGKILL) })
	}
	t.Cleanup(func() { c.tell(t) })
	c.wait(t, "the cluster is formed and holds two copies", c.settled)
}

// wait is nodetest.Wait with this cluster's patience.
func (c *processes) wait(t *testing.T, what string, cond func() error) {
	t.Helper()
	var last error
	if !nodetest.Eventually(c.patience, func() bool { last = cond(); return last == nil }) {
		t.Fatalf("waited %s for %s: %v", c.patience, what, last)
	}
}

// wantFiles is the number of files with the searched word.
const wantFiles = 20

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (c *processes) dataDir(i int) string { return filepath.Join(c.dir, fmt.Sprintf("n%d", i)) }

func (c *processes) host(i int) string { return fmt.Sprintf("%s.%d", c.subnet, i+1) }

func (c *processes) start(t *testing.T, i int) {
	t.Helper()
	var join []string
	for j := range c.nodes {
		join = append(join, c.host(j)+":7702")
	}
	cmd := exec.Command(c.binary, "serve", "--config", filepath.Join(c.dir, "config.json"), "--cluster-key-file", cmp.Or(c.keyFiles[i], filepath.Join(c.dir, "cluster.key")),
		"--data-dir", c.dataDir(i), "--listen", c.host(i)+":7700", "--cluster-listen", c.host(i)+":7701",
		"--gossip-listen", c.host(i)+":7702", "--join", strings.Join(join, ","), "--bootstrap-expect", "3", "--ctags", "off")
	cmd.Env = append(os.Environ(), "FORCE_ENABLE_ANONYMOUS_ACCESS=true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Credential: c.user}
	log, err := os.OpenFile(filepath.Join(c.dir, fmt.Sprintf("n%d.log", i)), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	start := cmd.Start
	if clock := c.clocks[i]; clock != nil {
		start = func() error { return clock.start(cmd) }
	}
	if err := start(); err != nil {
		t.Fatal(err)
	}
	c.nodes[i] = cmd
}

// stop ends a node. With SIGTERM it must exit properly.
func (c *processes) stop(t *testing.T, i int, sig syscall.Signal) {
	t.Helper()
	if err := c.end(i, sig); err != nil && sig == syscall.SIGTERM {
		t.Errorf("node %d ended with %v", i+1, err)
	}
}

func (c *processes) end(i int, sig syscall.Signal) error {
	if c.nodes[i] == nil {
		return nil
	}
	_ = c.nodes[i].Process.Signal(sig)
	err := c.nodes[i].Wait()
	c.nodes[i] = nil
	return err
}

// settled returns nil if all running nodes are ready and no copy is missing.
func (c *processes) settled() error {
	for i := range c.nodes {
		if c.nodes[i] == nil {
			continue
		}
		if _, err := c.get("http://" + c.host(i) + ":7700/readyz"); err != nil {
			return err
		}
		text, err := c.get("http://" + c.host(i) + ":7700/api/status")
		if err != nil {
			return err
		}
		var status struct {
			Placement struct{ UnderReplicated int }
			Repos     struct{ Indexed int }
		}
		if err := json.Unmarshal(text, &status); err != nil {
			return err
		}
		if status.Placement.UnderReplicated != 0 || status.Repos.Indexed != c.repos {
			return fmt.Errorf("node %d: %+v", i+1, status)
		}
	}
	return nil
}

func (c *processes) get(url string) ([]byte, error) {
	res, err := c.http.Get(url)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %d %s", url, res.StatusCode, body)
	}
	return body, err
}

// tell shows the ends of the logs of a failed test.
func (c *processes) tell(t *testing.T) {
	if !t.Failed() {
		return
	}
	for i := range c.nodes {
		text, _ := os.ReadFile(filepath.Join(c.dir, fmt.Sprintf("n%d.log", i)))
		t.Logf("end of the log of node %d:\n%s", i+1, text[max(0, len(text)-2000):])
	}
}

// balance runs a balancer with the configuration of examples/ over the nodes and returns its URL.
func (c *processes) balance(t *testing.T, name, example string, args func(file, dir string) []string) string {
	t.Helper()
	program, err := exec.LookPath(name)
	if err != nil {
		if program, err = exec.LookPath("/usr/sbin/" + name); err != nil {
			t.Fatalf("%v: make install-deps installs it", err)
		}
	}
	text, err := os.ReadFile(filepath.Join("..", "..", "examples", example))
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("%s.%d:8080", c.subnet, 100+len(name))
	config := strings.NewReplacer("10.0.0.", c.subnet+".", "bind :8080", "bind "+address, "listen 8080", "listen "+address).Replace(string(text))
	if strings.Count(config, c.subnet) != 4 {
		t.Fatalf("%s does not have three nodes and an address to listen at:\n%s", example, config)
	}
	dir := filepath.Join(c.dir, name)
	if err := os.MkdirAll(filepath.Join(dir, "logs"), 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, example)
	write(t, file, config)
	cmd := exec.Command(program, args(file, dir)...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if t.Failed() {
			log, _ := os.ReadFile(filepath.Join(dir, "error.log"))
			t.Logf("%s says:\n%s%s", name, out.String(), log[:min(len(log), 3000)])
		}
	})
	url := "http://" + address
	nodetest.Wait(t, name+" serves", func() error { _, err := c.get(url + "/readyz"); return err })
	return url
}

// crowd has users who send requests through one balancer until the test ends.
type crowd struct {
	name   string
	asked  atomic.Int64
	mayCut atomic.Bool // a node is being killed

	mu    sync.Mutex // guards the fields below
	wrong []string
	cut   int // answers that broke off
}

// users is the number of concurrent users.
const users = 8

// load starts users who repeat requests.
func (c *processes) load(t *testing.T, name, url string) *crowd {
	t.Helper()
	b := &crowd{name: name}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for user := range users {
		wg.Go(func() {
			for round := 0; ; round++ {
				select {
				case <-stop:
					return
				case <-time.After(*pairsPause):
				}
				b.note(c.ask(url, user+round))
			}
		})
	}
	t.Cleanup(func() {
		close(stop)
		wg.Wait()
	})
	return b
}

// note counts an answer; err means a wrong one.
func (b *crowd) note(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked.Add(1)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF) && b.mayCut.Load() && b.cut < users:
		b.cut++ // at most one for each user
	case err != nil:
		b.wrong = append(b.wrong, err.Error())
	}
}

// ask searches or reads a file, and returns an error for a wrong answer.
func (c *processes) ask(url string, round int) error {
	if round%4 == 0 {
		text, err := c.get(fmt.Sprintf("%s/api/source?repo=local/app&path=f%02d.txt", url, round%wantFiles))
		if err == nil && !bytes.Contains(text, []byte("whale")) {
			err = fmt.Errorf("a file without its text: %s", text)
		}
		return err
	}
	res, err := c.http.Post(url+"/api/search", "application/json", strings.NewReader(`{"query": "\"whale number\"", "matches": 100}`))
	if err != nil {
		return err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	var answer struct {
		Files              []struct{}
		IsSearchExhaustive bool
		Stats              json.RawMessage
	}
	if err := json.Unmarshal(text, &answer); err != nil || len(answer.Files) != wantFiles || !answer.IsSearchExhaustive {
		return fmt.Errorf("status %d, %d files, exhaustive %v: %s", res.StatusCode, len(answer.Files), answer.IsSearchExhaustive, cmp.Or(string(answer.Stats), string(text)))
	}
	return nil
}

// more waits for n more answers.
func (b *crowd) more(t *testing.T, n int64) {
	t.Helper()
	from := b.asked.Load()
	nodetest.Wait(t, fmt.Sprintf("%d more answers through %s", n, b.name), func() error {
		if got := b.asked.Load() - from; got < n {
			return fmt.Errorf("%d so far", got)
		}
		return nil
	})
}

// report fails the test if there were wrong answers.
func (b *crowd) report(t *testing.T, when string) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	t.Logf("%s: %d requests %s, %d answers cut", b.name, b.asked.Load(), when, b.cut)
	if len(b.wrong) > 0 {
		slices.Sort(b.wrong)
		t.Errorf("%s: %d of %d requests failed %s, such as\n%s", b.name, len(b.wrong), b.asked.Load(), when, strings.Join(slices.Compact(b.wrong)[:1], "\n"))
		b.wrong = nil
	}
}
