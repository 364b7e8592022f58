package symbols

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"slices"

	"github.com/shoalsearch/shoal/shard/file"
	"github.com/shoalsearch/shoal/shard/lz"
	"github.com/shoalsearch/shoal/trigram"
)

// ranks is the order of the names, kinds or parents of a collector. All are sorted, so that
// the order in which documents were tagged leaves no trace in the file.
type ranks struct {
	order []uint32 // numbers, sorted by what they stand for
	rank  []uint32 // by number: its index in order
}

// ranked returns the ranks of numbers in this order.
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

// parent returns a parent by its number.
func (c *collector) parent(n uint32) parent {
	key := c.parents.name(n)
	end := bytes.LastIndexByte(key, 0)
	return parent{string(key[:end]), string(key[end+1:])}
}

// write writes the file into dir.
func (c *collector) write(ctx context.Context, dir string) (file.ID, error) {
	// Numbers were given as names came; in the file they are ranks.
	c.names.drop()
	c.parents.drop()

	names := ranked(sortedNames(c.names))
	kinds := rankedBy(len(c.kindsBy), func(a, b uint32) int { return cmp.Compare(c.kindsBy[a], c.kindsBy[b]) })

	list := make([]parent, c.parents.len())
	for i := range list {
		list[i] = c.parent(uint32(i))
	}

	parents := rankedBy(len(list), func(a, b uint32) int {
		p, q := &list[a], &list[b]
		return cmp.Or(cmp.Compare(p.name, q.name), cmp.Compare(p.kind, q.kind))
	})

	if err := ctx.Err(); err != nil {
		return file.ID{}, err
	}

	w, err := file.NewWriter(dir, file.KindSymbols, c.texts.Versions)
	if err != nil {
		return file.ID{}, err
	}
	columns := coded{w: w}

	// The sections, in the order of File.code: parents, pages, refs, docs, extents.
	meta := c.meta(len(names.order), kinds.order)
	writeParents(meta, &columns, list, parents.order)
	w.Add(secMeta, meta.B)

	docs, ends, refs := c.columns(names, kinds, parents)
	if err := c.writePages(w, &columns, names.order, refs); err != nil {
		w.Abort()
		return file.ID{}, err
	}

	columns.add(secDocs, docs, secDocEnd, ends)
	extents, ends := c.extentColumn()
	columns.add(secExtents, extents, secExtentEnd, ends)
	w.Add(secCodes, columns.codes)
	w.Add(secUnknown, c.unknown())

	id, _, err := w.Finish()
	return id, err
}

// unknown returns the section of that name.
func (c *collector) unknown() []byte {
	var list []Unknown
	for doc := range c.docs {
		if _, text := c.texts.Key(doc); text && c.docs[doc] == nil {
			list = append(list, Unknown{doc, int(c.tries[doc])})
		}
	}

	var e file.Encoder
	e.Uint(uint64(len(list)))
	before := 0
	for _, u := range list {
		e.Uint(uint64(u.Doc - before))
		e.Uint(uint64(u.Tries))
		before = u.Doc
	}
	return e.B
}

// meta begins the section of that name; the kinds of the parents follow.
func (c *collector) meta(names int, kinds []uint32) *file.Encoder {
	e := &file.Encoder{}
	e.Text(c.texts.Shard)
	e.Uint(uint64(len(c.docs)))
	e.Uint(uint64(names))
	e.Uint(uint64(len(kinds)))
	for _, n := range kinds {
		e.Text(c.kindsBy[n])
	}
	return e
}

// coded writes columns in Huffman codes, each with a code of its own, in the order of
// File.code.
type coded struct {
	w     *file.Writer
	codes []byte // the codes so far, as in the file
}

// add writes the entries of blob, which end at ends, each one coded alone, and where they end
// then.
func (c *coded) add(id file.SectionID, blob []byte, endID file.SectionID, ends file.Column32) {
	var counts [1 << 8]int
	for _, b := range blob {
		counts[b]++
	}
	code := newHuffmanCode(&counts)
	c.codes = code.appendTo(c.codes)

	var out []byte
	outEnds := make([]byte, 0, len(ends))
	for i := range ends.Len() {
		// An empty entry takes no byte at all, not even a size.
		if entry := file.Entry(blob, ends, i); len(entry) > 0 {
			out = code.appendCoded(out, entry)
		}
		outEnds = binary.LittleEndian.AppendUint32(outEnds, uint32(len(out)))
	}

	c.w.Add(id, out)
	if endID != 0 {
		c.w.Add(endID, outEnds)
	}
}

// writeParents writes the parents, front-coded: how many bytes the name shares with the one
// before, the rest of it, and its kind by its index in meta.
func writeParents(meta *file.Encoder, c *coded, list []parent, order []uint32) {
	var kinds []string
	var e file.Encoder
	e.Uint(uint64(len(order)))
	before := ""
	for _, n := range order {
		p := list[n]

		// Parents have kinds of their own, numbered as they come: few, so a list will do.
		kind := slices.Index(kinds, p.kind)
		if kind < 0 {
			kind = len(kinds)
			kinds = append(kinds, p.kind)
		}

		// Sorted, neighbours share beginnings.
		shared := 0
		for shared < len(before) && shared < len(p.name) && before[shared] == p.name[shared] {
			shared++
		}

		e.Uint(uint64(shared))
		e.Text(p.name[shared:])
		e.Uint(uint64(kind))
		before = p.name
	}

	meta.Uint(uint64(len(kinds)))
	for _, k := range kinds {
		meta.Text(k)
	}
	c.add(secParents, e.B, 0, binary.LittleEndian.AppendUint32(nil, uint32(len(e.B))))
}

// columns returns the rows of the documents with ranks for numbers, where those of each
// document end, and the documents of each name.
func (c *collector) columns(names, kinds, parents ranks) (docs, ends []byte, refs references) {
	refs = newReferences(len(names.order))
	for d, coded := range c.docs {
		var before Row
		for r := (rowReader{b: coded}); r.next(); {
			row := Row{r.row.Offset, int(names.rank[r.row.Name]), int(kinds.rank[r.row.Kind]), 0}
			if r.row.Parent > 0 {
				row.Parent = int(parents.rank[r.row.Parent-1]) + 1
			}

			docs = appendRow(docs, before, row)
			before = row
			refs.count(row.Name, d)
		}
		ends = binary.LittleEndian.AppendUint32(ends, uint32(len(docs)))
	}

	// Now that they are counted, the documents of each name are put side by side.
	refs.place()
	for d, coded := range c.docs {
		for r := (rowReader{b: coded}); r.next(); {
			refs.add(int(names.rank[r.row.Name]), d)
		}
	}
	return docs, ends, refs
}

// writePages writes the names in pages, with their postings and references.
func (c *collector) writePages(w *file.Writer, columns *coded, names []uint32, refs references) error {
	segment := file.SectionID(0)
	post := trigram.New(trigram.Options{Emit: func(parts ...[]byte) error {
		w.Add(secPostings+segment, parts...)
		segment++
		return w.Err()
	}})
	defer post.Close()

	// Pages are compressed with a dictionary made of names.
	dict := c.dictionary(names)
	p := pageWriter{names: c.names, order: names, refs: refs, enc: lz.NewEncoder(dict)}
	defer p.enc.Release()

	// A page is full when the next name has no room in it.
	for i, n := range names {
		name := c.names.name(n)
		if len(p.page)+len(name)+1 > pageBytes {
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

	// Columns that were collected page by page.
	columns.add(secPages, p.blocks, secPageEnd, p.blockEnd)
	columns.add(secRefs, p.ref, secRefEnd, p.refEnd)
	w.Add(secPageSize, p.size)
	w.Add(secPageName, p.number)
	w.Add(secFirst, p.first)
	w.Add(secFirstEnd, p.firstEnd)
	w.Add(secDict, dict)
	return w.Err()
}

// The dictionary of the pages is made of dictRuns runs of names in their order, at equal
// distances, of dictRunBytes each.
const (
	dictRuns     = 1 << 10
	dictRunBytes = 1 << 10
	dictFrom     = 4 * dictRuns * 64 // with fewer names it is not worth its bytes
)

// dictionary returns the dictionary that the pages are compressed with, nil for none.
func (c *collector) dictionary(names []uint32) []byte {
	if len(names) < dictFrom {
		return nil
	}

	// Runs from all over the alphabet, coded as pages are.
	samples := make([][]byte, dictRuns)
	for i := range samples {
		var run, before []byte
		for at := i * len(names) / dictRuns; at < len(names) && len(run) < dictRunBytes; at++ {
			name := c.names.name(names[at])
			run = appendFront(run, before, name)
			before = name
		}

		samples[i] = run
	}
	return lz.Train(samples, lz.MaxDict)
}

// pageWriter collects the columns of pages.
type pageWriter struct {
	names *interner
	order []uint32
	refs  references
	enc   *lz.Encoder

	start                                                        int    // first name of the page being filled
	page, coded                                                  []byte // its names, in full and front-coded
	blocks, blockEnd, size, number, first, firstEnd, ref, refEnd []byte
}

// flush writes the page that is being filled. The next page begins with the name that has the
// number next.
func (p *pageWriter) flush(next int, post *trigram.Writer) error {
	if len(p.page) == 0 {
		return nil
	}
	if _, _, err := post.Add(p.page, 0); err != nil {
		return err
	}

	le := binary.LittleEndian

	// Names front-coded; for each a reference to the documents that define it.
	p.coded = p.coded[:0]
	var before []byte
	first := 0 // first document of the name before
	for i := p.start; i < next; i++ {
		name := p.names.name(p.order[i])
		p.coded = appendFront(p.coded, before, name)
		before = name

		docs := p.refs.of(i)
		p.ref = appendReference(p.ref, first, docs)
		first = int(docs[0])
	}

	p.blocks = p.enc.Encode(p.blocks, p.coded)

	// One row for each column.
	p.blockEnd = le.AppendUint32(p.blockEnd, uint32(len(p.blocks)))
	p.size = le.AppendUint32(p.size, uint32(len(p.coded)))
	p.number = le.AppendUint32(p.number, uint32(p.start))
	p.first = append(p.first, p.names.name(p.order[p.start])...)
	p.firstEnd = le.AppendUint32(p.firstEnd, uint32(len(p.first)))
	p.refEnd = le.AppendUint32(p.refEnd, uint32(len(p.ref)))

	// The next page begins with the next name.
	p.page, p.start = p.page[:0], next
	return nil
}
