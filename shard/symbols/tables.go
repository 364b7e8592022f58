package symbols

import (
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"
)

// Tables keeps the decoding tables of the files that were read last, up to TableBytes. A table is
// larger than the symbols of a small repository. It is safe for concurrent use.
type Tables struct {
	mu    sync.Mutex // guards the field below
	kept  []*code    // those with a table, the oldest first
	bytes atomic.Int64
}

// TableBytes bounds the tables of all files together.
const TableBytes = 32 << 20

const bytesPerTable = int64(unsafe.Sizeof(huffmanTable{}))

// Bytes returns the memory that the tables take.
func (t *Tables) Bytes() int64 { return t.bytes.Load() }

// keep counts the new table of a code, and drops the oldest tables beyond the bound.
func (t *Tables) keep(c *code) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, c)
	drop := 0
	for total := t.bytes.Add(bytesPerTable); total > TableBytes; drop++ {
		t.kept[drop].made.Store(nil)
		total = t.bytes.Add(-bytesPerTable)
	}
	t.kept = slices.Delete(t.kept, 0, drop)
}

// code is the code of a section. It is safe for concurrent use after newCode.
type code struct {
	written []byte
	all     *Tables
	made    atomic.Pointer[huffmanTable] // nil while nobody needs it
}

// newCode checks a code that appendTo has written.
func newCode(written []byte, all *Tables) (*code, error) {
	if _, err := codeLengths(written); err != nil {
		return nil, err
	}
	return &code{written: written, all: all}, nil
}

// decodeCoded decodes with the table of the code, which it makes at the first use.
func (c *code) decodeCoded(buf, src []byte) ([]byte, bool) {
	t := c.made.Load()
	if t == nil {
		var err error
		if t, err = newHuffmanTable(c.written); err != nil {
			return nil, false
		}
		if c.made.CompareAndSwap(nil, t) {
			c.all.keep(c)
		}
	}
	return t.decodeCoded(buf, src)
}
