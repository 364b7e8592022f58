// Package packtest makes packs by hand, such as git would not: for tests.
package packtest

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
)

// Kinds of entries. An OffDelta is made of one before it.
const (
	Commit   = 1
	Tree     = 2
	Blob     = 3
	OffDelta = 6
)

// Deflate makes a stream of zlib.
func Deflate(text []byte) []byte {
	var b bytes.Buffer
	w, _ := zlib.NewWriterLevel(&b, zlib.BestCompression)
	w.Write(text)
	w.Close()
	return b.Bytes()
}

// Writer makes a pack by hand, and its index.
type Writer struct {
	data    []byte
	offsets []int
	ids     [][]byte
}

// NewWriter begins a pack.
func NewWriter() *Writer { return &Writer{data: []byte("PACK\x00\x00\x00\x02\x00\x00\x00\x00")} }

// Add adds an entry with the given header, right or wrong. base is the number of an earlier entry,
// for a delta.
func (w *Writer) Add(id []byte, kind int, size int, base int, stream []byte) {
	at := len(w.data)

	// Kind and size: 4 bits of the size in the first byte, then 7 in each.
	c := byte(kind)<<4 | byte(size&15)
	for size >>= 4; size != 0; size >>= 7 {
		w.data = append(w.data, c|0x80)
		c = byte(size & 0x7f)
	}
	w.data = append(w.data, c)
	if kind == OffDelta {
		// How far back the base is: the highest digits first, each less one.
		back := at - w.offsets[base]
		digits := []byte{byte(back & 0x7f)}
		for back >>= 7; back != 0; back >>= 7 {
			back--
			digits = append([]byte{0x80 | byte(back&0x7f)}, digits...)
		}
		w.data = append(w.data, digits...)
	}

	w.data = append(w.data, stream...)
	w.offsets, w.ids = append(w.offsets, at), append(w.ids, id)
}

// ID returns the id of an object.
func ID(kind int, text []byte) []byte {
	sum := sha1.New()
	fmt.Fprintf(sum, "%s %d\x00", [...]string{Commit: "commit", Tree: "tree", Blob: "blob"}[kind], len(text))
	sum.Write(text)
	return sum.Sum(nil)
}

// Finish gives the pack and its index.
func (w *Writer) Finish() (data, index []byte) {
	be := binary.BigEndian
	be.PutUint32(w.data[8:], uint32(len(w.offsets)))
	sum := sha1.Sum(w.data)
	data = append(w.data, sum[:]...)

	order := make([]int, len(w.ids))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return bytes.Compare(w.ids[a], w.ids[b]) })

	// The index: its head, then how many ids begin with at most each byte,
	index = []byte{0xff, 0x74, 0x4f, 0x63, 0, 0, 0, 2}
	for first := range 256 {
		n := 0
		for _, id := range w.ids {
			if int(id[0]) <= first {
				n++
			}
		}
		index = be.AppendUint32(index, uint32(n))
	}

	// the ids,
	for _, i := range order {
		index = append(index, w.ids[i]...)
	}

	// the checksums of the entries,
	for _, i := range order {
		end := len(w.data)
		if i+1 < len(w.offsets) {
			end = w.offsets[i+1]
		}
		index = be.AppendUint32(index, crc32.ChecksumIEEE(w.data[w.offsets[i]:end]))
	}

	// their places,
	for _, i := range order {
		index = be.AppendUint32(index, uint32(w.offsets[i]))
	}

	// and the checksums of the pack and of the index.
	index = append(index, sum[:]...)
	own := sha1.Sum(index)
	return data, append(index, own[:]...)
}

// Sizes returns the head of a delta.
func Sizes(from, to int) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(nil, uint64(from)), uint64(to))
}

// Bomb adds a text of 64 KiB and two deltas of a few dozen bytes: the first makes 512 MiB of it,
// the second 14 bytes of those. It returns the ids of the three texts, which are all zeros.
func (w *Writer) Bomb() (base, middle, tiny []byte) {
	const size, copies = 64 << 10, 8192
	text := make([]byte, size)
	base, tiny = ID(Blob, text), ID(Blob, text[:14])
	sum := sha1.New()
	fmt.Fprintf(sum, "blob %d\x00", copies*size)
	for range copies {
		sum.Write(text)
	}
	middle = sum.Sum(nil)

	w.Add(base, Blob, size, 0, Deflate(text))
	grow := append(Sizes(size, copies*size), bytes.Repeat([]byte{0x80}, copies)...) // all 64 KiB, so often
	w.Add(middle, OffDelta, len(grow), len(w.ids)-1, Deflate(grow))
	shrink := append(Sizes(copies*size, 14), 0x90, 14)
	w.Add(tiny, OffDelta, len(shrink), len(w.ids)-1, Deflate(shrink))
	return base, middle, tiny
}

// AddText adds an object as it is, and returns its id.
func (w *Writer) AddText(kind int, text []byte) (id []byte) {
	id = ID(kind, text)
	w.Add(id, kind, len(text), 0, Deflate(text))
	return id
}
