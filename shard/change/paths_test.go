package change

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/shard/charset"
	"github.com/shoalsearch/shoal/shard/git"
	"github.com/shoalsearch/shoal/shard/query"
)

// comparePaths holds the paths of a text to the files of all commits that a revision reaches: a file
// with the text stands at such a path.
func (w *world) comparePaths(l *Log) {
	t := w.t
	t.Helper()
	marks, err := os.ReadFile(filepath.Join(w.dir, "marks"))
	if err != nil {
		t.Fatal(err)
	}
	of := map[string]string{}
	for line := range strings.Lines(string(marks)) {
		mark, id, _ := strings.Cut(strings.TrimSpace(line), " ")
		of[id] = strings.TrimPrefix(mark, ":")
	}
	commits := strings.Fields(w.run("", append([]string{"rev-list"}, w.tips...)...))

	for _, expr := range []string{"alpha", "gamma", "^beta", "delta$", `\bTODO\b`, "func ma.n", "naïve", "ß", `x :?= \d`, "bin", "raw|tab"} {
		q, err := query.Parse(query.QuoteRegexp(expr), query.Options{Regexp: true})
		if err != nil {
			t.Fatal(err)
		}
		paths, revisions, err := l.Paths(t.Context(), q.Q)
		if err != nil || paths.All || len(revisions) != len(w.revisions()) {
			t.Fatalf("%s: all %t, of %v, %v", expr, err == nil && paths.All, revisions, err)
		}
		matches := regexp.MustCompile("(?mi)" + expr)
		for _, id := range commits {
			for path, text := range w.tree[of[id]] {
				decoded, _ := charset.Decode(nil, []byte(text))
				if matches.Match(decoded) && !paths.Has(path) {
					t.Errorf("%s: %q of %s is not among the paths", expr, path, id)
				}
			}
		}
	}
}

// A query of which the changes say nothing has all paths, and one of several texts those of the rarest.
func TestPaths_areNarrowedByTextsAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	w.grow(30)
	m, l := git.Open(w.dir), Open(t.TempDir())
	defer m.Close()
	defer l.Close()
	if err := l.Update(t.Context(), m, w.revisions(), Bound{All: true}, time.Now(), noPause); err != nil {
		t.Fatal(err)
	}
	count := func(text string) int {
		t.Helper()
		q, err := query.Parse(text, query.Options{Regexp: true})
		if err != nil {
			t.Fatal(err)
		}
		paths, _, err := l.Paths(t.Context(), q.Q)
		if err != nil {
			t.Fatal(err)
		}
		if paths.All {
			return -1
		}
		return len(paths.set)
	}
	for _, all := range []string{"file:go", "-alpha", "lang:go", "alpha or file:go", "sym:alpha", `x*`, `\Aalpha`, `alpha\z`, `alpha\s+beta`, "[^a]lpha", ""} {
		if n := count(all); n != -1 {
			t.Errorf("%q has %d paths, not all", all, n)
		}
	}
	alpha, none, both := count("alpha"), count("nowhere-at-all"), count("alpha nowhere-at-all")
	if alpha <= none || both != none || count("alpha or nowhere-at-all") != alpha || count("alpha file:go") != alpha {
		t.Errorf("%d for a word, %d for one that is nowhere, %d for both", alpha, none, both)
	}
}
