package change

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"sort"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/shoalsearch/shoal/shard/file"
	"github.com/shoalsearch/shoal/shard/git"
	"github.com/shoalsearch/shoal/shard/lz"
	"github.com/shoalsearch/shoal/trigram"
)

// A page has the texts of some commits or of some changed files, or one long text. It is a document of
// the postings, and is compressed in blocks, each alone:
//
//	the texts, each with its removed and then its added lines | the hunks of each text
//
// So a short text is read from one block, and a search of a long text reads the blocks that the postings
// leave. A page of over longBlock bytes is seldom read, and takes half the space in longer blocks of zstd.
const (
	pageBytes  = trigram.UnitSize // of a page of several texts, at most
	shortBlock = trigram.UnitSize // compressed by package lz
	longBlock  = 16 << 10         // compressed by zstd
	// maxPage is the largest size of a page: of one text of the largest size, with its hunks.
	maxPage = 16 << 20
)

// Most repositories have few commits, and for few texts postings take as much space as the texts. So these
// have long pages, and a set of trigrams for each page instead of postings. Tests have smaller sizes.
var (
	fewMessages = pageBytes // bytes of messages up to which they have sets
	fewLines    = 1 << 20   // the same of lines, at most a segment of postings
)

const setPage = 32 << 10 // bytes of a page with a set, at most, unless it is one long text

// blockOf returns the size of the blocks of a page.
func blockOf(page int) int {
	if page > longBlock {
		return longBlock
	}
	return shortBlock
}

// pageEntry is a row of the table of pages, 28 bytes:
//
//	first   u32   number of its first text: of the commit, or of the file
//	unit    u32   its first unit in the postings; none for a page without text
//	text    u32   bytes of its texts
//	size    u32   bytes of its texts and hunks
//	block   u32   number of its first block; the column of blocks has the length of each, 2 bytes
//	at      u64   where that block begins in the file of changes
const pageEntry = 28

// The dictionary of the pages. It is made of the first of them, before any is compressed.
const (
	dictText  = 4 << 20 // bytes of these pages
	dictShare = 32      // a dictionary has at most one byte for each dictShare bytes of them
	leastDict = 4 << 10 // no smaller one is made: it would take longer than it saves
)

// pages writes the pages of messages, or of lines.
type pages struct {
	out      *file.Writer
	post     *trigram.Writer
	segments [][]byte
	few      int    // bytes of all pages up to which they have sets instead of postings
	withSets bool   // they have
	sets     []byte // one for each page with a text; see [trigram.Set]
	units    uint32 // of these pages
	table    []byte // of pageEntry
	blocks   []byte // lengths
	dict     []byte
	enc      *lz.Encoder // nil until the dictionary is made
	early    []rawPage   // that wait for it
	waiting  int         // bytes of these pages
	block    []byte      // the latest, compressed

	bytes int64  // of all texts
	texts uint32 // number of all texts
	page  rawPage
	tail  []byte // hunks of the page
	hunks []byte // of the latest text
	err   error
}

// rawPage is a page that is not compressed.
type rawPage struct {
	first uint32 // number of its first text
	text  int    // bytes of its texts; those of the hunks follow
	bytes []byte
}

func newPages(out *file.Writer, few int) *pages {
	p := &pages{out: out, few: few}
	p.post = trigram.New(trigram.Options{Emit: func(parts ...[]byte) error {
		p.segments = append(p.segments, slices.Concat(parts...))
		return nil
	}})
	return p
}

// add adds the next text, in two parts.
func (p *pages) add(removed, added []byte, hunks []git.PatchHunk) {
	p.hunks = binary.AppendUvarint(p.hunks[:0], uint64(len(hunks)))
	for _, h := range hunks {
		for _, v := range []int{h.Old.Start, h.Old.Lines, h.New.Start, h.New.Lines, h.Removed, h.Added} {
			p.hunks = binary.AppendUvarint(p.hunks, uint64(v))
		}
	}
	if len(p.page.bytes)+len(removed)+len(added)+len(p.tail)+len(p.hunks) > pageBytes {
		p.flush()
	}
	p.page.bytes = append(append(p.page.bytes, removed...), added...)
	p.tail = append(p.tail, p.hunks...)
	p.texts++
}

// flush ends the page.
func (p *pages) flush() {
	if p.page.first == p.texts || p.err != nil {
		return
	}
	page := p.page
	page.text = len(page.bytes)
	page.bytes = append(page.bytes, p.tail...)
	p.bytes += int64(page.text)
	if p.enc != nil {
		p.write(page)
		p.page.bytes = page.bytes[:0]
	} else {
		p.early, p.page.bytes = append(p.early, page), nil
		if p.waiting += len(page.bytes); p.waiting >= dictText {
			p.begin()
		}
	}
	p.tail, p.page.first = p.tail[:0], p.texts
}

// begin makes the dictionary, and writes the pages that wait for it.
func (p *pages) begin() {
	if size := min(p.waiting/dictShare, lz.MaxDict); size >= leastDict {
		var samples [][]byte
		for _, page := range p.early {
			samples = slices.AppendSeq(samples, slices.Chunk(page.bytes, shortBlock))
		}
		p.dict = lz.Train(samples, size)
	}
	p.writeEarly()
}

// writeEarly writes the pages that waited.
func (p *pages) writeEarly() {
	p.enc = lz.NewEncoder(p.dict)
	for _, page := range p.early {
		p.write(page)
	}
	p.early = nil
}

// joinEarly joins the pages that wait to pages of at most setPage bytes.
func (p *pages) joinEarly() {
	var out []rawPage
	for i := 0; i < len(p.early); {
		page := rawPage{first: p.early[i].first}
		var tail []byte // hunks
		for first := i; i < len(p.early) && (i == first || len(page.bytes)+len(tail)+len(p.early[i].bytes) <= setPage); i++ {
			next := p.early[i]
			page.bytes, tail = append(page.bytes, next.bytes[:next.text]...), append(tail, next.bytes[next.text:]...)
		}
		page.text = len(page.bytes)
		page.bytes = append(page.bytes, tail...)
		out = append(out, page)
	}
	p.early = out
}

// index makes what a search needs to leave the page out, and returns its first unit.
func (p *pages) index(text []byte) (unit uint32) {
	if p.withSets {
		p.sets = trigram.NewSet(text).AppendTo(p.sets)
		unit, p.units = p.units, p.units+trigram.Units(len(text))
		return unit
	}
	unit, _, p.err = p.post.Add(text, 0)
	return unit
}

// write writes a page.
func (p *pages) write(page rawPage) {
	unit := uint32(none)
	if page.text > 0 && p.err == nil {
		unit = p.index(page.bytes[:page.text])
	}
	for _, v := range []uint32{page.first, unit, uint32(page.text), uint32(len(page.bytes)), uint32(len(p.blocks) / 2)} {
		p.table = append32(p.table, v)
	}
	p.table = binary.LittleEndian.AppendUint64(p.table, uint64(p.out.Pos()))
	size := blockOf(len(page.bytes))
	for block := range slices.Chunk(page.bytes, size) {
		if size == longBlock {
			p.block = compress(p.block[:0], block)
		} else {
			p.block = p.enc.Encode(p.block[:0], block)
		}
		p.blocks = binary.LittleEndian.AppendUint16(p.blocks, uint16(len(p.block)))
		_, _ = p.out.Write(p.block) // its error is out.Err
	}
}

// finish writes the last pages, and ends the postings.
func (p *pages) finish() error {
	p.flush()
	switch {
	case p.enc != nil:
	case p.waiting <= p.few:
		p.withSets = true
		p.joinEarly()
		p.writeEarly()
	default:
		p.begin()
	}
	if p.err == nil {
		p.err = p.post.Finish()
	}
	return p.err
}

func (p *pages) close() {
	p.post.Close()
	if p.enc != nil {
		p.enc.Release()
	}
}

// pageColumn is the pages of messages, or of lines, with their postings.
type pageColumn struct {
	table  []byte
	blocks file.Column16
	dict   []byte
	post   *trigram.Index
	sets   []byte // of each page with a text, instead of postings; empty with those
	texts  int    // of all pages
}

// pageRow is a row of the table.
type pageRow struct {
	first, unit uint32
	text, size  int
	block       int
	at          int64
}

// span is a part of a page.
type span struct{ from, to int }

// unitsOf returns the first and the last unit of the page that may own a byte of some lines, or an empty
// one of them.
func (p *pageRow) unitsOf(lines span) (first, last int) {
	last = int(trigram.Units(p.text)) - 1
	return min(max(lines.from-1, 0)/trigram.UnitSize, last), min(lines.to/trigram.UnitSize, last)
}

func (p *pageColumn) len() int           { return len(p.table) / pageEntry }
func (p *pageColumn) first(i int) uint32 { return binary.LittleEndian.Uint32(p.table[i*pageEntry:]) }

func (p *pageColumn) row(i int) pageRow {
	b := p.table[i*pageEntry:]
	at := func(i int) uint32 { return binary.LittleEndian.Uint32(b[4*i:]) }
	return pageRow{at(0), at(1), int(at(2)), int(at(3)), int(at(4)), int64(binary.LittleEndian.Uint64(b[20:]))}
}

// end returns the number of the text after page i.
func (p *pageColumn) end(i int) uint32 {
	if i+1 < p.len() {
		return p.first(i + 1)
	}
	return uint32(p.texts)
}

// of returns the page that contains a text.
func (p *pageColumn) of(text uint32) int {
	return sort.Search(p.len(), func(i int) bool { return p.first(i) > text }) - 1
}

// units returns the first unit of page i in the postings, or none for a page without text, and the
// number of its units.
func (p *pageColumn) units(i int) (first, n uint32) {
	row := p.row(i)
	return row.unit, trigram.Units(row.text)
}

// changed is one text: a message, or the changed lines of a file.
type changed struct {
	removed, added []byte
	hunks          []byte // encoded
}

// textReader reads texts. It keeps the page of the latest one, and decodes each of its blocks once. It
// is not safe for concurrent use.
type textReader struct {
	x      *index
	p      *pageColumn
	spent  int // blocks that were decoded
	at     int // page, and one; 0 for none
	row    pageRow
	buf    []byte // the page; only decoded blocks have their bytes. Of pageBuffers
	blocks []bool // which are decoded
	texts  []changed
	starts []int // of the texts in buf
}

// pageBuffers has buffers that no reader uses: a long text needs a large one.
var pageBuffers sync.Pool

// close gives the buffer back. What the reader returned is not valid any more; it may read on.
func (r *textReader) close() {
	if buf := r.buf; buf != nil {
		pageBuffers.Put(&buf)
		r.buf, r.at = nil, 0
	}
}

// text returns a text by its number. Its bytes are valid until the next call.
func (r *textReader) text(n uint32) (changed, error) {
	c, start, err := r.outline(n)
	if err == nil {
		err = r.decode(start, start+len(c.removed)+len(c.added))
	}
	return c, err
}

// outline reads the hunks of a text, and not its lines. It returns where the text begins in the page, too.
func (r *textReader) outline(n uint32) (c changed, start int, err error) {
	if r.at == 0 || n < r.row.first || n >= r.p.end(r.at-1) {
		if err := r.open(r.p.of(n)); err != nil {
			r.at = 0
			return c, 0, err
		}
	}
	i := n - r.row.first
	return r.texts[i], r.starts[i], nil
}

// open goes to a page, and decodes its hunks.
func (r *textReader) open(page int) error {
	row := r.p.row(page)
	blocks := (row.size + blockOf(row.size) - 1) / blockOf(row.size)
	if row.text > row.size || row.size > maxPage || row.block+blocks > len(r.p.blocks)/2 || row.at < 0 || row.at > r.x.f.Size() {
		return r.x.f.Damaged("page %d lies outside", page)
	}
	r.at, r.row = page+1, row
	if r.buf == nil {
		if b, ok := pageBuffers.Get().(*[]byte); ok {
			r.buf = *b
		}
	}
	r.buf = slices.Grow(r.buf[:0], row.size+lz.Slack)[:row.size]
	r.blocks = slices.Grow(r.blocks[:0], blocks)[:blocks]
	clear(r.blocks)
	if err := r.decode(row.text, row.size); err != nil {
		return err
	}

	r.texts, r.starts = r.texts[:0], r.starts[:0]
	start, tail := 0, r.buf[row.text:]
	for range r.p.end(page) - row.first {
		hunks, removed, added := readSizes(tail)
		if hunks < 0 || removed+added > row.text-start {
			return r.x.f.Damaged("page %d is too short", page)
		}
		r.texts = append(r.texts, changed{r.buf[start : start+removed], r.buf[start+removed : start+removed+added], tail[:hunks]})
		r.starts = append(r.starts, start)
		start, tail = start+removed+added, tail[hunks:]
	}
	return nil
}

// decode decodes what is not decoded yet of a part of the page.
func (r *textReader) decode(from, to int) error {
	if from == to {
		return nil
	}
	at, size := r.row.at, blockOf(r.row.size)
	for b := range r.blocks[:(to-1)/size+1] {
		length := int64(r.p.blocks.At(r.row.block + b))
		if b >= from/size && !r.blocks[b] {
			if err := r.decodeBlock(b, at, length); err != nil {
				return err
			}
		}
		at += length
	}
	return nil
}

// decodeBlock decodes the block of some bytes of the file.
func (r *textReader) decodeBlock(b int, at, length int64) error {
	if at+length > r.x.f.Size() {
		return r.x.f.Damaged("block %d lies outside", b)
	}
	if err := r.x.f.Touch(at, length); err != nil {
		return err
	}
	size, packed := blockOf(r.row.size), r.x.f.Data()[at:at+length]
	from, to := b*size, min((b+1)*size, len(r.buf))
	var err error
	if size == longBlock {
		err = decompress(r.buf[from:to:to], packed)
	} else {
		// The decoder may write up to Slack bytes behind the block.
		var saved [lz.Slack]byte
		after := r.buf[to:min(to+lz.Slack, cap(r.buf))]
		copy(saved[:], after)
		err = lz.Decode(r.buf[from:to], packed, r.p.dict)
		copy(after, saved[:])
	}
	if err != nil {
		return r.x.f.Damaged("block %d: %w", b, err)
	}
	r.blocks[b] = true
	r.spent++
	return nil
}

// lines returns those of some whole lines that a part of the page touches.
func (r *textReader) lines(part, all span) ([]byte, error) {
	from, to := max(part.from, all.from), min(part.to, all.to)
	size := blockOf(r.row.size)
	for from > all.from {
		block := max(all.from, (from-1)/size*size) // where the search for the start of the line ends
		if err := r.decode(block, from); err != nil {
			return nil, err
		}
		i := bytes.LastIndexByte(r.buf[block:from], '\n')
		if from = block + i + 1; i >= 0 {
			break
		}
	}
	if err := r.decode(from, to); err != nil {
		return nil, err
	}
	for to < all.to {
		block := min(all.to, (to/size+1)*size)
		if err := r.decode(to, block); err != nil {
			return nil, err
		}
		if i := bytes.IndexByte(r.buf[to:block], '\n'); i >= 0 {
			to += i + 1
			break
		}
		to = block
	}
	return r.buf[from:to], nil
}

// compressors are shared by all repositories: one takes megabytes, and most histories are short.
var compressors = sync.Pool{New: func() any {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(4<<20))
	if err != nil {
		panic("BUG: " + err.Error()) // of these settings, which never change
	}
	return enc
}}

// compress appends the compressed form of text to dst.
func compress(dst, text []byte) []byte {
	enc := compressors.Get().(*zstd.Encoder)
	defer compressors.Put(enc)
	return enc.EncodeAll(text, dst)
}

var decompressors = sync.Pool{New: func() any {
	d, _ := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecodeAllCapLimit(true))
	return d
}}

// decompress decompresses a block that has the length of dst.
func decompress(dst, block []byte) error {
	d := decompressors.Get().(*zstd.Decoder)
	defer decompressors.Put(d)
	out, err := d.DecodeAll(block, dst[:0])
	if err == nil && len(out) != len(dst) {
		err = fmt.Errorf("%d bytes, not %d", len(out), len(dst))
	}
	return err
}

// readSizes reads the encoded hunks at the start of b. It returns their length, or -1 if b is too
// short, and the bytes of their removed and added lines.
func readSizes(b []byte) (bytes, removed, added int) {
	count, at := binary.Uvarint(b)
	if at <= 0 {
		return -1, 0, 0
	}
	for range count {
		var v [6]int
		for i := range v {
			x, n := binary.Uvarint(b[at:])
			if n <= 0 || x > maxPage*64 {
				return -1, 0, 0
			}
			v[i], at = int(x), at+n
		}
		removed, added = removed+v[4], added+v[5]
		if removed > maxPage || added > maxPage {
			return -1, 0, 0
		}
	}
	return at, removed, added
}

// placedHunk is a hunk whose lines lie in a page.
type placedHunk struct {
	git.PatchHunk
	old, now span
}

// placedHunks are the hunks of a text whose removed and added lines begin at two places in a page.
func placedHunks(hunks []git.PatchHunk, removed, added int) (out []placedHunk) {
	for _, h := range hunks {
		at := placedHunk{h, span{removed, removed + h.Removed}, span{added, added + h.Added}}
		removed, added = at.old.to, at.now.to
		out = append(out, at)
	}
	return out
}

// decodeHunks decodes the hunks of a changed file.
func decodeHunks(b []byte) (out []git.PatchHunk) {
	count, n := binary.Uvarint(b)
	b = b[n:]
	out = make([]git.PatchHunk, 0, min(count, uint64(len(b))))
	for ; count > 0; count-- {
		var v [6]int
		for i := range v {
			x, n := binary.Uvarint(b)
			v[i], b = int(x), b[n:]
		}
		out = append(out, git.PatchHunk{
			Old: git.DiffRange{Start: v[0], Lines: v[1]}, New: git.DiffRange{Start: v[2], Lines: v[3]},
			Removed: v[4], Added: v[5],
		})
	}
	return out
}
