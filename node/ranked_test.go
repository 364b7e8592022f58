package node_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/nodetest"
	"github.com/shoalsearch/shoal/node/search"
)

// Of the files that are shown it is told how many have all words, not of those
// that the limit left out.
func TestRankedTellsOfTheFilesThatItShows(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	far := strings.Repeat("filler\n", 200)
	nodetest.NewRepo(t, filepath.Join(dir, "app"), map[string]string{
		"park/worker.go": "package park\n\n// parkWorker parks a worker.\nfunc parkWorker() {}\n",
		"a.txt":          "park\n" + far + "worker\n" + far + "moor\n",
		"b.txt":          "moor\n" + far + "park\n" + far + "worker\n",
	})
	n := nodetest.Start(t, nodetest.Config{File: `{"connections": {"all": {"type": "git", "url": "file://` + dir + `/*"}}}`})
	n.WaitIndexed(1)

	for limit := 1; limit <= 3; limit++ {
		r, err := n.Ranked(t.Context(), catalog.Operator(), search.RankedRequest{Query: "park worker moor", Limit: limit})
		if err != nil || len(r.Files) != limit {
			t.Fatalf("%+v, %v", r, err)
		}
		if first := r.Files[0]; first.Path != "park/worker.go" || first.Words != 2 {
			t.Fatalf("the first is %+v", first)
		}
		if r.Whole != limit-1 {
			t.Errorf("with a limit of %d, %d files are said to have all words", limit, r.Whole)
		}
	}
}
