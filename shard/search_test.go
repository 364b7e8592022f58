package shard

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/shard/query"
)

// manyFiles returns a world with one repository in which every file contains the word common.
func manyFiles(n int) *world {
	r := rand.New(rand.NewPCG(8, 8))
	tree := map[string][]string{}
	for i := range n {
		text := fmt.Sprintf("file %d\n%s\n", i, words[r.IntN(len(words))])
		for range r.IntN(4) {
			text += "a common word\n"
		}
		tree[fmt.Sprintf("%c/f%05d.c", 'a'+i%7, i)] = []string{text + "common\n"}
	}
	return &world{
		repos: []Repository{{ID: 1, Name: "r", Revisions: []Revision{{Name: "HEAD", Commit: blobID("1")}}}},
		trees: []map[string][]string{tree},
	}
}

// TestSearch_earlyStopIsDeterministic searches for a few of many matches with different numbers of
// cores. The files are always the same, and the answer is marked as cut.
func TestSearch_earlyStopIsDeterministic(t *testing.T) {
	t.Parallel()
	w := manyFiles(6000)
	dir := t.TempDir()
	_, parts := w.built(t, dir, false, BuildOptions{})
	var first []File
	for workers := 1; workers <= 4; workers++ {
		set, err := OpenSet(dir, SetOptions{Workers: workers})
		if err != nil {
			t.Fatal(err)
		}
		defer set.Close()
		v, _ := set.Acquire(parts)
		defer v.Release()
		for range 3 {
			res, err := v.Search(context.Background(), Request{Q: &query.Text{Pattern: "common"}, MaxMatches: 10})
			if err != nil {
				t.Fatal(err)
			}
			if !res.Cut || res.Stats.ActualMatches != 10 || res.Stats.FilesSkipped == 0 {
				t.Fatalf("cut %v, %+v", res.Cut, res.Stats)
			}
			if first == nil {
				first = res.Files
			}
			if !reflect.DeepEqual(res.Files, first) {
				t.Fatalf("%d workers found other files", workers)
			}
		}
		all, err := v.Search(context.Background(), Request{Q: &query.Text{Pattern: "common"}, MaxMatches: 10, CountAll: true})
		if err != nil || all.Stats.Files != 6000 || all.Stats.ActualMatches != 10 || !all.Cut {
			t.Fatalf("%+v, %v", all, err)
		}
	}
}

func TestSearch_stopsWithItsContext(t *testing.T) {
	t.Parallel()
	w := manyFiles(300)
	set, parts := w.built(t, t.TempDir(), false, BuildOptions{})
	v, _ := set.Acquire(parts)
	defer v.Release()
	q := &query.Text{Pattern: `(a|b|o)+.*d\s`, Regexp: true}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := v.Search(ctx, Request{Q: q, CountAll: true}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	ctx, cancel = context.WithDeadline(context.Background(), time.Unix(1, 0))
	defer cancel()
	if res, err := v.Search(ctx, Request{Q: q, CountAll: true}); err != nil || !res.Cut {
		t.Errorf("late: %+v, %v", res, err)
	}
	if res, err := v.Search(context.Background(), Request{Q: q, MemoryLimit: 2000, Whole: true}); err != nil || !res.Cut || len(res.Files) == 0 {
		t.Errorf("little memory: %+v, %v", res, err)
	}
}

// TestSearch_skippedFilesMatchByName builds an index with small limits.
func TestSearch_skippedFilesMatchByName(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 3))
	noise := make([]byte, 3000)
	for i := range noise {
		noise[i] = byte(33 + r.IntN(90))
	}
	w := &world{
		repos: []Repository{{ID: 1, Name: "r", Revisions: []Revision{{Name: "HEAD", Commit: blobID("1")}}}},
		trees: []map[string][]string{{
			"bin": {"a\x00b"}, "large.txt": {string(make([]byte, 5000)) + "x"}, "noise.txt": {string(noise)},
			"always/noise.txt": {string(noise) + "!"}, "fine.txt": {"fine text"},
		}},
	}
	set, parts := w.built(t, t.TempDir(), false, BuildOptions{
		MaxFileSize: 4000, MaxTrigrams: 500, Always: func(path string) bool { return path == "always/noise.txt" },
	})
	v, _ := set.Acquire(parts)
	defer v.Release()
	res, err := v.Search(context.Background(), Request{Q: &query.Lang{Name: SkippedLanguage}})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, f := range res.Files {
		got[f.Path] = f.Skipped
	}
	want := map[string]string{
		"bin": skippedBinary.reason(), "large.txt": skippedLarge.reason(), "noise.txt": skippedTrigrams.reason(),
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
}

// As in git, a file is binary if its first 8,000 bytes contain a NUL. Text after a later NUL can be
// found.
func TestBuild_aFileWithALateNULIsText(t *testing.T) {
	t.Parallel()
	head := strings.Repeat("a line of the head\n", 1000)
	w := &world{
		repos: []Repository{{ID: 1, Name: "r", Revisions: []Revision{{Name: "HEAD", Commit: blobID("1")}}}},
		trees: []map[string][]string{{
			"last":  {head[:7999] + "\x00 needle"},
			"first": {head[:8000] + "\x00 needle"},
			"late":  {head + "before\x00\x00needle\x00after\n\x00"},
		}},
	}
	set, parts := w.built(t, t.TempDir(), false, BuildOptions{})
	v, _ := set.Acquire(parts)
	defer v.Release()
	for _, expr := range []string{"needle", `\x00+ ?needle`, `[^a-z]needle`} {
		res, err := v.Search(context.Background(), Request{Q: &query.Text{Pattern: expr, Regexp: true}})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range res.Files {
			got = append(got, f.Path)
		}
		slices.Sort(got)
		if want := []string{"first", "late"}; !slices.Equal(got, want) {
			t.Errorf("%s is found in %q, want %q", expr, got, want)
		}
	}
}

// TestRender_yieldsToLightSearches makes a light search wait while the only slot renders the files
// of a heavy one. The light search gets the slot before the next file.
func TestRender_yieldsToLightSearches(t *testing.T) {
	t.Parallel()
	w := manyFiles(40)
	set, parts := w.built(t, t.TempDir(), false, BuildOptions{})
	v, _ := set.Acquire(parts)
	defer v.Release()

	ctx, g := context.Background(), newGate(1)
	s := &search{v: v, r: Request{Q: &query.Text{Pattern: "common"}, MaxMatches: 1 << 20, MemoryLimit: 1 << 30}, gate: g, runs: []*run{{m: v.members[0]}}}
	var err error
	if s.p, err = newPlan(s.r.Q, nil, &set.known); err != nil {
		t.Fatal(err)
	}
	if err := s.runFirstRound(ctx); err != nil {
		t.Fatal(err)
	}
	hits := s.collectHits(&Result{})

	// Rank is called once for each file.
	files, served := 0, make(chan struct{})
	s.spent = time.Second
	s.r.Rank = func(uint32) (string, float64) {
		switch files++; files {
		case 1:
			go func() {
				if g.enter(ctx, light) == nil {
					close(served)
					g.leave()
				}
			}()
			for waiting := 0; waiting == 0; runtime.Gosched() {
				g.mu.Lock()
				waiting = len(g.lanes[light])
				g.mu.Unlock()
			}
		case 2:
			select {
			case <-served:
			default:
				t.Error("the light search still waits when the second file is rendered")
			}
		}
		return "r", 0
	}
	if _, err := s.renderChosen(ctx, hits); err != nil || files < 40 {
		t.Errorf("%d files, %v", files, err)
	}
	if g.free != 1 {
		t.Errorf("%d slots are free, want 1", g.free)
	}
}

// TestSearchSlots_lightSearchesPassHeavyOnes holds every slot of a gate while light and heavy
// searches wait. Light ones go first, but every fourth slot goes to the heavy lane.
func TestSearchSlots_lightSearchesPassHeavyOnes(t *testing.T) {
	t.Parallel()
	g := newGate(1)
	if err := g.enter(context.Background(), light); err != nil {
		t.Fatal(err)
	}
	order := make(chan int)
	for i := range 12 {
		lane := light
		if i < 6 {
			lane = heavy
		}
		waiting := func() int {
			g.mu.Lock()
			defer g.mu.Unlock()
			return len(g.lanes[light]) + len(g.lanes[heavy])
		}
		go func() {
			if g.enter(context.Background(), lane) == nil {
				order <- lane
			}
		}()
		for waiting() <= i { // until it waits in its lane
			runtime.Gosched()
		}
	}
	var got []int
	for range 12 {
		g.leave()
		got = append(got, <-order)
	}
	want := []int{light, light, light, heavy, light, light, light, heavy, heavy, heavy, heavy, heavy}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("order %v, want %v", got, want)
	}
}
