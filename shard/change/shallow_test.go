package change

import (
	"testing"
	"time"

	"github.com/shoalsearch/shoal/shard/git"
	"github.com/shoalsearch/shoal/shard/query"
)

// A mirror without its oldest commits: what is there is found, and the answer is not whole.
func TestCommitSearch_findsWhatGitFindsInAShallowMirror(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2) {
		origin := newWorld(t, 1000+seed)
		origin.grow(40)
		w := newWorld(t, 2000+seed)
		w.mark, w.tips, w.cut = origin.mark, origin.tips, true
		w.run("", append([]string{"fetch", "-q", "--depth=4", "file://" + origin.dir}, origin.tips...)...)

		l := Open(t.TempDir())
		defer l.Close()
		m := git.Open(w.dir)
		defer m.Close()
		if err := l.Update(t.Context(), m, w.revisions(), Bound{All: true}, time.Now(), noPause); err != nil {
			t.Fatal(err)
		}
		w.compare(searchOf(t, l), 40)
		found, err := l.Search(t.Context(), LogSearch{Q: query.Const(true)})
		if err != nil || found.Whole {
			t.Errorf("an answer about a part is whole: %v", err)
		}
	}
}
