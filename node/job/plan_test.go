package job

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/config"
)

// epoch is the first start of a node.
const epoch = 1<<32 | 7

// world is a catalog that a test changes step by step.
type world struct {
	t     *testing.T
	state *catalog.State
	index uint64
	now   time.Time
	nodes []Node
}

func newWorld(t *testing.T, file string, nodes int) *world {
	w := &world{t: t, state: catalog.New(), now: time.Unix(1_700_000_000, 0)}
	f, err := config.Parse([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	w.do(&catalog.InitCluster{ID: "c"}, catalog.NewSetConfig([]byte(file), f))
	for i := range nodes {
		id := fmt.Sprintf("n%d", i+1)
		w.do(&catalog.PutMember{Member: catalog.Member{ID: id, Epoch: epoch, Weight: 100, Zone: "z", Addr: "a"}})
		w.nodes = append(w.nodes, Node{ID: id, Epoch: epoch, Zone: "z", Weight: 1, Alive: true})
	}
	return w
}

func (w *world) do(cmds ...catalog.Command) {
	w.t.Helper()
	w.index++
	for i, r := range w.state.Apply(catalog.Entry{Index: w.index, At: w.now, Node: "n1", Commands: cmds}) {
		if r.Err != nil {
			w.t.Fatalf("%T: %v", cmds[i], r.Err)
		}
	}
}

// plan plans, applies the plan, and tells it in words.
func (w *world) plan() string {
	cmds := Plan(Input{View: w.state.View(), Now: w.now, Nodes: w.nodes, LookSync: true, LookRepos: true, LookPacks: true})
	var words []string
	for _, c := range cmds {
		switch c := c.(type) {
		case *catalog.EnqueueJob:
			words = append(words, fmt.Sprintf("enqueue %s %s", KindName(c.Kind), c.Subject))
		case *catalog.GrantJob:
			words = append(words, fmt.Sprintf("grant %s %s", KindName(c.Kind), c.Subject))
		case *catalog.RevokeJob:
			words = append(words, fmt.Sprintf("revoke %s %s: %s", KindName(c.Kind), c.Subject, c.Reason))
		}
	}
	if len(cmds) > 0 {
		w.do(cmds...)
	}
	return strings.Join(words, "\n")
}

func (w *world) expect(what, want string) {
	w.t.Helper()
	if got := w.plan(); got != want {
		w.t.Errorf("%s: the plan is\n%s\nwant\n%s", what, got, want)
	}
}

func TestPlanFollowsARepositoryThroughItsLife(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `{"connections": {"a": {"type": "git", "url": "file:///x"}}}`, 1)
	w.expect("a new connection", "grant sync a")
	w.expect("nothing new", "")
	fence := w.state.View().Job(catalog.JobSync, "a").Fence
	w.do(&catalog.SyncPage{Connection: "a", Fence: fence, Repos: []catalog.ListedRepo{{Name: "r"}}})
	w.do(&catalog.FinishSync{Connection: "a", Fence: fence, Hash: w.state.View().Connection("a").Hash, Complete: true, Listed: 1})
	w.expect("a listed repository", "grant index 1")

	w.nodes[0].Alive, w.nodes[0].Silent = false, lostAfter-time.Second
	w.expect("a silent node keeps its jobs for a while", "")
	w.nodes[0].Silent = lostAfter
	w.expect("a node that is lost", "revoke index 1: its node cannot be reached")
	w.expect("nobody can take the job", "")
	w.nodes[0].Alive, w.nodes[0].Silent = true, 0
	w.expect("the node is back", "grant index 1")
	w.now = w.now.Add(config.DefaultSettings().RepoIndexTimeout + lateSlack + time.Second)
	w.expect("a job that never ends", "revoke index 1: it is past its deadline")
	w.nodes[0].Closed = true
	w.expect("a node that drains takes no job", "")
	w.nodes[0].Closed = false
	w.expect("it is open again", "grant index 1")
	w.do(&catalog.FinishIndex{Repo: 1, Fence: w.state.View().Job(catalog.JobIndex, "1").Fence, InputKey: "k", Holder: "n1"})
	w.expect("indexed", "")
	w.now = w.now.Add(24 * time.Hour)
	w.expect("a connection is synced again after a day", "enqueue sync a")
	w.expect("and granted", "grant sync a")
	fence = w.state.View().Job(catalog.JobSync, "a").Fence
	w.do(&catalog.FinishSync{Connection: "a", Fence: fence, Hash: w.state.View().Connection("a").Hash, Complete: true})
	w.expect("an orphan waits for the grace period", "")
	w.now = w.now.Add(11 * time.Second)
	w.expect("after the grace period", "enqueue collect 1")
	w.expect("collect", "grant collect 1")
	w.do(&catalog.FinishCollect{Repo: 1, Fence: w.state.View().Job(catalog.JobCollect, "1").Fence})
	w.expect("gone", "")
}

func TestPlanKeepsToTheLimits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `{"settings": {"maxRepoIndexingJobConcurrency": 2}, "connections": {"a": {"type": "git", "url": "file:///x"}}}`, 3)
	w.plan()
	fence := w.state.View().Job(catalog.JobSync, "a").Fence
	page := &catalog.SyncPage{Connection: "a", Fence: fence}
	for i := range 20 {
		page.Repos = append(page.Repos, catalog.ListedRepo{Name: fmt.Sprintf("r%02d", i)})
	}
	w.do(page)
	w.plan()
	busy := map[string]int{}
	for j := range w.state.View().JobsOf(catalog.JobRunning) {
		if j.Kind == catalog.JobIndex {
			busy[j.Node]++
		}
	}
	for _, n := range w.nodes {
		if busy[n.ID] != 2 {
			t.Errorf("%s runs %d index jobs, want 2", n.ID, busy[n.ID])
		}
	}
}

// A build copies what is missing where it runs. So it runs where the files are,
// whether they are to stay there or not.
func TestARepositoryIsIndexedWhereItsFilesAre(t *testing.T) {
	t.Parallel()
	w := packed(t, 1, 4)
	shard, mirror := catalog.ShardKey(fmt.Sprintf("%064x", 1)), catalog.MirrorKey(1)
	for _, step := range []struct {
		what   string
		change func()
		on     string // nodes that the job may be given
	}{
		{"the only holder is the only node that the planner may choose", func() {}, "n1"},
		{"two copies", func() {
			w.do(&catalog.Place{Groups: []catalog.Group{{Number: groupOf(1), Nodes: []uint32{1, 2}}}})
			w.confirm("n2", mirror, shard)
		}, "n1 n2"},
		{"it moves from n1 to n3", func() {
			w.do(&catalog.Place{Groups: []catalog.Group{{Number: groupOf(1), Nodes: []uint32{2, 3}}}})
		}, "n2"},
		{"the mirror is there first", func() { w.confirm("n3", mirror) }, "n2"},
		{"n2 drains", func() { w.nodes[1].Closed = true }, "n1"},
		{"n1 has a full disk", func() { w.nodes[0].Disk = diskStop }, "n3"},
		{"n3 is silent too", func() { w.nodes[2].Alive = false }, "n4"},
		{"all are well", func() { w.nodes[0].Disk, w.nodes[1].Closed, w.nodes[2].Alive = 0, false, true }, "n2"},
		{"n3 has it", func() { w.confirm("n3", shard) }, "n2 n3"},
		{"n2 is lost", func() { w.nodes[1].Alive = false }, "n3"},
	} {
		step.change()
		w.do(&catalog.EnqueueJob{Kind: catalog.JobIndex, Subject: "1"})
		// The score chooses among equals: each of them in turn is busy.
		var on []string
		p := &planner{in: Input{View: w.state.View(), Nodes: w.nodes}, settings: config.DefaultSettings(), running: map[string]map[catalog.JobKind]int{}, total: map[catalog.JobKind]int{}}
		for n := p.choose(w.state.View().Job(catalog.JobIndex, "1")); n != nil && !slices.Contains(on, n.ID); n = p.choose(w.state.View().Job(catalog.JobIndex, "1")) {
			on = append(on, n.ID)
			p.count(n.ID, catalog.JobIndex)
		}
		slices.Sort(on)
		if got := strings.Join(on, " "); got != step.on {
			t.Errorf("%s: indexed on %s, want %s", step.what, got, step.on)
		}
	}
}

// confirm notes that a node has what the keys name.
func (w *world) confirm(node string, keys ...string) {
	w.do(&catalog.Confirm{Node: node, Epoch: epoch, Held: keys})
}
