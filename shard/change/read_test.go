package change

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/shard/git"
	"github.com/shoalsearch/shoal/shard/query"
)

// Small sizes make a small history end where a large one does.
func init() {
	if os.Getenv("SHOAL_CHANGES_MIRRORS") == "" { // the benchmark measures the real ones
		pieceSize, countedBlocks, facetedBlocks = 3, 2, 4
		fewMessages, fewLines = 1<<10, 2<<10
	}
}

// Several logs answer as one plain list of all their matches does: what is told are the first, and
// counts are exact or lower bounds that say so.
func TestReadLogs_tellsTheFirstOfAllLogs(t *testing.T) {
	t.Parallel()
	const seeds = 6
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rnd := rand.New(rand.NewPCG(seed, 3))
			var logs []*Log
			for i := range 1 + rnd.IntN(4) {
				w := newWorld(t, 100*seed+uint64(i))
				w.grow(10 + rnd.IntN(60))
				m, l := git.Open(w.dir), Open(t.TempDir())
				defer m.Close()
				defer l.Close()
				if err := l.Update(t.Context(), m, w.revisions(), Bound{All: true}, time.Now(), noPause); err != nil {
					t.Fatal(err)
				}
				logs = append(logs, l)
			}
			for range 150 {
				compareWithPlainList(t, rnd, logs)
			}
		})
	}
}

// compareWithPlainList draws a question, a limit and a place to go on from.
func compareWithPlainList(t *testing.T, rnd *rand.Rand, logs []*Log) {
	t.Helper()
	texts := []string{"type:commit merge:yes", "type:diff alpha", "type:diff a", "type:commit TODO", "type:diff -added:beta", "type:commit (added:alpha or message:beta)",
		"type:commit -added:delta message:a", "type:diff file:\\.go$ added:return", "type:commit lang:go -message:x", "type:diff added:alpha removed:alpha", "type:commit author:ann added:a",
		"type:commit since:2020-09-14 until:2020-09-15", "type:diff until:2020-09-15 alpha", "type:diff rev:main alpha", "type:commit nowhere_at_all"}
	text := texts[rnd.IntN(len(texts))]
	parsed, err := query.Parse(text, query.Options{})
	if err != nil {
		t.Fatal(err)
	}
	req := LogSearch{Q: parsed.Q, Diff: parsed.Type == query.DiffType, Limit: 1 << 30, All: true}
	var all []Place
	items, total := map[Place]int{}, 0
	for _, l := range logs {
		out, err := l.Search(t.Context(), req)
		if err != nil || out.More {
			t.Fatalf("%s: %+v, %v", text, out, err)
		}
		for _, c := range out.Commits {
			p := Place{Time: c.CommitTime.Unix(), ID: c.ID}
			all = append(all, p)
			if items[p] = 1; req.Diff {
				items[p] = len(c.Files) + c.MoreFiles
			}
			total += items[p]
		}
	}
	slices.SortFunc(all, Place.compare)

	req.Limit, req.All, req.Facets = 1+rnd.IntN(20), rnd.IntN(4) == 0, rnd.IntN(2) == 0
	if len(all) > 0 && rnd.IntN(2) == 0 {
		req.After = all[rnd.IntN(len(all))]
	}
	rest := slices.DeleteFunc(slices.Clone(all), func(p Place) bool { return p.compare(req.After) <= 0 && req.After != Place{} })
	left, n := 0, 0
	for _, p := range rest {
		left += items[p]
	}
	want := map[string]bool{} // those that are told; others of the same time may be, too
	last := int64(0)
	for _, p := range rest {
		if n < req.Limit {
			want[p.ID], last = true, p.Time
			n += items[p]
		}
	}

	var readers []*LogReader
	req.Patterns = &Patterns{}
	for _, l := range logs {
		r, err := l.Reader(req)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		readers = append(readers, r)
	}
	ReadLogs(t.Context(), readers, req)
	gotTotal, gotLeft, more := 0, 0, false
	for _, r := range readers {
		out, err := r.Result(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		gotTotal, gotLeft, more = gotTotal+out.Total, gotLeft+out.Left, more || out.More
		for _, c := range out.Commits {
			if !want[c.ID] && c.CommitTime.Unix() != last {
				t.Errorf("%s: %s of %d is told, the last is of %d", text, c.ID, c.CommitTime.Unix(), last)
			}
			delete(want, c.ID)
		}
	}
	if len(want) > 0 {
		t.Errorf("%s, %d after %v: %v are not told", text, req.Limit, req.After, want)
	}
	exact := gotTotal == total && gotLeft == left
	if more {
		exact = !req.All && gotTotal <= total && gotLeft <= left && gotLeft >= min(left, req.Limit)
	}
	if !exact {
		t.Errorf("%s, %d after %v: %d of %d, %d of %d left, more: %t", text, req.Limit, req.After, gotTotal, total, gotLeft, left, more)
	}
}

// What a question costs is told by the blocks that it decodes: a rare text those with it, a
// frequent one a few, an unknown one none. So it is on each machine.
func TestReadLogs_decodesFewBlocks(t *testing.T) {
	t.Parallel()
	dir := manyCommits(t, 600)
	m, l := git.Open(dir), Open(t.TempDir())
	defer m.Close()
	defer l.Close()
	tips := []Tip{{"HEAD", strings.TrimSpace(gitIn(t, dir, "rev-parse", "HEAD"))}}
	if err := l.Update(t.Context(), m, tips, Bound{All: true}, time.Now(), noPause); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		text        string
		total, most int // matches, and blocks
		more        bool
	}{
		{"type:diff added:nowhere_at_all", 0, 0, false},
		{"type:commit (added:nowhere_at_all or removed:nowhere_at_all)", 0, 0, false},
		{"type:commit message:nowhere_at_all", 0, 0, false},
		{"type:diff rare300word", 2, 2, false},
		{"type:diff common rare300word", 2, 4, false},
		{"type:diff file:f1 lang:go rare300word nowhere_at_all", 0, 0, false},
		{"type:commit message:rare300word common", 1, 1, false},
		{"type:diff common", 10, 8, true},
		{"type:diff -added:nowhere_at_all", 600, 0, false},
		{"type:diff file:f1", 599, 0, false},
		{"type:commit merge:no", 600, 0, false},
		{"count:all type:diff common", 600, 1000, false},
	} {
		q, err := query.Parse(c.text, query.Options{})
		if err != nil {
			t.Fatal(err)
		}
		req := LogSearch{Q: q.Q, Diff: q.Type == query.DiffType, Limit: 10, All: q.Count == query.CountAll}
		r, err := l.Reader(req)
		if err != nil {
			t.Fatal(err)
		}
		ReadLogs(t.Context(), []*LogReader{r}, req)
		blocks := r.spent() // without those that are told
		out, err := r.Result(t.Context())
		if err != nil || out.More != c.more || out.Total != c.total && !c.more || out.Total < c.total || blocks > c.most {
			t.Errorf("%s: %d matches, more %t, %d blocks, %v; want %d, %t, at most %d", c.text, out.Total, out.More, blocks, err, c.total, c.more, c.most)
		}
		r.Close()
	}
}

// manyCommits makes a repository of commits with texts that are long enough for many pages.
func manyCommits(t *testing.T, commits int) string {
	t.Helper()
	dir := t.TempDir()
	var in strings.Builder
	for i := range commits {
		message, text := fmt.Sprintf("change rare%dword common", i), fmt.Sprintf("common rare%dword\n%s\n", i, strings.Repeat(fmt.Sprintf("line %d ", i), 100))
		fmt.Fprintf(&in, "commit refs/heads/main\ncommitter A <a@example.com> %d +0000\ndata %d\n%s\nM 100644 inline f%d.go\ndata %d\n%s\n", 1_500_000_000+60_000*i, len(message), message, cmp.Compare(i, 0), len(text), text)
	}
	gitIn(t, dir, "init", "-q", "--bare", "-b", "main", ".")
	c := exec.Command("git", "-C", dir, "fast-import", "--quiet")
	c.Stdin = strings.NewReader(in.String())
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return dir
}
