package chaostest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/api/auth"
	"github.com/shoalsearch/shoal/cluster/wire"
)

// cluster is the processes of a run.
type cluster struct {
	t       *testing.T
	net     network
	dir     string
	binary  string
	expect  int // nodes that found it
	volumes bool
	client  *http.Client
	nodes   []*process // the founders, then spare ones

	mu     sync.Mutex // guards the fields below
	broken []string   // what must not have happened
}

// process is one node: the same data directory through all its lives.
type process struct {
	index int
	dir   string
	url   string

	mu     sync.Mutex // guards the fields below
	cmd    *exec.Cmd
	done   chan struct{} // closed when cmd has ended
	life   int           // counts starts
	other  bool          // it runs the program of -other
	meant  bool          // the end of cmd was wanted
	mayEnd bool          // the end of cmd is no fault of it
	in     bool          // it is meant to be a member
	config string        // path of a configuration file of its own; "" for that of all
	files  int           // descriptors that it may have; 0 for as many as this process
	id     string        // of the node, once it was heard
}

var built struct {
	sync.Once
	path string
	err  error
}

// build makes the binary under test once for all runs, with the race detector
// when asked.
func build(t *testing.T) string {
	t.Helper()
	if *prebuilt != "" {
		return *prebuilt
	}
	built.Do(func() {
		dir, err := os.MkdirTemp("", "shoal-chaos")
		if err != nil {
			built.err = err
			return
		}
		built.path = filepath.Join(dir, "shoal")
		args := []string{"build", "-trimpath", "-o", built.path}
		if *race {
			args = append(args, "-race")
		}
		if out, err := exec.Command("go", append(args, "github.com/shoalsearch/shoal/cmd/shoal")...).CombinedOutput(); err != nil {
			built.err = fmt.Errorf("build: %w: %s", err, out)
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.path
}

func TestMain(m *testing.M) {
	code := m.Run()
	if built.path != "" {
		os.RemoveAll(filepath.Dir(built.path))
	}
	os.Exit(code)
}

// newCluster makes the hosts of so many founders and spare nodes. It starts none.
func newCluster(t *testing.T, founders, spare int) *cluster {
	t.Helper()
	dir := t.TempDir()
	c := &cluster{t: t, dir: dir, binary: build(t), expect: founders, net: newNetwork(t, founders+spare),
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16, IdleConnTimeout: 2 * time.Second}}}
	if err := os.WriteFile(c.keyFile(), []byte(wire.NewKey().Text()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range founders + spare {
		p := &process{index: i, dir: filepath.Join(dir, fmt.Sprintf("n%d", i+1)), url: "http://" + c.net.listen(i) + ":" + portAPI, in: i < founders, other: *other != "" && i%2 == 1}
		c.nodes = append(c.nodes, p)
		c.mount(p)
	}
	t.Cleanup(c.stop)
	return c
}

// The sizes of the volumes of a node where there are any.
const (
	dataVolume = "size=192m"
	raftVolume = "size=96m"
)

// mount gives a node small volumes of its own, which can be filled. Without
// the right to do so its disk is that of the machine.
func (c *cluster) mount(p *process) {
	for _, v := range [][2]string{{p.dir, dataVolume}, {filepath.Join(p.dir, "raft"), raftVolume}} {
		if err := os.MkdirAll(v[0], 0o700); err != nil {
			c.t.Fatal(err)
		}
		if *rootless || exec.Command("mount", "-t", "tmpfs", "-o", v[1], "shoal-chaos", v[0]).Run() != nil {
			return
		}
		c.volumes = true
		c.t.Cleanup(func() { try("umount", "-l", v[0]) })
	}
}

func (c *cluster) keyFile() string    { return filepath.Join(c.dir, "cluster.key") }
func (c *cluster) configFile() string { return filepath.Join(c.dir, "config.json") }
func (p *process) log() string        { return p.dir + ".log" }

// violation notes what must not have happened.
func (c *cluster) violation(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.broken) < 20 {
		c.broken = append(c.broken, time.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
	}
}

func (c *cluster) violations() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.broken...)
}

// members are the nodes that are meant to be in the cluster.
func (c *cluster) members() []*process {
	var in []*process
	for _, p := range c.nodes {
		p.mu.Lock()
		if p.in {
			in = append(in, p)
		}
		p.mu.Unlock()
	}
	return in
}

func (p *process) setMember(in bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.in, p.id = in, ""
}

// program is the binary of a node. The caller holds p.mu.
func (c *cluster) program(p *process) string {
	if p.other {
		return *other
	}
	return c.binary
}

// start starts a node; one that runs is left alone.
func (c *cluster) start(p *process) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil {
		return nil
	}
	var join []string
	for i := range c.nodes {
		join = append(join, c.net.advertise(i)+":"+portGossip)
	}
	addr := c.net.listen(p.index)
	expect := c.expect
	if p.index >= expect {
		expect = 1 // it only joins
	}
	config := c.configFile()
	if p.config != "" {
		config = p.config
	}
	cmd := c.net.command(p.index, c.program(p), "serve", "--config", config, "--data-dir", p.dir, "--cluster-key-file", c.keyFile(),
		"--listen", addr+":"+portAPI, "--cluster-listen", addr+":"+portCalls, "--gossip-listen", addr+":"+portGossip, "--advertise", c.net.advertise(p.index),
		"--join", strings.Join(join, ","), "--bootstrap-expect", fmt.Sprint(expect), "--ctags", "off", "--zone", fmt.Sprintf("z%d", p.index%3+1))
	if p.files > 0 {
		limited := append([]string{"sh", "-c", fmt.Sprintf(`ulimit -n %d; exec "$@"`, p.files), "sh"}, cmd.Args...)
		cmd = exec.Command(limited[0], limited[1:]...)
	}
	// The catalogs are compared by snapshots, each of which would be an event of
	// the audit, and so a change of the catalog.
	cmd.Env = append(os.Environ(), "FORCE_ENABLE_ANONYMOUS_ACCESS=true", "SOURCEBOT_EE_AUDIT_LOGGING_ENABLED=false", "GORACE=halt_on_error=1")
	log, err := os.OpenFile(p.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return err
	}
	p.cmd, p.done, p.life, p.meant = cmd, make(chan struct{}), p.life+1, false
	go c.watch(p, cmd, p.done)
	return nil
}

// watch waits for the end of a process.
func (c *cluster) watch(p *process, cmd *exec.Cmd, done chan struct{}) {
	err := cmd.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	defer close(done)
	if !p.meant && !p.mayEnd {
		c.violation("node %d ended by itself: %v; end of its log:\n%s", p.index+1, err, tail(p.log()))
	}
	p.cmd = nil
}

// startAll starts nodes at once.
func (c *cluster) startAll(list []*process) error {
	var errs []error
	for _, p := range list {
		errs = append(errs, c.start(p))
	}
	return errors.Join(errs...)
}

// kill ends nodes as a power cut would, all at once.
func (c *cluster) kill(list ...*process) {
	var wg sync.WaitGroup
	for _, p := range list {
		wg.Go(func() { p.end(syscall.SIGKILL) })
	}
	wg.Wait()
}

func (p *process) end(sig syscall.Signal) {
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
func (p *process) signal(sig syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil {
		_ = p.cmd.Process.Signal(sig)
	}
}

// allowEnd says whether the process may end by itself.
func (p *process) allowEnd(may bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mayEnd = may
}

func (p *process) running() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cmd != nil
}

func (p *process) lives() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.life
}

// empty removes what is in the data directory and leaves its volumes.
func (p *process) empty() error {
	raft := filepath.Join(p.dir, "raft")
	for _, dir := range []string{p.dir, raft} {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, e := range entries {
			if path := filepath.Join(dir, e.Name()); path != raft {
				if err := os.RemoveAll(path); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (c *cluster) stop() { c.kill(c.nodes...) }

// tail returns the last lines of a log.
func tail(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(data[max(0, len(data)-3000):])
}

// statusError is an answer other than 2xx.
type statusError struct {
	code int
	body string
}

func (e *statusError) Error() string { return fmt.Sprintf("status %d: %s", e.code, e.body) }

// codeOf is the status of an answer that was no success; 0 without an answer.
func codeOf(err error) int {
	var s *statusError
	if errors.As(err, &s) {
		return s.code
	}
	return 0
}

// raw sends a request to a node and returns the body of its answer.
func (c *cluster) raw(ctx context.Context, p *process, method, path string, in any) ([]byte, error) {
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, p.url+path, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	client := c.client
	if path != "/api/search" {
		client = p.operator()
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode/100 != 2 {
		err = &statusError{resp.StatusCode, string(data)}
	}
	return data, err
}

// operator asks by the socket in the node's directory, as who runs it does.
func (p *process) operator() *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return auth.DialSocket(ctx, p.dir)
	}}}
}

// call is raw for answers in JSON.
func (c *cluster) call(ctx context.Context, p *process, method, path string, in, out any) error {
	data, err := c.raw(ctx, p, method, path, in)
	if err != nil || out == nil {
		return err
	}
	return json.Unmarshal(data, out)
}

// status is the part of /api/status that is looked at.
type status struct {
	Node         string
	Leader       string
	CatalogIndex uint64
	Members      []struct {
		ID, API, Role, Health string
		Draining              bool
		Lag                   uint64
	}
	Config    struct{ Hash string }
	Storage   struct{ Quarantined int }
	Placement struct{ UnderReplicated int }
}

// voters counts the members that vote.
func (s *status) voters() (n int) {
	for _, m := range s.Members {
		if m.Role == "leader" || m.Role == "voter" {
			n++
		}
	}
	return n
}

func (c *cluster) status(ctx context.Context, p *process) (*status, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	s := new(status)
	if err := c.call(ctx, p, "GET", "/api/status", nil, s); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.id = s.Node
	return s, nil
}

// byID is the member with a node id, nil for none.
func (c *cluster) byID(id string) *process {
	for _, p := range c.members() {
		p.mu.Lock()
		same := id != "" && p.id == id
		p.mu.Unlock()
		if same {
			return p
		}
	}
	return nil
}

// until polls a condition, which says what is not as it should be.
func until(ctx context.Context, limit time.Duration, holds func() error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := holds()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("after %s: %w", limit, err)
		case <-tick.C:
		}
	}
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
