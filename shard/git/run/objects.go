package run

import (
	"context"
	"encoding/hex"

	"github.com/shoalsearch/shoal/shard/git/pack"
)

// objects reads objects out of the packs of a mirror; git is asked for what is
// in none, and for what is large. The packs are mapped at the first question.
// Not for concurrent use.
type objects struct {
	dir   string
	store *pack.Store
	buf   []byte
}

// smallObject is the greatest size of an object that is taken into memory
// whole.
const smallObject = 4 << 20

// Live reports whether the user of the process is still there. A process that
// is asked is killed with its user; what is read here has to look.
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

// rest gives back what only speeds up a run of questions.
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

// Info finds what an object is. It reports false when git has to be asked.
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

// Small reads an object that is named by its id and not large. The content is
// valid until the next call.
func (o *objects) Small(name string) (info ObjectInfo, content []byte, ok bool) {
	if !pack.IsID(name) || !o.open() {
		return info, nil, false
	}

	id, err := hex.DecodeString(name)
	if err != nil {
		return info, nil, false
	}

	// Tags and large ones are left to git.
	kind, content, err := o.store.Get(o.buf[:0], id, smallObject)
	if err != nil || kind == pack.Tag {
		return info, nil, false
	}

	o.buf = content
	return ObjectInfo{OID: name, Kind: kind.String(), Size: int64(len(content))}, content, true
}
