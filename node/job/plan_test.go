package job

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/clustertest"
	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/hold"
	"github.com/shoalsearch/shoal/node/place"
)

const oneConnection = `{"connections": {"a": {"type": "git", "url": "file:///x"}}}`

// table returns the rows of all kinds, without their dependencies.
func table() kinds {
	return kinds{(&syncer{}).kind(), (&indexer{}).kind(), (&collector{}).kind(), (&packer{}).kind(), (&readerSyncer{}).kind(), (&accountSyncer{}).kind()}
}

// world is a cluster whose jobs a test plans step by step.
type world struct {
	*clustertest.World
	t     *testing.T
	kinds kinds
	nodes []hold.Node
}

func newWorld(t *testing.T, file string, nodes int) *world {
	w := &world{World: clustertest.New(t, file, nodes), t: t, kinds: table()}
	for i := range nodes {
		w.nodes = append(w.nodes, hold.Node{ID: fmt.Sprintf("n%d", i+1), Epoch: clustertest.Epoch, Zone: "z", Weight: 1, Alive: true})
	}
	return w
}

// plan plans, applies the plan, and describes it in words.
func (w *world) plan() string {
	cmds := plan(w.kinds, Input{View: w.View(), Now: w.Now(), Nodes: w.nodes, Look: LookConnections | LookRepos | LookPacks})
	var words []string
	for _, c := range cmds {
		switch c := c.(type) {
		case *catalog.EnqueueJob:
			words = append(words, fmt.Sprintf("enqueue %s %s", c.Kind, c.Subject))
		case *catalog.GrantJob:
			words = append(words, fmt.Sprintf("grant %s %s", c.Kind, c.Subject))
		case *catalog.RevokeJob:
			words = append(words, fmt.Sprintf("revoke %s %s: %s", c.Kind, c.Subject, c.Reason))
		case *catalog.AgeAccess:
			words = append(words, fmt.Sprintf("age permissions of %v", cmp.Or(strings.Trim(fmt.Sprint(c.Repos), "[]"), strings.Join(c.Readers, " "))))
		}
	}
	if len(cmds) > 0 {
		w.Do(cmds...)
	}
	return strings.Join(words, "\n")
}

func (w *world) expect(what, want string) {
	w.t.Helper()
	if got := w.plan(); got != want {
		w.t.Errorf("%s: the plan is\n%s\nwant\n%s", what, got, want)
	}
}

func TestJobPlan_indexesAndFinallyDeletesARepository(t *testing.T) {
	t.Parallel()
	w := newWorld(t, oneConnection, 1)
	w.expect("a new connection", "grant sync a")
	w.expect("nothing new", "")
	fence := w.View().Job(catalog.JobSync, "a").Fence
	w.Do(&catalog.SyncPage{Connection: "a", Fence: fence, Repos: []catalog.ListedRepo{{Name: "r"}}})
	w.Do(&catalog.FinishSync{Connection: "a", Fence: fence, Hash: w.View().Connection("a").Hash, Complete: true, Listed: 1})
	w.expect("a listed repository", "grant index 1")

	w.nodes[0].Alive, w.nodes[0].Silent = false, hold.LostAfter-time.Second
	w.expect("a silent node keeps its jobs for a while", "")
	w.nodes[0].Silent = hold.LostAfter
	w.expect("a node that is lost", "revoke index 1: its node cannot be reached")
	w.expect("nobody can take the job", "")
	w.nodes[0].Alive, w.nodes[0].Silent = true, 0
	w.expect("the node is back", "grant index 1")
	w.Pass(config.DefaultSettings().RepoIndexTimeout + lateSlack + time.Second)
	w.expect("a job that never ends", "revoke index 1: it is past its deadline")
	w.nodes[0].Closed = true
	w.expect("a node that drains takes no job", "")
	w.nodes[0].Closed = false
	w.expect("it is open again", "grant index 1")
	w.Do(&catalog.FinishIndex{Repo: 1, Fence: w.View().Job(catalog.JobIndex, "1").Fence, InputKey: "k", Holder: "n1"})
	w.expect("indexed", "")
	w.Pass(24 * time.Hour)
	w.expect("a connection is synced again after a day", "enqueue sync a")
	w.expect("and granted", "grant sync a")
	fence = w.View().Job(catalog.JobSync, "a").Fence
	w.Do(&catalog.FinishSync{Connection: "a", Fence: fence, Hash: w.View().Connection("a").Hash, Complete: true})
	w.expect("an orphan waits for the grace period", "")
	w.Pass(11 * time.Second)
	w.expect("after the grace period", "enqueue collect 1")
	w.expect("collect", "grant collect 1")
	w.Do(&catalog.FinishCollect{Repo: 1, Fence: w.View().Job(catalog.JobCollect, "1").Fence})
	w.expect("gone", "")
}

// A repository that its host does not allow to fetch is not tried again. It is indexed when a
// listing says that it can be fetched.
func TestJobPlan_skipsUnfetchableRepositories(t *testing.T) {
	t.Parallel()
	w := newWorld(t, oneConnection, 1)
	list := func(unfetchable string) {
		w.Pass(24 * time.Hour)
		w.plan()
		w.plan()
		fence := w.View().Job(catalog.JobSync, "a").Fence
		w.Do(&catalog.SyncPage{Connection: "a", Fence: fence, Repos: []catalog.ListedRepo{{Name: "r", RepoFacts: catalog.RepoFacts{Unfetchable: unfetchable}}}})
		w.Do(&catalog.FinishSync{Connection: "a", Fence: fence, Hash: w.View().Connection("a").Hash, Complete: true, Listed: 1})
	}
	list("disabled")
	w.expect("the run of a new repository finds out", "grant index 1")
	w.Do(&catalog.FinishJob{Kind: catalog.JobIndex, Subject: "1", Fence: w.View().Job(catalog.JobIndex, "1").Fence, Error: "disabled", Permanent: true})
	w.Pass(2 * time.Hour)
	w.expect("it stays as it is", "")
	list("")
	w.expect("it can be fetched", "enqueue index 1")
	w.expect("and is", "grant index 1")
}

func TestJobPlan_limitsConcurrentJobsOfANode(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `{"settings": {"maxRepoIndexingJobConcurrency": 2}, "connections": {"a": {"type": "git", "url": "file:///x"}}}`, 3)
	w.plan()
	fence := w.View().Job(catalog.JobSync, "a").Fence
	page := &catalog.SyncPage{Connection: "a", Fence: fence}
	for i := range 20 {
		page.Repos = append(page.Repos, catalog.ListedRepo{Name: fmt.Sprintf("r%02d", i)})
	}
	w.Do(page)
	w.plan()
	busy := map[string]int{}
	for j := range w.View().JobsOf(catalog.JobRunning) {
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

// A build copies missing files to its node. So it runs where the files are, even if they will move.
func TestIndexJob_prefersNodesWithTheFiles(t *testing.T) {
	t.Parallel()
	w := packed(t, 1, 4)
	shard, mirror := catalog.ShardKey(fmt.Sprintf("%064x", 1)), catalog.MirrorKey(1)
	for _, step := range []struct {
		what   string
		change func()
		on     string // nodes that may get the job
	}{
		{"the only holder is the only node that the planner may choose", func() {}, "n1"},
		{"two copies", func() {
			w.Target(place.GroupOf(1), "n1", "n2")
			w.Confirm("n2", mirror, shard)
		}, "n1 n2"},
		{"it moves from n1 to n3", func() {
			w.Target(place.GroupOf(1), "n2", "n3")
		}, "n2"},
		{"the mirror is there first", func() { w.Confirm("n3", mirror) }, "n2"},
		{"n2 drains", func() { w.nodes[1].Closed = true }, "n1"},
		{"n1 has a full disk", func() { w.nodes[0].Disk = hold.DiskStop }, "n3"},
		{"n3 is silent too", func() { w.nodes[2].Alive = false }, "n4"},
		{"all are well", func() { w.nodes[0].Disk, w.nodes[1].Closed, w.nodes[2].Alive = 0, false, true }, "n2"},
		{"n3 has it", func() { w.Confirm("n3", shard) }, "n2 n3"},
		{"n2 is lost", func() { w.nodes[1].Alive = false }, "n3"},
	} {
		step.change()
		w.Do(&catalog.EnqueueJob{Kind: catalog.JobIndex, Subject: "1"})
		// The score decides between equals. Make each of them busy in turn.
		var on []string
		p, k := newPlanner(w.kinds, Input{View: w.View(), Nodes: w.nodes}), w.kinds.kindOf(catalog.JobIndex)
		for n := p.chooseNode(k, w.View().Job(catalog.JobIndex, "1")); n != nil && !slices.Contains(on, n.ID); n = p.chooseNode(k, w.View().Job(catalog.JobIndex, "1")) {
			on = append(on, n.ID)
			p.countRunning(n.ID, catalog.JobIndex)
		}
		slices.Sort(on)
		if got := strings.Join(on, " "); got != step.on {
			t.Errorf("%s: indexed on %s, want %s", step.what, got, step.on)
		}
	}
}

func TestJobPlan_deletesDroppedRepositoriesLater(t *testing.T) {
	t.Parallel()
	w := newWorld(t, oneConnection, 1)
	w.Repos("a", "h/one")
	f, err := config.Parse([]byte(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	w.Do(catalog.NewSetConfig([]byte(`{}`), f))
	w.Pass(24*time.Hour - time.Second)
	w.expect("within a day", "")
	w.Pass(time.Second)
	w.expect("after a day", "enqueue collect 1")
}

// Data that only a lost node had is built again at once, even if the node is still a member.
func TestJobPlan_rebuildsLostDataAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, oneConnection, 2)
	w.expect("a new connection", "grant sync a")
	fence := w.View().Job(catalog.JobSync, "a").Fence
	w.Do(&catalog.SyncPage{Connection: "a", Fence: fence, Repos: []catalog.ListedRepo{{Name: "r"}}})
	w.Do(&catalog.FinishSync{Connection: "a", Fence: fence, Hash: w.View().Connection("a").Hash, Complete: true, Listed: 1})
	w.Index(1, "n2", catalog.ShardRef{ID: fmt.Sprintf("%064x", 1), Bytes: 1})
	w.Confirm("n2", catalog.MirrorKey(1))
	w.Pass(time.Minute)

	w.nodes[1].Alive, w.nodes[1].Silent = false, hold.LostAfter-time.Second
	w.expect("it may be back", "")
	w.nodes[1].Silent = hold.LostAfter
	w.expect("it is lost", "enqueue index 1")
	w.expect("and who is there takes it", "grant index 1")
}

// A later member at the address of a silent one replaces it.
func TestSilentNode_isReplacedByALaterMemberAtItsAddress(t *testing.T) {
	t.Parallel()
	w := newWorld(t, oneConnection, 3)
	l := newLeader(w.Node("n1"), w.kinds, nil, LeaderOptions{})
	replacedNow := func() (out []string) {
		for _, n := range l.planNodes(w.Now()) {
			if n.Replaced {
				out = append(out, n.ID)
			}
		}
		return out
	}

	w.Lose("n3")
	if got := replacedNow(); got != nil {
		t.Errorf("n3 is silent, and replaced are %q", got)
	}
	w.JoinAt("n4", "n3:1")
	if got := replacedNow(); !slices.Equal(got, []string{"n3"}) {
		t.Errorf("n4 has joined at the address of n3, and replaced are %q", got)
	}
	w.Lose("n4")
	w.Find("n3")
	if got := replacedNow(); got != nil {
		t.Errorf("the first is back and the second is not, and replaced are %q", got)
	}
}
