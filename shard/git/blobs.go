package git

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"iter"
	"slices"
	"sync"

	"github.com/shoalsearch/shoal/shard/git/pack"
	"github.com/shoalsearch/shoal/shard/git/run"
)

// Blobs reads many blobs fast, in the requested order. It is not safe for concurrent use.
//
//	b, err := m.Blobs(ctx, oids)
//	defer b.Close()
//	for {
//	    buf, err = b.Next(buf[:0])   // io.EOF after the last
//	}
//
// It reads from the packs of the mirror, and asks git for the few blobs that are in no pack.
type Blobs struct {
	ctx     context.Context
	base    *base
	store   *pack.Store
	next    func() (string, bool)
	stop    func()
	closing sync.Once
}

// Blobs starts reading the blobs of oids. Next takes one id at a time from oids.
func (f *files) Blobs(ctx context.Context, oids iter.Seq[string]) (*Blobs, error) {
	s, err := pack.Open(f.dir)
	if err != nil {
		return nil, fmt.Errorf("open packs: %w", err)
	}
	b := &Blobs{ctx: ctx, base: f.base, store: s}
	b.next, b.stop = iter.Pull(oids)
	return b, nil
}

// Next appends the next blob to dst and returns it; io.EOF after the last. It allocates only if dst
// is too small. A missing object is an error.
func (b *Blobs) Next(dst []byte) ([]byte, error) {
	if b.ctx.Err() != nil {
		return dst, context.Cause(b.ctx)
	}

	oid, ok := b.next()
	if !ok {
		return dst, io.EOF
	}
	return b.Read(dst, oid)
}

// Read appends a blob to dst and returns it, in any order.
func (b *Blobs) Read(dst []byte, oid string) ([]byte, error) {
	if b.ctx.Err() != nil {
		return dst, context.Cause(b.ctx)
	}

	if !pack.IsID(oid) {
		return dst, fmt.Errorf("%.80q is no object id", oid)
	}

	// If the packs do not have the blob intact, git may find another copy.
	if id, err := hex.DecodeString(oid); err == nil {
		if out, err := b.store.Read(dst, pack.Blob, id); err == nil {
			return out, nil
		}
	}
	return b.readByGit(dst, oid)
}

// readByGit appends a blob to dst, read with git.
func (b *Blobs) readByGit(dst []byte, oid string) ([]byte, error) {
	err := b.base.with(b.ctx, func(c reader) error {
		return c.Contents(oid, func(info run.ObjectInfo, r io.Reader) error {
			if info.Kind != "blob" {
				return fmt.Errorf("object %s is missing or not a blob", oid)
			}

			// Make room for the whole blob, so that one read is enough.
			n := len(dst)
			dst = slices.Grow(dst, int(info.Size))[:n+int(info.Size)]
			_, err := io.ReadFull(r, dst[n:])
			return err
		})
	})
	return dst, err
}

// Close ends the reading. The caller must call it, even after an error.
func (b *Blobs) Close() error {
	b.closing.Do(func() {
		b.stop()
		b.store.Close()
	})
	return nil
}
