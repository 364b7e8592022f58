package file

import (
	"fmt"
	"hash"
	"os"
	"sync/atomic"
)

// asyncWriter hashes and writes buffers, in order, on its own goroutine, while the caller fills the
// next buffer. end waits for the goroutine. Buffers go round:
//
//	write(full one) -> full -> run: hash, write -> free -> write's result
//
// At any time buffers in full + free + in use = asyncBuffers.
type asyncWriter struct {
	file *os.File
	sum  hash.Hash
	full chan []byte
	free chan []byte
	done chan struct{}
	err  atomic.Pointer[error]

	pos, begun int64 // bytes written, and how many of them the disk has been told to write
}

// writebackBytes is how much is written before the disk is told to start. Without that, the sync at
// the end would wait for everything.
const writebackBytes = 8 << 20

// asyncBuffers is the number of buffers.
const asyncBuffers = 4

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
		if a.failed() == nil {
			a.sum.Write(buf)
			if _, err := a.file.Write(buf); err != nil {
				err = fmt.Errorf("write index file: %w", err)
				a.err.Store(&err)
			}

			// Start early what Finish would wait for.
			if a.pos += int64(len(buf)); a.pos-a.begun >= writebackBytes {
				writeback(a.file, a.begun, a.pos-a.begun)
				a.begun = a.pos
			}
		}
		a.free <- buf[:0]
	}
}

// write passes a full buffer on and returns an empty one.
func (a *asyncWriter) write(buf []byte) []byte {
	// This waits while all buffers are full.
	a.full <- buf
	return <-a.free
}

// failed returns the first error so far.
func (a *asyncWriter) failed() error {
	if err := a.err.Load(); err != nil {
		return *err
	}
	return nil
}

// end waits until everything is written.
func (a *asyncWriter) end() error {
	// Closing the channel ends the goroutine after it has written all queued buffers.
	close(a.full)
	<-a.done
	return a.failed()
}
