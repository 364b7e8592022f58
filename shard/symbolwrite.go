package shard

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/shoalsearch/shoal/shard/lz"
	"github.com/shoalsearch/shoal/trigram"
)

// errNoRoom is what more than 4 GiB of names end with.
var errNoRoom = errors.New("too many names of symbols")

// ranks is the order of the names, kinds or parents of a symbolizer: all are
// sorted, so that the order in which documents were tagged leaves no trace in
// the file.
type ranks struct {
	order []uint32 // numbers, sorted by what they stand for
	rank  []uint32 // by number: its place in order
}

func ranked(order []uint32) ranks {
	r := ranks{order, make([]uint32, len(order))}
	for i, n := range order {
		r.rank[n] = uint32(i)
	}
	return r
}

// rankedBy sorts the numbers below n.
func rankedBy(n int, compare func(a, b uint32) int) ranks {
	order := make([]uint32, n)
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, compare)
	return ranked(order)
}

// parent gives a parent by its number.
func (y *symbolizer) parent(n uint32) parent {
	key := y.parents.name(n)
	end := bytes.LastIndexByte(key, 0)
	return parent{string(key[:end]), string(key[end+1:])}
}

// write writes the file.
func (y *symbolizer) write(ctx context.Context, dir string) (string, error) {
	y.names.drop()
	y.parents.drop()
	names := ranked(sortedNames(y.names))
	kinds := rankedBy(len(y.kindsBy), func(a, b uint32) int { return cmp.Compare(y.kindsBy[a], y.kindsBy[b]) })
	list := make([]parent, y.parents.len())
	for i := range list {
		list[i] = y.parent(uint32(i))
	}
	parents := rankedBy(len(list), func(a, b uint32) int {
		p, q := &list[a], &list[b]
		return cmp.Or(cmp.Compare(p.name, q.name), cmp.Compare(p.kind, q.kind))
	})
	if err := ctx.Err(); err != nil {
		return "", err
	}
	w, err := newFileWriter(dir, kindSymbols)
	if err != nil {
		return "", err
	}
	c := newCoded(w)
	var e encoder
	e.text(y.m.sh.f.name)
	e.uint(uint64(len(y.docs)))
	e.uint(uint64(len(names.order)))
	e.uint(uint64(len(kinds.order)))
	for _, n := range kinds.order {
		e.text(y.kindsBy[n])
	}
	parentsOf(&e, c, list, parents.order)
	w.add(secSymMeta, e.b)
	docs, ends, refs := y.columns(names, kinds, parents)
	if err := y.pages(w, c, names.order, refs); err != nil {
		w.abort()
		return "", err
	}
	c.add(secSymDocs, docs, secSymDocEnd, ends)
	w.add(secSymCodes, c.codes)
	name, _, err := w.finish()
	return name, err
}

// coded writes columns in codes of Huffman, in the order of symbolsFile.code.
type coded struct {
	w     *fileWriter
	codes []byte // the codes so far, as the file has them
}

func newCoded(w *fileWriter) *coded { return &coded{w: w} }

// add writes the entries of blob, which end at ends, each on its own, and
// where they end then.
func (c *coded) add(id sectionID, blob []byte, endID sectionID, ends column32) {
	var counts [1 << 8]int
	for _, b := range blob {
		counts[b]++
	}
	code := newHuffmanCode(&counts)
	c.codes = code.appendTo(c.codes)
	var out []byte
	outEnds := make([]byte, 0, len(ends))
	for i := range ends.len() {
		if entry := part(blob, ends, i); len(entry) > 0 {
			out = code.appendCoded(out, entry)
		}
		outEnds = binary.LittleEndian.AppendUint32(outEnds, uint32(len(out)))
	}
	c.w.add(id, out)
	if endID != 0 {
		c.w.add(endID, outEnds)
	}
}

// parentsOf writes the parents: of each the bytes that its name shares with
// the one before, the rest of it, and its kind by its place in meta.
func parentsOf(meta *encoder, c *coded, list []parent, order []uint32) {
	var kinds []string
	var e encoder
	e.uint(uint64(len(order)))
	last := ""
	for _, n := range order {
		p := list[n]
		kind := slices.Index(kinds, p.kind)
		if kind < 0 {
			kind = len(kinds)
			kinds = append(kinds, p.kind)
		}
		shared := 0
		for shared < len(last) && shared < len(p.name) && last[shared] == p.name[shared] {
			shared++
		}
		e.uint(uint64(shared))
		e.text(p.name[shared:])
		e.uint(uint64(kind))
		last = p.name
	}
	meta.uint(uint64(len(kinds)))
	for _, k := range kinds {
		meta.text(k)
	}
	c.add(secSymParents, e.b, 0, binary.LittleEndian.AppendUint32(nil, uint32(len(e.b))))
}

// columns gives the symbols of the documents, where those of each end, and the
// documents of each name.
func (y *symbolizer) columns(names, kinds, parents ranks) (docs, ends []byte, refs references) {
	refs = newReferences(len(names.order))
	for d, coded := range y.docs {
		var last symbolRow
		for r := (rowReader{b: coded}); r.next(); {
			row := symbolRow{r.row.offset, int(names.rank[r.row.name]), int(kinds.rank[r.row.kind]), 0}
			if r.row.parent > 0 {
				row.parent = int(parents.rank[r.row.parent-1]) + 1
			}
			docs = appendRow(docs, last, row)
			last = row
			refs.count(row.name, d)
		}
		ends = binary.LittleEndian.AppendUint32(ends, uint32(len(docs)))
	}
	refs.place()
	for d, coded := range y.docs {
		for r := (rowReader{b: coded}); r.next(); {
			refs.add(int(names.rank[r.row.name]), d)
		}
	}
	return docs, ends, refs
}

// references gives for each name the documents that define it: counted first,
// then put side by side.
type references struct {
	end  []uint32 // by name: how many, then where its documents end in docs
	last []uint32 // by name: the last document and one
	docs []uint32
}

func newReferences(names int) references {
	return references{end: make([]uint32, names), last: make([]uint32, names)}
}

func (r *references) count(name, doc int) {
	if r.last[name] != uint32(doc)+1 {
		r.last[name] = uint32(doc) + 1
		r.end[name]++
	}
}

// place makes room for what was counted.
func (r *references) place() {
	sum := uint32(0)
	for i, n := range r.end {
		r.end[i] = sum
		sum += n
	}
	clear(r.last)
	r.docs = make([]uint32, sum)
}

func (r *references) add(name, doc int) {
	if r.last[name] != uint32(doc)+1 {
		r.last[name] = uint32(doc) + 1
		r.docs[r.end[name]] = uint32(doc)
		r.end[name]++
	}
}

func (r *references) of(name int) []uint32 {
	if name == 0 {
		return r.docs[:r.end[0]]
	}
	return r.docs[r.end[name-1]:r.end[name]]
}

// pages writes the names in pages, with postings and references.
func (y *symbolizer) pages(w *fileWriter, c *coded, names []uint32, refs references) error {
	segment := sectionID(0)
	post := trigram.New(trigram.Options{Emit: func(parts ...[]byte) error {
		w.add(secText+segment, parts...)
		segment++
		return w.err
	}})
	defer post.Close()
	dict := y.dictionary(names)
	p := pageWriter{names: y.names, order: names, refs: refs, enc: lz.NewEncoder(dict, false)}
	for i, n := range names {
		name := y.names.name(n)
		if len(p.page)+len(name)+1 > symbolPage {
			if err := p.flush(i, post); err != nil {
				return err
			}
		}
		p.page = append(append(p.page, name...), '\n')
	}
	if err := p.flush(len(names), post); err != nil {
		return err
	}
	if err := post.Finish(); err != nil {
		return err
	}
	c.add(secSymPages, p.blocks, secSymPageEnd, p.blockEnd)
	c.add(secSymRefs, p.ref, secSymRefEnd, p.refEnd)
	w.add(secSymPageSize, p.size)
	w.add(secSymPageName, p.number)
	w.add(secSymFirst, p.first)
	w.add(secSymFirstEnd, p.firstEnd)
	w.add(secSymDict, dict)
	return w.err
}

// The dictionary of the pages is made of this many runs of names that follow
// each other, taken at equal distances, of so many bytes each.
const (
	dictRuns     = 1 << 10
	dictRunBytes = 1 << 10
	dictFrom     = 4 * dictRuns * 64 // names from which on it is worth its bytes
)

// dictionary gives what the pages of names are compressed with.
func (y *symbolizer) dictionary(names []uint32) []byte {
	if len(names) < dictFrom {
		return nil
	}
	samples := make([][]byte, dictRuns)
	for i := range samples {
		var run, before []byte
		for at := i * len(names) / dictRuns; at < len(names) && len(run) < dictRunBytes; at++ {
			name := y.names.name(names[at])
			run = front(run, before, name)
			before = name
		}
		samples[i] = run
	}
	return lz.Train(samples, lz.MaxDict)
}

// pageWriter collects the sections that have an entry for each page.
type pageWriter struct {
	names *interner
	order []uint32
	refs  references
	enc   *lz.Encoder

	start                                                        int    // first name of the page under way
	page, coded                                                  []byte // its names, in full and front-coded
	blocks, blockEnd, size, number, first, firstEnd, ref, refEnd []byte
}

// flush ends the page under way; the next one begins with name next.
func (p *pageWriter) flush(next int, post *trigram.Writer) error {
	if len(p.page) == 0 {
		return nil
	}
	if _, _, err := post.Add(p.page, 0); err != nil {
		return err
	}
	le := binary.LittleEndian
	p.coded = p.coded[:0]
	var before []byte
	last := 0
	for i := p.start; i < next; i++ {
		name := p.names.name(p.order[i])
		p.coded = front(p.coded, before, name)
		before = name
		docs := p.refs.of(i)
		p.ref = appendReference(p.ref, last, docs)
		last = int(docs[0])
	}
	p.blocks = p.enc.Encode(p.blocks, p.coded)
	p.blockEnd = le.AppendUint32(p.blockEnd, uint32(len(p.blocks)))
	p.size = le.AppendUint32(p.size, uint32(len(p.coded)))
	p.number = le.AppendUint32(p.number, uint32(p.start))
	p.first = append(p.first, p.names.name(p.order[p.start])...)
	p.firstEnd = le.AppendUint32(p.firstEnd, uint32(len(p.first)))
	p.refEnd = le.AppendUint32(p.refEnd, uint32(len(p.ref)))
	p.page, p.start = p.page[:0], next
	return nil
}
