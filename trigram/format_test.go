package trigram

import (
	"errors"
	"testing"
)

// TestSegment_bytesEqualTheDocumentedExample checks the segment in the example of format.go.
func TestSegment_bytesEqualTheDocumentedExample(t *testing.T) {
	t.Parallel()
	var e encoder
	e.reset(512)
	e.addIDs(0x616263, []uint16{5, 9})
	e.addIDs(0x616264, []uint16{3, 4, 300})

	for _, part := range []struct {
		name      string
		got, want string
	}{
		{"blocks", string(e.blocks), "\x63\x62\x61\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x00"},
		{"entries", string(e.entries), "\x01\x05\x00\x09\x00" + "\x0a\x03\x04"},
		{"lists", string(e.lists), "\x03\x00\xa7\x02"},
		{"sliced list", string(appendSliced(nil, []uint16{3, 4, 300})), "\x03" + string(make([]byte, 31)) + "\x01\x03\x04" + "\x00\x2c"},
	} {
		if part.got != part.want {
			t.Errorf("%s % x, want % x", part.name, part.got, part.want)
		}
	}
}

// A slice of a list has room for 256 units, but the last slice of a segment may have fewer.
func TestPostingList_withUnitsBeyondItsSegmentIsCorrupt(t *testing.T) {
	t.Parallel()
	for _, unit := range []uint16{64, 128, 192, 255} {
		l := list{kind: kindSliced, n: 1, data: appendSliced(nil, []uint16{unit}), s: &segment{touch: func(int, int, int) error { return nil }}}
		if err := l.orInto(new(Bitmap), 64, new(Work)); !errors.Is(err, ErrCorrupt) {
			t.Errorf("unit %d of a segment of 64: %v, want ErrCorrupt", unit, err)
		}
	}
}
