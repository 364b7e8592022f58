package shard

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/shard/file"
	"github.com/shoalsearch/shoal/shard/query"
	"github.com/shoalsearch/shoal/shard/symbols"
)

// probes returns queries that together read every section.
func probes() []query.Q {
	return []query.Q{
		&query.Text{Pattern: "lock", Fold: true},
		&query.Text{Pattern: `[a-z]+_\w+`, Regexp: true},
		&query.Text{Pattern: `(.|\n)lock`, Regexp: true},
		&query.And{Subs: []query.Q{&query.Text{Pattern: "o", Field: query.Name}, &query.Not{Sub: &query.Lang{Name: "Go"}}}},
		&query.Text{Pattern: `^n`, Regexp: true, Field: query.Symbol},
		&query.Rev{Pattern: "*"},
	}
}

// ask returns the answers of the probes; nil for an incomplete answer.
func ask(t *testing.T, set *Set, parts []Part) []*Result {
	t.Helper()
	var out []*Result
	for _, q := range probes() {
		v, missing := set.Acquire(parts)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		res, err := v.Search(ctx, Request{Q: q, MaxMatches: 1 << 20, CountAll: true, Whole: true})
		cancel()
		v.Release()
		if err != nil {
			t.Fatalf("%s: %v", q, err)
		}
		if len(missing) > 0 || len(res.Failed) > 0 {
			res = nil
		} else {
			res.Stats = Stats{}
		}
		out = append(out, res)
	}
	return out
}

// TestSearch_damagedFilesGiveErrorsNotAnswers flips bytes in the files of a shard, or truncates the
// files. Then each answer is either right or incomplete.
func TestSearch_damagedFilesGiveErrorsNotAnswers(t *testing.T) {
	t.Parallel()
	w := randomWorld(rand.New(rand.NewPCG(5, 5)))
	w.trees[0]["src/n.go"] = []string{"func nine() {\n}\nfunc ten_lock() {\n}\n"}
	w.trees[0]["src/n.go"] = append(w.trees[0]["src/n.go"], make([]string, 3)...)[:len(w.repos[0].Revisions)-1]
	home := t.TempDir()
	set, parts := w.built(t, home, true, BuildOptions{})
	var calls atomic.Int64
	part, err := symbolize(set, parts[0], nil, tagLines(&calls))
	if err != nil {
		t.Fatal(err)
	}
	for i := range parts {
		parts[i].Symbols = part.Symbols
	}
	want := ask(t, set, parts)
	r := rand.New(rand.NewPCG(6, 6))
	noticed := 0
	for i := range 150 {
		name := parts[0].Shard.Name(KindShard)
		if i%3 == 0 {
			name = part.Symbols.Name(KindSymbols)
		}
		data, err := os.ReadFile(filepath.Join(home, name))
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case i%10 == 9:
			data = data[:r.IntN(len(data))]
		default:
			data[r.IntN(len(data))] ^= 1 << r.IntN(8)
		}
		if damagedAnswer(t, home, name, data, parts, want) {
			noticed++
		}
	}
	// Damage in padding, or in a page that no probe reads, is not noticed.
	if noticed < 100 {
		t.Fatalf("noticed %d of 150", noticed)
	}
}

// damagedAnswer runs the probes on a set whose file name has other data, and reports whether the
// damage was noticed.
func damagedAnswer(t *testing.T, home, name string, data []byte, parts []Part, want []*Result) bool {
	t.Helper()
	dir := t.TempDir()
	for _, other := range parts[0].Files() {
		if other != name {
			if err := os.Link(filepath.Join(home, other), filepath.Join(dir, other)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
		t.Fatal(err)
	}
	told := make(chan string, 4)
	set, err := OpenSet(dir, SetOptions{Damaged: func(name string, _ error) { told <- name }})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	noticed := false
	for i, got := range ask(t, set, parts) {
		if got == nil {
			noticed = true
		} else if !reflect.DeepEqual(got, want[i]) {
			t.Fatalf("%s: wrong answer %d from a damaged file", name, i)
		}
	}
	if noticed {
		select {
		case got := <-told:
			if got != name {
				t.Fatalf("quarantined %s, damaged was %s", got, name)
			}
		case <-time.After(time.Minute):
			t.Fatal("nobody was told of the damage")
		}
		if set.Has(name) {
			t.Fatalf("%s is still in the set", name)
		}
	}
	return noticed
}

// TestSearch_reportsAFileTruncatedWhileMapped truncates a file while it is open.
func TestSearch_reportsAFileTruncatedWhileMapped(t *testing.T) {
	t.Parallel()
	w := &world{repos: []Repository{{ID: 1, Name: "r", Revisions: []Revision{{Name: "HEAD", Commit: blobID("1")}}}}}
	text := strings.Repeat("some text with a lock in it\n", 20000)
	w.trees = append(w.trees, map[string][]string{"a.c": {text}, "b.c": {text + "x"}})
	set, parts := w.built(t, t.TempDir(), false, BuildOptions{})
	v, _ := set.Acquire(parts)
	defer v.Release()
	path := filepath.Join(set.Dir(), parts[0].Shard.Name(KindShard))
	if err := errors.Join(os.Chmod(path, 0o600), os.Truncate(path, 8192)); err != nil {
		t.Fatal(err)
	}
	res, err := v.Search(context.Background(), Request{Q: &query.Text{Pattern: "lock"}, CountAll: true})
	if err != nil || len(res.Failed) != 1 || len(res.Files) != 0 {
		t.Fatalf("%+v, %v", res, err)
	}
}

// A truncated side file is quarantined, and not the shard through which it is read.
func TestSearch_reportsATruncatedSideFile(t *testing.T) {
	t.Parallel()
	set, parts := symbolWorld().built(t, t.TempDir(), false, BuildOptions{})
	var calls atomic.Int64
	part, err := symbolize(set, parts[0], nil, tagLines(&calls))
	if err != nil {
		t.Fatal(err)
	}
	v, _ := set.Acquire([]Part{part})
	defer v.Release()
	name := part.Symbols.Name(KindSymbols)
	if err := errors.Join(os.Chmod(filepath.Join(set.Dir(), name), 0o600), os.Truncate(filepath.Join(set.Dir(), name), 0)); err != nil {
		t.Fatal(err)
	}
	res, err := v.Search(context.Background(), Request{Q: &query.Text{Pattern: "a", Field: query.Symbol}})
	if err != nil || len(res.Failed) != 1 {
		t.Fatalf("%+v, %v", res, err)
	}
	if set.Has(name) || !set.Has(part.Shard.Name(KindShard)) {
		t.Fatalf("the set has %q, put aside should be %s alone", set.Names(), name)
	}
}

// A search that still reads a damaged file may report the damage again after a new copy has taken
// its place. The new copy stays.
func TestQuarantine_keepsANewCopyOfADamagedFile(t *testing.T) {
	t.Parallel()
	w := &world{repos: []Repository{{ID: 1, Name: "r", Revisions: []Revision{{Name: "HEAD", Commit: blobID("1")}}}}}
	w.trees = append(w.trees, map[string][]string{"a.c": {strings.Repeat("some text with a lock in it\n", 20000)}})
	set, parts := w.built(t, t.TempDir(), false, BuildOptions{})
	v, _ := set.Acquire(parts)
	defer v.Release()

	name := parts[0].Shard.Name(KindShard)
	path := filepath.Join(set.Dir(), name)
	good, err := os.ReadFile(path)
	if err := errors.Join(err, os.Chmod(path, 0o600), os.Truncate(path, 8192)); err != nil {
		t.Fatal(err)
	}

	search := func() {
		t.Helper()
		res, err := v.Search(context.Background(), Request{Q: &query.Text{Pattern: "lock"}, CountAll: true})
		if err != nil || len(res.Failed) != 1 {
			t.Fatalf("%+v, %v", res, err)
		}
	}
	search()
	if set.Has(name) {
		t.Fatal("the damaged file is still there")
	}
	if err := set.Import(context.Background(), name, bytes.NewReader(good)); err != nil {
		t.Fatal(err)
	}
	search()
	if !set.Has(name) {
		t.Error("the new copy was put aside")
	}
}

func TestParseFileName_returnsKindAndHash(t *testing.T) {
	t.Parallel()
	id := FileID{0xab, 31: 1}
	for _, kind := range []FileKind{KindShard, KindDead, KindSymbols} {
		if got, is, ok := ParseFileName(id.Name(kind)); got != id || is != kind || !ok {
			t.Errorf("%s: %v, kind %d, %v", id.Name(kind), got, is, ok)
		}
	}
	if got, err := ParseFileID(id.String()); got != id || err != nil {
		t.Errorf("%s: %v, %v", id, got, err)
	}
	digits := id.String()
	for _, name := range []string{
		"", ".shard", digits, digits + ".shards", digits + ".shard.dead", "../" + digits + ".shard",
		strings.ToUpper(digits) + ".shard", digits[1:] + ".shard", strings.Repeat("0", 64) + ".shard",
	} {
		if _, _, ok := ParseFileName(name); ok {
			t.Errorf("%q counts as the name of an index file", name)
		}
	}
}

// FuzzSearch_endsOnAChangedIndexFileWithValidChecksums changes bytes of a shard and corrects the
// checksums, as a bug of the writer would. Searching it must end, whatever the answer is.
func FuzzSearch_endsOnAChangedIndexFileWithValidChecksums(f *testing.F) {
	w := randomWorld(rand.New(rand.NewPCG(9, 9)))
	dir := f.TempDir()
	built, err := Build(context.Background(), dir, w.source(-1), BuildOptions{})
	if err != nil {
		f.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, built[0].Shard.Name(KindShard)))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(uint32(20), uint8(1), uint32(300), uint8(0xff))
	f.Fuzz(func(t *testing.T, at uint32, value uint8, again uint32, value2 uint8) {
		changed := resealed(t, built[0].Shard.Name(KindShard), data, at, value, again, value2)
		m := &member{entry: &entry{f: changed}, sh: &shard{f: changed}}
		for _, b := range built {
			m.parts = append(m.parts, b.Part)
			m.dead = append(m.dead, nil)
		}
		searchResealed(t, m)
	})
}

// FuzzSearch_endsOnChangedSymbolsWithValidChecksums does the same with the symbols of a shard.
func FuzzSearch_endsOnChangedSymbolsWithValidChecksums(f *testing.F) {
	w := symbolWorld()
	dir := f.TempDir()
	built, err := Build(context.Background(), dir, w.source(-1), BuildOptions{})
	if err != nil {
		f.Fatal(err)
	}
	set, err := OpenSet(dir, SetOptions{})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = set.Close() })
	var calls atomic.Int64
	part, err := symbolize(set, built[0].Part, nil, tagLines(&calls))
	if err != nil {
		f.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, part.Symbols.Name(KindSymbols)))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(uint32(20), uint8(1), uint32(300), uint8(0xff))
	f.Fuzz(func(t *testing.T, at uint32, value uint8, again uint32, value2 uint8) {
		v, _ := set.Acquire([]Part{built[0].Part})
		defer v.Release()
		bad := resealed(t, part.Symbols.Name(KindSymbols), data, at, value, again, value2)
		m := v.members[0] // of this view only
		m.parts, m.sym = []Part{part}, &entry{f: bad, sym: symbols.Open(bad, new(symbols.Tables))}
		searchResealed(t, m)
	})
}

// resealed returns a file with two changed bytes and correct checksums.
func resealed(t *testing.T, name string, data []byte, at uint32, value uint8, again uint32, value2 uint8) *file.File {
	t.Helper()
	changed := append([]byte(nil), data...)
	_, kind, _ := ParseFileName(name)
	err := file.Seal(changed, kind, func(data []byte) {
		sections := data[file.HeadBytes:]
		sections[int(at)%len(sections)] ^= value
		sections[int(again)%len(sections)] ^= value2
	})
	if err != nil {
		t.Fatal(err)
	}
	f, err := file.FromBytes(name, changed, kind, &file.Release)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func searchResealed(t *testing.T, m *member) {
	set := &resources{gate: newGate(2), report: func(*member, error) {}}
	v := &View{set: set, members: []*member{m}}
	for _, q := range probes() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		if _, err := v.Search(ctx, Request{Q: q, CountAll: true, Around: true}); err != nil {
			t.Fatal(err)
		}
		cancel()
	}
}
