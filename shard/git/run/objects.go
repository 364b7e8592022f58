package run

import (
	"context"
	"encoding/hex"

	"github.com/shoalsearch/shoal/shard/git/pack"
)

// objects reads objects from the packs of a mirror. Git is asked for large objects and for those in
// no pack. The packs are mapped at the first question. It is not safe for concurrent use.
type objects struct {
	dir   string
	store *pack.Store
	buf   []byte
}

// smallObject is the greatest size of an object that is read whole into memory.
const smallObject = 4 << 20

// Live returns an error if the caller that uses the process is gone. A git process is killed with
// its caller, but reads from packs must check.
func (c *CatFile) Live() error {
	if c.ctx != nil && c.ctx.Err() != nil {
		return context.Cause(c.ctx)
	}
	return nil
}

func (o *objects) close() {
	if o.store != nil {
		o.store.Close()
		o.store = nil
	}
}

// rest frees memory that only makes a series of questions faster.
func (o *objects) rest() {
	if o.store != nil {
		o.store.Rest()
	}
	if cap(o.buf) > 64<<10 {
		o.buf = nil
	}
}

// open maps the packs, once.
func (o *objects) open() bool {
	if o.store == nil {
		s, err := pack.Open(o.dir)
		if err != nil {
			return false // git says what is wrong
		}
		o.store = s
	}
	return true
}

// Info returns the kind and size of an object. It reports false if git must be asked.
func (o *objects) Info(id []byte) (info ObjectInfo, ok bool) {
	if !o.open() {
		return info, false
	}
	kind, size, err := o.store.Info(id)
	if err != nil || kind == pack.Tag {
		return info, false
	}
	return ObjectInfo{Kind: kind.String(), Size: size}, true
}

// Small reads a small object by its id. The content is valid until the next call.
func (o *objects) Small(name string) (info ObjectInfo, content []byte, ok bool) {
	if !pack.IsID(name) || !o.open() {
		return info, nil, false
	}

	id, err := hex.DecodeString(name)
	if err != nil {
		return info, nil, false
	}

	// Leave tags and large objects to git.
	kind, content, err := o.store.Get(o.buf[:0], id, smallObject)
	if err != nil || kind == pack.Tag {
		return info, nil, false
	}

	o.buf = content
	return ObjectInfo{OID: name, Kind: kind.String(), Size: int64(len(content))}, content, true
}
