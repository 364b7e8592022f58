package shard

import (
	"fmt"
	"hash"
	"os"
	"sync/atomic"
)

// behind hashes and writes buffers, in order, in a goroutine of its own: who
// makes the next one is what a build waits for.
type behind struct {
	file *os.File
	sum  hash.Hash
	full chan []byte
	free chan []byte
	done chan struct{}
	err  atomic.Pointer[error]

	pos, begun int64 // bytes written, and those that are on their way to the disk
}

// writebackBytes is how much is written before the disk is asked to begin with
// it: a sync at the end would wait for all, with nothing else to do.
const writebackBytes = 8 << 20

// behindBuffers is how many buffers are on their way at most.
const behindBuffers = 4

func newBehind(file *os.File, sum hash.Hash) *behind {
	b := &behind{file: file, sum: sum, full: make(chan []byte, behindBuffers), free: make(chan []byte, behindBuffers), done: make(chan struct{})}
	for range behindBuffers {
		b.free <- nil
	}
	go b.run()
	return b
}

func (b *behind) run() {
	defer close(b.done)
	for buf := range b.full {
		if b.failed() == nil {
			b.sum.Write(buf)
			if _, err := b.file.Write(buf); err != nil {
				err = fmt.Errorf("write index file: %w", err)
				b.err.Store(&err)
			}
			if b.pos += int64(len(buf)); b.pos-b.begun >= writebackBytes {
				writeback(b.file, b.begun, b.pos-b.begun)
				b.begun = b.pos
			}
		}
		b.free <- buf[:0]
	}
}

// write takes a buffer and gives another, which is empty.
func (b *behind) write(buf []byte) []byte {
	b.full <- buf
	return <-b.free
}

// failed tells the first error so far.
func (b *behind) failed() error {
	if err := b.err.Load(); err != nil {
		return *err
	}
	return nil
}

// end waits until all is written.
func (b *behind) end() error {
	close(b.full)
	<-b.done
	return b.failed()
}
