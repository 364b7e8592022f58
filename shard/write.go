package shard

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"os"
	"path/filepath"
)

// tempPrefix begins the names of files that are being written; OpenSet
// removes what a crash left of them.
const tempPrefix = "writing-"

// fileWriter writes one file of the index front to back, section by section,
// and takes its hash and checksums on the way. Its methods may be called on
// after an error, which finish reports.
type fileWriter struct {
	dir  string
	kind fileKind
	file *os.File
	buf  []byte // bytes not yet written
	sum  hash.Hash
	t    table
	pos  int64  // bytes so far, with those in buf
	page uint32 // checksum of the page that is being filled
	crc  *crc32.Table
	err  error

	behind *behind // nil until there is something to write, and after the end
}

// writeBytes is how much is collected before it goes to the file. Small
// writes cost less than large ones here: the pages stay in the cache.
const writeBytes = 64 << 10

func newFileWriter(dir string, kind fileKind) (*fileWriter, error) {
	f, err := os.CreateTemp(dir, tempPrefix+"*")
	if err != nil {
		return nil, fmt.Errorf("create index file: %w", err)
	}
	w := &fileWriter{dir: dir, kind: kind, file: f, sum: sha256.New(), crc: crc32.MakeTable(crc32.Castagnoli)}
	w.buf = make([]byte, 0, 2*writeBytes)
	head := append([]byte(magicHead), 0, 0, 0, 0, 0, 0, 0, 0)
	binary.LittleEndian.PutUint32(head[8:], kind.version())
	binary.LittleEndian.PutUint32(head[12:], uint32(kind))
	_, _ = w.Write(head)
	return w, nil
}

// Write appends to the section that is open.
func (w *fileWriter) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		room := min(len(p), pageBytes-int(w.pos%pageBytes))
		w.page = crc32.Update(w.page, w.crc, p[:room])
		w.buf = append(w.buf, p[:room]...)
		w.pos += int64(room)
		if w.pos%pageBytes == 0 {
			w.t.pages = append(w.t.pages, w.page)
			w.page = 0
		}
		if len(w.buf) >= writeBytes {
			w.flush()
		}
		p = p[room:]
	}
	return n, w.err
}

// flush hands what is collected to be hashed and written. A failure to write
// is seen by one of the next.
func (w *fileWriter) flush() {
	if w.behind == nil {
		w.behind = newBehind(w.file, w.sum)
	}
	if w.err == nil {
		w.err = w.behind.failed()
	}
	if w.buf = w.behind.write(w.buf); w.buf == nil {
		w.buf = make([]byte, 0, 2*writeBytes)
	}
}

// settle waits for all that was flushed.
func (w *fileWriter) settle() {
	if w.behind != nil {
		if err := w.behind.end(); w.err == nil {
			w.err = err
		}
		w.behind = nil
	}
}

// begin opens a section, at a multiple of eight bytes.
func (w *fileWriter) begin(id sectionID) {
	if pad := -w.pos & 7; pad > 0 {
		_, _ = w.Write(make([]byte, pad))
	}
	w.t.sections = append(w.t.sections, section{id: id, offset: w.pos})
}

// end closes it.
func (w *fileWriter) end() {
	s := &w.t.sections[len(w.t.sections)-1]
	s.length = w.pos - s.offset
}

// add writes a whole section, given in parts.
func (w *fileWriter) add(id sectionID, parts ...[]byte) {
	w.begin(id)
	for _, p := range parts {
		_, _ = w.Write(p)
	}
	w.end()
}

// finish writes the table, syncs, and gives the file its name.
func (w *fileWriter) finish() (name string, size int64, err error) {
	if w.pos%pageBytes != 0 {
		w.t.pages = append(w.t.pages, w.page)
	}
	w.t.end = w.pos
	tail := appendTable(nil, &w.t)
	w.buf = append(w.buf, tail...)
	size = w.pos + int64(len(tail))
	w.flush()
	w.settle()
	if w.err != nil {
		w.abort()
		return "", 0, w.err
	}
	name = hex.EncodeToString(w.sum.Sum(nil)) + w.kind.extension()
	if err := publish(w.file, filepath.Join(w.dir, name)); err != nil {
		w.abort()
		return "", 0, err
	}
	return name, size, nil
}

// abort removes the unfinished file.
func (w *fileWriter) abort() {
	w.settle()
	_ = w.file.Close()
	_ = os.Remove(w.file.Name())
}

// publish syncs a written file and gives it its final name, so that a name
// never stands for half a file, not even after a crash.
func publish(f *os.File, path string) error {
	err := errors.Join(f.Chmod(0o444), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err == nil {
		err = syncDir(filepath.Dir(path))
	}
	if err != nil {
		return fmt.Errorf("publish index file: %w", err)
	}
	return nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
