package shard

import (
	"context"
	"fmt"
	"runtime"

	"github.com/shoalsearch/shoal/shard/charset"
	"github.com/shoalsearch/shoal/shard/lz"
)

// pipeline carries batches of documents through the three stages of a build. A
// batch goes to an encoder and, at once, to the end of the writer's queue, so that
// batches are written in the order of reading, whichever encoder is faster:
//
//	reader -> work  -> encoders      close t.encoded when t is done
//	       -> write -> writer        waits for t.encoded, then t goes back
//	       <- free  <-
type pipeline struct {
	b       *builder
	workers int // encoders
	room    int // bytes of text that fit into a batch

	work, write, free chan *batch
	finished          chan struct{}
}

// newPipeline returns a pipeline for that much text. Most repositories are small: one batch, one
// encoder, no more memory than their text.
func newPipeline(b *builder, text int64) *pipeline {
	workers := b.opt.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	workers = min(workers, 1+int(text/batchBytes))

	// The number of batches bounds the memory, because the reader waits for a free one.
	p := &pipeline{
		b: b, workers: workers, room: int(min(text, batchBytes)),
		work: make(chan *batch, 2), write: make(chan *batch, workers+2), free: make(chan *batch, workers+6),
		finished: make(chan struct{}, workers+1),
	}

	for range cap(p.free) {
		p.free <- &batch{}
	}
	return p
}

// documents reads, encodes and writes all documents. The reader, the encoders
// and the writer, which also makes the postings, each have a goroutine.
func (b *builder) documents(ctx context.Context, src Source, order []int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	p := newPipeline(b, b.textOf(order))

	// Batches reach the writer in the order of reading, whichever is encoded first.
	for range p.workers {
		go p.encode()
	}
	go p.writeAll(cancel)

	err := p.read(ctx, src, order)

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

// get returns an empty batch for the reader.
func (p *pipeline) get() *batch {
	t := <-p.free
	if t.buf == nil {
		t.buf = make([]byte, 0, p.room+p.room/4)
	}
	t.encoded = make(chan struct{})
	return t
}

// enqueue hands a full batch to an encoder and to the writer.
func (p *pipeline) enqueue(t *batch) { p.work <- t; p.write <- t }

// encode runs one encoder.
func (p *pipeline) encode() {
	defer func() { p.finished <- struct{}{} }()
	enc := lz.NewEncoder(p.b.dict)
	defer enc.Release()
	for t := range p.work {
		p.b.encode(enc, t)
		close(t.encoded)
	}
}

// writeAll runs the writer. After an error it stops the reader and empties the queue, because the
// reader waits for free batches.
func (p *pipeline) writeAll(stop context.CancelCauseFunc) {
	defer func() { p.finished <- struct{}{} }()

	var failed error
	for t := range p.write {
		// Its turn has come, but it may not be encoded yet.
		<-t.encoded
		if failed == nil {
			if failed = p.b.write(t); failed != nil {
				stop(failed)
			}
		}

		t.docs, t.buf = t.docs[:0], t.buf[:0]
		p.free <- t
	}

	// The last segment of postings.
	if failed == nil {
		if failed = p.b.post.Finish(); failed != nil {
			stop(failed)
		}
	}
}

// read runs the reader: it fills batches with the documents in order. It does not ask the source
// for documents that are kept by name only. With the order 4, 7, 2, 9, where blob 7 is too large,
// it asks for 4, 2 and 9, and adds 7 when 2 arrives.
func (p *pipeline) read(ctx context.Context, src Source, order []int) error {
	b := p.b
	var want []int
	for _, i := range order {
		if b.opt.fate(b.blobs[i]) == indexed {
			want = append(want, i)
		}
	}

	f := filler{p: p, t: p.get(), order: order}

	err := src.Read(ctx, want, func(i int, content []byte) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return f.document(i, content)
	})

	// Add the documents by name only that come after the last one read.
	if err == nil {
		f.upTo(-1)
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
	t     *batch // being filled
	order []int  // blobs that are not in a batch yet
	text  []byte // buffer of the content that was decoded last
}

// upTo adds the blobs before blob i, which are kept by name only. With -1 it adds all that are
// left.
func (f *filler) upTo(i int) {
	b := f.p.b
	for len(f.order) > 0 && f.order[0] != i {
		f.add(encoded{index: f.order[0], form: form{skip: b.opt.fate(b.blobs[f.order[0]])}})
		f.order = f.order[1:]
	}
}

// document adds blob i, and before it the blobs that are kept by name only.
func (f *filler) document(i int, content []byte) error {
	b := f.p.b
	f.upTo(i)
	if len(f.order) == 0 {
		return fmt.Errorf("index blob %s: read out of order", b.blobs[i].OID)
	}
	f.order = f.order[1:]

	text, of := b.decode(f.text[:0], i, content)
	if of > charset.UTF8Mark && cap(text) <= batchBytes {
		f.text = text
	}

	e := encoded{index: i, form: form{charset: of}, always: b.opt.MaxTrigrams < len(text) && alwaysIndexed(b.blobs[i], b.opt)}
	switch {
	case charset.Binary(text, of):
		e.skip = skippedBinary
	case len(text) > maxDocument: // decoding made it longer than it is in git
		e.skip = skippedLarge
	default:
		e.text = f.copy(text)
	}
	f.add(e)
	return nil
}

// decode returns the text of blob i. It decodes into buf, unless the content is the text already,
// as it is when packing.
func (b *builder) decode(buf []byte, i int, content []byte) ([]byte, charset.Encoding) {
	if known, ok := b.opt.known[b.blobs[i].OID]; ok {
		return content, known.charset
	}
	return charset.Decode(buf, content)
}

// copy copies a text into the batch. If the buffer would have to grow, it begins the next batch
// first.
func (f *filler) copy(content []byte) []byte {
	if len(f.t.buf)+len(content) > cap(f.t.buf) && len(f.t.docs) > 0 {
		f.next()
	}
	at := len(f.t.buf)
	f.t.buf = append(f.t.buf, content...)
	return f.t.buf[at:len(f.t.buf):len(f.t.buf)]
}

// add adds a document, and begins the next batch if this one is full.
func (f *filler) add(e encoded) {
	f.t.docs = append(f.t.docs, e)
	if len(f.t.buf) >= batchBytes || len(f.t.docs) >= batchDocs {
		f.next()
	}
}

// next begins the next batch.
func (f *filler) next() {
	f.p.enqueue(f.t)
	f.t = f.p.get()
}
