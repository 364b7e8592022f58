package shard

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/shoalsearch/shoal/shard/query"
)

// place is one place of an answer: a range in the content or the path of a file, or
// the file itself where it has none.
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

// walk reads an answer in parts of a few matches each, and checks that they are
// whole: it returns them one behind the other.
func walk(t *testing.T, v *View, r Request, sizes func() int) (places []string, files []File) {
	t.Helper()
	r.MaxMatches = sizes()
	res := answerOf(t, v, r)
	first := tallyOf(res.Files)
	shown := 0
	for n := 0; ; n++ {
		if len(res.Files) > 0 {
			last := &res.Files[len(res.Files)-1]
			if at := markOf(&r); at == nil || !at.IsOf(last) {
				shown = 0
			}
			shown += len(placesOf(res.Files[len(res.Files)-1:]))
		}
		places = append(places, placesOf(res.Files)...)
		files = append(files, res.Files...)
		if r.First != nil && res.Shown != first {
			t.Fatalf("%s: a later answer leaves out %+v, the first showed %+v", r.Q, res.Shown, first)
		}
		if !res.More {
			return places, files
		}
		if len(res.Files) == 0 || n > 10_000 {
			t.Fatalf("%s: answer %d is empty, and not the last", r.Q, n)
		}

		mark := MarkBehind(&res.Files[len(res.Files)-1], shown)
		if !r.CountAll && res.Stats.FilesSkipped > 0 {
			r.First = &First{MaxMatches: r.MaxMatches, Last: *mark}
		} else {
			r.After = mark
		}
		r.CountAll, r.MaxMatches = true, sizes()
		res = answerOf(t, v, r)
	}
}

// markOf is the last mark of a request.
func markOf(r *Request) *Mark {
	switch {
	case r.After != nil:
		return r.After
	case r.First != nil:
		return &r.First.Last
	}
	return nil
}

func answerOf(t *testing.T, v *View, r Request) *Result {
	t.Helper()
	res, err := v.Search(context.Background(), r)
	if err != nil {
		t.Fatalf("%s: %v", r.Q, err)
	}
	return res
}

func tallyOf(files []File) (out Tally) {
	for i := range files {
		out.Add(&files[i])
	}
	return out
}

// TestAnswersGoOnWhereOthersEnded reads random answers in small parts: together they
// are the whole answer in its order, each place once.
func TestAnswersGoOnWhereOthersEnded(t *testing.T) {
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
			got, _ := walk(t, v, Request{Q: q, CountAll: true}, func() int { return 1 + r.IntN(2+len(want)/4) })
			if !slices.Equal(got, want) {
				t.Fatalf("%s: %d places in parts, %d in one answer", q, len(got), len(want))
			}
		}
	}
}

// TestAnswersGoOnWhereAnEarlyOneEnded begins with answers that stop early: what they
// show is a choice of some files, and what follows has every other one.
func TestAnswersGoOnWhereAnEarlyOneEnded(t *testing.T) {
	t.Parallel()
	w := manyFiles(3000)
	set, parts := w.built(t, t.TempDir(), false, BuildOptions{})
	v, _ := set.Acquire(parts)
	defer v.Release()
	r := rand.New(rand.NewPCG(1, 6))

	for _, text := range []string{"common", "o", "lock"} {
		q := &query.Text{Pattern: text}
		whole := answerOf(t, v, Request{Q: q, MaxMatches: 1 << 30, CountAll: true})
		size := 10 // which ends within a file, and stops early
		got, files := walk(t, v, Request{Q: q}, func() int {
			now := size
			size = 500 + r.IntN(1500)
			return now
		})
		want := placesOf(whole.Files)

		// The first ones are a choice: their order is that of the whole, but others come between.
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("%s: %d places in parts, %d in one answer", text, len(got), len(want))
		}
		if early := answerOf(t, v, Request{Q: q, MaxMatches: 10}); text == "common" && (early.Stats.FilesSkipped == 0 || reflect.DeepEqual(files[:len(early.Files)], whole.Files[:len(early.Files)])) {
			t.Fatal("the first answer has not stopped early: the test tests nothing")
		}
	}
}

// TestAListGoesOn walks through a list of files without places.
func TestAListGoesOn(t *testing.T) {
	t.Parallel()
	w := manyFiles(700)
	set, parts := w.built(t, t.TempDir(), false, BuildOptions{})
	v, _ := set.Acquire(parts)
	defer v.Release()

	list := Request{Q: &query.Text{Pattern: "common"}, MaxMatches: 1 << 20, MaxFiles: 90, NoChunks: true}
	had := map[string]bool{}
	for range 8 {
		res := answerOf(t, v, list)
		for _, f := range res.Files {
			if had[f.Path] {
				t.Fatalf("%s is there twice", f.Path)
			}
			had[f.Path] = true
		}
		list.CountAll, list.After = true, MarkBehind(&res.Files[len(res.Files)-1], wholeFile)
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

// TestTheSamePathTwiceGoesOn: contents that a path has in different revisions are
// files of their own, ordered by the names of these and not by their number.
func TestTheSamePathTwiceGoesOn(t *testing.T) {
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

	_, files := walk(t, v, Request{Q: &query.And{Subs: []query.Q{&query.Text{Pattern: "otter"}, &query.Rev{Pattern: "*"}}}, CountAll: true}, func() int { return 1 })
	if len(files) != 2 || files[0].Revisions[0] != "refs/heads/a" || files[1].Revisions[0] != "refs/heads/z" {
		t.Fatalf("%+v", files)
	}
}
