package shard

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"sort"
	"strings"
	"sync"

	"github.com/shoalsearch/shoal/shard/lz"
	"github.com/shoalsearch/shoal/trigram"
)

// A .symbols file holds the definitions in the documents of one shard:
//
//	meta      name of the shard, counts, the kinds
//	parents   sorted and front-coded
//	codes     of Huffman, one for each of parents, pages, refs and docs
//	pages     the distinct names, sorted without regard to case, in pages of
//	          at most 4 KiB, front-coded, each a block of package lz
//	first     the first name of each page
//	postings  of package trigram; a page is a document of one unit
//	refs      for each name the documents that define it: bytes, then gaps
//	docs      for each document its symbols by offset: gap, distance of the
//	          name's number from the last one, and kind and parent where they
//	          are not those of the last symbol
//
// The entries of parents, pages, refs and docs are in codes of Huffman.
//
// So a pattern reads a few pages to find names, then only lists; no content is
// touched before the lines of a result are cut out.
type symbolsFile struct {
	f *file

	once      sync.Once // guards the fields below
	err       error
	shard     string
	documents int
	names     int
	kinds     []string
	parents   []parent
	pageEnd   column32 // in pages
	pageSize  column32 // bytes of the page before compression, front-coded
	pageName  column32 // number of the page's first name
	firstEnd  column32
	first     []byte
	pages     []byte
	refEnd    column32 // end of the references of a page's names
	refs      []byte
	docEnd    column32
	docs      []byte
	dict      []byte // of the blocks of pages
	code      struct{ parents, pages, refs, docs *huffmanTable }
	post      *trigram.Index
}

// parent is what a symbol is defined in.
type parent struct{ name, kind string }

// The sections of a .symbols file.
const (
	secSymMeta sectionID = 1 + iota
	secSymPageEnd
	secSymPageSize
	secSymPageName
	secSymFirstEnd
	secSymFirst
	secSymPages
	secSymRefEnd
	secSymRefs
	secSymDocEnd
	secSymDocs
	secSymParents
	secSymCodes
	secSymDict
)

// symbolPage is the greatest size of a page of names: one unit of postings.
const symbolPage = 4096

func (y *symbolsFile) ready(s *shard) error {
	y.once.Do(func() {
		if y.err = y.load(); y.err != nil {
			y.err = fmt.Errorf("%s: %w", y.f.name, y.err)
		}
	})
	if y.err == nil && (y.shard != s.f.name || y.documents != s.m.documents) {
		return fmt.Errorf("%s: %w: it belongs to %s", y.f.name, ErrDamaged, y.shard)
	}
	return y.err
}

func (y *symbolsFile) load() error {
	b, err := y.f.bytes(secSymMeta)
	if err != nil {
		return err
	}
	d := decoder{b: b}
	y.shard = d.text()
	y.documents, y.names = int(d.uint()&(1<<40-1)), int(d.uint()&(1<<40-1))
	y.kinds = make([]string, d.count())
	for i := range y.kinds {
		y.kinds[i] = d.text()
	}
	parentKinds := make([]string, d.count())
	for i := range parentKinds {
		parentKinds[i] = d.text()
	}
	if d.err != nil {
		return d.err
	}
	if err := y.codes(); err != nil {
		return err
	}
	if err := y.loadParents(parentKinds); err != nil {
		return err
	}
	for _, c := range []struct {
		id sectionID
		to *[]byte
	}{
		{secSymPageEnd, (*[]byte)(&y.pageEnd)}, {secSymPageSize, (*[]byte)(&y.pageSize)}, {secSymPageName, (*[]byte)(&y.pageName)},
		{secSymFirstEnd, (*[]byte)(&y.firstEnd)}, {secSymFirst, &y.first}, {secSymPages, &y.pages},
		{secSymRefEnd, (*[]byte)(&y.refEnd)}, {secSymRefs, &y.refs}, {secSymDocEnd, (*[]byte)(&y.docEnd)}, {secSymDocs, &y.docs}, {secSymDict, &y.dict},
	} {
		if *c.to, err = y.f.bytes(c.id); err != nil {
			return err
		}
	}
	return y.check()
}

// codes reads the codes of the sections.
func (y *symbolsFile) codes() error {
	b, err := y.f.bytes(secSymCodes)
	if err != nil {
		return err
	}
	all := []**huffmanTable{&y.code.parents, &y.code.pages, &y.code.refs, &y.code.docs}
	if len(b) != len(all)*codeBytes {
		return fmt.Errorf("%w: size of the codes", ErrDamaged)
	}
	for i, t := range all {
		if *t, err = newHuffmanTable(b[i*codeBytes : (i+1)*codeBytes]); err != nil {
			return err
		}
	}
	return nil
}

// loadParents reads the parents: of each the bytes that its name shares with
// the one before, the rest of it, and its kind.
func (y *symbolsFile) loadParents(kinds []string) error {
	b, err := y.f.bytes(secSymParents)
	if err != nil {
		return err
	}
	b, ok := y.code.parents.decodeCoded(nil, b)
	if !ok {
		return fmt.Errorf("%w: parents", ErrDamaged)
	}
	d := decoder{b: b}
	y.parents = make([]parent, d.count())
	last := ""
	for i := range y.parents {
		shared, rest, kind := d.uint(), d.text(), d.uint()
		if d.err != nil || shared > uint64(len(last)) || len(rest) > maxSymbolName-int(shared) || kind >= uint64(len(kinds)) {
			return fmt.Errorf("%w: parent %d", ErrDamaged, i)
		}
		last = last[:shared] + rest
		y.parents[i] = parent{last, kinds[kind]}
	}
	return nil
}

// check makes sure that the columns fit together.
func (y *symbolsFile) check() error {
	pages := y.pageEnd.len()
	if y.pageSize.len() != pages || y.pageName.len() != pages || y.firstEnd.len() != pages || y.refEnd.len() != pages ||
		y.docEnd.len() != y.documents || !ascending(y.pageEnd, len(y.pages)) || !ascending(y.firstEnd, len(y.first)) ||
		!ascending(y.refEnd, len(y.refs)) || !ascending(y.docEnd, len(y.docs)) || !ascending(y.pageName, y.names) {
		return fmt.Errorf("%w: columns do not fit together", ErrDamaged)
	}
	for i := range pages {
		if y.pageSize.at(i) > frontPage {
			return fmt.Errorf("%w: size of a page", ErrDamaged)
		}
	}
	var segments [][]byte
	for i := sectionID(0); ; i++ {
		s := y.f.find(secText + i)
		if s.length == 0 {
			break
		}
		b, err := y.f.bytes(s.id)
		if err != nil {
			return err
		}
		segments = append(segments, b)
	}
	post, err := trigram.Open(segments, nil)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	y.post = post
	units := 0
	for i := range segments {
		units += post.Units(i)
	}
	if units != pages {
		return fmt.Errorf("%w: %d pages, postings of %d", ErrDamaged, pages, units)
	}
	return nil
}

// ascending tells whether a column never falls and stays within limit.
func ascending(c column32, limit int) bool {
	last := uint32(0)
	for i := range c.len() {
		if c.at(i) < last {
			return false
		}
		last = c.at(i)
	}
	return int(last) <= limit
}

// part gives the bytes of entry i of a blob cut by its ends.
func part(blob []byte, ends column32, i int) []byte {
	from := uint32(0)
	if i > 0 {
		from = ends.at(i - 1)
	}
	return blob[from:ends.at(i)]
}

// page decodes a page of names into buf.
func (y *symbolsFile) page(i int, buf []byte) ([]byte, error) {
	var front [frontPage + lz.Slack]byte
	var room [symbolPage / 2]byte
	coded := front[:y.pageSize.at(i)]
	block, ok := y.code.pages.decodeCoded(room[:0], part(y.pages, y.pageEnd, i))
	if !ok {
		return nil, fmt.Errorf("%s: %w: page %d: codes", y.f.name, ErrDamaged, i)
	}
	if err := lz.Decode(coded, block, y.dict); err != nil {
		return nil, fmt.Errorf("%s: %w: page %d: %w", y.f.name, ErrDamaged, i, err)
	}
	if cap(buf) < symbolPage {
		buf = make([]byte, symbolPage)
	}
	page, ok := unfront(buf[:0], coded)
	if !ok {
		return nil, fmt.Errorf("%s: %w: page %d: names do not follow each other", y.f.name, ErrDamaged, i)
	}
	return page, nil
}

// frontPage is the greatest size of a page in which each name is written as
// the number of bytes that it shares with the one before, then the rest of it
// and a newline. Sorted names share much, and what compresses a page sees
// only what they do not.
const frontPage = 2 * symbolPage

// front appends a name in that form.
func front(dst, before, name []byte) []byte {
	n := 0
	for n < len(before) && n < len(name) && n < 255 && before[n] == name[n] {
		n++
	}
	return append(append(append(dst, byte(n)), name[n:]...), '\n')
}

// unfront writes the names of a page in full, each with a newline behind it,
// to dst, which has room for symbolPage bytes.
func unfront(dst, coded []byte) ([]byte, bool) {
	last := dst
	for len(coded) > 0 {
		n, end := int(coded[0]), bytes.IndexByte(coded, '\n')
		if n == '\n' {
			end = bytes.IndexByte(coded[1:], '\n') + 1
		}
		if end < 1 || n > len(last) || len(dst)+n+end > symbolPage {
			return nil, false
		}
		from := len(dst)
		dst = append(append(dst, last[:n]...), coded[1:end+1]...)
		last, coded = dst[from:len(dst)-1], coded[end+1:]
	}
	return dst, true
}

// heldSymbols is what was decoded last: a document's rows are asked for by each
// of its chunks, and names that stand together are mostly of one page.
type heldSymbols struct {
	y    *symbolsFile
	doc  int // whose rows they are, and one
	rows []byte
	page int // of names, and one
	text []byte
}

// of turns to a file.
func (h *heldSymbols) of(y *symbolsFile) {
	if h.y != y {
		h.y, h.doc, h.page = y, 0, 0
	}
}

// keepSymbols is the size from which on a buffer of rows is not kept for the next
// search.
const keepSymbols = 64 << 10

// room gives the buffers alone.
func (h *heldSymbols) room() heldSymbols {
	out := heldSymbols{text: h.text}
	if cap(h.rows) <= keepSymbols {
		out.rows = h.rows
	}
	return out
}

// name gives the text of a name by its number.
func (y *symbolsFile) name(n int, held *heldSymbols) (string, error) {
	p := sort.Search(y.pageName.len(), func(i int) bool { return int(y.pageName.at(i)) > n }) - 1
	if p < 0 {
		return "", fmt.Errorf("%s: %w: name %d", y.f.name, ErrDamaged, n)
	}
	if held.of(y); held.page != p+1 {
		text, err := y.page(p, held.text)
		if err != nil {
			held.page = 0
			return "", err
		}
		held.page, held.text = p+1, text
	}
	page := held.text
	for skip := n - int(y.pageName.at(p)); ; skip-- {
		line, rest, ok := bytes.Cut(page, newline)
		if !ok {
			return "", fmt.Errorf("%s: %w: name %d", y.f.name, ErrDamaged, n)
		}
		if skip == 0 {
			return string(line), nil
		}
		page = rest
	}
}

// symbolHits is what a pattern found among the names of a shard.
type symbolHits struct {
	names []symbolHit // by number
	set   docSet
}

// symbolHit is a name and where in it the pattern matches first.
type symbolHit struct {
	name       uint32
	start, end uint16
}

func (h *symbolHits) docs(documents int) docSet {
	if h.set == nil {
		return newDocSet(documents)
	}
	return append(docSet(nil), h.set...)
}

func (h *symbolHits) has(doc int) bool { return h.set != nil && h.set.has(doc) }

// matchSymbols finds the names in which a pattern matches and the documents
// that define them.
func (m *member) matchSymbols(p *pattern) (*symbolHits, error) {
	h := &symbolHits{}
	if m.sym == nil {
		return h, nil
	}
	y := m.sym.sym
	h.set = newDocSet(y.documents)
	var scratch trigram.Scratch
	var units trigram.Bitmap
	var buf []byte
	refs := pageRefs{y: y}
	base := 0
	for seg := range y.post.Segments() {
		units.Clear()
		if _, err := y.post.Search(seg, p.formula, nil, &scratch, &units); err != nil {
			return nil, y.damage(err)
		}
		for u := units.Next(0); u >= 0 && u < y.post.Units(seg); u = units.Next(u + 1) {
			var err error
			if buf, err = y.page(base+u, buf); err != nil {
				return nil, err
			}
			if err := y.matchPage(refs.turn(base+u), buf, p, h); err != nil {
				return nil, err
			}
		}
		base += y.post.Units(seg)
	}
	return h, nil
}

func (y *symbolsFile) damage(err error) error {
	if errors.Is(err, trigram.ErrCorrupt) {
		return fmt.Errorf("%s: %w: %w", y.f.name, ErrDamaged, err)
	}
	return err
}

// matchPage tries the names of a page. A pattern that looks at nothing beyond
// its line is asked of the whole page where the next name may be in which it
// matches: most pages have few.
func (y *symbolsFile) matchPage(refs *pageRefs, text []byte, p *pattern, h *symbolHits) error {
	first := y.pageName.at(refs.page)
	for n := 0; len(text) > 0; n++ {
		if p.reach != reachDocument {
			at, _, ok := p.m.Next(text, 0)
			if !ok {
				return nil
			}
			line := bytes.LastIndexByte(text[:at], '\n') + 1
			n += bytes.Count(text[:line], newline)
			text = text[line:]
		}
		line, rest, _ := bytes.Cut(text, newline)
		text = rest
		if start, end, ok := p.m.Next(line, 0); ok {
			h.names = append(h.names, symbolHit{first + uint32(n), uint16(start), uint16(end)})
			if err := refs.each(n, h.set.add); err != nil {
				return err
			}
		}
	}
	return nil
}

// defining gives the names that are this one, or this one in any case, and
// the documents that define them.
func (y *symbolsFile) defining(name string, fold bool, use func(number int, exact bool, doc int)) error {
	want := strings.ToLower(name)
	first := func(i int) string { return strings.ToLower(string(part(y.first, y.firstEnd, i))) }
	p := max(sort.Search(y.firstEnd.len(), func(i int) bool { return first(i) >= want })-1, 0)
	refs := pageRefs{y: y}
	var buf []byte
	var err error
	for ; p < y.firstEnd.len() && first(p) <= want; p++ {
		if buf, err = y.page(p, buf); err != nil {
			return err
		}
		refs.turn(p)
		n := 0
		for text := buf; len(text) > 0; n++ {
			line, rest, _ := bytes.Cut(text, newline)
			text = rest
			exact := string(line) == name
			if exact || fold && len(line) == len(name) && strings.ToLower(string(line)) == want {
				number := int(y.pageName.at(p)) + n
				if err := refs.each(n, func(d int) { use(number, exact, d) }); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// symbolRow is one symbol of a document.
type symbolRow struct {
	offset int // of the name in the document
	name   int
	kind   int
	parent int // number of the parent and one, or 0
}

// appendRow appends a row as rowReader reads it; last is the one before, of
// the same document.
func appendRow(dst []byte, last, r symbolRow) []byte {
	gap := uint64(r.offset-last.offset) << 1
	if r.kind != last.kind || r.parent != last.parent {
		gap |= 1
	}
	dst = binary.AppendUvarint(dst, gap)
	dst = binary.AppendVarint(dst, int64(r.name)-int64(last.name))
	if gap&1 != 0 {
		dst = binary.AppendUvarint(dst, uint64(r.kind))
		dst = binary.AppendUvarint(dst, uint64(r.parent))
	}
	return dst
}

// rowReader goes through the rows of a document.
type rowReader struct {
	b   []byte
	row symbolRow
	bad bool // it ended at bytes that are no row
}

func (r *rowReader) next() bool {
	if len(r.b) == 0 {
		return false
	}
	gap, step := r.uint(), r.uint()
	if gap&1 != 0 {
		r.row.kind, r.row.parent = int(r.uint()&(1<<40-1)), int(r.uint()&(1<<40-1))
	}
	r.row.offset += int(gap >> 1 & (1<<40 - 1))
	r.row.name += int(int64(step>>1) ^ -int64(step&1))
	return !r.bad
}

func (r *rowReader) uint() uint64 {
	if len(r.b) > 0 && r.b[0] < 0x80 {
		v := r.b[0]
		r.b = r.b[1:]
		return uint64(v)
	}
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.b, r.bad = nil, true
		return 0
	}
	r.b = r.b[n:]
	return v
}

// rows calls use with the symbols of a document, by offset, until it says no.
func (y *symbolsFile) rows(doc int, held *heldSymbols, use func(symbolRow) bool) error {
	coded := part(y.docs, y.docEnd, doc)
	if len(coded) == 0 {
		return nil
	}
	r := rowReader{}
	if held.of(y); held.doc != doc+1 {
		var ok bool
		held.doc = doc + 1
		if held.rows, ok = y.code.docs.decodeCoded(held.rows, coded); !ok {
			held.doc, r.bad = 0, true
		}
	}
	if !r.bad {
		r.b = held.rows
	}
	for r.next() {
		if uint(r.row.name) >= uint(y.names) || r.row.kind >= len(y.kinds) || r.row.parent > len(y.parents) || r.row.offset > maxDocument {
			r.bad = true
			break
		}
		if !use(r.row) {
			break
		}
	}
	if r.bad {
		return fmt.Errorf("%s: %w: symbols of document %d", y.f.name, ErrDamaged, doc)
	}
	return nil
}

// symbol gives the words of a row.
func (y *symbolsFile) symbol(r symbolRow, held *heldSymbols) (Symbol, error) {
	name, err := y.name(r.name, held)
	s := Symbol{Name: name, Kind: y.kinds[r.kind]}
	if r.parent > 0 {
		s.ParentName, s.ParentKind = y.parents[r.parent-1].name, y.parents[r.parent-1].kind
	}
	return s, err
}
