package git

import (
	"context"
	"iter"
)

// Blobs reads many blobs, fast, in the order asked. Not for concurrent use.
//
//	b, err := m.Blobs(ctx, oids)
//	defer b.Close()
//	for {
//	    buf, err = b.Next(buf[:0])   // io.EOF after the last
//	}
type Blobs struct{}

// Blobs starts reading the blobs of oids, which is drawn from another
// goroutine while Next is called, some thousand ahead.
func (m *Mirror) Blobs(ctx context.Context, oids iter.Seq[string]) (*Blobs, error) {
	return nil, ErrEmpty
}

// Next appends the next blob to dst and returns it; io.EOF after the last.
// It allocates only when dst is too small. A missing object is an error.
func (b *Blobs) Next(dst []byte) ([]byte, error) { return dst, ErrEmpty }

// Skip passes over the next blob without keeping it.
func (b *Blobs) Skip() error { return ErrEmpty }

// Close ends the reading. It must be called, also after an error.
func (b *Blobs) Close() error { return nil }
