package hold

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/clustertest"
	"github.com/shoalsearch/shoal/shard"
	"github.com/shoalsearch/shoal/shard/git"
)

// team is nodes with real files and mirrors, which call each other without a network.
type team struct {
	*clustertest.World
	t     *testing.T
	nodes map[string]*mate
	full  map[string]bool // nodes whose disks are full
}

// mate is the parts of one node that hold data.
type mate struct {
	*clustertest.Node
	dir       string
	files     *Files
	transfers *Transfers
	copier    *Copier
	collector *Collector
}

func newTeam(t *testing.T, nodes int) *team {
	t.Helper()
	file := `{"settings": {"repoGarbageCollectionGracePeriodMs": 1000}, "connections": {"a": {"type": "git", "url": "file:///x"}}}`
	m := &team{World: clustertest.New(t, file, nodes), t: t, nodes: map[string]*mate{}, full: map[string]bool{}}
	log := slog.New(slog.DiscardHandler)
	idle := func(catalog.RepoID) bool { return false }
	for i := range nodes {
		id := fmt.Sprintf("n%d", i+1)
		n := &mate{Node: m.Node(id), dir: t.TempDir()}
		set, err := shard.OpenSet(filepath.Join(n.dir, "shards"), shard.SetOptions{Now: m.Now})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { set.Close() })
		mirrors, err := OpenMirrors(filepath.Join(n.dir, "mirrors"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { mirrors.Close() })

		n.files = NewFiles(set, mirrors, m.Now)
		n.transfers = NewTransfers(n, calls{m, id}, n.files, TransferOptions{Replicas: 2, Full: func() bool { return m.full[id] }, Log: log, Now: m.Now})
		n.copier = NewCopier(n, n.files, n.transfers, CopyOptions{Replicas: 2, Busy: idle, Log: log, Now: m.Now})
		n.collector = NewCollector(n, n.files, idle, log)
		m.nodes[id] = n
	}
	return m
}

// calls makes the calls of one node to others.
type calls struct {
	team *team
	from string
}

// Call implements Caller.
func (c calls) Call(ctx context.Context, node, method string, in []byte) ([]byte, error) {
	if !c.team.Alive(node) || method != MethodPrefetch {
		return nil, fmt.Errorf("no %s at %s", method, node)
	}
	return c.team.nodes[node].transfers.servePrefetch(ctx, cluster.Peer{Node: c.from}, in)
}

// Stream implements Caller.
func (c calls) Stream(ctx context.Context, node, method string, in []byte) (io.ReadCloser, error) {
	if !c.team.Alive(node) {
		return nil, fmt.Errorf("%s cannot be reached", node)
	}
	to := c.team.nodes[node].transfers
	serve := map[string]func(context.Context, cluster.Peer, []byte, io.Writer) error{MethodFile: to.serveFile, MethodMirror: to.serveMirror}[method]
	r, w := io.Pipe()
	go func() { w.CloseWithError(serve(ctx, cluster.Peer{Node: c.from}, in, w)) }()
	return r, nil
}

// oneFile is the source of a shard with one file.
type oneFile struct {
	repo catalog.RepoID
	text string
}

// Repositories implements shard.Source.
func (s oneFile) Repositories() []shard.Repository {
	return []shard.Repository{{ID: s.repo, Name: fmt.Sprint("r", s.repo), Revisions: []shard.Revision{{Name: "HEAD", Commit: fmt.Sprintf("%040x", s.repo)}}}}
}

// Blobs implements shard.Source.
func (s oneFile) Blobs() []shard.Blob {
	return []shard.Blob{{OID: fmt.Sprintf("%040x", len(s.text)), Size: int64(len(s.text)), Occurrences: []shard.Occurrence{{Path: "a.txt", Mask: 1}}}}
}

// Read implements shard.Source.
func (s oneFile) Read(_ context.Context, want []int, use func(i int, content []byte) error) error {
	for _, i := range want {
		if err := use(i, []byte(s.text)); err != nil {
			return err
		}
	}
	return nil
}

// index builds a shard and a mirror of a repository on a node, and returns the name of the shard's
// file.
func (m *team) index(id catalog.RepoID, node, text string) string {
	m.t.Helper()
	n := m.nodes[node]
	built, err := shard.Build(m.t.Context(), filepath.Join(n.dir, "shards"), oneFile{id, text}, shard.BuildOptions{})
	if err != nil || len(built) != 1 {
		m.t.Fatalf("built %v, %v", built, err)
	}
	name := built[0].Shard.Name(shard.KindShard)
	release, err := n.files.Adopt(name)
	if err != nil {
		m.t.Fatal(err)
	}
	defer release()

	commit := m.mirror(id, n, text)
	subject := catalog.RepoSubject(id)
	m.Do(&catalog.EnqueueJob{Kind: catalog.JobIndex, Subject: subject, Urgent: true})
	fence := m.Grant(catalog.JobIndex, subject, node)
	m.Do(&catalog.FinishIndex{Repo: id, Fence: fence, InputKey: text, Holder: node, Shards: []catalog.ShardRef{RefOf(built[0])},
		Revisions: []catalog.Revision{{Name: "HEAD", Commit: commit}}})
	return name
}

// mirror makes a commit, fetches it, and returns its id.
func (m *team) mirror(id catalog.RepoID, n *mate, text string) string {
	m.t.Helper()
	origin := filepath.Join(n.dir, fmt.Sprint("origin", id))
	if err := os.MkdirAll(origin, 0o700); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(origin, "a.txt"), []byte(text), 0o600); err != nil {
		m.t.Fatal(err)
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "."}, {"-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "x"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir = origin
		if out, err := cmd.CombinedOutput(); err != nil {
			m.t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	mirror := n.files.Mirrors.Get(id)
	if _, err := mirror.Fetch(m.t.Context(), git.Remote{URL: "file://" + origin}, git.FetchOptions{}); err != nil {
		m.t.Fatal(err)
	}
	commit, err := mirror.Resolve(m.t.Context(), "HEAD")
	if err != nil {
		m.t.Fatal(err)
	}
	return commit
}

// look lets the copier of a node look once, and waits for the copies that it starts.
func (m *team) look(node string) {
	var wg sync.WaitGroup
	m.nodes[node].copier.copyMissing(m.t.Context(), &wg)
	wg.Wait()
}

// settle lets all live nodes look until each has confirmed its copies.
func (m *team) settle() {
	for range 4 {
		for _, id := range []string{"n1", "n2", "n3"} {
			if m.nodes[id] != nil && m.Alive(id) {
				m.look(id)
			}
		}
	}
}

// collect runs the collector of a node, and again after the grace period.
func (m *team) collect(node string) {
	c := m.nodes[node].collector
	c.Collect(m.t.Context())
	m.Pass(2 * time.Second)
	c.Collect(m.t.Context())
}

// holds checks which nodes have confirmed the pieces of a repository.
func (m *team) holds(id catalog.RepoID, want ...string) {
	m.t.Helper()
	for key := range KeysOf(m.View().Repo(id)) {
		if got := m.View().Holders(key); !slices.Equal(got, want) {
			m.t.Errorf("%s of repository %d is held by %q, want %q", key, id, got, want)
		}
	}
}
