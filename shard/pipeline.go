package shard

import (
	"context"
	"fmt"
	"runtime"

	"github.com/shoalsearch/shoal/shard/charset"
	"github.com/shoalsearch/shoal/shard/lz"
)

// pipeline passes batches of documents through the three stages of a build: the reader, the
// encoders and the writer. The reader sends a batch to the encoders and at the same time to the
// writer, which waits until it is encoded. So batches are written in the order of reading,
// whichever is encoded first:
//
//	reader -> work  -> encoders      close t.encoded when t is done
//	       -> write -> writer        waits for t.encoded, then t goes back
//	       <- free  <-
type pipeline struct {
	b       *builder
	workers int // encoders
	room    int // bytes of text for which a batch has memory

	work, write, free chan *batch
	finished          chan struct{} // each encoder and the writer send one value at their end
}

// newPipeline returns a pipeline for that many bytes of text. A small repository gets one encoder
// and small batches.
func newPipeline(b *builder, textBytes int64) *pipeline {
	workers := b.opt.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	workers = min(workers, 1+int(textBytes/batchBytes))

	// The number of batches bounds the memory, because the reader waits for a free one.
	p := &pipeline{
		b: b, workers: workers, room: int(min(textBytes, batchBytes)),
		work: make(chan *batch, 2), write: make(chan *batch, workers+2), free: make(chan *batch, workers+6),
		finished: make(chan struct{}, workers+1),
	}

	for range cap(p.free) {
		p.free <- &batch{}
	}
	return p
}

// buildDocuments reads, encodes and writes all documents. It is the reader; each encoder, and the
// writer, which also makes the postings, has its own goroutine.
func (b *builder) buildDocuments(ctx context.Context, src Source, order []int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	p := newPipeline(b, b.countText(order))
	for range p.workers {
		go p.runEncoder()
	}
	go p.runWriter(cancel)

	err := p.runReader(ctx, src, order)

	// The encoders and the writer end when their channels are closed. Wait for all of them.
	close(p.work)
	close(p.write)
	for range p.workers + 1 {
		<-p.finished
	}

	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// takeBatch returns an empty batch for the reader.
func (p *pipeline) takeBatch() *batch {
	t := <-p.free
	if t.buf == nil {
		t.buf = make([]byte, 0, p.room+p.room/4)
	}
	t.encoded = make(chan struct{})
	return t
}

// enqueue sends a full batch to the encoders and to the writer.
func (p *pipeline) enqueue(t *batch) { p.work <- t; p.write <- t }

// runEncoder runs one encoder.
func (p *pipeline) runEncoder() {
	defer func() { p.finished <- struct{}{} }()
	enc := lz.NewEncoder(p.b.dict)
	defer enc.Release()
	for t := range p.work {
		p.b.encodeBatch(enc, t)
		close(t.encoded)
	}
}

// runWriter runs the writer. After an error it stops the reader and empties the queue, because the
// reader waits for free batches.
func (p *pipeline) runWriter(stop context.CancelCauseFunc) {
	defer func() { p.finished <- struct{}{} }()

	var failed error
	for t := range p.write {
		<-t.encoded
		if failed == nil {
			if failed = p.b.writeBatch(t); failed != nil {
				stop(failed)
			}
		}

		t.docs, t.buf = t.docs[:0], t.buf[:0]
		p.free <- t
	}

	// Write the last segment of postings.
	if failed == nil {
		if failed = p.b.post.Finish(); failed != nil {
			stop(failed)
		}
	}
}

// runReader runs the reader: it fills batches with the documents in order. It does not read
// documents that are too large to be indexed. With the order 4, 7, 2, 9, where blob 7 is too large,
// it reads 4, 2 and 9, and adds 7 before 2.
func (p *pipeline) runReader(ctx context.Context, src Source, order []int) error {
	b := p.b
	var want []int
	for _, i := range order {
		if b.opt.skipReason(b.blobs[i]) == indexed {
			want = append(want, i)
		}
	}

	f := filler{p: p, t: p.takeBatch(), order: order}

	err := src.Read(ctx, want, func(i int, content []byte) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return f.addText(i, content)
	})

	// Add the skipped documents after the last one that was read.
	if err == nil {
		f.addSkipped(noBlob)
	}

	p.enqueue(f.t)
	if err == nil && len(f.order) > 0 {
		err = fmt.Errorf("index blob %s: not read", b.blobs[f.order[0]].OID)
	}
	return err
}

// filler fills batches, one after the other.
type filler struct {
	p     *pipeline
	t     *batch // the batch that is being filled
	order []int  // blobs that are not in a batch yet
	text  []byte // buffer for decoded content
}

// noBlob is the index of no blob.
const noBlob = -1

// addSkipped adds the blobs of f.order before blob i, which are all skipped. With noBlob it adds all
// blobs of f.order.
func (f *filler) addSkipped(i int) {
	b := f.p.b
	for len(f.order) > 0 && f.order[0] != i {
		f.addDocument(encoded{index: f.order[0], form: form{skip: b.opt.skipReason(b.blobs[f.order[0]])}})
		f.order = f.order[1:]
	}
}

// addText adds blob i with its content, or as skipped if it is binary or too large. It first adds
// the skipped blobs that precede it.
func (f *filler) addText(i int, content []byte) error {
	b := f.p.b
	f.addSkipped(i)
	if len(f.order) == 0 {
		return fmt.Errorf("index blob %s: read out of order", b.blobs[i].OID)
	}
	f.order = f.order[1:]

	text, encoding := b.decodeText(f.text[:0], i, content)
	if encoding > charset.UTF8Mark && cap(text) <= batchBytes {
		f.text = text // it was decoded into the buffer: reuse it for the next text
	}

	e := encoded{index: i, form: form{charset: encoding}, always: b.opt.MaxTrigrams < len(text) && alwaysIndexed(b.blobs[i], b.opt)}
	switch {
	case charset.Binary(text, encoding):
		e.skip = skippedBinary
	case len(text) > maxDocument: // in UTF-8 the text may be longer than in git
		e.skip = skippedLarge
	default:
		e.text = f.copyText(text)
	}
	f.addDocument(e)
	return nil
}

// decodeText returns the text of blob i in UTF-8, and the encoding that it has in git. It decodes
// into buf. When packing, it returns content itself, which is UTF-8 already.
func (b *builder) decodeText(buf []byte, i int, content []byte) ([]byte, charset.Encoding) {
	if known, ok := b.opt.known[b.blobs[i].OID]; ok {
		return content, known.charset
	}
	return charset.Decode(buf, content)
}

// copyText copies a text into the batch and returns the copy. If the buffer of the batch lacks room
// for it, it begins the next batch first.
func (f *filler) copyText(content []byte) []byte {
	if len(f.t.buf)+len(content) > cap(f.t.buf) && len(f.t.docs) > 0 {
		f.nextBatch()
	}
	at := len(f.t.buf)
	f.t.buf = append(f.t.buf, content...)
	return f.t.buf[at:len(f.t.buf):len(f.t.buf)]
}

// addDocument adds a document, and begins the next batch if this one is full.
func (f *filler) addDocument(e encoded) {
	f.t.docs = append(f.t.docs, e)
	if len(f.t.buf) >= batchBytes || len(f.t.docs) >= batchDocs {
		f.nextBatch()
	}
}

// nextBatch begins the next batch.
func (f *filler) nextBatch() {
	f.p.enqueue(f.t)
	f.t = f.p.takeBatch()
}
