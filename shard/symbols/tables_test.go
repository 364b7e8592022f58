package symbols

import (
	"bytes"
	"sync"
	"testing"
)

func TestDecodingTables_stayWithinTheirBound(t *testing.T) {
	t.Parallel()
	var counts [1 << 8]int
	text := []byte("abracadabra")
	for _, b := range text {
		counts[b]++
	}
	made := newHuffmanCode(&counts)
	written, coded := made.appendLengths(nil), made.appendCoded(nil, text)

	// More codes than the bound has room for, read by two goroutines, twice: the second round finds
	// most tables dropped.
	all := new(Tables)
	codes := make([]*code, TableBytes/bytesPerTable+100)
	for i := range codes {
		var err error
		if codes[i], err = newCode(written, all); err != nil {
			t.Fatal(err)
		}
	}
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for i := range 2 * len(codes) {
				if got, ok := codes[i%len(codes)].decodeCoded(nil, coded); !ok || !bytes.Equal(got, text) {
					t.Errorf("code %d gives %q, %v", i, got, ok)
					return
				}
			}
		})
	}
	readers.Wait()

	kept := int64(0)
	for _, c := range codes {
		if c.table.Load() != nil {
			kept += bytesPerTable
		}
	}
	if kept != all.Bytes() || kept > TableBytes || kept < TableBytes/2 {
		t.Fatalf("codes keep %d bytes, the count says %d, the bound %d", kept, all.Bytes(), TableBytes)
	}
}
