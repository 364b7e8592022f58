package symbols

import (
	"bytes"
	"slices"
	"testing"
)

// The worked example of the package's documentation, byte for byte.
func TestEncode_writesTheDocumentedExample(t *testing.T) {
	t.Parallel()
	names := []string{"Able", "able", "apply"}
	documents := [][]uint32{{0}, {0, 2}, {2}} // that define each

	var page, refs []byte
	before, first := "", 0
	for i, name := range names {
		page = appendFront(page, []byte(before), []byte(name))
		before = name
		refs = appendReference(refs, first, documents[i])
		first = int(documents[i][0])
	}
	if want := []byte("\x00Able\n\x00able\n\x01pply\n"); !bytes.Equal(page, want) {
		t.Errorf("page % x, want % x", page, want)
	}
	if want := []byte{0, 1, 1, 1, 8}; !bytes.Equal(refs, want) {
		t.Errorf("references % x, want % x", refs, want)
	}

	list := []Row{{Offset: 6, Name: 0, Kind: 1}, {Offset: 20, Name: 1, Kind: 1}}
	var rows []byte
	last := Row{}
	for _, r := range list {
		rows = appendRow(rows, last, r)
		last = r
	}
	if want := []byte{0x0d, 0, 1, 0, 0x1c, 2}; !bytes.Equal(rows, want) {
		t.Errorf("rows % x, want % x", rows, want)
	}

	var extents extentWriter
	for _, n := range []int{300, 0, 90, 0} {
		extents.add(n)
	}
	if want := []byte{0, 0xac, 2, 1, 0x5a}; !bytes.Equal(extents.coded, want) {
		t.Errorf("extents % x, want % x", extents.coded, want)
	}

	// And back.
	ends := extentReader{b: extents.coded}
	for i, want := range []int{300, 0, 90, 0, 0} {
		if got := ends.next(); got != want || ends.malformed {
			t.Errorf("extent %d: %d, want %d", i, got, want)
		}
	}
	if text, ok := decodeFront(make([]byte, 0, pageBytes), page); !ok || string(text) != "Able\nable\napply\n" {
		t.Errorf("page %q, %v", text, ok)
	}
	r := refReader{b: refs}
	for i, want := range documents {
		var got []uint32
		if err := r.readReference().forEach(3, func(doc int) { got = append(got, uint32(doc)) }); err != nil || !slices.Equal(got, want) {
			t.Errorf("documents of %s: %v, %v, want %v", names[i], got, err, want)
		}
	}
	reader := rowReader{b: rows}
	for _, want := range list {
		if !reader.next() || reader.row != want {
			t.Errorf("row %+v, want %+v", reader.row, want)
		}
	}
	if reader.next() || reader.malformed {
		t.Errorf("a row behind the last: %+v", reader.row)
	}
}
