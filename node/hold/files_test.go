package hold

import (
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/clustertest"
)

// A file that was copied before its generation was published is kept until the repository has
// another generation, not for the longest possible publication: for a repository that changes every
// second, hundreds of files would be kept.
func TestCopiedFile_isNotCollectedBeforeTheNextGeneration(t *testing.T) {
	t.Parallel()
	w := clustertest.New(t, oneConnection, 1)
	w.Repos("a", "local/r")
	repo := w.View().RepoByName("local/r")
	f := NewFiles(nil, nil, w.Now)

	f.awaitPublication(prefetchCall{Names: []string{"a.shard"}, Repo: repo.ID, Generation: repo.GenerationAt}, w.Now().Add(time.Hour))
	if !f.unpublishedFiles(w.View())["a.shard"] {
		t.Error("a file whose generation is about to be published is not kept")
	}
	w.Index(repo.ID, "n1")
	if f.unpublishedFiles(w.View())["a.shard"] {
		t.Error("a file of a published generation is still kept for its publication")
	}
}
