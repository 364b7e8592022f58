package shard

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/shoalsearch/shoal/shard/lz"
	"github.com/shoalsearch/shoal/trigram"
)

// builder collects the columns of one shard file while its documents go by.
type builder struct {
	repos    []Repository
	blobs    []Blob
	opt      BuildOptions
	progress func(done int64)

	out       *fileWriter
	dict      []byte // of the blocks
	post      *trigram.Writer
	m         meta
	langs     map[string]int
	masks     map[uint64]int
	maskList  []uint64
	skipped   int
	inRepo    []int   // occurrences of each repository
	shares    []share // of each repository
	blockBase int64   // start of the content section of the present segment

	blockEnd, unitLine         []byte
	docUnit, docSize, docOccur []byte
	docSkip, docID             []byte
	occPath                    []occurrenceRow
	done                       int64
	contentOpen                bool
}

// occurrenceRow is an occurrence before the paths have numbers.
type occurrenceRow struct {
	repo int
	path string
	mask int
	lang int
	kind category
}

func newBuilder(repos []Repository, blobs []Blob, opt BuildOptions) *builder {
	b := &builder{repos: repos, blobs: blobs, opt: opt, langs: map[string]int{}, masks: map[uint64]int{}}
	b.m.repos = repos
	b.inRepo, b.shares = make([]int, len(repos)), make([]share, len(repos))
	b.m.oidBytes = 20
	for _, x := range blobs {
		b.m.oidBytes = max(b.m.oidBytes, len(x.OID)/2)
	}
	return b
}

// build writes the documents of the blobs in order, numbers of b.blobs. Where it
// succeeds end must be called.
func (b *builder) build(ctx context.Context, dir string, src Source, order []int) (err error) {
	if b.out, err = newFileWriter(dir, kindShard); err != nil {
		return err
	}
	b.post = trigram.New(trigram.Options{Emit: b.segment})
	defer b.post.Close()
	err = b.train(ctx, src, order)
	if err == nil {
		err = b.documents(ctx, src, order)
	}
	if err != nil {
		b.out.abort()
	}
	return err
}

// end writes what stands behind the documents and gives the file its name.
func (b *builder) end() (built []Built, err error) {
	b.columns()
	name, size, err := b.out.finish()
	if err != nil {
		return nil, err
	}
	for i, n := range b.inRepo {
		if n > 0 {
			one := b.shares[i].built(Part{Repo: b.repos[i].ID, Shard: name}, size, &b.m)
			one.Occurrences, one.Skipped = n, b.skipped
			built = append(built, one)
		}
	}
	return built, nil
}

// segment ends the content of a segment of postings and writes the postings
// behind it.
func (b *builder) segment(postings ...[]byte) error {
	b.closeContent()
	b.out.add(secText+sectionID(b.m.segments), postings...)
	b.m.segments++
	return b.out.err
}

func (b *builder) openContent() {
	if !b.contentOpen {
		b.out.begin(secBlocks + sectionID(b.m.segments))
		b.blockBase = b.out.pos
		b.contentOpen = true
	}
}

func (b *builder) closeContent() {
	b.openContent()
	b.out.end()
	b.contentOpen = false
}

// encoded is one document after the parallel part of the work.
type encoded struct {
	index  int // in builder.blobs
	text   []byte
	skip   skip
	always bool
	gen    bool
	langs  []string // of each occurrence
	blocks span     // in batch.blocks
	units  span     // in batch.ends and batch.lines
}

// batchBytes is the text that travels from stage to stage at once.
const batchBytes = 1 << 20

// batch is a run of documents with buffers for all that they have together.
type batch struct {
	docs    []encoded
	buf     []byte        // texts
	blocks  []byte        // of all documents
	ends    []uint32      // of each unit's block in the blocks of its document
	lines   []uint32      // newlines before each unit
	encoded chan struct{} // closed when the blocks are made
}

// encode does the work on the documents of the batch that no others depend on.
func (b *builder) encode(enc *lz.Encoder, t *batch) {
	t.blocks, t.ends, t.lines = t.blocks[:0], t.ends[:0], t.lines[:0]
	for i := range t.docs {
		e := &t.docs[i]
		b.classify(e)
		from, unit := len(t.blocks), len(t.ends)
		if e.skip == indexed && len(e.text) > 0 {
			t.compress(enc, e.text)
		}
		e.blocks, e.units = span{from, len(t.blocks)}, span{unit, len(t.ends)}
	}
}

// span is a half-open run of a buffer.
type span struct{ from, to int }

// compress makes the blocks of a text.
func (t *batch) compress(enc *lz.Encoder, text []byte) {
	start, line := len(t.blocks), uint32(0)
	for u := range trigram.Units(len(text)) {
		from := int(u) * trigram.UnitSize
		t.blocks = enc.Encode(t.blocks, text[from:min(from+trigram.UnitSize+trigram.Overlap, len(text))])
		t.ends = append(t.ends, uint32(len(t.blocks)-start))
		t.lines = append(t.lines, line)
		line += uint32(bytes.Count(text[from:min(from+trigram.UnitSize, len(text))], newline))
	}
}

// documents reads, encodes and writes all documents. The reader, the encoders
// and the writer, which also makes the postings, each have a goroutine; the
// order of everything that is written is the order of reading.
func (b *builder) documents(ctx context.Context, src Source, order []int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	workers := b.opt.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	// Most repositories are small: one batch, one encoder, no more memory than
	// their text.
	text := b.textOf(order)
	workers = min(workers, 1+int(text/batchBytes))
	room := int(min(text, batchBytes))
	work, write := make(chan *batch, 2), make(chan *batch, workers+2)
	free := make(chan *batch, workers+6)
	for range cap(free) {
		free <- &batch{}
	}
	finished := make(chan struct{}, workers+1)
	for range workers {
		go func() {
			defer func() { finished <- struct{}{} }()
			enc := lz.NewEncoder(b.dict, b.opt.Dense)
			for t := range work {
				b.encode(enc, t)
				close(t.encoded)
			}
		}()
	}
	go func() {
		defer func() { finished <- struct{}{} }()
		var failed error
		for t := range write {
			<-t.encoded
			if failed == nil {
				if failed = b.write(t); failed != nil {
					cancel(failed)
				}
			}
			t.docs, t.buf = t.docs[:0], t.buf[:0]
			free <- t
		}
		if failed == nil {
			if failed = b.post.Finish(); failed != nil {
				cancel(failed)
			}
		}
	}()
	err := b.read(ctx, src, order, func() *batch {
		t := <-free
		if t.buf == nil {
			t.buf = make([]byte, 0, room+room/4)
		}
		t.encoded = make(chan struct{})
		return t
	}, func(t *batch) { work <- t; write <- t })
	close(work)
	close(write)
	for range workers + 1 {
		<-finished
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// textOf is the text of some blobs, as far as it can be told before reading.
func (b *builder) textOf(order []int) (text int64) {
	for _, i := range order {
		if b.opt.fate(b.blobs[i]) == indexed {
			text += b.blobs[i].Size
		}
	}
	return text
}

// read fills batches with the documents in order, those that are kept by name
// only without asking for their content.
func (b *builder) read(ctx context.Context, src Source, order []int, get func() *batch, put func(*batch)) error {
	t := get()
	next := 0
	add := func(e encoded) {
		t.docs = append(t.docs, e)
		if len(t.buf) >= batchBytes || len(t.docs) >= 4096 {
			put(t)
			t = get()
		}
	}
	upTo := func(i int) { // what comes before blob i without content
		for ; next < len(order) && order[next] != i; next++ {
			add(encoded{index: order[next], skip: b.opt.fate(b.blobs[order[next]])})
		}
	}
	var want []int
	for _, i := range order {
		if b.opt.fate(b.blobs[i]) == indexed {
			want = append(want, i)
		}
	}
	err := src.Read(ctx, want, func(i int, content []byte) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		upTo(i)
		if next >= len(order) {
			return fmt.Errorf("index blob %s: read out of order", b.blobs[i].OID)
		}
		next++
		e := encoded{index: i, always: b.opt.MaxTrigrams < len(content) && alwaysIndexed(b.blobs[i], b.opt)}
		if isBinary(content) {
			e.skip = skippedBinary
		} else {
			if len(t.buf)+len(content) > cap(t.buf) && len(t.docs) > 0 {
				put(t)
				t = get()
			}
			at := len(t.buf)
			t.buf = append(t.buf, content...)
			e.text = t.buf[at:len(t.buf):len(t.buf)]
		}
		add(e)
		return nil
	})
	if err == nil {
		upTo(-1)
	}
	put(t)
	if err == nil && next < len(order) {
		err = fmt.Errorf("index blob %s: not read", b.blobs[order[next]].OID)
	}
	return err
}

// classify finds the languages of a document.
func (b *builder) classify(e *encoded) {
	x := &b.blobs[e.index]
	e.langs = e.langs[:0]
	if e.skip == indexed {
		e.gen = isGenerated(e.text)
	}
	for _, o := range x.Occurrences {
		if e.skip != indexed {
			e.langs = append(e.langs, SkippedLanguage)
		} else {
			e.langs = append(e.langs, languageOf(o.Path, e.text))
		}
	}
}

var newline = []byte{'\n'}

// write appends the documents of a batch to the file and the columns.
func (b *builder) write(t *batch) error {
	for i := range t.docs {
		e := &t.docs[i]
		if err := b.postings(e); err != nil {
			return errBlob(b.blobs[e.index].OID, err)
		}
		if err := b.document(t, e); err != nil {
			return errBlob(b.blobs[e.index].OID, err)
		}
		b.done += b.blobs[e.index].Size
	}
	b.progress(b.done)
	return b.out.err
}

// postings adds the text of a document to the postings. They come before its
// content: they may close a segment, and the content belongs behind it.
func (b *builder) postings(e *encoded) error {
	if e.skip != indexed || len(e.text) == 0 {
		return nil
	}
	limit := b.opt.MaxTrigrams
	if e.always {
		limit = 0
	}
	_, _, err := b.post.Add(e.text, limit)
	if errors.Is(err, trigram.ErrTrigrams) {
		e.skip = skippedTrigrams
		for k := range e.langs {
			e.langs[k] = SkippedLanguage
		}
		return nil
	}
	return err
}

// document writes one document, whose postings are written.
func (b *builder) document(t *batch, e *encoded) error {
	x := &b.blobs[e.index]
	b.docUnit = binary.LittleEndian.AppendUint32(b.docUnit, uint32(b.m.units))
	b.docSize = binary.LittleEndian.AppendUint32(b.docSize, uint32(min(x.Size, 1<<32-1)))
	if e.skip == indexed {
		binary.LittleEndian.PutUint32(b.docSize[len(b.docSize)-4:], uint32(len(e.text)))
	}
	b.docSkip = append(b.docSkip, byte(e.skip))
	b.docOccur = binary.LittleEndian.AppendUint32(b.docOccur, uint32(len(b.occPath)))
	id, err := hex.DecodeString(x.OID)
	if err != nil {
		return err
	}
	b.docID = append(b.docID, append(id, make([]byte, b.m.oidBytes-len(id))...)...)
	b.occurrences(x, e)
	b.m.documents++
	if e.skip != indexed {
		b.skipped++
		return nil
	}
	if len(e.text) == 0 {
		return nil
	}
	b.openContent()
	base := b.out.pos - b.blockBase
	_, _ = b.out.Write(t.blocks[e.blocks.from:e.blocks.to])
	lines := t.lines[e.units.from:e.units.to]
	for i, end := range t.ends[e.units.from:e.units.to] {
		b.blockEnd = binary.LittleEndian.AppendUint32(b.blockEnd, uint32(base)+end)
		b.unitLine = binary.LittleEndian.AppendUint32(b.unitLine, lines[i])
	}
	b.m.units += len(lines)
	b.m.textBytes += int64(len(e.text))
	return b.out.err
}

// occurrences notes the places of a blob, sorted, so that the source's order
// does not matter.
func (b *builder) occurrences(x *Blob, e *encoded) {
	order := make([]int, len(x.Occurrences))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		p, q := x.Occurrences[i], x.Occurrences[j]
		return cmp.Or(p.Repo-q.Repo, cmp.Compare(p.Path, q.Path), cmp.Compare(p.Mask, q.Mask))
	})
	last := -1
	for _, i := range order {
		o, lang := x.Occurrences[i], SkippedLanguage
		if o.Repo != last {
			last = o.Repo
			if e.skip != indexed {
				b.shares[last].add(0)
			} else {
				b.shares[last].add(int64(len(e.text)))
			}
		}
		if i < len(e.langs) {
			lang = e.langs[i]
		}
		kind := categoryOf(o.Path)
		if e.gen && kind < generatedCode {
			kind = generatedCode
		}
		b.occPath = append(b.occPath, occurrenceRow{o.Repo, o.Path, b.maskNumber(o.Mask), b.langNumber(lang), kind})
		b.inRepo[o.Repo]++
	}
}

func (b *builder) maskNumber(mask uint64) int {
	n, ok := b.masks[mask]
	if !ok {
		n = len(b.maskList)
		b.masks[mask] = n
		b.maskList = append(b.maskList, mask)
	}
	return n
}

func (b *builder) langNumber(lang string) int {
	n, ok := b.langs[lang]
	if !ok {
		n = len(b.m.languages)
		b.langs[lang] = n
		b.m.languages = append(b.m.languages, lang)
	}
	return n
}
