package shard

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// pageRefs gives the references of the names of a page. They are decoded when
// the first name asks.
type pageRefs struct {
	y    *symbolsFile
	page int
	r    refReader
	next int // name that r comes to
	read bool
	buf  []byte
}

// turn turns to a page.
func (p *pageRefs) turn(page int) *pageRefs {
	p.page, p.r, p.next, p.read = page, refReader{}, 0, false
	return p
}

// each calls use with the documents of a name, by its place in the page;
// places ascend.
func (p *pageRefs) each(name int, use func(int)) error {
	if !p.read {
		var ok bool
		if p.buf, ok = p.y.code.refs.decodeCoded(p.buf, part(p.y.refs, p.y.refEnd, p.page)); !ok {
			return fmt.Errorf("%s: %w: references of page %d", p.y.f.name, ErrDamaged, p.page)
		}
		p.r.b, p.read = p.buf, true
	}
	var docs reference
	for ; p.next <= name; p.next++ {
		docs = p.r.next()
	}
	if err := docs.each(p.y.documents, use); err != nil {
		return fmt.Errorf("%s: %w", p.y.f.name, err)
	}
	return nil
}

// refReader goes through the references of the names of a page. The first
// document of a name is written as the distance from that of the name before,
// because names that begin alike are often defined side by side; a bit tells
// whether there are more.
type refReader struct {
	b    []byte
	last int
}

// reference is the documents of a name: the first, then gaps.
type reference struct {
	first int
	rest  []byte
}

func (r *refReader) next() reference {
	head, w := binary.Uvarint(r.b)
	if w <= 0 {
		r.b = nil
		return reference{first: -1}
	}
	r.b = r.b[w:]
	step := head >> 1
	r.last += int(int64(step>>1) ^ -int64(step&1))
	ref := reference{first: r.last}
	if head&1 != 0 {
		n, w := binary.Uvarint(r.b)
		if w <= 0 || n > uint64(len(r.b)-w) {
			r.b = nil
			return reference{first: -1}
		}
		ref.rest, r.b = r.b[w:w+int(n)], r.b[w+int(n):]
	}
	return ref
}

// appendReference is what refReader reads, of documents that ascend. last is
// the first document of the name before, in the same page.
func appendReference(dst []byte, last int, docs []uint32) []byte {
	step := int64(docs[0]) - int64(last)
	head := uint64(step<<1^step>>63) << 1
	if len(docs) == 1 {
		return binary.AppendUvarint(dst, head)
	}
	size := 0
	for i, d := range docs[1:] {
		size += uvarintSize(d - docs[i] - 1)
	}
	dst = binary.AppendUvarint(dst, head|1)
	dst = binary.AppendUvarint(dst, uint64(size))
	for i, d := range docs[1:] {
		dst = binary.AppendUvarint(dst, uint64(d-docs[i]-1))
	}
	return dst
}

// uvarintSize is the number of bytes that a number takes.
func uvarintSize(v uint32) int { return (bits.Len32(v|1) + 6) / 7 }

// each calls use with the documents.
func (r reference) each(documents int, use func(int)) error {
	doc, list := r.first, r.rest
	for {
		if uint(doc) >= uint(documents) {
			return fmt.Errorf("%w: document of a symbol", ErrDamaged)
		}
		use(doc)
		if len(list) == 0 {
			return nil
		}
		gap, w := binary.Uvarint(list)
		if w <= 0 || gap >= uint64(documents) {
			return fmt.Errorf("%w: document of a symbol", ErrDamaged)
		}
		doc += 1 + int(gap)
		list = list[w:]
	}
}
