package git

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sort"
	"strings"
	"syscall"
)

// packs reads objects straight out of the packs of a repository, in the way of
// `git cat-file`, whose pipe and whose decompression are a third of the price
// of an index. It knows packs with an index of version 2; for everything else
// (loose objects, alternates) [packs.read] says that it does not have it, and
// git is asked. Not for concurrent use.
type packs struct {
	list  []*pack
	inf   inflater
	bases bases
	chain []packed
	buf   [2][]byte // texts between the deltas of a chain
	delta []byte
}

// pack is a pack and its index, both mapped.
type pack struct {
	index, data []byte
	idBytes     int
	objects     int
	touched     int // bytes read since the mapping was last given back
	near        int // where the last object was, in pages that are mapped at once
}

const (
	packHeader = 12
	// maxChain is the greatest number of deltas upon deltas that is believed.
	maxChain = 4096
	// maxObject is the greatest size of an object that is read here.
	maxObject = 1 << 31
	// mappedMost is how much of a pack is mapped at a time: what was read need
	// not count as memory of this process.
	mappedMost = 16 << 20
	// aroundFault is how much the kernel maps where one page is touched.
	aroundFault = 64 << 10
)

// errPack tells that a pack is damaged.
var errPack = errors.New("damaged pack")

// openPacks maps the packs of a repository, those that it can. A pack that
// leaves meanwhile is no error: its objects are in another.
func openPacks(dir string) (*packs, error) {
	names, err := filepath.Glob(filepath.Join(escapeGlob(dir), "objects/pack/*.idx"))
	if err != nil {
		return nil, err
	}
	p := &packs{}
	for _, name := range names {
		one, err := openPack(name)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, errPack) {
			continue // git says what is wrong with it
		}
		if err != nil {
			p.close()
			return nil, err
		}
		p.list = append(p.list, one)
	}
	// Large packs have most objects.
	slices.SortStableFunc(p.list, func(a, b *pack) int { return b.objects - a.objects })
	return p, nil
}

// openPack maps a pack by the name of its index, which tells how long ids are.
func openPack(index string) (*pack, error) {
	sum, ok := strings.CutPrefix(strings.TrimSuffix(filepath.Base(index), ".idx"), "pack-")
	if !ok || !isHex(sum) {
		return nil, errPack
	}
	p := &pack{idBytes: len(sum) / 2}
	var err error
	if p.index, err = mapFile(index); err != nil {
		return nil, err
	}
	if p.data, err = mapFile(index[:len(index)-len("idx")] + "pack"); err != nil {
		p.close()
		return nil, err
	}
	if err := faultless(p.check); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// check looks at the fixed parts of both files.
func (p *pack) check() error {
	x, be := p.index, binary.BigEndian
	if len(x) < 8+1024+2*p.idBytes || be.Uint32(x) != 0xff744f63 || be.Uint32(x[4:]) != 2 {
		return errPack
	}
	p.objects = int(be.Uint32(x[8+255*4:]))
	if len(x) < 8+1024+p.objects*(p.idBytes+8)+2*p.idBytes {
		return errPack
	}
	for i := range 255 {
		if be.Uint32(x[8+4*i:]) > be.Uint32(x[12+4*i:]) {
			return errPack
		}
	}
	d := p.data
	if len(d) < packHeader+p.idBytes || string(d[:4]) != "PACK" || be.Uint32(d[4:]) != 2 || int(be.Uint32(d[8:])) != p.objects {
		return errPack
	}
	// The index ends with the checksum of the pack and its own.
	if !bytes.Equal(d[len(d)-p.idBytes:], x[len(x)-2*p.idBytes:len(x)-p.idBytes]) {
		return errPack
	}
	return nil
}

func mapFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() == 0 || info.Size() > 1<<46 {
		return nil, errPack
	}
	data, err := syscall.Mmap(int(f.Fd()), 0, int(info.Size()), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", filepath.Base(name), err)
	}
	return data, nil
}

func (p *pack) close() {
	for _, b := range [][]byte{p.index, p.data} {
		if b != nil {
			_ = syscall.Munmap(b)
		}
	}
	*p = pack{}
}

func (p *packs) close() {
	for _, one := range p.list {
		one.close()
	}
	*p = packs{}
}

// faultless calls f and makes an error of the fault that touching a mapped
// file beyond its end is: somebody has cut it short behind our back.
func faultless(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(interface{ Addr() uintptr }); !ok {
				panic(r)
			}
			err = errPack
		}
	}()
	return f()
}

// find gives the place of an object in the index.
func (p *pack) find(id []byte) (int, bool) {
	be := binary.BigEndian
	from, to := 0, int(be.Uint32(p.index[8+4*int(id[0]):]))
	if id[0] > 0 {
		from = int(be.Uint32(p.index[8+4*int(id[0])-4:]))
	}
	ids := p.index[8+1024:]
	i := from + sort.Search(to-from, func(i int) bool {
		return bytes.Compare(ids[(from+i)*p.idBytes:(from+i+1)*p.idBytes], id) >= 0
	})
	return i, i < to && bytes.Equal(ids[i*p.idBytes:(i+1)*p.idBytes], id)
}

// offset gives where an object begins in the pack.
func (p *pack) offset(i int) (int, error) {
	be := binary.BigEndian
	offsets := 8 + 1024 + p.objects*(p.idBytes+4)
	at := uint64(be.Uint32(p.index[offsets+4*i:]))
	if at>>31 != 0 {
		large := uint64(offsets+4*p.objects) + 8*(at&0x7fffffff)
		if large+8 > uint64(len(p.index)-2*p.idBytes) {
			return 0, errPack
		}
		at = be.Uint64(p.index[large:])
	}
	if at < packHeader || at >= uint64(len(p.data)-p.idBytes) {
		return 0, errPack
	}
	return int(at), nil
}

// sum is the checksum of the bytes of an object in the pack.
func (p *pack) sum(i int) uint32 {
	return binary.BigEndian.Uint32(p.index[8+1024+p.objects*p.idBytes+4*i:])
}

// The kinds of objects in a pack that are read here.
const (
	packCommit   = 1
	packTree     = 2
	packBlob     = 3
	packTag      = 4
	packOffDelta = 6
	packRefDelta = 7
)

// packed is an object as its header tells it.
type packed struct {
	at, body int // where it begins, and its stream
	kind     int
	size     int // of what the stream holds
	base     int // of a delta: where its base begins
}

// header reads what stands before the stream of the object at an offset.
func (p *pack) header(at int) (packed, error) {
	o := packed{at: at, body: at}
	end := len(p.data) - p.idBytes
	next := func() uint64 {
		if o.body >= end {
			o.body = end + 1
			return 0
		}
		o.body++
		return uint64(p.data[o.body-1])
	}
	c := next()
	o.kind = int(c >> 4 & 7)
	size := c & 15
	for shift := 4; c&0x80 != 0 && shift < 40; shift += 7 {
		c = next()
		size |= c & 0x7f << shift
	}
	switch o.kind {
	case packOffDelta:
		c = next()
		back := c & 0x7f
		for c&0x80 != 0 && back < 1<<46 {
			c = next()
			back = (back+1)<<7 | c&0x7f
		}
		if back == 0 || back > uint64(at-packHeader) {
			return o, errPack
		}
		o.base = at - int(back)
	case packRefDelta:
		if end-o.body < p.idBytes {
			return o, errPack
		}
		i, ok := p.find(p.data[o.body : o.body+p.idBytes])
		if !ok {
			return o, errPack
		}
		o.body += p.idBytes
		var err error
		if o.base, err = p.offset(i); err != nil {
			return o, err
		}
	}
	if o.body > end || c&0x80 != 0 || size > maxObject {
		return o, errPack
	}
	o.size = int(size)
	return o, nil
}

// inflate appends what the stream of an object holds, and tells where it
// ends. It gives mapped memory back from time to time.
func (p *packs) inflate(dst []byte, one *pack, o packed) ([]byte, int, error) {
	at := len(dst)
	dst = slices.Grow(dst, o.size+fastOut)[:at+o.size]
	n, err := p.inf.inflate(dst[at:], one.data[o.body:len(one.data)-one.idBytes])
	if err != nil {
		return dst[:at], 0, fmt.Errorf("%w: %w", errPack, err)
	}
	one.touched += n
	if at := o.body / aroundFault; at != one.near { // neighbours share what a fault maps
		one.near = at
		one.touched += aroundFault
	}
	if one.touched > mappedMost {
		one.give()
	}
	return dst, o.body + n, nil
}

// give gives mapped memory back.
func (p *pack) give() {
	p.touched, p.near = 0, -1
	_ = syscall.Madvise(p.data, syscall.MADV_DONTNEED)
}

func (p *packs) give() {
	for _, one := range p.list {
		one.give()
	}
}

// read appends the blob with an id, given in hex, to dst. It reports false
// when it does not have it.
func (p *packs) read(dst []byte, oid string) (out []byte, ok bool, err error) {
	var raw [32]byte
	n, err := hex.Decode(raw[:], []byte(oid))
	if err != nil {
		return dst, false, err
	}
	return p.get(dst, packBlob, raw[:n])
}

// get appends the object of a kind with an id to dst. It reports false when
// it does not have it.
func (p *packs) get(dst []byte, kind int, id []byte) (out []byte, ok bool, err error) {
	out = dst
	err = faultless(func() error {
		one, i := p.lookup(id)
		if ok = one != nil; !ok {
			return nil
		}
		var err error
		out, err = p.object(dst, kind, one, i, id)
		return err
	})
	if err != nil {
		return dst, true, fmt.Errorf("read object %x: %w", id, err)
	}
	return out, ok, nil
}

// lookup finds the pack that has an object, and its place in the index.
func (p *packs) lookup(id []byte) (*pack, int) {
	for _, one := range p.list {
		if len(id) != one.idBytes {
			continue
		}
		if i, found := one.find(id); found {
			return one, i
		}
	}
	return nil, 0
}

// object appends the object with a place in the index of a pack. Nothing is
// believed unseen: one that is stored whole has a checksum in the index, one
// that is made of deltas must have its id, since many bytes went into it.
func (p *packs) object(dst []byte, kind int, one *pack, i int, id []byte) ([]byte, error) {
	at, err := one.offset(i)
	if err != nil {
		return dst, err
	}
	o, err := one.header(at)
	if err != nil {
		return dst, err
	}
	if o.kind == kind {
		dst, end, err := p.inflate(dst, one, o)
		if err == nil && crc32.ChecksumIEEE(one.data[at:end]) != one.sum(i) {
			err = errPack
		}
		return dst, err
	}
	from := len(dst)
	if dst, err = p.resolve(dst, kind, one, o); err == nil && !hasID(kind, dst[from:], id) {
		err = errPack
	}
	return dst, err
}

// hasID tells whether an object is the one that its id says.
func hasID(kind int, content, id []byte) bool {
	var sum hash.Hash = sha1.New()
	if len(id) == sha256.Size {
		sum = sha256.New()
	}
	fmt.Fprintf(sum, "%s %d\x00", kindNames[kind], len(content))
	sum.Write(content)
	return bytes.Equal(sum.Sum(nil), id)
}

// resolve appends an object that is stored as what differs from another.
func (p *packs) resolve(dst []byte, kind int, one *pack, o packed) ([]byte, error) {
	p.chain = p.chain[:0]
	var text []byte
	for known := false; o.kind != kind && !known; {
		if o.kind != packOffDelta && o.kind != packRefDelta || len(p.chain) > maxChain {
			return dst, fmt.Errorf("%w: not of the kind that was asked for", errPack)
		}
		p.chain = append(p.chain, o)
		if text, known = p.bases.get(one, o.base); !known {
			var err error
			if o, err = one.header(o.base); err != nil {
				return dst, err
			}
		}
	}
	var err error
	if o.kind == kind {
		if p.buf[0], _, err = p.inflate(p.buf[0][:0], one, o); err != nil {
			return dst, err
		}
		text = p.buf[0]
		p.bases.put(one, o.at, text)
	}
	for k := len(p.chain) - 1; k > 0; k-- {
		// The text is in the other buffer, or among the bases.
		to := &p.buf[(len(p.chain)-k)&1]
		if *to, err = p.apply((*to)[:0], text, one, p.chain[k]); err != nil {
			return dst, err
		}
		text = *to
		p.bases.put(one, p.chain[k].at, text)
	}
	from := len(dst)
	if dst, err = p.apply(dst, text, one, p.chain[0]); err == nil {
		p.bases.put(one, p.chain[0].at, dst[from:])
	}
	return dst, err
}

// apply appends what the delta o makes of a text.
func (p *packs) apply(dst, text []byte, one *pack, o packed) (_ []byte, err error) {
	if p.delta, _, err = p.inflate(p.delta[:0], one, o); err != nil {
		return dst, err
	}
	return applyDelta(dst, text, p.delta)
}

// applyDelta appends what a delta makes of its base.
func applyDelta(dst, base, delta []byte) ([]byte, error) {
	from := len(dst)
	size, n := binary.Uvarint(delta)
	if n <= 0 || size != uint64(len(base)) {
		return dst, errPack
	}
	delta = delta[n:]
	if size, n = binary.Uvarint(delta); n <= 0 || size > maxObject {
		return dst, errPack
	}
	delta = delta[n:]
	dst = slices.Grow(dst, int(size))
	for len(delta) > 0 {
		op := delta[0]
		delta = delta[1:]
		if op&0x80 == 0 {
			if op == 0 || int(op) > len(delta) {
				return dst[:from], errPack
			}
			dst = append(dst, delta[:op]...)
			delta = delta[op:]
			continue
		}
		var v [7]int
		for k := range v {
			if op>>k&1 != 0 {
				if len(delta) == 0 {
					return dst[:from], errPack
				}
				v[k], delta = int(delta[0]), delta[1:]
			}
		}
		at, length := v[0]|v[1]<<8|v[2]<<16|v[3]<<24, v[4]|v[5]<<8|v[6]<<16
		if length == 0 {
			length = 1 << 16
		}
		if at > len(base) || length > len(base)-at || length > int(size)-(len(dst)-from) {
			return dst[:from], errPack
		}
		dst = append(dst, base[at:at+length]...)
	}
	if len(dst)-from != int(size) {
		return dst[:from], errPack
	}
	return dst, nil
}

// bases keeps texts that deltas were made upon, the latest: objects that are
// asked for one after the other are often made upon the same.
type bases struct {
	texts map[baseKey][]byte
	order []baseKey // as they came
	bytes int
}

type baseKey struct {
	p  *pack
	at int
}

const (
	basesBytes = 8 << 20
	baseMost   = 1 << 20 // a larger text is not kept
)

func (b *bases) get(p *pack, at int) ([]byte, bool) {
	text, ok := b.texts[baseKey{p, at}]
	return text, ok
}

// put keeps a copy of a text.
func (b *bases) put(p *pack, at int, text []byte) {
	key := baseKey{p, at}
	if len(text) > baseMost || b.texts[key] != nil {
		return
	}
	for b.bytes+len(text) > basesBytes {
		old := b.texts[b.order[0]]
		delete(b.texts, b.order[0])
		b.order = b.order[1:]
		b.bytes -= len(old)
	}
	if b.texts == nil {
		b.texts = map[baseKey][]byte{}
	}
	b.texts[key] = bytes.Clone(text)
	b.order = append(b.order, key)
	b.bytes += len(text)
}
