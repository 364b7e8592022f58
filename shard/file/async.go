package file

import (
	"fmt"
	"hash"
	"os"
	"sync/atomic"
)

// asyncWriter hashes and writes buffers, in order, on its own goroutine, while the caller fills the
// next buffer. finish waits for the goroutine. Buffers go round:
//
//	enqueue(full one) -> full -> run: hash, write -> free -> result of enqueue
//
// At any time buffers in full + free + in use = asyncBuffers.
type asyncWriter struct {
	file *os.File
	sum  hash.Hash
	full chan []byte
	free chan []byte
	done chan struct{}
	err  atomic.Pointer[error]

	pos, started int64 // bytes written, and how many of them were passed to writeback
}

// writebackBytes is how much is written before the disk is told to start. Without that, the sync at
// the end would wait for everything.
const writebackBytes = 8 << 20

// asyncBuffers is the number of buffers.
const asyncBuffers = 4

// newAsyncWriter starts the goroutine. The caller must call finish.
func newAsyncWriter(file *os.File, sum hash.Hash) *asyncWriter {
	a := &asyncWriter{file: file, sum: sum, full: make(chan []byte, asyncBuffers), free: make(chan []byte, asyncBuffers), done: make(chan struct{})}
	for range asyncBuffers {
		a.free <- nil
	}
	go a.run()
	return a
}

// run is the loop of the goroutine. After an error it only passes buffers on.
func (a *asyncWriter) run() {
	defer close(a.done)
	for buf := range a.full {
		if a.firstError() == nil {
			a.sum.Write(buf)
			if _, err := a.file.Write(buf); err != nil {
				err = fmt.Errorf("write index file: %w", err)
				a.err.Store(&err)
			}

			if a.pos += int64(len(buf)); a.pos-a.started >= writebackBytes {
				writeback(a.file, a.started, a.pos-a.started)
				a.started = a.pos
			}
		}
		a.free <- buf[:0]
	}
}

// enqueue passes a full buffer to the goroutine and returns an empty one. It waits for that if all
// buffers are full.
func (a *asyncWriter) enqueue(buf []byte) []byte {
	a.full <- buf
	return <-a.free
}

// firstError returns the first error so far.
func (a *asyncWriter) firstError() error {
	if err := a.err.Load(); err != nil {
		return *err
	}
	return nil
}

// finish waits until everything is written, and ends the goroutine.
func (a *asyncWriter) finish() error {
	close(a.full)
	<-a.done
	return a.firstError()
}
