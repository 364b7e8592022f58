package job

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/clustertest"
	"github.com/shoalsearch/shoal/node/hold"
	"github.com/shoalsearch/shoal/shard"
)

// testNode is one node with real files and mirrors, where a test runs attempts one by one, and the
// local repositories that it fetches.
type testNode struct {
	*clustertest.World
	t       *testing.T
	origins string
	dir     string
	node    *clustertest.Node
	files   *hold.Files
	jobs    *Jobs
	kinds   kinds
}

// alone is a Caller without other nodes.
type alone struct{}

// Call implements hold.Caller.
func (alone) Call(context.Context, string, string, []byte) ([]byte, error) {
	return nil, fmt.Errorf("there is nobody")
}

// Stream implements hold.Caller.
func (alone) Stream(context.Context, string, string, []byte) (io.ReadCloser, error) {
	return nil, fmt.Errorf("there is nobody")
}

// newTestNode returns a node, and empty repositories with these names.
func newTestNode(t *testing.T, names ...string) *testNode {
	t.Helper()
	return newTestNodeWith(t, Options{}, names...)
}

// newTestNodeWith returns a testNode with options.
func newTestNodeWith(t *testing.T, opt Options, names ...string) *testNode {
	t.Helper()
	y := &testNode{t: t, origins: t.TempDir(), dir: t.TempDir()}
	y.World = clustertest.New(t, fmt.Sprintf(`{"connections": {"a": {"type": "git", "url": "file://%s/*", "revisions": {"tags": ["many-*"]}}}}`, y.origins), 1)
	y.node = y.Node("n1")

	set, err := shard.OpenSet(filepath.Join(y.dir, "shards"), shard.SetOptions{Now: y.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { set.Close() })
	mirrors, err := hold.OpenMirrors(filepath.Join(y.dir, "mirrors"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mirrors.Close() })

	log := slog.New(slog.DiscardHandler)
	y.files = hold.NewFiles(set, mirrors, y.Now)
	copies := hold.NewTransfers(y.node, alone{}, y.files, hold.TransferOptions{Replicas: 2, Log: log, Now: y.Now})
	y.jobs = New(Deps{
		Cluster: y.node, Files: y.files, Copies: copies, Placer: hold.NewPlacer(y.node, 2, log, y.Now), Log: log, Now: y.Now,
		Searched: func(shard.FileID) time.Duration { return 0 },
	}, opt)
	y.kinds = y.jobs.Runner.kinds

	fence := y.Grant(catalog.JobSync, "a", "n1")
	page := &catalog.SyncPage{Connection: "a", Fence: fence}
	for _, name := range names {
		y.git(name, "init", "-q", "-b", "main")
		page.Repos = append(page.Repos, catalog.ListedRepo{Name: "local/" + name, RepoFacts: catalog.RepoFacts{CloneURL: "file://" + filepath.Join(y.origins, name)}})
	}
	y.Do(page, &catalog.FinishSync{Connection: "a", Fence: fence, Hash: y.View().Connection("a").Hash, Complete: true, Listed: uint32(len(names))})
	return y
}

// git runs git in a repository. It creates the repository if it does not exist.
func (y *testNode) git(name string, args ...string) {
	y.t.Helper()
	dir := filepath.Join(y.origins, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		y.t.Fatal(err)
	}
	cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@b"}, args...)...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		y.t.Fatalf("git %v: %v: %s", args, err, out)
	}
}

// push commits one file.
func (y *testNode) push(name, file, text string) {
	y.t.Helper()
	if err := os.WriteFile(filepath.Join(y.origins, name, file), []byte(text), 0o600); err != nil {
		y.t.Fatal(err)
	}
	y.git(name, "add", ".")
	y.git(name, "commit", "-q", "-m", file)
}

// remove deletes a repository.
func (y *testNode) remove(name string) {
	y.t.Helper()
	if err := os.RemoveAll(filepath.Join(y.origins, name)); err != nil {
		y.t.Fatal(err)
	}
}

// run grants a job to the node, runs one attempt, and returns its error. It releases the adopted
// files.
func (y *testNode) run(kind catalog.JobKind, subject string) error {
	y.t.Helper()
	if j := y.View().Job(kind, subject); j == nil || j.State != catalog.JobWaiting {
		y.Do(&catalog.EnqueueJob{Kind: kind, Subject: subject, Urgent: true})
	}
	y.Grant(kind, subject, "n1")
	ctx, cancel := context.WithCancelCause(y.t.Context())
	defer cancel(nil)
	a := &attempt{job: y.View().Job(kind, subject), cluster: y.node, files: y.files, cancel: cancel}
	defer a.release()
	err := y.kinds.kindOf(kind).Run(ctx, a)
	if err != nil {
		y.Apply(&catalog.ReleaseJob{Kind: kind, Subject: subject, Fence: a.job.Fence})
	}
	return err
}

// index runs an index job that must succeed, and returns the repository.
func (y *testNode) index(id catalog.RepoID) *catalog.Repo {
	y.t.Helper()
	if err := y.run(catalog.JobIndex, catalog.RepoSubject(id)); err != nil {
		y.t.Fatalf("index %d: %v", id, err)
	}
	return y.View().Repo(id)
}

// lines returns the number of files of a repository that have text.
func (y *testNode) lines(id catalog.RepoID) (docs int) {
	for _, s := range y.View().Repo(id).Shards {
		docs += int(s.Docs)
	}
	return docs
}

// lose deletes every index file of the node.
func (y *testNode) lose() {
	y.t.Helper()
	for range 2 {
		if _, err := y.files.Retain(func(string) bool { return false }, 0); err != nil {
			y.t.Fatal(err)
		}
		y.Pass(1)
	}
}

func TestIndexJob_indexesEachPush(t *testing.T) {
	t.Parallel()
	y := newTestNode(t, "app")
	repo := y.index(1)
	if !repo.Indexed() || len(repo.Shards) != 0 || len(repo.Revisions) != 0 {
		t.Errorf("an empty repository is %+v", repo)
	}

	y.push("app", "a.txt", "walrus\n")
	repo = y.index(1)
	first := repo.InputKey
	if y.lines(1) != 1 || repo.DefaultBranch != "main" || !y.files.Complete(repo) {
		t.Errorf("after a push it is %+v", repo)
	}
	for key := range hold.KeysOf(repo) {
		if !y.View().Holds("n1", key) {
			t.Errorf("%s is not held", key)
		}
	}

	generation := repo.Generation
	if repo = y.index(1); repo.InputKey != first || repo.Generation != generation {
		t.Errorf("nothing is new, and generation %d with key %s is %d with %s", generation, first, repo.Generation, repo.InputKey)
	}

	y.push("app", "b.txt", "narwhal\n")
	if repo = y.index(1); repo.InputKey == first || y.lines(1) != 2 {
		t.Errorf("after the second push it is %+v", repo)
	}
}

// More tags are wanted than can be indexed. The catalog has the number of left-out ones, and a
// change of only that number is recorded.
func TestIndexJob_countsLeftOutRevisions(t *testing.T) {
	t.Parallel()
	y := newTestNode(t, "app")
	y.push("app", "a.txt", "walrus\n")
	for i := range 70 {
		y.git("app", "tag", fmt.Sprintf("many-%02d", i))
	}
	repo := y.index(1)
	if len(repo.Revisions) != 66 || repo.LeftOut != 6 {
		t.Errorf("of 70 tags %d revisions are indexed and %d left out, want HEAD, its branch and 64, and 6", len(repo.Revisions), repo.LeftOut)
	}

	y.git("app", "tag", "-d", "many-00", "many-01", "many-02", "many-03", "many-04", "many-05")
	if repo = y.index(1); repo.LeftOut != 0 || len(repo.Revisions) != 66 {
		t.Errorf("of 64 tags %d revisions are indexed and %d left out", len(repo.Revisions), repo.LeftOut)
	}
}

// A repository that must change before it can be read is not retried.
func TestIndexJob_repositoryBeyondLimitsIsNotRetried(t *testing.T) {
	t.Parallel()
	y := newTestNode(t, "app")
	deep := strings.Repeat("d/", 600)
	if err := os.MkdirAll(filepath.Join(y.origins, "app", deep), 0o700); err != nil {
		t.Fatal(err)
	}
	y.push("app", deep+"a.txt", "walrus\n")
	if err := y.run(catalog.JobIndex, catalog.RepoSubject(1)); !errors.Is(err, errPermanent) || !strings.Contains(err.Error(), "512 levels") {
		t.Errorf("600 levels of directories: %v", err)
	}
}

// Lost data is built again, even if the input is the same.
func TestIndexJob_rebuildsLostData(t *testing.T) {
	t.Parallel()
	y := newTestNode(t, "app")
	y.push("app", "a.txt", "walrus\n")
	before := y.index(1)
	y.lose()
	if y.files.Complete(before) {
		t.Fatal("the files are still there")
	}

	after := y.index(1)
	if !y.files.Complete(after) || after.InputKey != before.InputKey || !slices.Equal(after.Shards, before.Shards) {
		t.Errorf("it was %+v and is %+v", before, after)
	}
}

// A damaged mirror is cloned again.
func TestIndexJob_clonesADamagedMirrorAgain(t *testing.T) {
	t.Parallel()
	y := newTestNode(t, "app")
	y.push("app", "a.txt", "walrus\n")
	y.index(1)

	y.lose() // so that the objects are needed
	err := filepath.WalkDir(filepath.Join(y.dir, "mirrors"), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.Contains(path, "objects") {
			return err
		}
		return errors.Join(os.Chmod(path, 0o600), os.Truncate(path, 0))
	})
	if err != nil {
		t.Fatal(err)
	}
	if repo := y.index(1); y.lines(1) != 1 || !y.files.Complete(repo) || !y.files.Mirrors.Get(1).Sound(t.Context()) {
		t.Errorf("with a damaged mirror it is %+v", repo)
	}
}

func TestIndexJob_errorsSayWhatIsWrong(t *testing.T) {
	t.Parallel()
	y := newTestNode(t, "app")
	y.push("app", "a.txt", "walrus\n")
	y.index(1)
	before := y.View().Repo(1)

	y.remove("app")
	if err := y.run(catalog.JobIndex, "1"); err == nil || !strings.Contains(err.Error(), "the remote has no such repository") {
		t.Errorf("without a remote: %v", err)
	}
	if now := y.View().Repo(1); now.Generation != before.Generation || !y.files.Complete(now) {
		t.Error("the last index is not there any more")
	}
}

// The first live holder of a mirror polls it. It enqueues a job only if something is new, or the
// remote does not answer.
func TestPolling_enqueuesAnIndexJobForNews(t *testing.T) {
	t.Parallel()
	y := newTestNode(t, "app", "lib")
	for i, name := range []string{"app", "lib"} {
		y.push(name, "a.txt", "walrus\n")
		y.index(catalog.RepoID(i + 1))
	}
	p := y.jobs.Poller
	waits := func(id catalog.RepoID) bool {
		return y.View().Job(catalog.JobIndex, catalog.RepoSubject(id)).State == catalog.JobWaiting
	}
	round := func() (due []catalog.RepoID) {
		y.Pass(y.View().File().Settings.ReindexInterval)
		due = p.duePolls(10)
		for _, id := range due {
			p.pollRepo(t.Context(), id)
		}
		return due
	}

	if due := p.duePolls(10); len(due) != 0 {
		t.Errorf("right after the index %v are polled", due)
	}
	if due := round(); len(due) != 2 || waits(1) || waits(2) {
		t.Errorf("with nothing new %v are polled, and jobs wait: %v, %v", due, waits(1), waits(2))
	}
	y.push("app", "b.txt", "narwhal\n")
	if round(); !waits(1) || waits(2) {
		t.Errorf("after a push to the first, jobs wait: %v, %v", waits(1), waits(2))
	}
	y.index(1)
	y.remove("lib")
	if round(); !waits(2) {
		t.Error("a remote that is gone is not told by a job")
	}
	if due := p.duePolls(0); len(due) != 0 {
		t.Errorf("without room %v are polled", due)
	}
}

// Small repositories share a file after packing, and each is found in it. A changed repository
// leaves it.
func TestPackJob_joinsSmallIndexFiles(t *testing.T) {
	t.Parallel()
	var names []string
	for i := range 9 {
		names = append(names, fmt.Sprintf("r%d", i))
	}
	y := newTestNode(t, names...)
	for i, name := range names {
		y.push(name, "a.txt", strings.Repeat(name+"\n", 3))
		y.index(catalog.RepoID(i + 1))
	}
	if err := y.run(catalog.JobPack, catalog.PackSubject(nil)); err != nil {
		t.Fatal(err)
	}

	pack := ""
	for i := range names {
		repo := y.View().Repo(catalog.RepoID(i + 1))
		if len(repo.Shards) != 1 || repo.Shards[0].Pack == 0 || repo.Shards[0].Docs != 1 || !y.files.Complete(repo) {
			t.Fatalf("after packing %s is %+v", repo.Name, repo.Shards)
		}
		if pack == "" {
			pack = repo.Shards[0].ID
		}
		if repo.Shards[0].ID != pack {
			t.Errorf("%s has a pack of its own", repo.Name)
		}
	}

	y.push("r3", "b.txt", "walrus\n")
	if repo := y.index(4); y.lines(4) != 2 || len(repo.Shards) != 2 {
		t.Errorf("after a push the repository of a pack is %+v", repo.Shards)
	}
}

func TestDeletionJob_removesTheRepository(t *testing.T) {
	t.Parallel()
	y := newTestNode(t, "app")
	y.push("app", "a.txt", "walrus\n")
	y.index(1)
	y.Do(&catalog.EnqueueJob{Kind: catalog.JobSync, Subject: "a", Urgent: true})
	fence := y.Grant(catalog.JobSync, "a", "n1")
	y.Do(&catalog.FinishSync{Connection: "a", Fence: fence, Hash: y.View().Connection("a").Hash, Complete: true})
	if err := y.run(catalog.JobCollect, "1"); err != nil {
		t.Fatal(err)
	}
	if y.View().Repo(1) != nil {
		t.Error("it is still there")
	}
}
