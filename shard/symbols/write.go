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

// ranks is the sorted order of the names, kinds or parents of a collector. Their rank is their
// number in the file, so the file does not depend on the order in which documents were tagged.
type ranks struct {
	order []uint32 // the collector's numbers, sorted by name, kind or parent
	rank  []uint32 // by collector's number: its index in order
}

// makeRanks returns ranks with the given order.
func makeRanks(order []uint32) ranks {
	r := ranks{order, make([]uint32, len(order))}
	for i, n := range order {
		r.rank[n] = uint32(i)
	}
	return r
}

// sortRanks returns ranks of the numbers 0 to n-1, sorted by compare.
func sortRanks(n int, compare func(a, b uint32) int) ranks {
	order := make([]uint32, n)
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, compare)
	return makeRanks(order)
}

// parentByNumber returns a parent by its number.
func (c *collector) parentByNumber(n uint32) parent {
	key := c.parents.name(n)
	end := bytes.LastIndexByte(key, 0)
	return parent{string(key[:end]), string(key[end+1:])}
}

// writeFile writes the file into dir. The numbers of names, kinds and parents become ranks.
func (c *collector) writeFile(ctx context.Context, dir string) (file.ID, error) {
	c.names.dropTable()
	c.parents.dropTable()

	names := makeRanks(sortNames(c.names))
	kinds := sortRanks(len(c.kindNames), func(a, b uint32) int { return cmp.Compare(c.kindNames[a], c.kindNames[b]) })

	list := make([]parent, c.parents.len())
	for i := range list {
		list[i] = c.parentByNumber(uint32(i))
	}

	parents := sortRanks(len(list), func(a, b uint32) int {
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
	columns := columnWriter{w: w}

	// Add the coded columns in the order of File.loadCodes: parents, pages, refs, docs, extents.
	meta := c.encodeMeta(len(names.order), kinds.order)
	writeParents(meta, &columns, list, parents.order)
	w.Add(secMeta, meta.B)

	docs, ends, refs := c.encodeRows(names, kinds, parents)
	if err := c.writePages(w, &columns, names.order, refs); err != nil {
		w.Abort()
		return file.ID{}, err
	}

	columns.addColumn(secDocs, docs, secDocEnd, ends)
	extents, ends := c.extentColumn()
	columns.addColumn(secExtents, extents, secExtentEnd, ends)
	w.Add(secCodes, columns.codes)
	w.Add(secUnknown, c.encodeUnknown())

	id, _, err := w.Finish()
	return id, err
}

// encodeUnknown encodes the section "unknown": the documents that have a text but no symbols.
func (c *collector) encodeUnknown() []byte {
	var list []Unknown
	for doc := range c.docs {
		if _, hasText := c.texts.Key(doc); hasText && c.docs[doc] == nil {
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

// encodeMeta encodes the section "meta", except for the kinds of the parents, which writeParents
// adds.
func (c *collector) encodeMeta(names int, kinds []uint32) *file.Encoder {
	e := &file.Encoder{}
	e.Text(c.texts.Shard)
	e.Uint(uint64(len(c.docs)))
	e.Uint(uint64(names))
	e.Uint(uint64(len(kinds)))
	for _, n := range kinds {
		e.Text(c.kindNames[n])
	}
	return e
}

// noEnds is the section for the ends of a column with only one entry: they are not written.
const noEnds file.SectionID = 0

// columnWriter writes columns in Huffman codes, each column with a code of its own.
type columnWriter struct {
	w     *file.Writer
	codes []byte // the section "codes" so far
}

// addColumn writes a column as section id, and its code to c.codes. The entries of the column lie
// side by side in blob, and ends has the end of each. addColumn encodes each entry alone, and writes
// the new ends as section endID, if that is not noEnds.
func (c *columnWriter) addColumn(id file.SectionID, blob []byte, endID file.SectionID, ends file.Column32) {
	var counts [1 << 8]int
	for _, b := range blob {
		counts[b]++
	}
	code := newHuffmanCode(&counts)
	c.codes = code.appendLengths(c.codes)

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
	if endID != noEnds {
		c.w.Add(endID, outEnds)
	}
}

// writeParents writes the parents, front-coded: how many bytes the name shares with the name before,
// the rest of the name, and the index of its kind in meta. It adds the kinds of parents to meta.
func writeParents(meta *file.Encoder, c *columnWriter, list []parent, order []uint32) {
	var kinds []string
	var e file.Encoder
	e.Uint(uint64(len(order)))
	before := ""
	for _, n := range order {
		p := list[n]

		// The kinds of parents are numbered as they come. They are few, so a list is fast enough.
		kind := slices.Index(kinds, p.kind)
		if kind < 0 {
			kind = len(kinds)
			kinds = append(kinds, p.kind)
		}

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
	c.addColumn(secParents, e.B, noEnds, binary.LittleEndian.AppendUint32(nil, uint32(len(e.B))))
}

// encodeRows encodes the rows of all documents, with ranks in place of the collector's numbers. It
// returns them with the end of each document's rows, and the documents that define each name.
func (c *collector) encodeRows(names, kinds, parents ranks) (docs, ends []byte, refs references) {
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
			refs.countDocument(row.Name, d)
		}
		ends = binary.LittleEndian.AppendUint32(ends, uint32(len(docs)))
	}

	refs.allocateLists()
	for d, coded := range c.docs {
		for r := (rowReader{b: coded}); r.next(); {
			refs.addDocument(int(names.rank[r.row.Name]), d)
		}
	}
	return docs, ends, refs
}

// writePages writes the names in pages, with their postings and references.
func (c *collector) writePages(w *file.Writer, columns *columnWriter, names []uint32, refs references) error {
	segment := file.SectionID(0)
	post := trigram.New(trigram.Options{Emit: func(parts ...[]byte) error {
		w.Add(secPostings+segment, parts...)
		segment++
		return w.Err()
	}})
	defer post.Close()

	dict := c.trainDictionary(names)
	p := pageWriter{names: c.names, order: names, refs: refs, enc: lz.NewEncoder(dict)}
	defer p.enc.Release()

	for i, n := range names {
		name := c.names.name(n)
		if len(p.page)+len(name)+1 > pageBytes {
			if err := p.addPage(i, post); err != nil {
				return err
			}
		}
		p.page = append(append(p.page, name...), '\n')
	}

	if err := p.addPage(len(names), post); err != nil {
		return err
	}
	if err := post.Finish(); err != nil {
		return err
	}

	columns.addColumn(secPages, p.blocks, secPageEnd, p.blockEnd)
	columns.addColumn(secRefs, p.ref, secRefEnd, p.refEnd)
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
	dictFrom     = 4 * dictRuns * 64 // names; with fewer, a dictionary takes more bytes than it saves
)

// trainDictionary makes the dictionary that compresses the pages, from a sample of the names. It
// returns nil if there are too few names.
func (c *collector) trainDictionary(names []uint32) []byte {
	if len(names) < dictFrom {
		return nil
	}

	// The samples are front-coded, as pages are.
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

	start       int    // rank of the first name of the current page
	page, coded []byte // names of the current page, in full and front-coded

	// Columns of all pages so far, as in File.
	blocks, blockEnd, size, number, first, firstEnd, ref, refEnd []byte
}

// addPage adds the current page to the columns and the postings. The next page begins with the name
// of rank next.
func (p *pageWriter) addPage(next int, post *trigram.Writer) error {
	if len(p.page) == 0 {
		return nil
	}
	if _, _, err := post.Add(p.page, 0); err != nil {
		return err
	}

	le := binary.LittleEndian
	p.coded = p.coded[:0]
	var before []byte
	first := 0 // first document that defines the name before
	for i := p.start; i < next; i++ {
		name := p.names.name(p.order[i])
		p.coded = appendFront(p.coded, before, name)
		before = name

		docs := p.refs.documents(i)
		p.ref = appendReference(p.ref, first, docs)
		first = int(docs[0])
	}

	p.blocks = p.enc.Encode(p.blocks, p.coded)

	// Add one row to each column.
	p.blockEnd = le.AppendUint32(p.blockEnd, uint32(len(p.blocks)))
	p.size = le.AppendUint32(p.size, uint32(len(p.coded)))
	p.number = le.AppendUint32(p.number, uint32(p.start))
	p.first = append(p.first, p.names.name(p.order[p.start])...)
	p.firstEnd = le.AppendUint32(p.firstEnd, uint32(len(p.first)))
	p.refEnd = le.AppendUint32(p.refEnd, uint32(len(p.ref)))

	p.page, p.start = p.page[:0], next
	return nil
}
