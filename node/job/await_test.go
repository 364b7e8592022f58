package job

import (
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// A file that was taken before its generation was published is kept until the
// repository has another one, not for the whole time that a publication may
// take: a repository that changes every second would keep hundreds.
func TestAwaitedFilesGoWithTheNextGeneration(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `{"connections": {"a": {"type": "git", "url": "file:///x"}}}`, 1)
	w.plan()
	fence := w.state.View().Job(catalog.JobSync, "a").Fence
	w.do(&catalog.SyncPage{Connection: "a", Fence: fence, Repos: []catalog.ListedRepo{{Name: "local/r"}}},
		&catalog.FinishSync{Connection: "a", Fence: fence, Listed: 1, Complete: true})
	w.plan()
	w.plan()
	repo := w.state.View().RepoByName("local/r")
	r := NewRunner(Options{})
	r.await(prefetchCall{Names: []string{"a.shard"}, Repo: repo.ID, Generation: repo.GenerationAt}, time.Now().Add(time.Hour))
	if !r.guards(w.state.View())["a.shard"] {
		t.Error("a file whose generation is about to be published is not kept")
	}
	w.do(&catalog.FinishIndex{Repo: repo.ID, Fence: w.state.View().Job(catalog.JobIndex, catalog.RepoSubject(repo.ID)).Fence, Holder: "n1", InputKey: "k"})
	if r.guards(w.state.View())["a.shard"] {
		t.Error("a file of a published generation is still kept for its publication")
	}
}
