package node_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/nodetest"
	"github.com/shoalsearch/shoal/node/search"
	"github.com/shoalsearch/shoal/shard/query"
)

// still returns a configuration with the repositories of one directory, which are indexed once.
func still(dir string) string {
	return fmt.Sprintf(`{"connections": {"local": {"type": "git", "url": "file://%s/*"}}}`, dir)
}

// lines returns a text with a word on each of n lines.
func lines(word string, n int) string { return strings.Repeat("a "+word+" swims\n", n) }

func stream(t *testing.T, n *nodetest.Node, req search.Request) (chunks []*search.Chunk, sum *search.Response) {
	t.Helper()
	sum, err := n.Search.StreamSearch(context.Background(), catalog.Operator(), req, func(c *search.Chunk) error {
		chunks = append(chunks, c)
		return nil
	})
	if err != nil {
		t.Fatalf("stream %q: %v", req.Query, err)
	}
	return chunks, sum
}

func TestSearchStream_equalsSearch(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const repos = 9 // more shards than one part of a stream has
	for i := range repos {
		nodetest.NewRepo(t, filepath.Join(dir, fmt.Sprintf("r%02d", i)), map[string]string{
			"a.txt": lines("otter", 1+i%3), "b.txt": "no such animal\n",
		})
	}
	n := nodetest.Start(t, nodetest.Config{File: still(dir), Edit: func(o *node.Options) { o.StreamBatch = 4 }})
	n.WaitIndexed(repos)
	for _, query := range []string{"otter", "animal", "otter repo:r1", "type:file otter", "nothing", "otter t:repo"} {
		whole := n.Results(query)
		chunks, sum := stream(t, n, search.Request{Query: query})
		var files, found []string
		stats := search.Stats{}
		for _, c := range chunks {
			for _, f := range c.Files {
				files = append(files, fmt.Sprint(f.Repository, f.Path, f.Chunks))
			}
			stats.Files += c.Stats.Files
			stats.TotalMatches += c.Stats.TotalMatches
			stats.ActualMatches += c.Stats.ActualMatches
		}
		for _, f := range whole.Files {
			found = append(found, fmt.Sprint(f.Repository, f.Path, f.Chunks))
		}
		want(t, files, found...)
		if hinted := query == "otter t:repo"; len(whole.Hints) > 0 != hinted || !slices.Equal(whole.Hints, sum.Hints) {
			t.Errorf("%q: the search hints at %q, the stream at %q", query, whole.Hints, sum.Hints)
		}
		for name, got := range map[string][3]int{
			"the parts": {stats.Files, stats.TotalMatches, stats.ActualMatches},
			"the sum":   {sum.Stats.Files, sum.Stats.TotalMatches, sum.Stats.ActualMatches},
		} {
			if want := [3]int{whole.Stats.Files, whole.Stats.TotalMatches, whole.Stats.ActualMatches}; got != want {
				t.Errorf("%q: %s count %v, the search %v", query, name, got, want)
			}
		}
		if !sum.Coverage.Exhaustive() || !whole.Coverage.Exhaustive() || sum.Stats.ShardsAnswered != sum.Stats.ShardsRequired {
			t.Errorf("%q: not exhaustive: %+v and %+v", query, sum.Stats, whole.Stats)
		}
	}
	checkRepositories(t, n, repos)

	stop := errors.New("the reader left")
	_, err := n.Search.StreamSearch(context.Background(), catalog.Operator(), search.Request{Query: "otter"}, func(*search.Chunk) error { return stop })
	if !errors.Is(err, stop) {
		t.Errorf("a failing send gives %v", err)
	}
}

// checkRepositories checks the results and counts of type:repo.
func checkRepositories(t *testing.T, n *nodetest.Node, repos int) {
	t.Helper()
	whole := n.Results("type:repo otter")
	chunks, sum := stream(t, n, search.Request{Query: "type:repo otter"})
	var names, streamed []string
	for _, r := range whole.Repositories {
		names = append(names, r.Name)
	}
	for _, c := range chunks {
		for _, r := range c.Repositories {
			streamed = append(streamed, r.Name)
		}
	}
	if len(whole.Files) != 0 || len(names) != repos || !slices.IsSorted(names) {
		t.Errorf("type:repo finds %q and %d files", names, len(whole.Files))
	}
	want(t, streamed, names...)
	for _, s := range []search.Stats{whole.Stats, sum.Stats} {
		if s.Files != repos || s.TotalMatches != repos || s.ActualMatches != repos {
			t.Errorf("type:repo counts %d files, %d matches, %d returned; want %d each", s.Files, s.TotalMatches, s.ActualMatches, repos)
		}
	}
	for _, query := range []string{"type:repo otter count:3"} {
		cut := n.Results(query)
		if len(cut.Repositories) != 3 || cut.Coverage.Exhaustive() || cut.Stats.Files != repos || cut.Stats.ActualMatches != 3 {
			t.Errorf("%q finds %d repositories, exhaustive %v, %+v", query, len(cut.Repositories), cut.Coverage.Exhaustive(), cut.Stats)
		}
		chunks, sum := stream(t, n, search.Request{Query: query})
		got := 0
		for _, c := range chunks {
			got += len(c.Repositories)
		}
		if got != 3 || sum.Coverage.Exhaustive() || sum.Stats.ActualMatches != 3 {
			t.Errorf("%q streams %d repositories, exhaustive %v, %+v", query, got, sum.Coverage.Exhaustive(), sum.Stats)
		}
	}
}

func TestSearch_countAllIsExactBeyondTheLimit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const files, each = 60, 40
	tree := map[string]string{"other.txt": "nobody\n"}
	for i := range files {
		tree[fmt.Sprintf("d%d/otter%02d.txt", i%7, i)] = lines("heron", each)
	}
	nodetest.NewRepo(t, filepath.Join(dir, "app"), tree)
	n := nodetest.Start(t, nodetest.Config{File: still(dir)})
	n.WaitIndexed(1)

	all := n.Results("heron count:all")
	if s := all.Stats; s.TotalMatches != files*each || s.Files != files {
		t.Errorf("count:all counts %d matches in %d files, want %d in %d", s.TotalMatches, s.Files, files*each, files)
	}
	limited, err := n.Node.Search.Search(context.Background(), catalog.Operator(), search.Request{Query: "heron", Matches: 50})
	if err != nil {
		t.Fatal(err)
	}
	ranges := 0
	for _, f := range limited.Files {
		for _, c := range f.Chunks {
			ranges += len(c.Ranges)
		}
	}
	if s := limited.Stats; ranges != 50 || s.ActualMatches != 50 || limited.Coverage.Exhaustive() || s.FlushReason != search.FlushLimit {
		t.Errorf("with a limit of 50: %d ranges, exhaustive %v, %+v", ranges, limited.Coverage.Exhaustive(), s)
	}
	exact, err := n.Node.Search.Search(context.Background(), catalog.Operator(), search.Request{Query: "heron count:all", Matches: 50})
	if err != nil {
		t.Fatal(err)
	}
	if s := exact.Stats; s.ActualMatches != 50 || s.TotalMatches != files*each || s.Files != files {
		t.Errorf("count:all with a limit of 50: %+v", s)
	}
	if !slices.Equal(pathsIn(exact), pathsIn(limited)) {
		t.Errorf("count:all changes the answer: %q, %q", pathsIn(exact), pathsIn(limited))
	}

	// Matches in names count like matches in contents, shown or not.
	for query, total := range map[string]int{
		"file:otter heron":    files * (each + 1),
		"file:otter":          files,
		"repo:app file:.":     len("other.txt") + files*len("d0/otter00.txt"),
		"repo:app":            0,
		"file:other nobody":   2,
		"file:otter -file:d1": files - 9,
	} {
		for _, most := range []int{0, 1, 7} {
			r, err := n.Node.Search.Search(context.Background(), catalog.Operator(), search.Request{Query: query + " count:all", Matches: most})
			if err != nil {
				t.Fatal(err)
			}
			wanted := min(total, most)
			if most == 0 {
				wanted = min(total, 1000)
			}
			if s := r.Stats; s.TotalMatches != total || s.ActualMatches != wanted || len(r.Files) == 0 {
				t.Errorf("%s with a limit of %d: %d in all, %d shown in %d files; want %d, %d", query, most, s.TotalMatches, s.ActualMatches, len(r.Files), total, wanted)
			}
		}
	}

	// Without ctags there are no symbols, and the answer says so.
	if r := n.Results("sym:heron"); !r.Coverage.Exhaustive() {
		t.Errorf("sym: of prose, which has no symbols: not exhaustive, flushReason %s", r.Stats.FlushReason)
	}

	listed := n.Results("type:file heron")
	if s := listed.Stats; len(listed.Files) != files || s.Files != files || !listed.Coverage.Exhaustive() {
		t.Errorf("type:file finds %d files, %+v", len(listed.Files), s)
	}
	for _, f := range listed.Files {
		if len(f.Chunks) > 0 {
			t.Errorf("type:file shows lines of %s", f.Path)
		}
	}
	named := n.Results("type:file file:otter")
	if len(named.Files) != files || len(named.Files[0].NameRanges) != 1 {
		t.Errorf("type:file of a name finds %d files", len(named.Files))
	}
	few := n.Results("type:file heron count:7")
	if len(few.Files) != 7 || few.Coverage.Exhaustive() || few.Stats.FlushReason != search.FlushLimit {
		t.Errorf("type:file with a limit of 7 finds %d files, exhaustive %v, %+v", len(few.Files), few.Coverage.Exhaustive(), few.Stats)
	}
}

func pathsIn(r *search.Response) (list []string) {
	for _, f := range r.Files {
		list = append(list, f.Path)
	}
	return list
}

func TestSearch_obeysTimeoutsAndRefusesInvalidOnes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	nodetest.NewRepo(t, filepath.Join(dir, "app"), map[string]string{"a.txt": lines("heron", 10)})
	n := nodetest.Start(t, nodetest.Config{File: still(dir)})
	n.WaitIndexed(1)
	if r := n.Results("heron timeout:1m"); !r.Coverage.Exhaustive() || len(r.Files) != 1 {
		t.Errorf("with time enough: %+v", r)
	}
	r := n.Results("heron timeout:1ns")
	if r.Coverage.Exhaustive() || r.Stats.FlushReason != search.FlushTimeout {
		t.Errorf("with no time: exhaustive %v, %+v", r.Coverage.Exhaustive(), r.Stats)
	}
	_, err := n.Node.Search.Search(context.Background(), catalog.Operator(), search.Request{Query: "heron timeout:soon"})
	if !errors.Is(err, call.ErrQuery) {
		t.Errorf("a timeout that is none gives %v", err)
	}

	// The position of a mistake, and what is expected there.
	_, err = n.Node.Search.Search(context.Background(), catalog.Operator(), search.Request{Query: "héron case:maybe"})
	wrong := (*call.Error)(nil)
	if !errors.As(err, &wrong) || wrong.Offset != 12 || wrong.Length != 5 || !slices.Equal(wrong.Choices, []string{"yes", "no", "auto"}) || wrong.Suggestion != `"héron case:maybe"` {
		t.Errorf("a mistake: %+v", wrong)
	}
	_, err = n.Node.Search.Search(context.Background(), catalog.Operator(), search.Request{Query: "heron a(b", Regexp: true})
	if !errors.As(err, &wrong) || wrong.Offset != 6 || wrong.Length != 3 || wrong.Choices != nil || wrong.Suggestion != `"heron a\(b"` {
		t.Errorf("a mistake in an expression: %+v", wrong)
	}

	// A query that is too long gets one error, whatever its length. Very long ones used to get a
	// second.
	for _, length := range []int{query.MaxLength + 1, 10 * query.MaxLength} {
		_, err := n.Node.Search.Search(context.Background(), catalog.Operator(), search.Request{Query: strings.Repeat("a", length)})
		if !errors.Is(err, call.ErrQuery) || !strings.Contains(err.Error(), fmt.Sprintf("at most %d bytes", query.MaxLength)) {
			t.Errorf("a query of %d bytes gives %v", length, err)
		}
	}
}
