package symbols

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/shoalsearch/shoal/shard/file"
)

// pageRefs reads the references of the names of a page: for each name the documents that define it.
// The first call of forEach on a page decodes them.
type pageRefs struct {
	y       *File
	page    int
	r       refReader
	next    int  // name of the page that r reads next
	decoded bool // r has the references of this page
	buf     []byte
}

// goToPage moves to a page.
func (p *pageRefs) goToPage(page int) { p.page, p.r, p.next, p.decoded = page, refReader{}, 0, false }

// forEach calls use with each document that defines a name, given by its index in the page. The
// index must be greater than in the call before.
func (p *pageRefs) forEach(name int, use func(int)) error {
	if !p.decoded {
		var ok bool
		if p.buf, ok = p.y.code.refs.decodeCoded(p.buf, file.Entry(p.y.refs, p.y.refEnd, p.page)); !ok {
			return p.y.f.Damaged("references of page %d", p.page)
		}
		p.r.b, p.decoded = p.buf, true
	}

	// References can only be read in order, so skip those of earlier names.
	var docs reference
	for ; p.next <= name; p.next++ {
		docs = p.r.readReference()
	}
	return p.y.f.Blame(docs.forEach(p.y.documents, use))
}

// refReader reads the references of the names of a page one after the other. The first
// document of a name is written as its distance from that of the name before, since names
// with a common prefix are often defined side by side; a bit says whether there are more.
type refReader struct {
	b     []byte
	first int // document of the name before
}

// reference is the documents that define a name: the first one, and the coded gaps to the others.
type reference struct {
	first int // -1 if the bytes are damaged
	gaps  []byte
}

// readReference reads the reference of the next name of the page.
func (r *refReader) readReference() reference {
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

// appendReference appends the reference of a name as refReader reads it. docs, ascending, are the
// documents that define the name; before is the first document of the name before.
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

// forEach calls use with each document. It returns an error if one is not below documents, the
// number of documents of the shard.
func (r reference) forEach(documents int, use func(int)) error {
	doc, gaps := r.first, r.gaps
	for {
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

// references collects the documents that define each name, in two passes over all rows:
// countDocument counts those of each name, then addDocument stores them, after allocateLists.
type references struct {
	end  []uint32 // by name: in the first pass the number of documents, then where they end in docs
	last []uint32 // by name: the last document of this pass + 1; 0 if there was none
	docs []uint32 // the documents of all names, one name after the other
}

func newReferences(names int) references {
	return references{end: make([]uint32, names), last: make([]uint32, names)}
}

// countDocument counts a document that defines a name. Documents come in order, and a repeated one
// counts once.
func (r *references) countDocument(name, doc int) {
	if r.last[name] != uint32(doc)+1 {
		r.last[name] = uint32(doc) + 1
		r.end[name]++
	}
}

// allocateLists allocates the lists. It turns the count of each name in end into the position where
// its list begins; addDocument then moves it to where the list ends.
func (r *references) allocateLists() {
	sum := uint32(0)
	for i, n := range r.end {
		r.end[i] = sum
		sum += n
	}
	clear(r.last)
	r.docs = make([]uint32, sum)
}

// addDocument stores a document that defines a name. Documents come in the same order as in the first
// pass, and a repeated one is stored once.
func (r *references) addDocument(name, doc int) {
	if r.last[name] != uint32(doc)+1 {
		r.last[name] = uint32(doc) + 1
		r.docs[r.end[name]] = uint32(doc)
		r.end[name]++
	}
}

// documents returns the documents that define a name.
func (r *references) documents(name int) []uint32 {
	if name == 0 {
		return r.docs[:r.end[0]]
	}
	return r.docs[r.end[name-1]:r.end[name]]
}
