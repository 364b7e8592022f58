package node_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/nodetest"
	"github.com/shoalsearch/shoal/node/search"
)

var rewrite = flag.Bool("rewrite", false, "write what the stories print into them; then read the diff")

// TestStories_playAsWritten plays testdata/*.txt; testdata/README.md describes them.
func TestStories_playAsWritten(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories: %v", err)
	}
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			t.Parallel()
			play(t, path)
		})
	}
}

// story is a story that is played.
type story struct {
	t     *testing.T
	dir   string // the code host's directory of repositories
	fleet *nodetest.Fleet
	repos map[string]*nodetest.Repo
	saved map[string]string // saved directories and files
	keys  map[string]string // cluster keys by letter
	host  *gitHost
	watch *watch
	alias map[string]int           // other names of nodes
	logs  map[string]*lockedBuffer // by data directory
}

// play runs the commands of a story and compares their output.
func play(t *testing.T, path string) {
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s := &story{t: t, dir: t.TempDir(), repos: map[string]*nodetest.Repo{}, saved: map[string]string{}, keys: map[string]string{}, alias: map[string]int{}, logs: map[string]*lockedBuffer{}}
	s.fleet = nodetest.NewFleet(t, 1, nodetest.Config{File: s.config(""), Edit: func(o *node.Options) {
		o.SliceBytes = 8 << 10
		o.Hold = 0 // stories check when a write is refused
		if s.logs[o.Dir] == nil {
			s.logs[o.Dir] = &lockedBuffer{}
		}
		o.Log = slog.New(slog.NewTextHandler(s.logs[o.Dir], nil))
	}})
	t.Cleanup(s.tell)
	s.keys["A"] = s.fleet.Key
	var out strings.Builder
	lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		fmt.Fprintln(&out, lines[i])
		command := strings.TrimSpace(lines[i])
		if command == "" || strings.HasPrefix(command, "#") {
			continue
		}
		want := ""
		for i+1 < len(lines) && strings.HasPrefix(lines[i+1], "    ") {
			i++
			want += strings.TrimSpace(lines[i]) + "\n"
		}
		began := time.Now()
		got := s.do(command, want)
		t.Logf("%6.2fs  %s", time.Since(began).Seconds(), command)
		for line := range strings.Lines(got) {
			fmt.Fprintf(&out, "    %s", line)
		}
		if got != want && !*rewrite {
			t.Fatalf("%s:%d: %s\nprints:\n%s\nwant:\n%s", path, i+1, command, got, want)
		}
	}
	if *rewrite {
		if err := os.WriteFile(path, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// tell prints the ends of the logs of a failed story.
func (s *story) tell() {
	if !s.t.Failed() {
		return
	}
	for i, n := range s.fleet.Nodes {
		if log := s.logs[n.Dir]; log != nil {
			text := log.String()
			s.t.Logf("end of the log of n%d:\n%s", i+1, s.plain(text[max(0, len(text)-1200):]))
		}
	}
}

// lockedBuffer is a log that can be read while it is written.
type lockedBuffer struct {
	mu sync.Mutex // guards the field below
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// rewriteAfter is how long "eventually" waits for the expected output before -rewrite writes
// another one.
const rewriteAfter = 20 * time.Second

// do runs one command and returns its output. After "eventually" it repeats the command until the
// output is as wanted.
func (s *story) do(command, want string) string {
	rest, eventually := strings.CutPrefix(command, "eventually ")
	args := words(rest)
	run := commands[args[0]]
	if run == nil {
		s.t.Fatalf("no such command: %s", args[0])
	}
	atMost := nodetest.Patience
	if *rewrite {
		atMost = rewriteAfter
	}
	var got string
	nodetest.Eventually(atMost, func() bool {
		got = s.plain(run(s, args[1:]))
		return !eventually || got == want
	})
	return got
}

// words splits a line at spaces. Quotes keep spaces and may have \n.
func words(line string) []string {
	var out []string
	for _, w := range regexp.MustCompile(`(?:[^\s"]|"[^"]*")+`).FindAllString(line, -1) {
		w = strings.ReplaceAll(strings.ReplaceAll(w, `"`, ""), `\n`, "\n")
		out = append(out, w)
	}
	return out
}

// plain replaces random names by names of the story, and ends each line.
func (s *story) plain(text string) string {
	if text == "" {
		return ""
	}
	for i, n := range s.fleet.Nodes {
		if n.Node != nil {
			text = strings.ReplaceAll(text, n.ID(), fmt.Sprintf("n%d", i+1))
			if id := n.View().ClusterID(); id != "" {
				text = strings.ReplaceAll(text, id, "CLUSTER")
			}
		}
		text = strings.ReplaceAll(text, n.Dir, fmt.Sprintf("DATA/n%d", i+1))
	}
	text = regexp.MustCompile(`127\.[1-9]\d*\.\d+\.(\d+):\d+`).ReplaceAllString(text, "n$1")
	text = regexp.MustCompile(`\b[0-9a-f]{32}\b|\bcluster [0-9a-f]{12}\b`).ReplaceAllString(text, "CLUSTER")
	if s.host != nil {
		text = strings.ReplaceAll(text, s.host.name(), "host")
	}
	text = strings.ReplaceAll(text, "local/", "")
	return strings.TrimRight(text, "\n") + "\n"
}

// node returns the node of a name like n2, and adds it if it is new.
func (s *story) node(name string) *nodetest.Node {
	if i, ok := s.alias[name]; ok {
		return s.fleet.Nodes[i]
	}
	var i int
	if _, err := fmt.Sscanf(name, "n%d", &i); err != nil || i < 1 || i > 20 {
		s.t.Fatalf("%q is no node", name)
	}
	for len(s.fleet.Nodes) < i {
		s.fleet.Add()
	}
	return s.fleet.Nodes[i-1]
}

func (s *story) index(name string) int { return slices.Index(s.fleet.Nodes, s.node(name)) }

// on returns the arguments before the last "on", and the nodes after it.
func (s *story) on(args []string) (before []string, names []string) {
	for i := len(args) - 1; i >= 0; i-- {
		if args[i] == "on" {
			return args[:i], args[i+1:]
		}
	}
	s.t.Fatalf("%q does not say on which nodes", args)
	return nil, nil
}

// each prints the output of each node: once if they agree.
func (s *story) each(names []string, show func(n *nodetest.Node) string) string {
	var all []string
	for _, name := range names {
		all = append(all, strings.TrimRight(show(s.node(name)), "\n"))
	}
	if len(slices.Compact(slices.Clone(all))) == 1 {
		return all[0]
	}
	out := ""
	for i, name := range names {
		out += name + ": " + strings.ReplaceAll(all[i], "\n", "\n"+name+": ") + "\n"
	}
	return out
}

// answer prints the answer to a search.
func answer(n *nodetest.Node, query string) string {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	r, err := n.Node.Search.Search(ctx, catalog.Operator(), search.Request{Query: query})
	if err != nil {
		return "error: " + err.Error()
	}
	var out []string
	for _, f := range r.Files {
		out = append(out, f.Repository+":"+f.Path)
	}
	slices.Sort(out)
	switch {
	case r.Coverage.Exhaustive():
		out = append(out, "complete")
	case len(r.Cluster.ReposMissing) > 0 && len(r.Cluster.ShardsMissing) == 0:
		slices.Sort(r.Cluster.ReposMissing)
		out = append(out, "incomplete, not indexed yet: "+strings.Join(r.Cluster.ReposMissing, " "))
	case r.Stats.ShardsAnswered == r.Stats.ShardsRequired:
		out = append(out, "incomplete, a limit was reached")
	default:
		missing := map[string]bool{}
		for repo := range n.View().Repos() {
			for _, sh := range repo.Shards {
				missing[repo.Name] = missing[repo.Name] || slices.Contains(r.Cluster.ShardsMissing, sh.ID+".shard")
			}
		}
		maps.DeleteFunc(missing, func(_ string, is bool) bool { return !is })
		out = append(out, fmt.Sprintf("incomplete, %d of %d shards missing, of %s", r.Stats.ShardsRequired-r.Stats.ShardsAnswered, r.Stats.ShardsRequired,
			strings.Join(slices.Sorted(maps.Keys(missing)), " ")))
	}
	return strings.Join(out, "\n")
}

// config returns the configuration of a story with all repositories of the code host.
func (s *story) config(more string) string {
	connections := fmt.Sprintf(`"local": {"type": "git", "url": "file://%s/*"}`, s.dir)
	if s.host != nil {
		for _, repo := range s.host.list() {
			connections += fmt.Sprintf(`, %q: {"type": "git", "url": "http://%s/%s"}`, repo, s.host.name(), repo)
		}
	}
	return fmt.Sprintf(`{"settings": {"reindexIntervalMs": 3600000, "reindexRepoPollingIntervalMs": 50, "resyncConnectionPollingIntervalMs": 50,
		"resyncConnectionIntervalMs": 400, "repoGarbageCollectionGracePeriodMs": 100%s}, "connections": {%s}}`, more, connections)
}

// watch repeats a search while other things happen.
type watch struct {
	stop context.CancelFunc
	done chan struct{}
	full chan struct{} // closed after enough answers
	odd  []string
}

// watchEvery is the least pause between two rounds.
const watchEvery = 2 * time.Millisecond

// newWatch asks each node in turn until it is stopped, and records each answer that differs from
// the first.
func newWatch(nodes []*nodetest.Node, query string) *watch {
	ctx, stop := context.WithCancel(context.Background())
	w := &watch{stop: stop, done: make(chan struct{}), full: make(chan struct{})}
	want := answer(nodes[0], query)
	go func() {
		defer close(w.done)
		tick := time.NewTicker(watchEvery)
		defer tick.Stop()
		for round := 0; ctx.Err() == nil; round++ {
			if round == 5 {
				close(w.full)
			}
			for _, n := range nodes {
				if got := answer(n, query); got != want && !slices.Contains(w.odd, got) {
					w.odd = append(w.odd, got)
				}
			}
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
		}
	}()
	return w
}

// end stops the watch and prints whether all answers were the same.
func (w *watch) end() string {
	<-w.full
	w.stop()
	<-w.done
	if len(w.odd) > 0 {
		return "other answers were:\n" + strings.Join(w.odd, "\n---\n")
	}
	return "all answers were the same"
}

// saveDir copies a directory.
func (s *story) saveDir(from, to string) {
	s.t.Helper()
	if err := os.RemoveAll(to); err != nil {
		s.t.Fatal(err)
	}
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		s.t.Fatal(err)
	}
}

// snapshot returns a snapshot of the catalog.
func snapshot(n *nodetest.Node) ([]byte, error) {
	var b bytes.Buffer
	err := n.Operate.Snapshot(context.Background(), account.Operator(), &b)
	return b.Bytes(), err
}
