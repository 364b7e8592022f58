package symbols

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/shoalsearch/shoal/shard/file"
)

// pageRefs reads the references of the names of a page. They are decoded when the first
// name asks.
type pageRefs struct {
	y    *File
	page int
	r    refReader
	next int  // name of the page that r reads next
	read bool // r has the references of this page
	buf  []byte
}

// open goes to a page.
func (p *pageRefs) open(page int) { p.page, p.r, p.next, p.read = page, refReader{}, 0, false }

// each calls use with the documents of a name, by its index in the page. Indices must grow
// from call to call: next <= name.
func (p *pageRefs) each(name int, use func(int)) error {
	if !p.read {
		var ok bool
		if p.buf, ok = p.y.code.refs.decodeCoded(p.buf, file.Entry(p.y.refs, p.y.refEnd, p.page)); !ok {
			return p.y.f.Damaged("references of page %d", p.page)
		}
		p.r.b, p.read = p.buf, true
	}

	// References have no index within a row, so read over those of earlier names.
	var docs reference
	for ; p.next <= name; p.next++ {
		docs = p.r.next()
	}
	return p.y.f.Blame(docs.each(p.y.documents, use))
}

// refReader reads the references of the names of a page one after the other. The first
// document of a name is written as its distance from that of the name before, since names
// with a common prefix are often defined side by side; a bit says whether there are more.
type refReader struct {
	b     []byte
	first int // document of the name before
}

// reference is the documents of a name: the first one, and the gaps to the others.
type reference struct {
	first int // -1: the bytes are no reference
	gaps  []byte
}

// next reads the reference of the next name.
func (r *refReader) next() reference {
	head, w := binary.Uvarint(r.b)
	if w <= 0 {
		r.b = nil
		return reference{first: -1}
	}
	r.b = r.b[w:]

	// The lowest bit of head says that there are gaps, the one above it is the sign of zigzag.
	step := head >> 1
	r.first += int(int64(step>>1) ^ -int64(step&1))
	ref := reference{first: r.first}

	if head&1 != 0 {
		n, w := binary.Uvarint(r.b)
		if w <= 0 || n > uint64(len(r.b)-w) {
			r.b = nil
			return reference{first: -1}
		}
		ref.gaps, r.b = r.b[w:w+int(n)], r.b[w+int(n):]
	}
	return ref
}

// appendReference writes what refReader reads. docs ascend; before is the first document of
// the name before in the page.
func appendReference(dst []byte, before int, docs []uint32) []byte {
	// Zigzag: a small distance of either sign is a small number.
	step := int64(docs[0]) - int64(before)
	head := uint64(step<<1^step>>63) << 1
	if len(docs) == 1 {
		return binary.AppendUvarint(dst, head)
	}

	size := 0 // of the gaps
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

// uvarintSize returns how many bytes a number takes.
func uvarintSize(v uint32) int { return (bits.Len32(v|1) + 6) / 7 }

// each calls use with the documents.
func (r reference) each(documents int, use func(int)) error {
	doc, gaps := r.first, r.gaps
	for {
		// The caller indexes with doc, whatever the file says.
		if uint(doc) >= uint(documents) {
			return fmt.Errorf("%w: document of a symbol", file.ErrDamaged)
		}
		use(doc)
		if len(gaps) == 0 {
			return nil
		}

		// A gap that is too large must not wrap doc around.
		gap, w := binary.Uvarint(gaps)
		if w <= 0 || gap >= uint64(documents) {
			return fmt.Errorf("%w: document of a symbol", file.ErrDamaged)
		}

		doc += 1 + int(gap)
		gaps = gaps[w:]
	}
}

// references collects for each name the documents that define it: these are counted first,
// then written side by side.
type references struct {
	end  []uint32 // by name: first how many documents, then where they end in docs
	last []uint32 // by name: the document counted or added last, and one
	docs []uint32
}

func newReferences(names int) references {
	return references{end: make([]uint32, names), last: make([]uint32, names)}
}

// count counts a document of a name; documents come in order.
func (r *references) count(name, doc int) {
	if r.last[name] != uint32(doc)+1 {
		r.last[name] = uint32(doc) + 1
		r.end[name]++
	}
}

// place allocates the lists. It turns the count of each name in end into the position where its
// list begins; add then moves it to where the list ends.
func (r *references) place() {
	sum := uint32(0)
	for i, n := range r.end {
		r.end[i] = sum
		sum += n
	}
	clear(r.last)
	r.docs = make([]uint32, sum)
}

// add adds a document of a name, in the same order.
func (r *references) add(name, doc int) {
	if r.last[name] != uint32(doc)+1 {
		r.last[name] = uint32(doc) + 1
		r.docs[r.end[name]] = uint32(doc)
		r.end[name]++
	}
}

// of returns the documents of a name.
func (r *references) of(name int) []uint32 {
	if name == 0 {
		return r.docs[:r.end[0]]
	}
	return r.docs[r.end[name-1]:r.end[name]]
}
