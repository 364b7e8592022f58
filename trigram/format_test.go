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

// Most repositories are small. In their segments a bitmap is shorter than the differences of ids.
func TestPostingList_isABitmapWhereThatIsNotLonger(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ units, ids, kind, size int }{
		{64, 2, kindInline2, 0}, {64, 7, kindVarint, 7}, {64, 8, kindFlat, 8}, {64, 64, kindFlat, 8},
		{65, 15, kindVarint, 15}, {65, 16, kindFlat, 16},
		{2048, 255, kindVarint, 255}, {2048, 256, kindFlat, 256}, {2112, 256, kindVarint, 256},
		{65536, 256, kindVarint, 256}, {65536, 257, kindSliced, 32 + 33 + 2}, {65536, 65536, kindFlat, 8192},
	} {
		var ids []uint16
		var b Bitmap
		for id := range c.ids {
			ids = append(ids, uint16(id))
			b.Set(uint16(id))
		}
		for name, add := range map[string]func(*encoder){
			"ids": func(e *encoder) { e.addIDs(0x616263, ids) }, "bitmap": func(e *encoder) { e.addBitmap(0x616263, &b) },
		} {
			var e encoder
			e.reset(c.units)
			add(&e)
			s := &segment{units: c.units, blocks: e.blocks, entries: e.entries, lists: e.lists, touch: func(int, int, int) error { return nil }}
			l, err := s.findList(0x616263, new(Work))
			var got Bitmap
			if err == nil {
				err = l.orInto(&got, c.units, new(Work))
			}
			if err != nil || int(l.kind) != c.kind || len(e.lists) != c.size || got != b {
				t.Errorf("%d of %d units by %s: kind %d of %d bytes, equal %v, %v; want kind %d of %d", c.ids, c.units, name, l.kind, len(e.lists), got == b, err, c.kind, c.size)
			}
		}
	}
}
