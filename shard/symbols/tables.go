package symbols

import (
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"
)

// Tables is a cache of Huffman decoding tables, of at most TableBytes. All files share it, because
// a table is larger than the symbols of a small repository. It is safe for concurrent use.
type Tables struct {
	mu    sync.Mutex // guards the field below
	codes []*code    // the codes that have a table, the oldest table first
	bytes atomic.Int64
}

// TableBytes bounds the tables of all files together.
const TableBytes = 32 << 20

const bytesPerTable = int64(unsafe.Sizeof(huffmanTable{}))

// Bytes returns the memory that the tables take.
func (t *Tables) Bytes() int64 { return t.bytes.Load() }

// addTable adds the new table of a code to the cache, and drops the oldest tables above TableBytes.
func (t *Tables) addTable(c *code) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.codes = append(t.codes, c)
	drop := 0
	for total := t.bytes.Add(bytesPerTable); total > TableBytes; drop++ {
		t.codes[drop].table.Store(nil)
		total = t.bytes.Add(-bytesPerTable)
	}
	t.codes = slices.Delete(t.codes, 0, drop)
}

// code is the Huffman code of one section. It is safe for concurrent use.
type code struct {
	written []byte // the lengths, as appendLengths writes them
	tables  *Tables
	table   atomic.Pointer[huffmanTable] // nil before the first use and after it was dropped
}

// newCode checks the lengths that appendLengths has written, and returns their code.
func newCode(written []byte, tables *Tables) (*code, error) {
	if _, err := readLengths(written); err != nil {
		return nil, err
	}
	return &code{written: written, tables: tables}, nil
}

// decodeCoded decodes src as huffmanTable.decodeCoded does. It makes the table if there is none.
func (c *code) decodeCoded(buf, src []byte) ([]byte, bool) {
	t := c.table.Load()
	if t == nil {
		var err error
		if t, err = newHuffmanTable(c.written); err != nil {
			return nil, false
		}
		if c.table.CompareAndSwap(nil, t) {
			c.tables.addTable(c)
		}
	}
	return t.decodeCoded(buf, src)
}
