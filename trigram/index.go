package trigram

// Index answers formulas from the segments of one shard. It keeps slices of
// the given bytes and next to nothing else; it is immutable and safe for
// concurrent use.
type Index struct{ segs []segment }

type segment struct{ units int }

// Open reads the heads of the segments, in the order in which a [Writer]
// emitted them. The bytes must stay unchanged while the index is in use.
func Open(segments [][]byte) (*Index, error) { return &Index{}, nil }

// Segments returns the number of segments.
func (x *Index) Segments() int { return len(x.segs) }

// Units returns the number of units in a segment.
func (x *Index) Units(seg int) int { return x.segs[seg].units }

// Work counts what answering formulas has cost.
type Work struct {
	Lookups int   // trigrams looked up
	Lists   int   // posting lists read
	Bytes   int64 // of the lists read
}

// Scratch holds the buffers of one goroutine for [Index.Search], so that a
// search allocates nothing. The zero value is ready.
type Scratch struct {
	Work Work // added to by every search
}

// Search sets out to the candidate units of one segment and returns their
// number. When within is not nil, candidates are wanted only there (units
// outside may be left out; none is added that is outside). Work is bounded by
// the size of the segment; damaged bytes give an error that wraps [ErrCorrupt].
func (x *Index) Search(seg int, f *Formula, within *Bitmap, s *Scratch, out *Bitmap) (int, error) {
	return 0, nil
}
