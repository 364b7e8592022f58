package file

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// The fixed parts of every file.
const (
	magicHead   = "SHOALIDX"
	magicTail   = "SHOALEND"
	tailBytes   = 32      // offset, length and checksum of the table, zero, magic
	pageBytes   = 1 << 16 // bytes under one checksum
	maxSections = 1 << 16
)

// HeadBytes is the length of the head of a file: magic, version, kind. The form of the head,
// the tail and the table is that of all versions.
const HeadBytes = 16

// SectionID names a section of a file. Each kind of file has its own.
type SectionID uint32

// Section is a run of bytes of a file.
type Section struct {
	ID     SectionID
	Offset int64
	Length int64
}

// table is the list of sections at the end of a file, and the checksums of all pages
// before it.
type table struct {
	sections []Section
	pages    []uint32 // CRC-32C of each page of pageBytes, the last one short
	end      int64    // where the table begins
}

// castagnoli returns the CRC-32C of some bytes.
func castagnoli(p []byte) uint32 { return crc32.Checksum(p, crc32.MakeTable(crc32.Castagnoli)) }

// appendTable appends the table and the tail of a file; t.end is how long it is before
// them.
func appendTable(dst []byte, t *table) []byte {
	start := len(dst)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(t.sections)))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(t.pages)))

	// The sections, then a checksum for each page of the file.
	for _, s := range t.sections {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(s.ID))
		dst = binary.LittleEndian.AppendUint64(dst, uint64(s.Offset))
		dst = binary.LittleEndian.AppendUint64(dst, uint64(s.Length))
	}
	for _, p := range t.pages {
		dst = binary.LittleEndian.AppendUint32(dst, p)
	}

	// The tail stands at the very end, where a reader looks for it first.
	sum := castagnoli(dst[start:])
	length := len(dst) - start

	dst = binary.LittleEndian.AppendUint64(dst, uint64(t.end))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(length))
	dst = binary.LittleEndian.AppendUint32(dst, sum)
	dst = binary.LittleEndian.AppendUint32(dst, 0) // unused
	return append(dst, magicTail...)
}

// readTable checks the head but for the version, the tail and the table of a file.
func readTable(file []byte, kind Kind) (*table, error) {
	damaged := func(what string) error { return fmt.Errorf("%w: %s", ErrDamaged, what) }

	// The head: what file it is.
	if len(file) < HeadBytes+tailBytes {
		return nil, damaged("too short")
	}
	if string(file[:8]) != magicHead {
		return nil, damaged("not a file of the index")
	}
	if k := binary.LittleEndian.Uint32(file[12:]); k != uint32(kind) {
		return nil, damaged("another kind of file than its name says")
	}

	// The tail: where the table is.
	tail := file[len(file)-tailBytes:]
	if !bytes.Equal(tail[24:], []byte(magicTail)) {
		return nil, damaged("cut short")
	}

	// end + length = room, with no overflow: end <= room.
	end, length := binary.LittleEndian.Uint64(tail), binary.LittleEndian.Uint64(tail[8:])
	room := uint64(len(file) - tailBytes)
	if end < HeadBytes || end > room || length < 8 || end+length != room {
		return nil, damaged("table out of place")
	}

	// The table itself.
	body := file[end : end+length]
	if castagnoli(body) != binary.LittleEndian.Uint32(tail[16:]) {
		return nil, damaged("table checksum")
	}
	return parseTable(body, int64(end))
}

// parseTable reads a table whose checksum is right. Its numbers are checked all the
// same: a bug of the writer must not make reading crash.
func parseTable(body []byte, end int64) (*table, error) {
	sections, pages := binary.LittleEndian.Uint32(body), binary.LittleEndian.Uint32(body[4:])
	body = body[8:]

	// The length follows from both counts, so neither can ask for more than there is.
	if sections > maxSections || int64(len(body)) != int64(sections)*24+int64(pages)*4 ||
		int64(pages) != (end+pageBytes-1)/pageBytes {
		return nil, fmt.Errorf("%w: table size", ErrDamaged)
	}

	t := &table{end: end, sections: make([]Section, sections), pages: make([]uint32, pages)}
	for i := range t.sections {
		row := body[i*24:]
		s := Section{
			ID:     SectionID(binary.LittleEndian.Uint64(row)),
			Offset: int64(binary.LittleEndian.Uint64(row[8:])),
			Length: int64(binary.LittleEndian.Uint64(row[16:])),
		}
		if s.Offset < HeadBytes || s.Length < 0 || s.Offset > end || s.Length > end-s.Offset {
			return nil, fmt.Errorf("%w: section %d out of place", ErrDamaged, s.ID)
		}

		t.sections[i] = s
	}

	sums := body[sections*24:]
	for i := range t.pages {
		t.pages[i] = binary.LittleEndian.Uint32(sums[i*4:])
	}
	return t, nil
}

// Seal makes the checksums right after a change, as a bug of the writer or another
// version would leave the file. It is for tests. change is given the head and the sections.
func Seal(data []byte, kind Kind, change func(data []byte)) error {
	t, err := readTable(data, kind)
	if err != nil {
		return err
	}
	change(data[:t.end])

	for p := range t.pages {
		t.pages[p] = castagnoli(data[p*pageBytes : min((p+1)*pageBytes, int(t.end))])
	}
	copy(data[t.end:], appendTable(nil, t))
	return nil
}
