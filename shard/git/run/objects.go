package run

import (
	"context"
	"encoding/hex"

	"github.com/shoalsearch/shoal/shard/git/pack"
)

// objects reads objects from the packs of a mirror, which it maps at the first use. For large
// objects and objects in no pack its methods return false, and the caller asks git. It is not safe
// for concurrent use.
type objects struct {
	dir   string
	store *pack.Store
	buf   []byte
}

// smallObject is the size in bytes of the largest object that Small reads.
const smallObject = 4 << 20

// maxIdleBuffer is the size in bytes of the largest buffer that an idle process keeps.
const maxIdleBuffer = 64 << 10

// Live returns an error if the context of the current caller has ended. The pool then kills a git
// process, but reads from packs must check.
func (c *CatFile) Live() error {
	if c.ctx != nil && c.ctx.Err() != nil {
		return context.Cause(c.ctx)
	}
	return nil
}

// close closes the packs.
func (o *objects) close() {
	if o.store != nil {
		o.store.Close()
		o.store = nil
	}
}

// freeBuffers frees buffers and caches, before a time without reads.
func (o *objects) freeBuffers() {
	if o.store != nil {
		o.store.FreeBuffers()
	}
	if cap(o.buf) > maxIdleBuffer {
		o.buf = nil
	}
}

// openPacks maps the packs, once. It returns false if that fails.
func (o *objects) openPacks() bool {
	if o.store == nil {
		s, err := pack.Open(o.dir)
		if err != nil {
			return false // the caller asks git, which reports what is wrong
		}
		o.store = s
	}
	return true
}

// Info returns the kind and size of an object. It returns false if the caller must ask git.
func (o *objects) Info(id []byte) (info ObjectInfo, ok bool) {
	if !o.openPacks() {
		return info, false
	}
	kind, size, err := o.store.Info(id)
	if err != nil || kind == pack.Tag {
		return info, false
	}
	return ObjectInfo{Kind: kind.String(), Size: size}, true
}

// Small reads an object of at most smallObject bytes by its id, in hex. The content is valid until
// the next call. It returns false if the caller must ask git.
func (o *objects) Small(name string) (info ObjectInfo, content []byte, ok bool) {
	if !pack.IsID(name) || !o.openPacks() {
		return info, nil, false
	}

	id, err := hex.DecodeString(name)
	if err != nil {
		return info, nil, false
	}

	kind, content, err := o.store.Get(o.buf[:0], id, smallObject)
	if err != nil || kind == pack.Tag {
		return info, nil, false
	}

	o.buf = content
	return ObjectInfo{OID: name, Kind: kind.String(), Size: int64(len(content))}, content, true
}
