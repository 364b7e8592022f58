package file

import (
	"fmt"
	"hash"
	"os"
	"sync/atomic"
)

// asyncWriter hashes and writes buffers, in order, on its own goroutine, while the caller fills the
// next buffer. finish waits for the goroutine. The buffers circulate:
//
//	enqueue(full buffer) -> fullBufs -> run: hash, write -> freeBufs -> result of enqueue
//
// At any time the buffers in fullBufs, in freeBufs and in use are asyncBuffers in total.
type asyncWriter struct {
	file     *os.File
	hash     hash.Hash
	fullBufs chan []byte
	freeBufs chan []byte
	done     chan struct{}
	err      atomic.Pointer[error]

	written, passed int64 // bytes written, and how many of them were passed to writeback
}

// writebackBytes is how many bytes are written to the file between calls of writeback. Without these
// calls the disk would start only at the final sync, which would then take long.
const writebackBytes = 8 << 20

// asyncBuffers is the number of buffers.
const asyncBuffers = 4

// newAsyncWriter starts the goroutine. The caller must call finish.
func newAsyncWriter(file *os.File, fileHash hash.Hash) *asyncWriter {
	a := &asyncWriter{file: file, hash: fileHash, fullBufs: make(chan []byte, asyncBuffers), freeBufs: make(chan []byte, asyncBuffers), done: make(chan struct{})}
	for range asyncBuffers {
		a.freeBufs <- nil
	}
	go a.run()
	return a
}

// run is the loop of the goroutine. After an error it only returns the buffers.
func (a *asyncWriter) run() {
	defer close(a.done)
	for buf := range a.fullBufs {
		if a.firstError() == nil {
			a.hash.Write(buf)
			if _, err := a.file.Write(buf); err != nil {
				err = fmt.Errorf("write index file: %w", err)
				a.err.Store(&err)
			}

			if a.written += int64(len(buf)); a.written-a.passed >= writebackBytes {
				writeback(a.file, a.passed, a.written-a.passed)
				a.passed = a.written
			}
		}
		a.freeBufs <- buf[:0]
	}
}

// enqueue passes a full buffer to the goroutine and returns an empty one. If all buffers are full, it
// waits for the goroutine to empty one.
func (a *asyncWriter) enqueue(buf []byte) []byte {
	a.fullBufs <- buf
	return <-a.freeBufs
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
	close(a.fullBufs)
	<-a.done
	return a.firstError()
}
