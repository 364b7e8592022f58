package node_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/nodetest"
	"github.com/shoalsearch/shoal/node/search"
	"github.com/shoalsearch/shoal/shard"
	"github.com/shoalsearch/shoal/shard/file"
)

// laterProgram makes a node the next release. Its index files have another version, which it
// writes from level 2 on.
func laterProgram(o *node.Options) {
	f := file.Release
	for kind := shard.KindShard; kind <= shard.KindSymbols; kind++ {
		f[kind] = file.Format{Oldest: f[kind].Newest, Newest: f[kind].Newest + 1, Level: 2}
	}
	o.Formats, o.Build = &f, catalog.Build{Lowest: 1, Versions: []string{"0.1.0", "0.2.0"}}
}

// asker keeps searching at the nodes of a fleet that are not being restarted.
type asker struct {
	mu    sync.Mutex
	nodes []*nodetest.Node
	done  context.CancelFunc
	end   sync.WaitGroup

	asked int
	bad   []string // incomplete answers
}

func askFleet(t *testing.T, f *nodetest.Fleet, query string, want int) *asker {
	ctx, cancel := context.WithCancel(t.Context())
	a := &asker{nodes: slices.Clone(f.Nodes), done: cancel}
	a.end.Go(func() {
		for ; ctx.Err() == nil; a.asked++ {
			r, err := a.ask(ctx, query)
			switch {
			case ctx.Err() != nil:
			case err != nil:
				a.bad = append(a.bad, err.Error())
			case !r.Coverage.Exhaustive() || len(r.Files) != want:
				a.bad = append(a.bad, fmt.Sprintf("%d of %d files, %+v", len(r.Files), want, r.Cluster))
			}
		}
	})
	return a
}

// ask searches at the next of the nodes.
func (a *asker) ask(ctx context.Context, query string) (*search.Response, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.nodes[a.asked%len(a.nodes)].Node.Search.Search(ctx, catalog.Operator(), search.Request{Query: query})
}

// only sets the nodes to search at and waits for the search under way, as a load balancer
// does before a node stops.
func (a *asker) only(nodes []*nodetest.Node) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.nodes = nodes
}

// Three nodes upgrade to a release with other index files, the leader first, during searches. No
// answer is incomplete. The files are rebuilt once every node reads the new version.
func TestUpgrade_withANewIndexFormatKeepsAnswersComplete(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const repos = 6
	var remotes []*nodetest.Repo
	for i := range repos {
		remotes = append(remotes, nodetest.NewRepo(t, filepath.Join(dir, fmt.Sprint("app", i)), map[string]string{"a.txt": fmt.Sprintf("walrus %d\n", i)}))
	}
	var mu sync.Mutex
	later := map[string]bool{}
	f := nodetest.StartFleet(t, 3, nodetest.Config{File: local(dir), Edit: func(o *node.Options) {
		mu.Lock()
		defer mu.Unlock()
		if later[o.Dir] {
			laterProgram(o)
		}
	}})
	f.Nodes[0].WaitIndexed(repos)
	whole := func() {
		t.Helper()
		for _, n := range f.Nodes {
			n.Wait("every copy to be there", func() error {
				if s := n.Status(); s.Placement.UnderReplicated > 0 || s.Tolerates.Writes < 1 || s.Tolerates.Searches < 1 {
					return fmt.Errorf("%+v, tolerates %+v", s.Placement, s.Tolerates)
				}
				return nil
			})
		}
	}
	whole()

	asked := askFleet(t, f, "walrus", repos)
	leader := -1
	f.Nodes[0].Wait("a leader", func() error {
		id := f.Nodes[0].Status().Leader
		if leader = slices.IndexFunc(f.Nodes, func(n *nodetest.Node) bool { return n.ID() == id }); leader < 0 {
			return fmt.Errorf("the leader is %q", id)
		}
		return nil
	})
	for i := range 3 {
		n := f.Nodes[(leader+i)%3]
		asked.only(slices.DeleteFunc(slices.Clone(f.Nodes), func(x *nodetest.Node) bool { return x == n }))
		n.Stop()
		mu.Lock()
		later[n.Dir] = true
		mu.Unlock()
		n.Start()
		asked.only(f.Nodes)

		// A push during the upgrade is indexed in the version that all nodes read.
		remotes[i].Commit(map[string]string{"b.txt": "narwhal\n"})
		n.Wait("the push to be found", func() error {
			if got := n.Find("narwhal"); len(got) != i+1 {
				return fmt.Errorf("found %q", got)
			}
			return nil
		})
		whole()
	}

	for _, n := range f.Nodes {
		n.Wait("the files to be made anew", func() error {
			if s := n.Status(); s.Level.Number != 2 || s.Storage.Rebuild != (node.RebuildStatus{}) || s.Storage.Quarantined > 0 {
				return fmt.Errorf("level %+v, %+v", s.Level, s.Storage)
			}
			return nil
		})
	}
	whole()
	asked.done()
	asked.end.Wait()
	if len(asked.bad) > 0 || asked.asked < 30 {
		t.Errorf("%d of %d answers were not whole: %s", len(asked.bad), asked.asked, asked.bad[0])
	}
	t.Logf("%d answers", asked.asked)

	// The old program does not touch the directory.
	n := f.Nodes[1]
	n.Stop()
	mu.Lock()
	delete(later, n.Dir)
	mu.Unlock()
	if err := n.TryLaunch(); !errors.Is(err, file.ErrNewer) {
		t.Errorf("the program before starts on it: %v", err)
	}
}

// A node of the old release does not know whole words. The next holder searches instead; if there
// is none, the answer says what is missing and has no wrong results.
func TestUpgrade_aNodeThatLacksAFilterIsPassedOver(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	nodetest.NewRepo(t, filepath.Join(dir, "app"), map[string]string{"a.txt": "walrus\n", "b.txt": "walruses\n"})
	var older sync.Map // data directories of nodes of the old release
	f := nodetest.StartFleet(t, 3, nodetest.Config{File: local(dir), Edit: func(o *node.Options) {
		o.Build = catalog.ThisBuild()
		if _, ok := older.Load(o.Dir); ok {
			o.Build.Lacks = map[string]bool{"Text.WordBegins": true}
		}
	}})
	f.Nodes[0].WaitIndexed(1)
	for _, n := range f.Nodes {
		n.Wait("two copies", func() error {
			if got := n.Status().Placement.UnderReplicated; got > 0 {
				return fmt.Errorf("%d repositories are short of copies", got)
			}
			return nil
		})
	}
	repo := f.Nodes[0].View().RepoByName("local/app")
	holders := f.Nodes[0].View().Holders(catalog.ShardKey(repo.Shards[0].ID))
	asker := f.Nodes[slices.IndexFunc(f.Nodes, func(n *nodetest.Node) bool { return !slices.Contains(holders, n.ID()) })]

	for i, id := range holders {
		n := f.Nodes[slices.IndexFunc(f.Nodes, func(n *nodetest.Node) bool { return n.ID() == id })]
		n.Stop()
		older.Store(n.Dir, true)
		n.Start()
		last := i == len(holders)-1
		asker.Wait("both holders to be there", func() error {
			r, err := asker.Node.Search.Search(t.Context(), catalog.Operator(), search.Request{Query: "walrus"})
			if err == nil && (!r.Coverage.Exhaustive() || len(r.Files) != 2) {
				err = fmt.Errorf("%d files, %+v", len(r.Files), r.Cluster)
			}
			return err
		})
		for range 5 {
			r, err := asker.Node.Search.Search(t.Context(), catalog.Operator(), search.Request{Query: "walrus", Words: true})
			if err != nil {
				t.Fatal(err)
			}
			if want := map[bool]int{false: 1, true: 0}[last]; len(r.Files) != want || r.Coverage.Exhaustive() == last {
				t.Errorf("with %d holders of the release before: %d files, exhaustive %v, %+v", i+1, len(r.Files), r.Coverage.Exhaustive(), r.Cluster)
			}
		}
	}
}

// A single node rebuilds files that are too old for its program, from the mirrors. Until then
// searches report them as missing.
func TestUpgrade_rebuildsIndexFilesThatAreTooOld(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	nodetest.NewRepo(t, filepath.Join(dir, "app"), map[string]string{"a.txt": "walrus\n"})
	skipped := false
	n := nodetest.Start(t, nodetest.Config{File: local(dir), Edit: func(o *node.Options) {
		if skipped {
			f := file.Release
			f[shard.KindShard] = file.Format{Oldest: 9, Newest: 9, Level: 1}
			o.Formats = &f
		}
	}})
	n.WaitIndexed(1)
	n.Stop()
	skipped = true
	n.Start()
	n.Wait("the index to be made again", func() error {
		if got, s := n.Find("walrus"), n.Status(); !slices.Equal(got, []string{"local/app:a.txt"}) || s.Storage.Rebuild.Of > 0 {
			return fmt.Errorf("found %q; %+v", got, s.Storage)
		}
		return nil
	})
	complete(t, n, "walrus")
	if s := n.Status().Storage; s.Quarantined > 0 {
		t.Errorf("%d files count as damaged", s.Quarantined)
	}
}

var rewriteData = flag.Bool("rewrite-data", false, "write the data directory of the highest level")

// dataOf is a data directory of a node of an old release, with its configuration.
const dataOf = "testdata/data-1.tar.gz"

// A data directory of level 1 opens. Text, symbols and files are there without a rebuild.
func TestUpgrade_opensADataDirectoryOfLevel1(t *testing.T) {
	t.Parallel()
	tar := func(args ...string) {
		t.Helper()
		if out, err := exec.Command("tar", args...).CombinedOutput(); err != nil {
			t.Fatalf("tar: %v, %s", err, out)
		}
	}
	if *rewriteData {
		remotes := t.TempDir()
		nodetest.NewRepo(t, filepath.Join(remotes, "app"), map[string]string{"a.go": "package walrus\n\nfunc Dive() {}\n", "b.txt": "narwhal\n"})
		n := nodetest.Start(t, nodetest.Config{File: unpolled(remotes), Edit: func(o *node.Options) { o.Ctags = "" }})
		n.WaitIndexed(1)
		if got := n.Find("sym:Dive"); len(got) != 1 {
			t.Fatalf("found %q", got)
		}
		n.Stop()
		tar("czf", dataOf, "--owner=0", "--group=0", "-C", filepath.Dir(n.Dir), "data", "config.json")
	}

	dir := t.TempDir()
	tar("xzf", dataOf, "-C", dir)
	n := nodetest.Open(t, filepath.Join(dir, "data"), filepath.Join(dir, "config.json"))
	for query, want := range map[string]string{"walrus": "local/app:a.go", "sym:Dive": "local/app:a.go", "narwhal": "local/app:b.txt"} {
		if got := n.Find(query); !slices.Equal(got, []string{want}) {
			t.Errorf("%s: found %q", query, got)
		}
		complete(t, n, query)
	}
	text, err := n.Browse.Source(t.Context(), catalog.Operator(), browse.SourceRequest{Repo: "local/app", Path: "b.txt"})
	if err != nil || string(text.Content) != "narwhal\n" {
		t.Errorf("a file of the mirror: %+v, %v", text, err)
	}
	if s := n.Status(); s.Level.Number != 1 || s.Storage.Quarantined > 0 || s.Storage.Rebuild.Of > 0 {
		t.Errorf("level %+v, %+v", s.Level, s.Storage)
	}
}
