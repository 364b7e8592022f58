package chaostest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// cluster is the processes of a run.
type cluster struct {
	t      *testing.T
	hosts  *hosts
	dir    string
	binary string
	client *http.Client
	nodes  []*process
}

// process is one node: the same data directory through all its lives.
type process struct {
	index int
	dir   string
	url   string

	mu    sync.Mutex // guards the fields below
	cmd   *exec.Cmd
	done  chan struct{} // closed when cmd has ended
	life  int           // counts starts
	meant bool          // the end of cmd was wanted
}

// build makes the binary under test, with the race detector when asked.
func build(t *testing.T, dir string) string {
	t.Helper()
	binary := filepath.Join(dir, "shoal")
	args := []string{"build", "-o", binary}
	if *race {
		args = append(args, "-race")
	}
	cmd := exec.Command("go", append(args, "github.com/shoalsearch/shoal/cmd/shoal")...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build: %v: %s", err, out)
	}
	return binary
}

func startCluster(t *testing.T, n int, seed uint64) *cluster {
	t.Helper()
	dir := t.TempDir()
	c := &cluster{t: t, hosts: newHosts(t, n, seed), dir: dir, binary: build(t, dir),
		client: &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 16, IdleConnTimeout: 2 * time.Second}}}
	key, err := exec.Command(c.binary, "cluster-key", "new").Output()
	if err != nil {
		t.Fatal("cluster-key new: ", err)
	}
	if err := os.WriteFile(c.keyFile(), key, 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		c.nodes = append(c.nodes, &process{index: i, dir: filepath.Join(dir, fmt.Sprintf("n%d", i+1)), url: "http://" + c.hosts.addrs[i] + ":7700"})
	}
	t.Cleanup(c.stop)
	return c
}

func (c *cluster) keyFile() string    { return filepath.Join(c.dir, "cluster.key") }
func (c *cluster) configFile() string { return filepath.Join(c.dir, "config.json") }

// start starts node i; a node that runs is left alone.
func (c *cluster) start(i int) error {
	p := c.nodes[i]
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil {
		return nil
	}
	var join []string
	for _, addr := range c.hosts.addrs {
		join = append(join, addr+":7702")
	}
	addr := c.hosts.addrs[i]
	cmd := c.hosts.command(i, c.binary, "serve", "--config", c.configFile(), "--data-dir", p.dir, "--cluster-key-file", c.keyFile(),
		"--listen", addr+":7700", "--cluster-listen", addr+":7701", "--gossip-listen", addr+":7702",
		"--join", strings.Join(join, ","), "--bootstrap-expect", fmt.Sprint(len(c.nodes)), "--ctags", "off", "--zone", fmt.Sprintf("z%d", i%3+1))
	cmd.Env = append(os.Environ(), "FORCE_ENABLE_ANONYMOUS_ACCESS=true", "GORACE=halt_on_error=1")
	log, err := os.OpenFile(p.dir+".log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return err
	}
	done := make(chan struct{})
	p.cmd, p.done, p.life, p.meant = cmd, done, p.life+1, false
	go func() {
		err := cmd.Wait()
		p.mu.Lock()
		defer p.mu.Unlock()
		defer close(done)
		if !p.meant {
			c.t.Errorf("node %d ended by itself: %v; end of its log:\n%s", p.index+1, err, tail(p.dir+".log"))
		}
		p.cmd = nil
	}()
	return nil
}

// kill ends node i as a power cut would.
func (c *cluster) kill(i int) { c.end(i, syscall.SIGKILL) }

func (c *cluster) end(i int, sig syscall.Signal) {
	p := c.nodes[i]
	p.mu.Lock()
	if p.cmd == nil {
		p.mu.Unlock()
		return
	}
	p.meant = true
	_ = p.cmd.Process.Signal(syscall.SIGCONT) // a stopped process would not end
	_ = p.cmd.Process.Signal(sig)
	done := p.done
	p.mu.Unlock()
	<-done
}

// signal sends a signal that the process survives.
func (c *cluster) signal(i int, sig syscall.Signal) {
	p := c.nodes[i]
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil {
		_ = p.cmd.Process.Signal(sig)
	}
}

func (c *cluster) stop() {
	var wg sync.WaitGroup
	for i := range c.nodes {
		wg.Go(func() { c.end(i, syscall.SIGKILL) })
	}
	wg.Wait()
}

func (p *process) lives() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.life
}

// tail returns the last lines of a log.
func tail(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(data[max(0, len(data)-4000):])
}

var errStatus = errors.New("unexpected status")

// call sends JSON to a node and decodes what comes back.
func (c *cluster) call(ctx context.Context, i int, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.nodes[i].url+path, body)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%w %d: %s", errStatus, resp.StatusCode, data)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(data, out)
}

// shoal runs the command line against a node, with the owner's credential.
func (c *cluster) shoal(ctx context.Context, i int, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, c.binary, args...)
	cmd.Env = append(os.Environ(), "SHOAL_URL="+c.nodes[i].url, "SHOAL_CLUSTER_KEY_FILE="+c.keyFile())
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("shoal %s: %w: %s", args[0], err, errs.String())
	}
	return string(out), nil
}

// until polls a condition.
func until(ctx context.Context, what string, limit time.Duration, holds func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited %s for %s", limit, what)
		case <-tick.C:
		}
	}
	return nil
}
