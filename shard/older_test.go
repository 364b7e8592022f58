package shard

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/shard/file"
	"github.com/shoalsearch/shoal/shard/query"
)

// versioned writes a file into another directory with another version in its head, as that version
// would have written it, and returns its new name.
func versioned(t *testing.T, from, name, to string, by int) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(from, name))
	if err != nil {
		t.Fatal(err)
	}
	_, kind, _ := ParseFileName(name)
	if err := file.Seal(data, kind, func(data []byte) {
		binary.LittleEndian.PutUint32(data[8:], uint32(int(binary.LittleEndian.Uint32(data[8:]))+by))
	}); err != nil {
		t.Fatal(err)
	}
	name = FileID(sha256.Sum256(data)).Name(kind)
	if err := os.WriteFile(filepath.Join(to, name), data, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// unreadable returns how far the newest version that this program cannot read is behind.
func unreadable(kind FileKind) int {
	f := file.Release[kind]
	return int(f.Oldest) - 1 - int(f.Newest)
}

// everyKind returns a directory with a file of each kind, and the names of the files.
func everyKind(t *testing.T) (dir string, names map[FileKind]string) {
	t.Helper()
	dir = t.TempDir()
	w := symbolWorld()
	set, parts := w.built(t, dir, false, BuildOptions{})
	var calls atomic.Int64
	part, err := symbolize(set, parts[0], nil, tagLines(&calls))
	if err != nil {
		t.Fatal(err)
	}
	dead, _, err := (&change{shard: part.Shard.Name(KindShard), repo: w.repos[0], from: make([]uint8, 64)}).write(dir, file.Release.Written(1))
	if err != nil {
		t.Fatal(err)
	}
	return dir, map[FileKind]string{KindShard: part.Shard.Name(KindShard), KindSymbols: part.Symbols.Name(KindSymbols), KindDead: dead.Name(KindDead)}
}

// A file of another version is not damaged. An older one stays in place and is counted, a newer one
// makes the start fail. Neither is changed.
func TestIndexFiles_ofAnotherVersionAreLeftUnchanged(t *testing.T) {
	t.Parallel()
	from, names := everyKind(t)
	if len(names) != int(KindSymbols) {
		t.Fatalf("the test has %d of %d kinds of files", len(names), KindSymbols)
	}
	for kind, name := range names {
		dir := t.TempDir()
		older := versioned(t, from, name, dir, unreadable(kind))
		damaged := 0
		opt := SetOptions{Damaged: func(string, error) { damaged++ }}
		set, err := OpenSet(dir, opt)
		if err != nil {
			t.Fatalf("kind %d, one version older: %v", kind, err)
		}
		if got := set.Older(); got.Left != 1 || got.Unread != 1 || got.Of != 1 || damaged != 0 || set.Quarantined() != 0 || set.Has(older) {
			t.Errorf("kind %d, one version older: %+v, %d damaged", kind, got, damaged)
		}

		// The file stays while something names it, and is removed afterwards.
		keep := func(string) bool { return true }
		if _, err := set.Retain(keep, 0); err != nil || set.Older().Unread != 1 {
			t.Errorf("kind %d: a file that is named: %+v, %v", kind, set.Older(), err)
		}
		for range 2 {
			if _, err := set.Retain(func(string) bool { return false }, 0); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := os.Stat(filepath.Join(dir, older)); !errors.Is(err, os.ErrNotExist) || set.Older() != (Rebuild{}) {
			t.Errorf("kind %d: a file that nothing names is there still: %v, %+v", kind, err, set.Older())
		}
		set.Close()

		newer := versioned(t, from, name, dir, 1)
		before, err := os.ReadFile(filepath.Join(dir, newer))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := OpenSet(dir, opt); !errors.Is(err, file.ErrNewer) || errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), newer) {
			t.Errorf("kind %d, one version newer: %v", kind, err)
		}
		if after, err := os.ReadFile(filepath.Join(dir, newer)); err != nil || !bytes.Equal(before, after) || damaged != 0 {
			t.Errorf("kind %d: a newer file was touched: %v", kind, err)
		}

		// A flipped bit in the version is damage: the page has a wrong checksum.
		flipped := bytes.Clone(before)
		flipped[8] ^= 0x40
		if _, err := file.FromBytes(newer, flipped, kind, &file.Release); !errors.Is(err, ErrDamaged) {
			t.Errorf("kind %d: a flipped bit of the version: %v", kind, err)
		}
	}
}

// A copy of an unreadable version is refused and leaves nothing behind: a newer version would make
// the next start fail.
func TestImportIndexFile_refusesAnotherVersion(t *testing.T) {
	t.Parallel()
	from, names := everyKind(t)
	for kind, name := range names {
		for by, want := range map[int]error{unreadable(kind): file.ErrOlder, 1: file.ErrNewer} {
			dir, sent := t.TempDir(), t.TempDir()
			set, err := OpenSet(dir, SetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			other := versioned(t, from, name, sent, by)
			data, _ := os.ReadFile(filepath.Join(sent, other))
			err = set.Import(t.Context(), other, bytes.NewReader(data))
			left, _ := os.ReadDir(dir)
			if !errors.Is(err, want) || len(left) != 0 {
				t.Errorf("kind %d, %+d: %v, and %d files are left", kind, by, err, len(left))
			}
			set.Close()
		}
	}
}

// next returns the formats of a program whose shard files have a newer version, written from level
// 2 on. It also reads the version before.
func next() *file.Formats {
	f := file.Release
	for kind := KindShard; kind <= KindSymbols; kind++ {
		f[kind] = file.Format{Oldest: f[kind].Newest, Newest: f[kind].Newest + 1, Level: 2}
	}
	return &f
}

// Files of the version before give the same answers, and are counted until they are rebuilt. The
// new version is written only from the level of the catalog on.
func TestIndexFiles_ofThePreviousVersionAreSearched(t *testing.T) {
	t.Parallel()
	w := symbolWorld()
	dir := t.TempDir()
	set, parts := w.built(t, dir, false, BuildOptions{})
	ask := func(s *Set, parts []Part) *Result {
		v, missing := s.Acquire(parts)
		defer v.Release()
		r, err := v.Search(context.Background(), Request{Q: &query.Text{Pattern: "func"}, CountAll: true})
		if err != nil || len(missing) > 0 {
			t.Fatal(missing, err)
		}
		return r
	}
	want := ask(set, parts)
	set.Close()

	level, now := uint64(1), time.Unix(1e9, 0)
	set, err := OpenSet(dir, SetOptions{Formats: next(), Level: func() uint64 { return level }, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	if got := ask(set, parts); len(got.Files) == 0 || !reflect.DeepEqual(got.Files, want.Files) {
		t.Errorf("files of the version before give %d files, as they were %d", len(got.Files), len(want.Files))
	}
	if got, name := set.Older(), set.Written(); got != (Rebuild{}) || name != file.Release.Written(1).String() {
		t.Errorf("while other nodes cannot read the new version, %+v and %s", got, name)
	}

	level = 2
	if got := set.Older(); got.Left != len(parts) || got.Unread != 0 || !got.Began.Equal(now) || set.Written() == file.Release.Written(1).String() {
		t.Errorf("when all can read it: %+v and %s", got, set.Written())
	}
	built, err := set.Build(t.Context(), w.source(-1), BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range built {
		if err := set.Add(b.Files()...); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // found unused, then removed
		if _, err := set.Retain(func(name string) bool { return name == built[0].Shard.Name(KindShard) }, 0); err != nil {
			t.Fatal(err)
		}
	}
	if got := ask(set, []Part{built[0].Part}); set.Older() != (Rebuild{}) || !reflect.DeepEqual(got.Files, want.Files) {
		t.Errorf("made anew: %+v, %d files", set.Older(), len(got.Files))
	}

	// The program before cannot read the new version, and says so.
	if _, err := OpenSet(dir, SetOptions{}); !errors.Is(err, file.ErrNewer) {
		t.Errorf("the program before opens it: %v", err)
	}
}

// Symbols files of version 7 have no keys of configuration. Their symbols answer, the files that may
// have keys are named as not searched, and the next file of symbols copies nothing from them.
func TestSymbols_ofVersion7CountFilesWithKeysAsUnsearched(t *testing.T) {
	t.Parallel()
	w := &world{repos: []Repository{{ID: 1, Name: "r", Revisions: []Revision{{Name: "HEAD", Commit: blobID("1")}}}}}
	w.trees = append(w.trees, map[string][]string{"a.go": {"func whale() {\n}\n"}, "b.yaml": {"whale: 1\n"}, "c.md": {"whale\n"}})
	dir := t.TempDir()
	set, parts := w.built(t, dir, false, BuildOptions{})
	var calls atomic.Int64
	now, err := symbolize(set, parts[0], nil, tagLines(&calls))
	if err != nil {
		t.Fatal(err)
	}
	old := now
	name := versioned(t, dir, now.Symbols.Name(KindSymbols), dir, 7-int(file.Release[KindSymbols].Newest))
	old.Symbols, _, _ = ParseFileName(name)
	if err := set.Add(name); err != nil {
		t.Fatal(err)
	}

	sym := &query.Text{Pattern: "whale", Regexp: true, Field: query.Symbol}
	for _, c := range []struct {
		part Part
		want UntaggedFiles
	}{{now, UntaggedFiles{}}, {old, UntaggedFiles{1, []UntaggedFile{{1, "b.yaml"}}}}} {
		v, _ := set.Acquire([]Part{c.part})
		defer v.Release()
		res, err := v.Search(t.Context(), Request{Q: sym})
		if err != nil || len(res.Files) != 1 || res.Files[0].Path != "a.go" || res.Untagged != (c.want.Count > 0) {
			t.Fatalf("%+v, %v", res, err)
		}
		if got, err := v.Untagged(t.Context(), sym); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("not searched are %+v, %v, want %+v", got, err, c.want)
		}
	}

	before := calls.Load()
	if again, err := set.Symbolize(t.Context(), parts[0], []Part{old}, false, tagLines(&calls)); err != nil || again.Symbols != now.Symbols || calls.Load() == before {
		t.Errorf("made anew: %v, %d files tagged, %v", again.Symbols, calls.Load()-before, err)
	}
}
