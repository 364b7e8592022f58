package cluster

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// When bbolt opens a file, it reads the tree of pages in its own goroutines. A flipped bit in an
// offset or a length crashes the process there, and no error can be returned. Other problems are
// reported while such a goroutine still reads the file, which is closed then. So this file checks
// everything before bbolt does: offsets, lengths, the order of keys, and that each page is used
// once. The page format is that of bbolt's package common, version 2, in native byte order.

var errPages = errors.New("its pages do not hang together")

const (
	pageHeader  = 16 // id, flags, count, overflow
	pageElement = 16
	branchPage  = 0x01
	leafPage    = 0x02
	bucketLeaf  = 0x01 // flag: the element's value is a bucket
	bucketHead  = 16   // root, sequence
)

// pageTree reads the pages of a bbolt file.
type pageTree struct {
	f       io.ReaderAt
	size    uint64 // bytes per page
	pages   uint64 // number of pages in use
	visited map[uint64]bool
}

// verifyPages checks all pages reachable from the newer head. The caller has checked both heads.
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

	// Writes alternate between two heads. The newer one names the root.
	ne := binary.NativeEndian
	w := pageTree{f: f, visited: map[uint64]bool{}}
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
	_, err = w.checkPage(root, keyRange{})
	return err
}

// keyRange is the range of keys that a page may have: from first on, and below end. nil means no
// bound.
type keyRange struct{ first, end []byte }

// checkPage checks a page and everything below it. It returns the last key there, or nil.
func (w *pageTree) checkPage(id uint64, keys keyRange) (last []byte, err error) {
	// Pages 0 and 1 are heads.
	if id < 2 || id >= w.pages {
		return nil, fmt.Errorf("%w: page %d", errPages, id)
	}

	head := make([]byte, pageHeader)
	if _, err := w.f.ReadAt(head, int64(id*w.size)); err != nil {
		return nil, fmt.Errorf("page %d: %w", id, err)
	}

	// Overflow pages follow the page, and are read together with it.
	overflow := uint64(binary.NativeEndian.Uint32(head[12:]))
	if binary.NativeEndian.Uint64(head) != id || overflow >= w.pages-id {
		return nil, fmt.Errorf("%w: page %d", errPages, id)
	}

	// A page that is used twice is part of a cycle, or has two parents.
	for i := id; i <= id+overflow; i++ {
		if w.visited[i] {
			return nil, fmt.Errorf("%w: page %d", errPages, i)
		}
		w.visited[i] = true
	}

	body := make([]byte, (overflow+1)*w.size)
	if _, err := w.f.ReadAt(body, int64(id*w.size)); err != nil {
		return nil, fmt.Errorf("page %d: %w", id, err)
	}

	if last, err = w.checkElements(body, keys); err != nil {
		return nil, fmt.Errorf("page %d: %w", id, err)
	}
	return last, nil
}

// checkElements checks the elements of a page, and all pages below it. The page may also lie inside
// a value, see checkBucket. It returns the last key of all of them.
func (w *pageTree) checkElements(page []byte, keys keyRange) (last []byte, err error) {
	if len(page) < pageHeader {
		return nil, errPages
	}

	ne := binary.NativeEndian
	flags, count := ne.Uint16(page[8:]), int(ne.Uint16(page[10:]))
	if flags != branchPage && flags != leafPage || pageHeader+count*pageElement > len(page) {
		return nil, errPages
	}

	for i := range count {
		key, value, err := readElement(page, i)
		if err != nil {
			return nil, err
		}

		// Keys ascend strictly and stay in the range.
		tooLow := i > 0 && bytes.Compare(key, last) <= 0 || bytes.Compare(key, keys.first) < 0
		if tooLow || keys.end != nil && bytes.Compare(key, keys.end) >= 0 {
			return nil, fmt.Errorf("%w: its keys are in disorder", errPages)
		}
		last = key

		switch {
		case flags == branchPage:
			// The keys of the page below end before the next element's key.
			below := keyRange{key, keys.end}
			if i+1 < count {
				if below.end, _, err = readElement(page, i+1); err != nil {
					return nil, err
				}
			}
			if last, err = w.checkPage(ne.Uint64(page[pageHeader+i*pageElement+8:]), below); err != nil {
				return nil, err
			}
		case ne.Uint32(page[pageHeader+i*pageElement:])&bucketLeaf != 0:
			if err := w.checkBucket(value); err != nil {
				return nil, err
			}
		}
	}
	return last, nil
}

// readElement returns the key of an element, and its value if it has one. The key lies behind the
// element, and the value behind the key. Both must be within the page.
//
//	branch  offset of the key, length of the key, page below (8 bytes)
//	leaf    flags, offset of the key, length of the key, length of the value
func readElement(page []byte, i int) (key, value []byte, err error) {
	ne := binary.NativeEndian
	at := pageHeader + i*pageElement
	e := page[at:]

	keyAt, keyLen, valueLen := uint64(ne.Uint32(e)), uint64(ne.Uint32(e[4:])), uint64(0)
	if ne.Uint16(page[8:]) == leafPage {
		keyAt, keyLen, valueLen = uint64(ne.Uint32(e[4:])), uint64(ne.Uint32(e[8:])), uint64(ne.Uint32(e[12:]))
	}

	begin := keyAt + uint64(at) // offsets count from the element
	end := begin + keyLen
	if end+valueLen > uint64(len(page)) {
		return nil, nil, errPages
	}
	return page[begin:end], page[end : end+valueLen], nil
}

// checkBucket checks the pages of a bucket. A small bucket has its only page inside its value.
func (w *pageTree) checkBucket(value []byte) error {
	if len(value) < bucketHead {
		return errPages
	}
	var err error
	if root := binary.NativeEndian.Uint64(value); root != 0 {
		_, err = w.checkPage(root, keyRange{})
	} else {
		_, err = w.checkElements(value[bucketHead:], keyRange{})
	}
	return err
}
