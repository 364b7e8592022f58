package change

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/shard/git"
	"github.com/shoalsearch/shoal/shard/query"
)

// The news since some revisions are what git lists without them, and a search of news is a search
// of all that keeps these commits.
func TestNews_areWhatGitLists(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		w := newWorld(t, seed)
		w.grow(20)
		before := w.tips
		m := git.Open(w.dir)
		t.Cleanup(func() { m.Close() })
		l := Open(t.TempDir())
		t.Cleanup(l.Close)
		for range 3 {
			w.grow(5)
			if err := l.Update(t.Context(), m, w.revisions(), Bound{All: true}, time.Now(), noPause); err != nil {
				t.Fatal(err)
			}
		}

		// The log has never had a tip that its first update did not reach.
		known := slices.DeleteFunc(slices.Clone(before), func(id string) bool { _, ok := l.state.find(id); return !ok })
		want := strings.Fields(w.run("", append(append([]string{"rev-list"}, w.tips...), append([]string{"--not"}, known...)...)...))
		news, err := l.News(append([]string{strings.Repeat("0", 40)}, before...))
		if err != nil {
			t.Fatal(err)
		}
		defer news.Close()
		if news.Commits != len(want) {
			t.Errorf("seed %d: %d commits are new, git lists %d", seed, news.Commits, len(want))
		}

		var texts []byte
		if err := news.Texts(t.Context(), func(b []byte) { texts = append(append(texts, b...), 0) }); err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"alpha", "TODO", "return nil", "nowhere"} {
			req := LogSearch{Q: &query.Text{Pattern: text, Field: query.Message}, Limit: 1000}
			all, err := l.Search(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			got, err := news.Search(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			all.Commits = slices.DeleteFunc(all.Commits, func(c CommitMatch) bool { return !slices.Contains(want, c.ID) })
			if got.Total != len(all.Commits) || len(got.Commits) != len(all.Commits) {
				t.Errorf("seed %d, %s: %d of %d commits, want %d", seed, text, len(got.Commits), got.Total, len(all.Commits))
			}
			if got.Total > 0 && !bytes.Contains(texts, []byte(text)) {
				t.Errorf("seed %d: %q matches and is not among the texts", seed, text)
			}
		}
	}
}
