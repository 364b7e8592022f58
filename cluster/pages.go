package cluster

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// bbolt reads the tree of its pages in goroutines of its own when it opens a
// file, and a place or a length that a turned bit has made too great ends the
// process there, with no error that could be returned. So places and lengths
// are looked at before. The form of pages is that of bbolt's package common,
// version 2, in the byte order of the machine.

var errPages = errors.New("its pages do not hang together")

const (
	pageHeader  = 16 // id, flags, count, overflow
	pageElement = 16
	branchPage  = 0x01
	leafPage    = 0x02
	bucketLeaf  = 0x01 // flag of an element whose value is a bucket
	bucketHead  = 16   // root, sequence
)

// pageTree reads the pages of a file of bbolt.
type pageTree struct {
	f     io.ReaderAt
	size  uint64 // of a page
	pages uint64 // as many are in the file, and in use
	seen  map[uint64]bool
}

// verifyPages walks all pages that the newer head leads to. Both heads have
// been checked.
func verifyPages(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()

	info, err := f.Stat()
	if err != nil {
		return err
	}

	// Two headers take turns; the newer one names the root.
	ne := binary.NativeEndian
	w := pageTree{f: f, seen: map[uint64]bool{}}
	var root, newest uint64
	at := int64(0)

	for i := range 2 {
		b := make([]byte, headSize)
		if _, err := f.ReadAt(b, at); err != nil {
			return fmt.Errorf("%w: %w", errPages, err)
		}

		m := b[headAt:]
		if tx := ne.Uint64(m[48:]); i == 0 || tx > newest {
			newest, root, w.size, w.pages = tx, ne.Uint64(m[16:]), uint64(ne.Uint32(m[8:])), ne.Uint64(m[40:])
		}

		at += int64(w.size)
	}

	if w.size < pageHeader+pageElement || w.pages > uint64(info.Size())/w.size {
		return errPages
	}
	return w.page(root)
}

// page checks a page of the file and all below it.
func (w *pageTree) page(id uint64) error {
	// Pages 0 and 1 are heads; one that was seen before would be a circle.
	if id < 2 || id >= w.pages || w.seen[id] {
		return fmt.Errorf("%w: page %d", errPages, id)
	}
	w.seen[id] = true

	head := make([]byte, pageHeader)
	if _, err := w.f.ReadAt(head, int64(id*w.size)); err != nil {
		return fmt.Errorf("page %d: %w", id, err)
	}

	// Pages after it that belong to it: together they are read as one.
	more := uint64(binary.NativeEndian.Uint32(head[12:]))
	if binary.NativeEndian.Uint64(head) != id || more >= w.pages-id {
		return fmt.Errorf("%w: page %d", errPages, id)
	}

	body := make([]byte, (more+1)*w.size)
	if _, err := w.f.ReadAt(body, int64(id*w.size)); err != nil {
		return fmt.Errorf("page %d: %w", id, err)
	}

	if err := w.elements(body); err != nil {
		return fmt.Errorf("page %d: %w", id, err)
	}
	return nil
}

// elements checks what a page holds, one of the file or one inside of a value.
func (w *pageTree) elements(page []byte) error {
	if len(page) < pageHeader {
		return errPages
	}

	ne := binary.NativeEndian
	flags, count := ne.Uint16(page[8:]), int(ne.Uint16(page[10:]))
	if flags != branchPage && flags != leafPage || pageHeader+count*pageElement > len(page) {
		return errPages
	}

	for i := range count {
		at := pageHeader + i*pageElement
		e := page[at:]
		if flags == branchPage {
			// A key lies somewhere behind its element: both must be within the page.
			if uint64(at)+uint64(ne.Uint32(e))+uint64(ne.Uint32(e[4:])) > uint64(len(page)) {
				return errPages
			}

			if err := w.page(ne.Uint64(e[8:])); err != nil {
				return err
			}
			continue
		}

		value := uint64(at) + uint64(ne.Uint32(e[4:])) + uint64(ne.Uint32(e[8:]))
		end := value + uint64(ne.Uint32(e[12:]))
		if end > uint64(len(page)) {
			return errPages
		}

		if ne.Uint32(e)&bucketLeaf != 0 {
			if err := w.bucket(page[value:end]); err != nil {
				return err
			}
		}
	}
	return nil
}

// bucket checks the pages of a bucket, or the page that its value holds.
func (w *pageTree) bucket(value []byte) error {
	if len(value) < bucketHead {
		return errPages
	}
	if root := binary.NativeEndian.Uint64(value); root != 0 {
		return w.page(root)
	}
	return w.elements(value[bucketHead:])
}
