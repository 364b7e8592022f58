package file

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"os"
	"path/filepath"
)

// TempPrefix begins the names of files while they are written. After a crash such files may be
// removed.
const TempPrefix = "writing-"

// Writer writes an index file from front to back, section by section, and computes its hash and
// checksums at the same time. After an error its methods may still be called; Finish returns the error.
type Writer struct {
	dir     string
	kind    Kind
	file    *os.File
	buf     []byte    // bytes that are not written yet
	hash    hash.Hash // SHA-256 of the bytes that were written
	table   table
	pos     int64  // bytes so far, including buf
	pageSum uint32 // checksum of the current page so far
	crc     *crc32.Table
	err     error

	async *asyncWriter // nil before the first and after the last write
}

// writeBytes is how many bytes are collected before a write. Small writes are cheaper than large
// ones here, because their pages stay in the cache.
const writeBytes = 64 << 10

// NewWriter starts a file in dir. The caller must call Finish or Abort.
func NewWriter(dir string, kind Kind, v Versions) (*Writer, error) {
	f, err := os.CreateTemp(dir, TempPrefix+"*")
	if err != nil {
		return nil, fmt.Errorf("create index file: %w", err)
	}
	w := &Writer{dir: dir, kind: kind, file: f, hash: sha256.New(), crc: crc32.MakeTable(crc32.Castagnoli)}

	// The head contains the kind, so that renaming a file does not change its kind.
	head := append([]byte(magicHead), 0, 0, 0, 0, 0, 0, 0, 0)
	binary.LittleEndian.PutUint32(head[8:], v[kind])
	binary.LittleEndian.PutUint32(head[12:], uint32(kind))

	_, _ = w.Write(head)
	return w, nil
}

// Write appends bytes to the section that Begin started.
func (w *Writer) Write(p []byte) (int, error) {
	written := len(p)
	for len(p) > 0 {
		// Do not write beyond the end of a page: there the checksum of the page is complete.
		n := min(len(p), pageBytes-int(w.pos%pageBytes))
		w.pageSum = crc32.Update(w.pageSum, w.crc, p[:n])
		w.buf = append(w.buf, p[:n]...)
		w.pos += int64(n)
		if w.pos%pageBytes == 0 {
			w.table.pages = append(w.table.pages, w.pageSum)
			w.pageSum = 0
		}

		if len(w.buf) >= writeBytes {
			w.flush()
		}
		p = p[n:]
	}
	return written, w.err
}

// Err returns the first error so far.
func (w *Writer) Err() error { return w.err }

// Pos returns how many bytes were written so far.
func (w *Writer) Pos() int64 { return w.pos }

// flush passes the collected bytes to the goroutine that hashes and writes them. A later call stores
// an error of the goroutine in w.err.
func (w *Writer) flush() {
	if w.async == nil {
		w.async = newAsyncWriter(w.file, w.hash)
	}
	if w.err == nil {
		w.err = w.async.firstError()
	}

	if w.buf = w.async.enqueue(w.buf); w.buf == nil {
		w.buf = make([]byte, 0, 2*writeBytes)
	}
}

// flushLast writes the rest of the buffer, and waits until all bytes are written. If the buffer has
// the whole file, flushLast starts no goroutine.
func (w *Writer) flushLast() {
	if w.async != nil {
		w.async.enqueue(w.buf)
		w.waitForWrites()
		return
	}
	if w.err == nil {
		w.hash.Write(w.buf)
		if _, err := w.file.Write(w.buf); err != nil {
			w.err = fmt.Errorf("write index file: %w", err)
		}
	}
}

// waitForWrites waits until all flushed bytes are written.
func (w *Writer) waitForWrites() {
	if w.async != nil {
		if err := w.async.finish(); w.err == nil {
			w.err = err
		}
		w.async = nil
	}
}

// Begin starts a section, at a multiple of eight bytes.
func (w *Writer) Begin(id SectionID) {
	if pad := -w.pos & 7; pad > 0 {
		_, _ = w.Write(make([]byte, pad))
	}
	w.table.sections = append(w.table.sections, Section{ID: id, Offset: w.pos})
}

// End ends the section that Begin started.
func (w *Writer) End() {
	s := &w.table.sections[len(w.table.sections)-1]
	s.Length = w.pos - s.Offset
}

// Add writes a whole section, given in parts.
func (w *Writer) Add(id SectionID, parts ...[]byte) {
	w.Begin(id)
	for _, p := range parts {
		_, _ = w.Write(p)
	}
	w.End()
}

// Finish writes the table, syncs the file, and names it by the hash of its bytes.
func (w *Writer) Finish() (id ID, size int64, err error) {
	// Add the checksum of the last page, unless the page is full and was added by Write.
	if w.pos%pageBytes != 0 {
		w.table.pages = append(w.table.pages, w.pageSum)
	}

	// The table is not part of a page: it has its own checksum.
	w.table.end = w.pos
	tail := appendTable(nil, &w.table)
	w.buf = append(w.buf, tail...)
	size = w.pos + int64(len(tail))

	w.flushLast()
	if w.err != nil {
		w.Abort()
		return ID{}, 0, w.err
	}

	w.hash.Sum(id[:0])
	if err := Publish(w.file, filepath.Join(w.dir, id.Name(w.kind))); err != nil {
		w.Abort()
		return ID{}, 0, err
	}
	return id, size, nil
}

// Abort removes the unfinished file.
func (w *Writer) Abort() {
	w.waitForWrites()
	_ = w.file.Close()
	_ = os.Remove(w.file.Name())
}

// Publish syncs a written file and gives it its final name, so that no file with that name is
// ever incomplete, even after a crash.
func Publish(f *os.File, path string) error {
	// The file must be on the disk before it gets its name.
	err := errors.Join(f.Chmod(0o400), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}

	// The new name is permanent only when the directory is on the disk too.
	if err == nil {
		err = syncDir(filepath.Dir(path))
	}

	if err != nil {
		return fmt.Errorf("publish index file: %w", err)
	}
	return nil
}

// syncDir waits until the entries of a directory are on the disk.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
