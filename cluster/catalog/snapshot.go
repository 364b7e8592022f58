package catalog

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/shoalsearch/shoal/cluster/catalog/codec"
)

// A snapshot is a stream of blocks and an end:
//	magic     8 bytes "SHOALC01", of which the digits are the format
//	block     tag 1 (kind of record, not 0) | length 4 | CRC-32C 4 | body
//	          body: records of one kind, each as uvarint length and bytes
//	...
//	end       0 | SHA-256 of all bytes before the 0
// Numbers are little-endian. Records are sorted by key, so the same state gives the same bytes. An
// unknown kind is refused: a newer version wrote it.
//
// For example, a block with one record, 01 06 61 2f 62, of kind 4:
//	04  06 00 00 00  <CRC-32C>   tag, 6 bytes
//	    05  01 06 61 2f 62       5 bytes of record

const (
	snapshotMagic = "SHOALC01"
	blockSize     = 64 << 10
	maxBlock      = MaxEntry + blockSize
)

// ErrDamaged is wrapped by errors of Load about bytes that Save did not write.
var ErrDamaged = errors.New("the snapshot is damaged")

// noSnapshot is the ErrDamaged of a file that does not begin like a snapshot.
type noSnapshot struct{}

func (noSnapshot) Error() string { return "this file is no snapshot" }

func (noSnapshot) Is(target error) bool { return target == ErrDamaged }

// Save writes a snapshot of the view.
func (v *View) Save(w io.Writer) error {
	sum := sha256.New()
	buf := bufio.NewWriterSize(io.MultiWriter(w, sum), 256<<10)
	s := &saver{w: buf}

	s.writeRaw([]byte(snapshotMagic))
	if v.raised.Number > 0 {
		s.addRecord(levelKind, &v.raised)
	}
	s.addRecord(metaKind, &v.meta)
	if v.config.Index > 0 {
		s.addRecord(configKind, v.config)
	}
	for _, row := range v.rows {
		row.save(&v.tables, s)
	}
	s.flush()

	// The checksum covers all that went through buf, and is written past it.
	if s.err == nil {
		s.err = buf.Flush()
	}
	if s.err == nil {
		_, s.err = w.Write(sum.Sum([]byte{0}))
	}
	if s.err != nil {
		return fmt.Errorf("catalog: write snapshot: %w", s.err)
	}
	return nil
}

// saver collects records into blocks. After the first error, in err, it writes nothing.
type saver struct {
	w    io.Writer
	tag  byte
	body []byte
	tmp  []byte
	err  error
}

func (s *saver) writeRaw(b []byte) {
	if s.err == nil {
		_, s.err = s.w.Write(b)
	}
}

// addRecord adds a record. It starts a new block if the kind changes or the block is full.
func (s *saver) addRecord(kind *recordKind, rec any) {
	if s.tag != kind.tag || len(s.body) >= blockSize {
		s.flush()
		s.tag = kind.tag
	}

	s.tmp = kind.append(s.tmp[:0], rec)
	s.body = binary.AppendUvarint(s.body, uint64(len(s.tmp)))
	s.body = append(s.body, s.tmp...)
}

// flush writes the current block.
func (s *saver) flush() {
	if len(s.body) == 0 {
		return
	}

	head := binary.LittleEndian.AppendUint32([]byte{s.tag}, uint32(len(s.body)))
	head = binary.LittleEndian.AppendUint32(head, crc32.Checksum(s.body, castagnoli()))
	s.writeRaw(head)
	s.writeRaw(s.body)
	s.body = s.body[:0]
}

// castagnoli returns the table of CRC-32C, which the library computes only once.
func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// Load reads a snapshot by Build.Load of the running program.
func Load(r io.Reader) (*State, error) { return ThisBuild().Load(r) }

// Load reads and verifies a snapshot. A *LevelError means that the program cannot apply the
// snapshot's level.
func (b Build) Load(r io.Reader) (*State, error) { return loadInto(b.New(), r) }

// loadInto reads a snapshot into an empty state.
func loadInto(s *State, r io.Reader) (*State, error) {
	sum := sha256.New()
	l := &loader{r: bufio.NewReaderSize(r, 256<<10), sum: sum, s: s}
	if err := l.readAll(); err != nil {
		return nil, fmt.Errorf("catalog: read snapshot: %w", err)
	}

	// A snapshot without a level has level 1, which later programs may not support.
	if err := s.Unable(); err != nil {
		return nil, fmt.Errorf("catalog: read snapshot: %w", err)
	}

	// Build the indexes, which are not in the snapshot.
	s.rehashMeta()
	if err := s.reindex(); err != nil {
		return nil, fmt.Errorf("catalog: read snapshot: %w: %w", ErrDamaged, err)
	}
	return s, nil
}

type loader struct {
	r    io.Reader
	sum  io.Writer
	s    *State
	body []byte
}

func (l *loader) read(b []byte) error {
	if _, err := io.ReadFull(l.r, b); err != nil {
		return fmt.Errorf("%w: it ends too early: %w", ErrDamaged, err)
	}
	return nil
}

// readAll reads all blocks of a snapshot.
func (l *loader) readAll() error {
	magic := make([]byte, len(snapshotMagic))
	if _, err := io.ReadFull(l.r, magic); err != nil {
		return noSnapshot{}
	}
	if head := snapshotMagic[:6]; string(magic[:6]) == head && string(magic) > snapshotMagic {
		return fmt.Errorf("a snapshot of format %q: %w", magic[6:], codec.ErrNewer)
	}
	if string(magic) != snapshotMagic {
		return noSnapshot{}
	}

	// The checksum covers the magic, too.
	l.sum.Write(magic)

	for {
		more, err := l.readBlock()
		if err != nil || !more {
			return err
		}
	}
}

// readBlock reads one block with its records. more is false after the end.
func (l *loader) readBlock() (more bool, err error) {
	var head [9]byte
	if err := l.read(head[:1]); err != nil {
		return false, err
	}
	if head[0] == 0 {
		return false, l.checkEnd()
	}

	// Check the size and the checksum before using the body.
	if err := l.read(head[1:]); err != nil {
		return false, err
	}

	size := binary.LittleEndian.Uint32(head[1:])
	if size > maxBlock {
		return false, fmt.Errorf("%w: a block of %d bytes", ErrDamaged, size)
	}

	if l.body, err = readGrowing(l.r, l.body[:0], int(size)); err != nil {
		return false, fmt.Errorf("%w: it ends too early: %w", ErrDamaged, err)
	}
	if crc32.Checksum(l.body, castagnoli()) != binary.LittleEndian.Uint32(head[5:]) {
		return false, fmt.Errorf("%w: a block does not have its checksum", ErrDamaged)
	}

	l.sum.Write(head[:])
	l.sum.Write(l.body)
	return true, l.readRecords(head[0])
}

// readGrowing appends n bytes of r to b. Memory grows with the bytes that arrive, whatever n
// claims.
func readGrowing(r io.Reader, b []byte, n int) ([]byte, error) {
	for n > 0 {
		step := min(n, 1<<20)
		at := len(b)
		b = append(b, make([]byte, step)...)
		if _, err := io.ReadFull(r, b[at:]); err != nil {
			return b, err
		}
		n -= step
	}
	return b, nil
}

// checkEnd checks the checksum of the whole snapshot.
func (l *loader) checkEnd() error {
	want := l.sum.(interface{ Sum([]byte) []byte }).Sum(nil)
	got := make([]byte, len(want))
	if err := l.read(got); err != nil {
		return err
	}
	if !bytes.Equal(got, want) {
		return fmt.Errorf("%w: it does not have its checksum", ErrDamaged)
	}
	return nil
}

// readRecords decodes the records of a block into their table.
func (l *loader) readRecords(tag byte) error {
	r := &codec.Reader{Rest: l.body}
	for len(r.Rest) > 0 {
		rec := r.Take(r.Uvarint())
		if r.Err != nil {
			return fmt.Errorf("%w: %w", ErrDamaged, r.Err)
		}
		if err := l.s.restore(tag, rec); err != nil {
			return err
		}
	}
	return nil
}

// restore adds one record of a snapshot to the state.
func (s *State) restore(tag byte, b []byte) error {
	switch tag {
	case levelKind.tag:
		return s.restoreLevel(b)
	case metaKind.tag:
		return metaKind.decode(b, &s.meta)
	case configKind.tag:
		c := &Config{}
		err := configKind.decode(b, c)
		s.setConfig(c)
		return err
	}

	for _, row := range s.rows {
		if row.tag() == tag {
			return row.restore(&s.tables, b)
		}
	}
	// Ignoring an unknown kind would lose it: a newer version may have written it.
	return fmt.Errorf("records of kind %d: %w", tag, codec.ErrNewer)
}

// reindex builds the indexes from the records. It fails if records contradict each other.
func (s *State) reindex() error {
	for _, row := range s.rows {
		if err := row.index(s); err != nil {
			return err
		}
	}
	return nil
}
