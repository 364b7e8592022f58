package shard

import (
	"bytes"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/shoalsearch/shoal/shard/file"
)

// TestBlockCache_returnsStoredBlocks stores blocks of two files in a cache that is too small. Every
// block that it returns is the stored one, and the latest block is always there.
func TestBlockCache_returnsStoredBlocks(t *testing.T) {
	t.Parallel()
	c := &blockCache{rows: make([]blockRow, cacheRows)}
	files := []*file.File{emptyFile(t, 10), emptyFile(t, 20)}
	r := rand.New(rand.NewPCG(5, 6))
	text := func(f, row int) []byte {
		return bytes.Repeat([]byte{byte(f), byte(row), byte(row >> 8)}, 1+(f+row)%1300)
	}
	hits := 0
	for range 40_000 {
		f, row := r.IntN(2), int(r.ExpFloat64()*8000)
		want := text(f, row)
		got := make([]byte, len(want))
		if c.get(files[f], row, got) {
			hits++
		} else {
			c.put(files[f], row, want)
			if !c.get(files[f], row, got) {
				t.Fatalf("block %d of file %d is gone at once", row, f)
			}
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("block %d of file %d is another one", row, f)
		}
		if c.get(files[f], row, make([]byte, len(want)+1)) {
			t.Fatal("a block of another size is taken")
		}
	}
	if hits < 10_000 {
		t.Errorf("%d hits", hits)
	}
	// A row keeps as many blocks as it has slots. One more replaces the least recently used block.
	var same []int
	for row := 0; len(same) <= cacheWays; row++ {
		if c.rowOf(files[0], row) == c.rowOf(files[0], 0) {
			same = append(same, row)
		}
	}
	for _, row := range same {
		c.put(files[0], row, text(0, row))
	}
	for i, row := range same {
		if got := c.get(files[0], row, make([]byte, len(text(0, row)))); got != (i > 0) {
			t.Errorf("block %d of %d: %v", i, len(same), got)
		}
	}
}

// emptyFile returns a file with one section of size zeros.
func emptyFile(t *testing.T, size int) *file.File {
	t.Helper()
	dir := t.TempDir()
	w, err := file.NewWriter(dir, KindDead, file.Release.Written(1))
	if err != nil {
		t.Fatal(err)
	}
	w.Add(1, make([]byte, size))
	id, _, err := w.Finish()
	if err != nil {
		t.Fatal(err)
	}
	f, err := file.Open(filepath.Join(dir, id.Name(KindDead)), KindDead, &file.Release)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}
