package shard

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/shoalsearch/shoal/shard/query"
)

// placesOf returns the places of an answer: ranges in the content or the path of a file, or the
// file itself if it has none.
func placesOf(files []File) (out []string) {
	for _, f := range files {
		name := fmt.Sprintf("%s:%s %q %s", f.RepoName, f.Path, f.Revisions, f.OID)
		n := 0
		for _, c := range f.Chunks {
			for _, r := range c.Ranges {
				out, n = append(out, fmt.Sprintf("%s %v", name, r)), n+1
			}
		}
		for _, r := range f.NameMatch {
			out, n = append(out, fmt.Sprintf("%s name %v", name, r)), n+1
		}
		if n == 0 {
			out = append(out, name)
		}
	}
	return out
}

// walk reads an answer in pages of a few matches each, and returns all of their places in order.
func walk(t *testing.T, v *View, r Request, sizes func() int) (places []string, files []File) {
	t.Helper()
	r.CountAll = true
	for shown := 0; ; {
		r.MaxMatches = sizes()
		res := answerOf(t, v, r)
		places = append(places, placesOf(res.Files)...)
		files = append(files, res.Files...)
		if !res.More {
			return places, files
		}
		if len(res.Files) == 0 || len(files) > 100_000 {
			t.Fatalf("%s: an answer behind %d files is empty, and not the last", r.Q, len(files))
		}

		last := &res.Files[len(res.Files)-1]
		if r.After == nil || !r.After.In(last) {
			shown = 0
		}
		shown += len(placesOf(res.Files[len(res.Files)-1:]))
		r.After = CursorBehind(last, shown)
	}
}

func answerOf(t *testing.T, v *View, r Request) *Result {
	t.Helper()
	res, err := v.Search(context.Background(), r)
	if err != nil {
		t.Fatalf("%s: %v", r.Q, err)
	}
	return res
}

// TestSearchPages_togetherAreTheWholeAnswer reads random answers in small pages. Together the pages have
// the whole answer in its order, with each place once.
func TestSearchPages_togetherAreTheWholeAnswer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for seed := range 8 {
		r := rand.New(rand.NewPCG(uint64(seed), 5))
		w := randomWorld(r)
		set, parts := w.built(t, filepath.Join(dir, fmt.Sprint(seed)), seed%2 == 0, BuildOptions{SliceBytes: int64(seed%3) * 20000})
		v, _ := set.Acquire(parts)
		defer v.Release()
		for range 12 {
			q := w.randomQuery(r, 2)
			whole := answerOf(t, v, Request{Q: q, MaxMatches: 1 << 30, CountAll: true})
			want := placesOf(whole.Files)
			got, _ := walk(t, v, Request{Q: q}, func() int { return 1 + r.IntN(2+len(want)/4) })
			if !slices.Equal(got, want) {
				t.Fatalf("%s: %d places in parts, %d in one answer", q, len(got), len(want))
			}
		}
	}
}

// TestSearchPages_ofAFileListHaveEachFileOnce pages through a list of files without places.
func TestSearchPages_ofAFileListHaveEachFileOnce(t *testing.T) {
	t.Parallel()
	w := manyFiles(700)
	set, parts := w.built(t, t.TempDir(), false, BuildOptions{})
	v, _ := set.Acquire(parts)
	defer v.Release()

	list := Request{Q: &query.Text{Pattern: "common"}, MaxMatches: 1 << 20, MaxFiles: 90, NoChunks: true, CountAll: true}
	had := map[string]bool{}
	for range 8 {
		res := answerOf(t, v, list)
		for _, f := range res.Files {
			if had[f.Path] {
				t.Fatalf("%s is there twice", f.Path)
			}
			had[f.Path] = true
		}
		list.After = CursorBehind(&res.Files[len(res.Files)-1], wholeFile)
		if !res.More {
			break
		}
	}
	if len(had) != 700 {
		t.Fatalf("%d files of 700", len(had))
	}
}

// wholeFile is more places than any file has.
const wholeFile = 1 << 30

// Different contents at one path are different files. They are ordered by the names of their
// revisions, not by the numbers of these.
func TestSearchPages_orderOnePathByRevisionName(t *testing.T) {
	t.Parallel()
	w := &world{
		repos: []Repository{{ID: 1, Name: "r", Revisions: []Revision{
			{Name: "refs/heads/z", Commit: blobID("z"), Bit: 0}, {Name: "refs/heads/a", Commit: blobID("a"), Bit: 1},
		}}},
		trees: []map[string][]string{{"f.txt": {"otter one\n", "otter two\n"}}},
	}
	set, parts := w.built(t, t.TempDir(), false, BuildOptions{})
	v, _ := set.Acquire(parts)
	defer v.Release()

	_, files := walk(t, v, Request{Q: &query.And{Subs: []query.Q{&query.Text{Pattern: "otter"}, &query.Rev{Pattern: "*"}}}}, func() int { return 1 })
	if len(files) != 2 || files[0].Revisions[0] != "refs/heads/a" || files[1].Revisions[0] != "refs/heads/z" {
		t.Fatalf("%+v", files)
	}
}
