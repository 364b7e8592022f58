package pack

import (
	"bytes"
	"crypto/sha1"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/shoalsearch/shoal/shard/git/pack/packtest"
)

// allocated returns how many bytes a call allocates, including freed ones.
func allocated(call func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	call()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// store returns a store with one pack in memory. It must not be closed.
func store(data, index []byte) (*Store, error) {
	f := &file{data: data, index: index, idBytes: sha1.Size}
	if err := Protect(f.check); err != nil {
		return nil, err
	}
	return &Store{files: []*file{f}}, nil
}

// A pack of some hundred bytes can ask for gigabytes.
func TestObjectStore_leavesDeltaBombsToGit(t *testing.T) {
	w := packtest.NewWriter()
	_, middle, tiny := w.Bomb()
	data, index := w.Finish()
	if len(data) > 1000 {
		t.Fatalf("the pack has %d bytes", len(data))
	}
	for name, read := range map[string]func(s *Store) error{
		"read": func(s *Store) error { _, err := s.Read(nil, Blob, tiny); return err },
		"get":  func(s *Store) error { _, _, err := s.Get(nil, tiny, 1<<20); return err },
		"the middle": func(s *Store) error {
			_, err := s.Read(nil, Blob, middle)
			return err
		},
	} {
		s, err := store(bytes.Clone(data), index)
		if err != nil {
			t.Fatal(err)
		}
		used := allocated(func() { err = read(s) })
		if !errors.Is(err, ErrAskGit) {
			t.Errorf("%s: error %v, want ErrAskGit", name, err)
		}
		if used > 4<<20 {
			t.Errorf("%s: %d MB were allocated", name, used>>20)
		}
	}

	// This size of a whole object is impossible for its stream.
	w = packtest.NewWriter()
	id := bytes.Repeat([]byte{2}, 20)
	w.Add(id, packtest.Blob, 2<<30-1, 0, packtest.Deflate(make([]byte, 1000)))
	s, err := store(w.Finish())
	if err != nil {
		t.Fatal(err)
	}
	used := allocated(func() { _, err = s.Read(nil, Blob, id) })
	if !errors.Is(err, ErrAskGit) || used > 1<<20 {
		t.Errorf("a size of 2 GiB: %v, %d bytes were allocated", err, used)
	}
}

func TestApplyDelta_appliesTheDocumentedExample(t *testing.T) {
	t.Parallel()
	got, err := applyDelta(nil, []byte("hello"), []byte{0x05, 0x07, 0x90, 0x03, 0x04, 0x21, 0x22, 0x23, 0x24}, maxText)
	if err != nil || string(got) != `hel!"#$` {
		t.Errorf("%q, %v", got, err)
	}
	blob := []byte{0x36, 0x78, 0x9c, 0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0xe7, 0x02, 0x00, 0x08, 0x4b, 0x02, 0x1f}
	f := &file{data: append(append([]byte("PACK\x00\x00\x00\x02\x00\x00\x00\x01"), blob...), make([]byte, 20)...), idBytes: 20}
	e, err := f.readEntry(packHeader)
	if err != nil || e.kind != Blob || e.size != 6 {
		t.Fatalf("%+v, %v", e, err)
	}
	text, end, err := new(Store).inflate(nil, f, e, 6)
	if err != nil || string(text) != "hello\n" || end != packHeader+len(blob) {
		t.Errorf("%q to %d, %v", text, end, err)
	}
}

// mostOfRead is how much reading one object may allocate: the text, the delta and two texts on the
// way, with the cost of growing them.
const mostOfRead = 6 * maxText

// FuzzObjectStore_hostilePackIsBounded reads hostile packs with hostile indexes, after correcting
// the checksums.
func FuzzObjectStore_hostilePackIsBounded(f *testing.F) {
	w := packtest.NewWriter()
	w.Bomb()
	data, index := w.Finish()
	f.Add(data, index)
	w = packtest.NewWriter()
	base := bytes.Repeat([]byte("a line of a text\n"), 20)
	w.Add(packtest.ID(packtest.Blob, base), packtest.Blob, len(base), 0, packtest.Deflate(base))
	delta := append(packtest.Sizes(len(base), 21), 0x90, 17, 4, 'm', 'o', 'r', 'e')
	w.Add(packtest.ID(packtest.Blob, []byte("a line of a text\nmore")), packtest.OffDelta, len(delta), 0, packtest.Deflate(delta))
	w.Add(packtest.ID(packtest.Tree, nil), packtest.Tree, 0, 0, packtest.Deflate(nil))
	data, index = w.Finish()
	f.Add(data, index)
	dir, _ := deltas(f)
	packs, _ := filepath.Glob(filepath.Join(dir, "objects/pack/*.pack"))
	data, _ = os.ReadFile(packs[0])
	index, _ = os.ReadFile(packs[0][:len(packs[0])-4] + "idx")
	f.Add(data, index)

	f.Fuzz(func(t *testing.T, data, index []byte) {
		if len(data) < packHeader+20 || len(index) < indexIDs+40 || len(data)+len(index) > 1<<20 {
			return
		}
		data, index = bytes.Clone(data), bytes.Clone(index)
		copy(data, "PACK\x00\x00\x00\x02")
		copy(data[8:], index[indexIDs-4:indexIDs])
		copy(index, "\xfftOc\x00\x00\x00\x02")
		copy(index[len(index)-40:], data[len(data)-20:])
		s, err := store(data, index)
		if err != nil {
			return
		}
		f := s.files[0]
		for i := range min(f.objects, 8) {
			id := f.index[indexIDs+20*i:][:20]
			used := allocated(func() {
				s.Info(id)
				for kind := Commit; kind <= Tag; kind++ {
					from := []byte("before")
					out, err := s.Read(from, kind, id)
					if !bytes.HasPrefix(out, from) {
						t.Fatalf("%x: what was there is gone", id)
					}
					if err != nil && (len(out) != len(from) || !errors.Is(err, ErrAskGit)) {
						t.Fatalf("%x: %d bytes with the error %v", id, len(out), err)
					}
				}
				s.Get(nil, id, 1<<20)
			})
			if used > 6*mostOfRead {
				t.Fatalf("%x: %d MB were allocated", id, used>>20)
			}
		}
	})
}

// FuzzObjectStore_hostileIndexIsBounded reads a hostile index of a correct pack.
func FuzzObjectStore_hostileIndexIsBounded(f *testing.F) {
	w := packtest.NewWriter()
	texts := map[string]string{}
	for i := range 20 {
		text := fmt.Sprintf("text %d", i)
		id := packtest.ID(packtest.Blob, []byte(text))
		texts[string(id)] = text
		w.Add(id, packtest.Blob, len(text), 0, packtest.Deflate([]byte(text)))
	}
	data, index := w.Finish()
	f.Add(index)
	f.Fuzz(func(t *testing.T, index []byte) {
		if len(index) < indexIDs+40 {
			return
		}
		s, err := store(data, index)
		if err != nil {
			return
		}
		used := allocated(func() {
			for id := range texts {
				s.Info([]byte(id))
				s.Read(nil, Blob, []byte(id))
			}
		})
		if used > 4<<20 {
			t.Fatalf("%d MB were allocated", used>>20)
		}
	})
}

// FuzzApplyDelta_hostileDeltaIsBounded applies a hostile delta.
func FuzzApplyDelta_hostileDeltaIsBounded(f *testing.F) {
	f.Add([]byte("hello"), []byte{0x05, 0x07, 0x90, 0x03, 0x04, 0x21, 0x22, 0x23, 0x24})
	f.Add(make([]byte, 1<<16), append(packtest.Sizes(1<<16, 3<<16), 0x80, 0x80, 0x80))
	f.Fuzz(func(t *testing.T, base, delta []byte) {
		var out []byte
		var err error
		used := allocated(func() { out, err = applyDelta([]byte("x"), base, delta, maxText) })
		if err == nil {
			if size, _, err := readDeltaSizes(base, delta, maxText); err != nil || len(out) != 1+size {
				t.Errorf("%d bytes, %v; want %d", len(out)-1, err, size)
			}
		}
		if used > mostOfRead {
			t.Errorf("%d MB were allocated", used>>20)
		}
	})
}

// FuzzCommitGraph_hostileFileIsReadWithinBounds reads a hostile commit graph, as the only layer and on top of
// a correct one.
func FuzzCommitGraph_hostileFileIsReadWithinBounds(f *testing.F) {
	dir := empty(f)
	git(f, dir, story(30), "fast-import", "--quiet")
	git(f, dir, nil, "commit-graph", "write", "--reachable", "--changed-paths")
	honest, err := os.ReadFile(filepath.Join(dir, "objects/info/commit-graph"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(honest)
	git(f, dir, nil, "commit-graph", "write", "--reachable", "--changed-paths", "--split=replace")
	git(f, dir, story(33), "fast-import", "--quiet", "--force")
	git(f, dir, nil, "commit-graph", "write", "--reachable", "--changed-paths", "--split=no-merge")
	layers, _ := filepath.Glob(filepath.Join(dir, "objects/info/commit-graphs/*.graph"))
	for _, name := range layers {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	key := NewPathKey("dir/b3")
	f.Fuzz(func(t *testing.T, data []byte) {
		used := allocated(func() {
			for _, below := range [][]byte{nil, honest} {
				g := &Graph{}
				if below != nil {
					if err := g.addLayer(below); err != nil {
						t.Fatal(err)
					}
					if len(data) > 8 {
						data = bytes.Clone(data)
						data[7] = 1
					}
				}
				if g.addLayer(data) != nil {
					continue
				}
				for pos := range uint32(min(g.commits, 200)) {
					id := bytes.Clone(g.ID(pos))
					g.Tree(pos)
					g.Date(pos)
					g.Unchanged(pos, key)
					if at, ok := g.Find(id); ok && !bytes.Equal(g.ID(at), id) {
						t.Fatalf("%x is found at another commit", id)
					}
					parents, err := g.Parents(nil, pos)
					if err != nil {
						continue
					}
					for _, p := range parents {
						if int(p) >= g.commits {
							t.Fatalf("parent %d of %d commits", p, g.commits)
						}
					}
				}
			}
		})
		if used > 128<<20 {
			t.Fatalf("%d MB were allocated", used>>20)
		}
	})
}

// FuzzReferences_hostileFilesAreReadWithinBounds reads hostile references.
func FuzzReferences_hostileFilesAreReadWithinBounds(f *testing.F) {
	oid := "0123456789012345678901234567890123456789"
	f.Add("main", oid+"\n", "# pack-refs with: peeled\n"+oid+" refs/tags/v1\n^"+oid+"\n")
	f.Add("a/b", "ref: refs/heads/main\n", oid+" refs/heads/../../x\n")
	f.Add("..", oid, "\n")
	f.Add("\x96", oid, "")
	f.Fuzz(func(t *testing.T, name, loose, packed string) {
		dir := t.TempDir()
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		// Names that the file system refuses are skipped.
		_ = root.MkdirAll(filepath.Join("refs/heads", filepath.Dir(name)), 0o755)
		_ = root.WriteFile(filepath.Join("refs/heads", name), []byte(loose), 0o644)
		_ = root.WriteFile("packed-refs", []byte(packed), 0o644)
		var refs map[string]string
		used := allocated(func() { refs, err = Refs(root) })
		if err != nil && !errors.Is(err, ErrAskGit) {
			t.Fatalf("error %v", err)
		}
		for name, oid := range refs {
			// Names of references are bytes in git: they need not be UTF-8, unlike those of
			// fs.ValidPath.
			if !PlainRef(name) || !IsID(oid) || !filepath.IsLocal(name) {
				t.Fatalf("a reference is %q %q", oid, name)
			}
		}
		if used > 1<<20+20*uint64(len(packed)) {
			t.Fatalf("%d bytes were allocated for %d", used, len(packed))
		}
	})
}
