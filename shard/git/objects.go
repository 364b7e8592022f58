package git

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"os"
	"path/filepath"
	"time"
)

// objects reads objects out of the packs of a repository, which takes some
// microseconds where a question to git takes a hundred. What it does not have,
// and what is large, git is asked for. The packs are mapped at the first
// question. Not for concurrent use.
type objects struct {
	dir    string
	packs  *packs
	opened time.Time // change of the directory of packs when they were mapped
	buf    []byte
}

// smallObject is the greatest size of an object that is taken into memory
// whole.
const smallObject = 4 << 20

// live tells whether the user of the process is still there. A process that
// is asked is killed with its user; what is read here has to look.
func (c *catFile) live() error {
	if c.ctx != nil && c.ctx.Err() != nil {
		return context.Cause(c.ctx)
	}
	return nil
}

func (o *objects) close() {
	if o.packs != nil {
		o.packs.close()
		o.packs = nil
	}
}

// rest gives back what only speeds up a run of questions.
func (o *objects) rest() {
	if o.packs != nil {
		o.packs.bases, o.packs.buf, o.packs.delta = bases{}, [2][]byte{}, nil
	}
	if cap(o.buf) > 64<<10 {
		o.buf = nil
	}
}

// lookup finds an object; packs that came meanwhile are looked at, too.
func (o *objects) lookup(id []byte) (one *pack, i int) {
	if o.packs != nil {
		if one, i = o.packs.lookup(id); one != nil {
			return one, i
		}
	}
	info, err := os.Stat(filepath.Join(o.dir, "objects", "pack"))
	if err != nil || o.packs != nil && info.ModTime().Equal(o.opened) {
		return nil, 0
	}
	o.close()
	p, err := openPacks(o.dir)
	if err != nil {
		return nil, 0 // git says what is wrong
	}
	o.packs, o.opened = p, info.ModTime()
	return p.lookup(id)
}

// kindNames are the kinds of objects that are read here, as git calls them.
var kindNames = [...]string{packCommit: "commit", packTree: "tree", packBlob: "blob", packTag: "tag"}

// told is what can be said of an object without reading it.
type told struct {
	kind, size int
	deltas     int // it is made of
	root       int // size of what they are applied to
}

// info tells what the object with a place in the index of a pack is. The size
// of one made of deltas stands at the beginning of the last of them.
func (p *packs) info(one *pack, i int) (o told, err error) {
	at, err := one.offset(i)
	if err != nil {
		return o, err
	}
	h, err := one.header(at)
	if err != nil {
		return o, err
	}
	o.size = h.size
	for ; h.kind == packOffDelta || h.kind == packRefDelta; o.deltas++ {
		if o.deltas > maxChain || h.size > smallObject {
			return o, errPack // too much to read for a size
		}
		if o.deltas == 0 {
			if p.delta, _, err = p.inflate(p.delta[:0], one, h); err != nil {
				return o, err
			}
			_, n := binary.Uvarint(p.delta)
			whole, m := binary.Uvarint(p.delta[max(n, 0):])
			if n <= 0 || m <= 0 || whole > maxObject {
				return o, errPack
			}
			o.size = int(whole)
		}
		if h, err = one.header(h.base); err != nil {
			return o, err
		}
	}
	o.kind, o.root = h.kind, h.size
	if o.kind < packCommit || o.kind > packTag {
		return o, errPack
	}
	return o, nil
}

// info tells what an object is. It reports false when git has to be asked.
func (o *objects) info(id []byte) (info objectInfo, kind int, ok bool) {
	one, i := o.lookup(id)
	if one == nil {
		return info, 0, false
	}
	var found told
	err := faultless(func() (err error) {
		found, err = o.packs.info(one, i)
		return err
	})
	if err != nil || found.kind > packBlob {
		return objectInfo{}, 0, false
	}
	return objectInfo{kind: kindNames[found.kind], size: int64(found.size)}, found.kind, true
}

// small reads an object that is named by its id and not large. The content is
// valid until the next call.
func (o *objects) small(name string) (info objectInfo, content []byte, ok bool) {
	if !isHex(name) {
		return info, nil, false
	}
	id, err := hex.DecodeString(name)
	if err != nil {
		return info, nil, false
	}
	info, kind, ok := o.info(id)
	if !ok || info.size > smallObject {
		return info, nil, false
	}
	info.oid = name
	o.buf, ok, err = o.packs.get(o.buf[:0], kind, id)
	return info, o.buf, ok && err == nil
}
