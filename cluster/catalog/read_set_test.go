package catalog

import (
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
)

// ReadSet reads a set from the middle of a buffer and refuses a damaged one. Under the race
// detector it also shows that no pointer leads out of the buffer.
func TestReadSet_decodesASetInTheMiddleOfABuffer(t *testing.T) {
	t.Parallel()
	for _, set := range []*roaring.Bitmap{roaring.New(), roaring.BitmapOf(1), roaring.BitmapOf(1, 2, 3, 1<<20)} {
		written, err := set.ToBytes()
		if err != nil {
			t.Fatal(err)
		}
		for before := range 8 {
			file := slices.Clip(append(make([]byte, before), written...))
			got, err := ReadSet(file[before:])
			if err != nil || !got.Equals(set) {
				t.Errorf("%s after %d bytes: %v, %v", set, before, got, err)
			}
			clear(file) // the set does not alias the buffer
			if !got.Equals(set) {
				t.Errorf("%s after %d bytes: it shares what was read", set, before)
			}
		}
		if len(written) > 8 {
			if _, err := ReadSet(written[:len(written)-1]); err == nil {
				t.Errorf("%s without its last byte is read", set)
			}
		}
	}
}
