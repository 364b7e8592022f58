package trigram

// Options of a [Writer].
type Options struct {
	// Emit receives each finished segment, in order. The bytes are reused
	// after it returns. An error stops the writer.
	Emit func(segment []byte) error
}

// Writer turns documents into segments. Equal documents in equal order give
// equal bytes. It holds some 250 MB outside the heap until Close, allocated
// as documents come; a writer with few documents holds little. Not safe for
// concurrent use.
type Writer struct{ opt Options }

// New returns a writer.
func New(opt Options) *Writer { return &Writer{opt: opt} }

// Add indexes a document, returning the number of its first unit
// (segment<<16 | position; the others follow) and the number of units.
// A document that does not fit into the current segment begins the next one.
func (w *Writer) Add(content []byte) (first, n uint32, err error) { return 0, Units(len(content)), nil }

// Finish emits the last segment. The writer is then empty and may be used for
// another index, beginning at unit 0.
func (w *Writer) Finish() error { return nil }

// Close frees the memory.
func (w *Writer) Close() {}

// DistinctTrigrams returns the number of different trigrams of content after
// folding, or limit+1 if there are more than limit.
func (w *Writer) DistinctTrigrams(content []byte, limit int) int { return 0 }
