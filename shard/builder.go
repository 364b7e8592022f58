package shard

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"slices"

	"github.com/shoalsearch/shoal/shard/file"
	"github.com/shoalsearch/shoal/shard/lz"
	"github.com/shoalsearch/shoal/trigram"
)

// builder collects the columns of one shard file while it writes the documents.
type builder struct {
	repos    []Repository
	blobs    []Blob
	opt      BuildOptions
	progress func(done int64)

	out       *file.Writer
	dict      []byte // compresses the blocks
	post      *trigram.Writer
	m         meta
	langs     map[string]int
	masks     map[uint64]int // number of each mask: its index in maskList
	maskList  []uint64
	skipped   int     // documents without content in the index
	inRepo    []int   // by repository: number of its occurrences
	shares    []share // by repository
	blockBase int64   // where the content section of the current segment starts in the file

	// The columns as the file has them: numbers of 4 bytes, little endian.
	blockEnd, unitLine         []byte // by unit
	docUnit, docSize, docOccur []byte // by document
	docSkip, docID             []byte // by document; of 1 byte, and of m.oidBytes

	occPath     []occurrenceRow // rows of the occurrence columns, which are written at the end
	done        int64           // bytes of the blobs written so far
	contentOpen bool            // the content section of the current segment has been started
}

// occurrenceRow is one occurrence. Paths get their numbers only when all of them are known.
type occurrenceRow struct {
	repo int
	path string
	mask int
	lang int
	kind category
}

// newBuilder returns a builder of a shard with these repositories and blobs.
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

// build writes the dictionary and the documents of the blobs whose indexes are in order. If it
// succeeds, the caller must call finish or b.out.Abort.
func (b *builder) build(ctx context.Context, dir string, src Source, order []int) (err error) {
	if b.out, err = file.NewWriter(dir, KindShard, b.opt.versions); err != nil {
		return err
	}

	// A segment is written when it is full: the postings in memory do not grow with the shard.
	b.post = trigram.New(trigram.Options{Emit: b.addPostings})
	defer b.post.Close()

	err = b.trainDictionary(ctx, src, order)
	if err == nil {
		err = b.buildDocuments(ctx, src, order)
	}

	if err != nil {
		b.out.Abort()
	}
	return err
}

// finish writes the columns after the documents, gives the file its name, and describes each
// repository's part of it.
func (b *builder) finish() (built []Built, err error) {
	b.writeColumns()
	id, size, err := b.out.Finish()
	if err != nil {
		return nil, err
	}

	// A repository without a document in this file has no part in it.
	for i, n := range b.inRepo {
		if n > 0 {
			repoPart := b.shares[i].describe(Part{Repo: b.repos[i].ID, Shard: id}, size, &b.m)
			repoPart.Occurrences, repoPart.Skipped = n, b.skipped
			built = append(built, repoPart)
		}
	}
	return built, nil
}

// addPostings writes the postings of a segment after its content: the file has content 0, postings
// 0, content 1, postings 1, and so on. The trigram writer calls it when a segment is complete.
func (b *builder) addPostings(postings ...[]byte) error {
	b.closeContent()
	b.out.Add(secText+file.SectionID(b.m.segments), postings...)
	b.m.segments++
	return b.out.Err()
}

// openContent starts the content section of the current segment, unless it has been started.
func (b *builder) openContent() {
	if !b.contentOpen {
		b.out.Begin(secBlocks + file.SectionID(b.m.segments))
		b.blockBase = b.out.Pos()
		b.contentOpen = true
	}
}

// closeContent ends the section with the contents of the current segment, which may be empty.
func (b *builder) closeContent() {
	b.openContent()
	b.out.End()
	b.contentOpen = false
}

// encoded is a document on its way through the pipeline.
type encoded struct {
	index int // in builder.blobs
	text  []byte
	form
	always    bool     // MaxTrigrams does not apply
	generated bool     // its first lines say that a program has written it
	langs     []string // by occurrence
	blocks    span     // range in batch.blocks
	units     span     // range in batch.ends and batch.lines
}

// The greatest size of a batch.
const (
	batchBytes = 1 << 20 // bytes of text, about
	batchDocs  = 4096
)

// batch is some documents that go through the pipeline together, with the buffers that they share.
type batch struct {
	docs    []encoded
	buf     []byte        // texts
	blocks  []byte        // of all documents
	ends    []uint32      // of each unit's block in the blocks of its document
	lines   []uint32      // newlines before each unit
	encoded chan struct{} // closed by the encoder when it is done
}

// encodeBatch finds the languages and makes the blocks of the documents of a batch. Several
// goroutines may call it, for different batches.
func (b *builder) encodeBatch(enc *lz.Encoder, t *batch) {
	t.blocks, t.ends, t.lines = t.blocks[:0], t.ends[:0], t.lines[:0]
	for i := range t.docs {
		e := &t.docs[i]
		b.setLanguages(e)

		from, unit := len(t.blocks), len(t.ends)
		if e.skip == indexed && len(e.text) > 0 {
			t.compress(enc, e.text)
		}
		e.blocks, e.units = span{from, len(t.blocks)}, span{unit, len(t.ends)}
	}
}

// span is a half-open range of a buffer.
type span struct{ from, to int }

// compress appends the blocks of a text. A block holds a unit and the overlap after it.
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

// countText returns how many bytes the blobs with indexes in order have together, without those
// that are too large to be indexed.
func (b *builder) countText(order []int) (text int64) {
	for _, i := range order {
		if b.opt.skipReason(b.blobs[i]) == indexed {
			text += b.blobs[i].Size
		}
	}
	return text
}

// setLanguages sets the language of a document at each of its paths, and whether it is generated.
func (b *builder) setLanguages(e *encoded) {
	x := &b.blobs[e.index]
	e.langs = e.langs[:0]
	if e.skip == indexed {
		e.generated = isGenerated(e.text)
	}

	for _, o := range x.Occurrences {
		if e.skip != indexed {
			e.langs = append(e.langs, SkippedLanguage)
		} else {
			e.langs = append(e.langs, languageOf(o.Path, e.text))
		}
	}
}

// writeBatch appends the documents of a batch to the file and the columns.
func (b *builder) writeBatch(t *batch) error {
	for i := range t.docs {
		e := &t.docs[i]

		// Postings come first: they may end the segment that this document's content would go to.
		if err := b.indexText(e); err != nil {
			return blobError(b.blobs[e.index].OID, err)
		}

		if err := b.addDocument(t, e); err != nil {
			return blobError(b.blobs[e.index].OID, err)
		}

		b.done += b.blobs[e.index].Size
	}

	b.progress(b.done)
	return b.out.Err()
}

// indexText adds the text of a document to the postings. If the text has too many trigrams, it
// marks the document as skipped. It must be called before addDocument, because it may end a
// segment, and then the content of this document belongs to the next one.
func (b *builder) indexText(e *encoded) error {
	if e.skip != indexed || len(e.text) == 0 {
		return nil
	}
	limit := b.opt.MaxTrigrams
	if e.always {
		limit = 0
	}

	_, _, err := b.post.Add(e.text, limit)
	// With so many trigrams the document would be a candidate in every search.
	if errors.Is(err, trigram.ErrTrigrams) {
		e.skip = skippedTrigrams
		for k := range e.langs {
			e.langs[k] = SkippedLanguage
		}
		return nil
	}
	return err
}

// addDocument appends a document and its occurrences to the columns, and its blocks to the file. The
// caller must have added its postings.
func (b *builder) addDocument(t *batch, e *encoded) error {
	x := &b.blobs[e.index]
	b.docUnit = binary.LittleEndian.AppendUint32(b.docUnit, uint32(b.m.units))
	b.docSize = binary.LittleEndian.AppendUint32(b.docSize, uint32(min(x.Size, 1<<32-1)))
	if e.skip == indexed {
		binary.LittleEndian.PutUint32(b.docSize[len(b.docSize)-4:], uint32(len(e.text)))
	}
	b.docSkip = append(b.docSkip, e.form.byte())

	b.docOccur = binary.LittleEndian.AppendUint32(b.docOccur, uint32(len(b.occPath)))
	b.addOccurrences(x, e)

	// All ids have one width: zeros fill up a SHA-1 in a file with SHA-256.
	id, err := hex.DecodeString(x.OID)
	if err != nil {
		return err
	}
	b.docID = append(b.docID, append(id, make([]byte, b.m.oidBytes-len(id))...)...)

	b.m.documents++
	if e.skip != indexed {
		b.skipped++
		return nil
	}
	if len(e.text) == 0 {
		return nil
	}

	// The column has the ends of blocks as offsets in the content of the segment.
	b.openContent()
	base := b.out.Pos() - b.blockBase
	_, _ = b.out.Write(t.blocks[e.blocks.from:e.blocks.to]) // its error is b.out.Err

	lines := t.lines[e.units.from:e.units.to]
	for i, end := range t.ends[e.units.from:e.units.to] {
		b.blockEnd = binary.LittleEndian.AppendUint32(b.blockEnd, uint32(base)+end)
		b.unitLine = binary.LittleEndian.AppendUint32(b.unitLine, lines[i])
	}
	b.m.units += len(lines)
	b.m.textBytes += int64(len(e.text))
	return b.out.Err()
}

// addOccurrences appends the occurrences of a blob, sorted by repository, path and revisions, so
// that the bytes of the file do not depend on the order of the source.
func (b *builder) addOccurrences(x *Blob, e *encoded) {
	order := make([]int, len(x.Occurrences))
	for i := range order {
		order[i] = i
	}

	slices.SortFunc(order, func(i, j int) int {
		p, q := x.Occurrences[i], x.Occurrences[j]
		return cmp.Or(p.Repo-q.Repo, cmp.Compare(p.Path, q.Path), cmp.Compare(p.Mask, q.Mask))
	})

	// A blob counts once in the share of each of its repositories.
	last := -1 // repository of the previous occurrence
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

		// The same bytes may be named .h and .c, which are different languages.
		if i < len(e.langs) {
			lang = e.langs[i]
		}

		kind := categoryOf(o.Path)
		if e.generated && kind < generatedCode {
			kind = generatedCode
		}

		b.occPath = append(b.occPath, occurrenceRow{o.Repo, o.Path, b.maskNumber(o.Mask), b.langNumber(lang), kind})
		b.inRepo[o.Repo]++
	}
}

// maskNumber returns the number of a mask, and numbers a new mask.
func (b *builder) maskNumber(mask uint64) int {
	n, ok := b.masks[mask]
	if !ok {
		n = len(b.maskList)
		b.masks[mask] = n
		b.maskList = append(b.maskList, mask)
	}
	return n
}

// langNumber returns the number of a language, and numbers a new language.
func (b *builder) langNumber(lang string) int {
	n, ok := b.langs[lang]
	if !ok {
		n = len(b.m.languages)
		b.langs[lang] = n
		b.m.languages = append(b.m.languages, lang)
	}
	return n
}
