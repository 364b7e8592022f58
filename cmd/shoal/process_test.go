package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/shoalsearch/shoal/node/nodetest"
)

// buildDir is the directory of the product's binary; "" if no test needed it.
var buildDir string

// built builds the product's binary once for all tests of the package.
var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "shoal-test-")
	if err != nil {
		return "", err
	}
	buildDir = dir
	file := filepath.Join(dir, "shoal")
	out, err := exec.Command("go", "build", "-o", file, "github.com/shoalsearch/shoal/cmd/shoal").CombinedOutput()
	if err != nil {
		return file, fmt.Errorf("build: %w\n%s", err, out)
	}
	return file, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if buildDir != "" {
		os.RemoveAll(buildDir)
	}
	os.Exit(code)
}

func binary(t *testing.T) string {
	t.Helper()
	file, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// process is a real node on its own loopback address, with a repository that has the word whale.
type process struct {
	dir, host string
	env       []string
	shell     string // before the command, such as "ulimit -n 1024"
	flags     []string
	cmd       *exec.Cmd
	ended     chan error
	http      *http.Client
}

// newProcess prepares a node; start starts it.
func newProcess(t *testing.T) *process {
	t.Helper()
	dir := t.TempDir()
	p := &process{
		dir: dir, host: fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254)),
		env: []string{"FORCE_ENABLE_ANONYMOUS_ACCESS=true"}, http: &http.Client{Timeout: 10 * time.Second},
	}
	nodetest.NewRepo(t, filepath.Join(dir, "repos", "app"), map[string]string{"a.txt": "a whale\n"})
	write(t, filepath.Join(dir, "config.json"), fmt.Sprintf(`{"connections": {"local": {"type": "git", "url": "file://%s/repos/*"}}}`, dir))
	t.Cleanup(func() {
		if p.cmd != nil {
			p.stop(syscall.SIGKILL)
		}
		if t.Failed() {
			t.Logf("the node's log:\n%s", p.log())
		}
	})
	return p
}

func (p *process) url() string { return "http://" + p.host + ":7700" }

func (p *process) data() string { return filepath.Join(p.dir, "data") }

func (p *process) log() string {
	text, _ := os.ReadFile(filepath.Join(p.dir, "log"))
	return string(text)
}

// start starts the node without waiting for it.
func (p *process) start(t *testing.T) {
	t.Helper()
	args := append([]string{binary(t), "serve", "--config", filepath.Join(p.dir, "config.json"), "--data-dir", p.data(), "--listen", p.host + ":7700",
		"--cluster-listen", p.host + ":7701", "--gossip-listen", p.host + ":7702", "--ctags", "off"}, p.flags...)
	if p.shell != "" {
		args = append([]string{"sh", "-c", p.shell + `; exec "$@"`, "sh"}, args...)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), p.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	log, err := os.OpenFile(filepath.Join(p.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.cmd, p.ended = cmd, make(chan error, 1)
	go func() { p.ended <- cmd.Wait() }()
}

// stop sends a signal and returns the exit code.
func (p *process) stop(sig syscall.Signal) int {
	_ = p.cmd.Process.Signal(sig)
	return p.wait()
}

// wait returns the exit code of a node that exits; -1 if it was killed.
func (p *process) wait() int {
	err := <-p.ended
	p.cmd = nil
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	return 0
}

// alive returns nil while the node runs.
func (p *process) alive() error {
	select {
	case err := <-p.ended:
		p.ended <- err
		return fmt.Errorf("the node has ended: %v", err)
	default:
		return nil
	}
}

// search searches for the word, and returns how long the answer took.
func (p *process) search() (time.Duration, error) {
	began := time.Now()
	resp, err := p.http.Post(p.url()+"/api/search", "application/json", strings.NewReader(`{"query":"whale"}`))
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err
	}
	var answer struct{ Files []struct{} }
	if err := json.Unmarshal(body, &answer); err != nil || resp.StatusCode != 200 || len(answer.Files) != 1 {
		return 0, fmt.Errorf("status %d: %.200s", resp.StatusCode, body)
	}
	return time.Since(began), nil
}

// searchable waits until the word is found.
func (p *process) searchable(t *testing.T) {
	t.Helper()
	nodetest.Wait(t, "the repository is searchable", func() error {
		if err := p.alive(); err != nil {
			t.Fatalf("%v\n%s", err, p.log())
		}
		_, err := p.search()
		return err
	})
}

// light fails the test if a light search fails, or if the median takes long.
func (p *process) light(t *testing.T, when string) {
	t.Helper()
	var times []time.Duration
	for range 30 {
		took, err := p.search()
		if err != nil {
			t.Errorf("%s: a light search: %v", when, err)
			return
		}
		times = append(times, took)
	}
	slices.Sort(times)
	t.Logf("%s: light searches take %v, the slowest %v", when, times[len(times)/2], times[len(times)-1])
	if times[len(times)/2] > 50*time.Millisecond {
		t.Errorf("%s: light searches take %v", when, times[len(times)/2])
	}
}

// memory returns the node's peak memory, in bytes.
func (p *process) memory(t *testing.T) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kib << 10
}

// flood opens connections from an address and sends text on each. Closed connections are not
// reopened.
func (p *process) flood(t *testing.T, n int, from, text string) { // a full backlog: try the next one
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: 10 * time.Second}
	var conns []net.Conn
	t.Cleanup(func() {
		for _, c := range conns {
			c.Close()
		}
	})
	for range n {
		c, err := dialer.Dial("tcp", p.host+":7700")
		if err != nil {
			continue // a full backlog: the next one
		}
		conns = append(conns, c)
		_, _ = io.WriteString(c, text) // it may be closed already
	}
	if len(conns) < n/2 {
		t.Fatalf("only %d of %d connections could be opened", len(conns), n)
	}
}

// It opens more connections than the node has file descriptors, from the client's own address.
func TestIdleConnections_keepTheNodeReady(t *testing.T) {
	t.Parallel()
	p := newProcess(t)
	p.shell = "ulimit -n 1024"
	p.start(t)
	p.searchable(t)
	p.flood(t, 1200, "127.0.0.1", "")
	p.light(t, "with 1,200 idle connections")
	p.flood(t, 1200, "127.0.0.2", "POST /api/search HT")
	p.light(t, "with 1,200 half heads more")
	if err := p.alive(); err != nil {
		t.Error(err)
	}
	if resp, err := p.http.Get(p.url() + "/readyz"); err != nil || resp.StatusCode != 200 {
		t.Errorf("the node is not ready: %v %v", resp, err)
	}
}

// It announces 3,000 bodies of a mebibyte, to a node with and without anonymous access.
func TestAnnouncedBodies_takeNoMemory(t *testing.T) {
	t.Parallel()
	for _, env := range []string{"FORCE_ENABLE_ANONYMOUS_ACCESS=true", "FORCE_ENABLE_ANONYMOUS_ACCESS=false"} {
		p := newProcess(t)
		p.env = []string{env}
		p.start(t)
		if strings.HasSuffix(env, "true") {
			p.searchable(t)
		}
		nodetest.Wait(t, "the node is ready", func() error {
			resp, err := p.http.Get(p.url() + "/readyz")
			if err == nil && resp.StatusCode != 200 {
				err = errors.New(resp.Status)
			}
			return err
		})
		before := p.memory(t)
		p.flood(t, 3000, "127.0.0.2", fmt.Sprintf("POST /api/search HTTP/1.1\r\nHost: %s\r\nContent-Length: 1048576\r\n\r\n{", p.host))
		if strings.HasSuffix(env, "true") {
			p.light(t, "with 3,000 announced bodies")
		}
		if grown := p.memory(t) - before; grown > 300<<20 {
			t.Errorf("%s: 3,000 announced bodies take %d MB", env, grown>>20)
		}
		if err := p.alive(); err != nil {
			t.Error(err)
		}
	}
}

func TestStart_failsWithTooFewFileDescriptors(t *testing.T) {
	t.Parallel()
	p := newProcess(t)
	p.shell = "ulimit -n 64"
	p.start(t)
	if code := p.wait(); code != exitConfig || !strings.Contains(p.log(), "the limit of open files is 64, and a node needs 256 at least") {
		t.Errorf("exit code %d, log:\n%s", code, p.log())
	}
}

func TestConnectionLimit_followsTheFileDescriptorLimit(t *testing.T) {
	t.Parallel()
	for descriptors, want := range map[uint64]int{24: 0, 255: 0, 256: 128, 1024: 512, 1 << 20: 65536, math.MaxUint64: 65536} {
		if got, err := connectionsFor(descriptors); got != want || (err == nil) != (want > 0) {
			t.Errorf("%d descriptors: %d connections, %v, want %d", descriptors, got, err, want)
		}
	}
}

func TestMemoryLimit_isTheSmallestOfHostAndContainer(t *testing.T) {
	t.Parallel()
	if debug.SetMemoryLimit(-1) != math.MaxInt64 {
		t.Skip("the test itself runs with a memory limit")
	}
	const gib = 1 << 30
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	machine := file("MemTotal:       16777216 kB\nMemFree: 1 kB\n")
	for _, c := range []struct {
		what string
		root fstest.MapFS
		want int64
	}{
		{"nothing known", fstest.MapFS{}, gib},
		{"a machine", fstest.MapFS{"proc/meminfo": machine}, 4 * gib},
		{"a group", fstest.MapFS{"proc/meminfo": machine, "proc/self/cgroup": file("0::/a/b\n"), "sys/fs/cgroup/a/b/memory.max": file("2147483648\n")}, gib / 2},
		{"a group above", fstest.MapFS{"proc/meminfo": machine, "proc/self/cgroup": file("0::/a/b\n"), "sys/fs/cgroup/a/b/memory.max": file("max\n"), "sys/fs/cgroup/a/memory.max": file("4294967296\n")}, gib},
		{"a tiny group", fstest.MapFS{"proc/meminfo": machine, "proc/self/cgroup": file("0::/\n"), "sys/fs/cgroup/memory.max": file("1048576\n")}, 64 << 20},
	} {
		if got := memoryFor(c.root); got != c.want {
			t.Errorf("%s: %d, want %d", c.what, got, c.want)
		}
	}
}

// shoal runs the binary and returns its output and exit code.
func shoal(t *testing.T, env []string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := exec.Command(binary(t), args...)
	cmd.Env = append(os.Environ(), env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// Without git a node can fetch nothing, so it does not start, and says so.
func TestServe_refusesToStartWithoutGit(t *testing.T) {
	t.Parallel()
	p := newProcess(t)
	p.env = append(p.env, "PATH="+t.TempDir())
	p.start(t)
	if code := p.wait(); code != exitConfig || !strings.Contains(p.log(), "git is not on PATH") {
		t.Errorf("exit code %d\n%s", code, p.log())
	}
}

// It applies a file, sends SIGHUP, and restarts without the file.
func TestConfiguration_isAppliedReloadedAndStaysInForceWithoutItsFile(t *testing.T) {
	t.Parallel()
	p := newProcess(t)
	p.start(t)
	p.searchable(t)
	file := filepath.Join(p.dir, "other.json")
	write(t, file, fmt.Sprintf(`{"connections": {"local": {"type": "git", "url": "file://%s/repos/*"}}, "settings": {"maxFileSize": 5}}`, p.dir))
	out, errs, code := shoal(t, nil, "config", "apply", file, "--data-dir", p.data())
	if code != 0 || !strings.Contains(out, "is in force now: 1 connection") {
		t.Fatalf("apply: %d %s%s", code, out, errs)
	}
	nodetest.Wait(t, "the file is too large now", func() error {
		if _, err := p.search(); err == nil {
			return errors.New("found")
		}
		return nil
	})
	out, _, _ = shoal(t, nil, "status", "--data-dir", p.data())
	if !strings.Contains(out, "a configuration file that is not in force: "+filepath.Join(p.dir, "config.json")) {
		t.Errorf("status does not tell of the file:\n%s", out)
	}
	_ = p.cmd.Process.Signal(syscall.SIGHUP)
	nodetest.Wait(t, "the signal is noticed", func() error {
		if !strings.Contains(p.log(), "SIGHUP") {
			return errors.New("not yet")
		}
		return p.alive()
	})
	if code := p.stop(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if err := os.Remove(filepath.Join(p.dir, "config.json")); err != nil {
		t.Fatal(err)
	}
	p.start(t)
	if code := p.wait(); code != exitConfig || !strings.Contains(p.log(), "config.json: no such file") {
		t.Errorf("with a file that is missing: %d\n%s", code, p.log())
	}
}
