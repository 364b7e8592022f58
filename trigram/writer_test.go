package trigram

import (
	"bytes"
	"fmt"
	"math/rand"
	"slices"
	"testing"
)

// build indexes documents and returns the index, its segments and the first unit of each document.
func build(t testing.TB, docs [][]byte) (*Index, [][]byte, []uint32) {
	t.Helper()
	var segs [][]byte
	w := New(Options{Emit: func(parts ...[]byte) error { segs = append(segs, bytes.Join(parts, nil)); return nil }})
	defer w.Close()
	var firsts []uint32
	for i, d := range docs {
		first, n, err := w.Add(d, 0)
		if err != nil || n != Units(len(d)) {
			t.Fatalf("Add(document %d): %d units, %v; want %d units", i, n, err, Units(len(d)))
		}
		firsts = append(firsts, first)
	}
	if err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	x, err := Open(segs, nil)
	if err != nil {
		t.Fatal(err)
	}
	return x, segs, firsts
}

// naive returns the set of units for each trigram and segment.
func naive(docs [][]byte, firsts []uint32) map[uint64]bool {
	set := make(map[uint64]bool) // key<<32 | unit
	for i, d := range docs {
		padded := append(append([]byte("\n"), d...), "\n\n"...)
		n := Units(len(d))
		for u := range n {
			from, to := int(u)*UnitSize, int(u+1)*UnitSize+Overlap+1
			if u == n-1 {
				to = len(padded)
			}
			for p := from; p+3 <= to; p++ {
				key := uint64(foldByte[padded[p]])<<16 | uint64(foldByte[padded[p+1]])<<8 | uint64(foldByte[padded[p+2]])
				set[key<<32|uint64(firsts[i]+u)] = true
			}
		}
	}
	return set
}

// dump reads all lists of an index into the form of naive.
func dump(t *testing.T, x *Index) map[uint64]bool {
	t.Helper()
	set := make(map[uint64]bool)
	for i := range x.segs {
		s := &x.segs[i]
		c := cursor{s: s}
		var w Work
		for c.next() {
			var b Bitmap
			if err := c.entry.orInto(&b, s.units, &w); err != nil {
				t.Fatal(err)
			}
			if b.Count() != c.entry.n {
				t.Fatalf("list of %06x: %d units, entry says %d", c.entry.key, b.Count(), c.entry.n)
			}
			if found, err := s.findList(c.entry.key, &w); err != nil || found.n != c.entry.n {
				t.Fatalf("find(%06x) = %d units, %v; want %d", c.entry.key, found.n, err, c.entry.n)
			}
			if c.entry.key >= keyDocStart {
				continue
			}
			for u := b.Next(0); u >= 0; u = b.Next(u + 1) {
				set[uint64(c.entry.key)<<32|uint64(i<<16+u)] = true
			}
		}
		if c.err != nil {
			t.Fatal(c.err)
		}
	}
	return set
}

func randomDocs(seed int64, n, size int) [][]byte {
	r := rand.New(rand.NewSource(seed))
	words := []string{"int", "Return ", "struct", "\n", "  ", "foo_bar", "é", "\xff\x00", "中文", "12345678", "}", "\n}\n", "K", "ſ"}
	var docs [][]byte
	for range n {
		var d []byte
		for want := r.Intn(size); len(d) < want; {
			if r.Intn(20) == 0 {
				d = append(d, byte(r.Intn(256)))
			}
			d = append(d, words[r.Intn(len(words))]...)
			if r.Intn(3) == 0 {
				d = fmt.Appendf(d, "%d", r.Intn(1000000))
			}
		}
		docs = append(docs, d)
	}
	return docs
}

func TestWriter_agreesWithANaiveIndex(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ n, size int }{{1, 1}, {3, 10}, {200, 9000}, {2, 200000}, {3000, 4500}} {
		docs := randomDocs(int64(c.n), c.n, c.size)
		x, _, firsts := build(t, docs)
		got, want := dump(t, x), naive(docs, firsts)
		if len(got) != len(want) {
			t.Errorf("%d documents: %d pairs, want %d", c.n, len(got), len(want))
		}
		for p := range want {
			if !got[p] {
				t.Fatalf("%d documents: trigram %06x of unit %d is missing", c.n, p>>32, uint32(p))
			}
		}
	}
}

// TestWriter_reusedForASecondIndexWritesTheSameBytes builds indexes with one writer: a large one
// with rows, then small ones whose data reuse its memory.
func TestWriter_reusedForASecondIndexWritesTheSameBytes(t *testing.T) {
	t.Parallel()
	docs, others := randomDocs(9, 3500, 4500), randomDocs(10, 3000, 4500)
	var segs [][]byte
	w := New(Options{Emit: func(parts ...[]byte) error { segs = append(segs, bytes.Join(parts, nil)); return nil }})
	defer w.Close()
	for _, part := range [][][]byte{docs, others, docs[:3], others} {
		segs = segs[:0]
		for _, d := range part {
			if _, _, err := w.Add(d, 0); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Finish(); err != nil {
			t.Fatal(err)
		}
		if _, want, _ := build(t, part); !slices.EqualFunc(segs, want, bytes.Equal) {
			t.Fatalf("%d documents: other bytes than by a writer of its own", len(part))
		}
	}
}

func TestLongestRuns_masksAgreeWithBytes(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewSource(6))
	pieces := []string{"0123456789", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdef0123", "_", " ", "word_Word9", "\xff\xc1", "@", "[", "`", "{", "/", ":"}
	var m runMasks
	for range 3000 {
		var text []byte
		for want := r.Intn(400); len(text) < want; {
			p := pieces[r.Intn(len(pieces))]
			text = append(text, p[:1+r.Intn(len(p))]...)
		}
		if r.Intn(50) == 0 {
			text = bytes.Repeat([]byte("7"), r.Intn(UnitSize+Overlap))
		}
		if got, want := m.longestRuns(nil, text), appendRuns(nil, text); !bytes.Equal(got, want) {
			t.Fatalf("%q: %v, want %v", text, got, want)
		}
	}
}

// The numbers of a window are those of its trigrams, each once, in order.
func TestTrigramNumbers_ofAWindowAreDistinctAndOrdered(t *testing.T) {
	t.Parallel()
	var x tables
	if err := x.allocateEpochs(); err != nil {
		t.Fatal(err)
	}
	defer x.close()
	r := rand.New(rand.NewSource(8))
	for i := range 4000 {
		window := make([]byte, 3+r.Intn(UnitSize+Overlap))
		if i%3 == 0 {
			window = window[:3+r.Intn(min(100, len(window)-2))]
		}
		for k := range window {
			window[k] = byteOf[r.Intn(min(classes, 1+r.Intn(90)))]
			if r.Intn(8) == 0 {
				window[k] = byte('A' + r.Intn(26))
			}
		}
		if i%16 == 0 {
			window[r.Intn(len(window))] = byte(r.Intn(256))
		}

		var want []uint32
		known, strange := map[uint32]bool{}, classOf[window[0]] == escape || classOf[window[1]] == escape
		for k := range len(window) - 2 {
			a, b, c := uint32(classOf[window[k]]), uint32(classOf[window[k+1]]), uint32(classOf[window[k+2]])
			strange = strange || c == escape
			if id := (a*classes+b)*classes + c; !known[id] {
				known[id], want = true, append(want, id)
			}
		}

		x.startUnit()
		got := make([]uint32, len(window)+1)
		n, e := x.extractDirect(got, window)
		if e&escape != 0 != strange || !strange && !slices.Equal(got[:n], want) {
			t.Fatalf("%q: %d numbers, escape %t; want %d, %t", window, n, e&escape != 0, len(want), strange)
		}
	}
}
