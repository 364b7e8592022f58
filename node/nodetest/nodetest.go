// Package nodetest runs real nodes inside a test process: each with a data
// directory of its own, on ports that the system picks, with the clock and
// the network of the machine.
//
//	n := nodetest.Start(t, nodetest.Config{File: `{"connections": ...}`})
//	n.Repo("app", map[string]string{"main.go": "package main"})
//	n.WaitIndexed(1)
//	n.Search("main")
//
// With -v the log of each node is in that of its test.
//
// A test waits for a named condition, never for a time. Nothing of a node is
// reached but through its public methods.
package nodetest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/search"
)

// Patience limits the time of a condition before the test fails.
const Patience = 150 * time.Second

// hold is how long a write waits for a leader, because on a busy machine elections fail now and
// then.
const hold = 30 * time.Second

// timeFactor returns the factor for the times of clusters: a fifth of the product's, more under load.
// A node that waits for a processor as long as an election takes would never have a leader.
func timeFactor() float64 {
	const least, most, usual = 0.2, 1, 4 // usual: tolerated load of each processor

	var load float64
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		_, _ = fmt.Sscan(string(text), &load) // stays 0 outside of Linux
	}
	return min(least*max(1, load/float64(usual*runtime.NumCPU())), most)
}

// Config configures a node of a test. The zero value is useful.
type Config struct {
	File string            // configuration file; "" for {}
	Env  map[string]string // environment of the node
	Edit func(*node.Options)
}

// Node is a node of a test.
type Node struct {
	*node.Node
	Dir     string // data directory
	File    string // path of the configuration file
	KeyFile string // path of the key file, in a fleet
	Metrics *prometheus.Registry

	addr, gossip string // in a fleet, kept over restarts
	opened       func() // called when the ports are open; may be nil

	t      testing.TB
	cfg    Config
	cancel context.CancelFunc
	done   chan error
}

// Start starts a node, which stops when the test ends.
func Start(t testing.TB, cfg Config) *Node {
	t.Helper()
	dir := t.TempDir()
	n := &Node{t: t, cfg: cfg, Dir: filepath.Join(dir, "data"), File: filepath.Join(dir, "config.json")}
	if cfg.File == "" {
		cfg.File = "{}"
	}
	n.Configure(cfg.File)
	n.Start()
	t.Cleanup(n.Stop)
	return n
}

// Open starts a node with an existing data directory and configuration.
func Open(t testing.TB, dir, file string) *Node {
	t.Helper()
	n := &Node{t: t, Dir: dir, File: file}
	n.Start()
	t.Cleanup(n.Stop)
	return n
}

// Start starts a stopped node again with the same data.
func (n *Node) Start() {
	n.t.Helper()
	n.Launch()
	n.WaitReady()
}

// Launch starts a stopped node without waiting for it.
func (n *Node) Launch() {
	n.t.Helper()
	if err := n.TryLaunch(); err != nil {
		n.t.Fatalf("start a node: %v", err)
	}
}

// TryLaunch starts a stopped node. It returns an error if the node refuses to start.
func (n *Node) TryLaunch() error {
	log := slog.New(slog.DiscardHandler)
	if testing.Verbose() {
		log = slog.New(slog.NewTextHandler(&testWriter{t: n.t}, nil))
	}
	n.Metrics = prometheus.NewRegistry()

	// The disk always has space.
	opt := node.Options{
		Dir: n.Dir, ConfigPath: n.File, ClusterListen: "127.0.0.1:0", GossipListen: "127.0.0.1:0",
		BaseURL: "http://shoal.test", Ctags: "off", Version: "test", Log: log, Registerer: n.Metrics,
		Backoff: 50 * time.Millisecond, Timing: timeFactor(), Hold: hold,
		LookupEnv: func(name string) (string, bool) { v, ok := n.cfg.Env[name]; return v, ok },
		Space:     func(string) (free, total int64) { return 1 << 40, 2 << 40 },
	}
	if n.cfg.Edit != nil {
		n.cfg.Edit(&opt)
	}
	// A process forked just before a node stopped may hold its lock and ports for a moment, so
	// retry.
	var started *node.Node
	var err error
	Eventually(Patience/9, func() bool {
		started, err = node.New(opt)
		return !isInUse(err)
	})
	if err != nil {
		return err
	}
	n.Node = started
	if n.opened != nil {
		n.opened()
	}

	// Keep local copies: a later start replaces the fields while this run may still be ending.
	ctx, cancel := context.WithCancel(context.Background())
	n.cancel, n.done = cancel, make(chan error, 1)
	run := n.Node.Run
	done := n.done
	go func() { done <- run(ctx) }()
	return nil
}

// isInUse reports whether a start failed because something was still in use.
func isInUse(err error) bool {
	return errors.Is(err, cluster.ErrInUse) || errors.Is(err, syscall.EADDRINUSE)
}

// WaitReady waits until the node can answer.
func (n *Node) WaitReady() {
	n.t.Helper()
	n.Wait("ready", func() error {
		if r := n.Ready(); !r.Ready {
			return fmt.Errorf("not ready: %s", strings.Join(r.Reasons, "; "))
		}
		return nil
	})
}

// Stop stops the node cleanly. Stopping twice is fine.
func (n *Node) Stop() {
	if err := n.End(); err != nil {
		n.t.Errorf("the node ended with: %v", err)
	}
}

// End stops the node, and returns the error with which it ended.
func (n *Node) End() error {
	if n.cancel == nil {
		return nil
	}
	n.cancel()
	n.cancel = nil
	select {
	case err := <-n.done:
		return err
	case <-time.After(Patience):
		return errors.New("it does not stop")
	}
}

// RemoveAll deletes part of a stopped node's data directory.
func (n *Node) RemoveAll(name string) {
	n.t.Helper()
	if err := os.RemoveAll(filepath.Join(n.Dir, name)); err != nil {
		n.t.Fatal(err)
	}
}

// Configure replaces the configuration file, as editors do.
func (n *Node) Configure(text string) {
	n.t.Helper()
	n.replace(n.File, text)
}

func (n *Node) replace(path, text string) {
	n.t.Helper()
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		n.t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		n.t.Fatal(err)
	}
}

// Wait waits until cond returns nil.
func (n *Node) Wait(what string, cond func() error) {
	n.t.Helper()
	Wait(n.t, what, cond)
}

// Wait waits until cond returns nil, and fails the test after Patience.
func Wait(t testing.TB, what string, cond func() error) {
	t.Helper()
	var err error
	if !Eventually(Patience, func() bool { err = cond(); return err == nil }) {
		t.Fatalf("waited %v for %s: %v", Patience, what, err)
	}
}

// tryEvery is how often a condition is checked.
const tryEvery = 5 * time.Millisecond

// Eventually checks a condition until it holds, and reports whether it did within atMost.
func Eventually(atMost time.Duration, holds func() bool) bool {
	deadline := time.NewTimer(atMost)
	defer deadline.Stop()
	tick := time.NewTicker(tryEvery)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline.C:
			return holds() // the machine may have paused until now
		}
	}
	return true
}

// Moment sleeps until the moment at which a test breaks something. Do not use it to wait for an
// event.
func Moment(after time.Duration) { <-time.After(after) }

// Status returns the status as an owner sees it.
func (n *Node) Status() *node.StatusResponse {
	n.t.Helper()
	s, err := n.Node.Status(context.Background(), catalog.Operator())
	if err != nil {
		n.t.Fatalf("status: %v", err)
	}
	return s
}

// LiveVoters returns the number of live members that vote.
func (n *Node) LiveVoters() (voters int) {
	n.t.Helper()
	for _, m := range n.Status().Members {
		if m.Health == "alive" && m.Role != "nonvoter" {
			voters++
		}
	}
	return voters
}

// WaitIndexed waits until exactly repos repositories are listed and indexed, and no job runs or
// waits.
func (n *Node) WaitIndexed(repos int) {
	n.t.Helper()
	n.Wait(fmt.Sprintf("%d repositories to be indexed", repos), func() error {
		s := n.Status()
		if s.Repos.Total != repos || s.Repos.Indexed != repos || s.Jobs.Pending+s.Jobs.Running > 0 {
			return fmt.Errorf("repositories %+v, jobs %+v, failed %+v", s.Repos, s.Jobs, s.Failed)
		}
		return nil
	})
}

// WaitHistory waits until the commits of all mirrors of the node are indexed.
func (n *Node) WaitHistory() {
	n.t.Helper()
	n.Wait("commits to be indexed", func() error {
		if h := n.Status().Storage.History; h.Covered != h.Repositories {
			return fmt.Errorf("%+v", h)
		}
		return nil
	})
}

// Find searches as an owner, and returns "repository:path" of each file in order.
func (n *Node) Find(query string) []string {
	n.t.Helper()
	r := n.Results(query)
	var out []string
	for _, f := range r.Files {
		out = append(out, f.Repository+":"+f.Path)
	}
	return out
}

// Results searches as an owner, with regular expressions off and case ignored.
func (n *Node) Results(query string) *search.Response {
	n.t.Helper()
	r, err := n.Node.Search.Search(context.Background(), catalog.Operator(), search.Request{Query: query})
	if err != nil {
		n.t.Fatalf("search %q: %v", query, err)
	}
	return r
}

// testWriter writes a log into the log of a running test.
type testWriter struct {
	t  testing.TB
	mu sync.Mutex
}

// Write logs one record.
func (w *testWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.t.Log(strings.TrimRight(string(b), "\n"))
	return len(b), nil
}
