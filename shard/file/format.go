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
	pageBytes   = 1 << 16 // bytes covered by one checksum
	maxSections = 1 << 16
)

// HeadBytes is the length of the head of a file: magic, version, kind. All versions have the same
// form of head, tail and table.
const HeadBytes = 16

// SectionID identifies a section of a file. Each kind of file has its own ids.
type SectionID uint32

// Section is a run of bytes of a file.
type Section struct {
	ID     SectionID
	Offset int64
	Length int64
}

// table is the list at the end of a file: its sections, and the checksums of all pages before it.
type table struct {
	sections []Section
	pages    []uint32 // CRC-32C of each page of pageBytes; the last page is shorter
	end      int64    // offset of the table
}

// checksum returns the CRC-32C of p.
func checksum(p []byte) uint32 { return crc32.Checksum(p, crc32.MakeTable(crc32.Castagnoli)) }

// appendTable appends the table and the tail of a file. t.end is the length of the file before
// them.
func appendTable(dst []byte, t *table) []byte {
	start := len(dst)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(t.sections)))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(t.pages)))

	for _, s := range t.sections {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(s.ID))
		dst = binary.LittleEndian.AppendUint64(dst, uint64(s.Offset))
		dst = binary.LittleEndian.AppendUint64(dst, uint64(s.Length))
	}
	for _, p := range t.pages {
		dst = binary.LittleEndian.AppendUint32(dst, p)
	}

	// The tail is at the very end, where a reader starts.
	sum := checksum(dst[start:])
	length := len(dst) - start

	dst = binary.LittleEndian.AppendUint64(dst, uint64(t.end))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(length))
	dst = binary.LittleEndian.AppendUint32(dst, sum)
	dst = binary.LittleEndian.AppendUint32(dst, 0) // unused
	return append(dst, magicTail...)
}

// readTable checks the head, without its version, and the tail and the table of a file.
func readTable(file []byte, kind Kind) (*table, error) {
	damaged := func(what string) error { return fmt.Errorf("%w: %s", ErrDamaged, what) }

	if len(file) < HeadBytes+tailBytes {
		return nil, damaged("too short")
	}
	if string(file[:8]) != magicHead {
		return nil, damaged("not a file of the index")
	}
	if k := binary.LittleEndian.Uint32(file[12:]); k != uint32(kind) {
		return nil, damaged("another kind of file than its name says")
	}

	// The tail says where the table is.
	tail := file[len(file)-tailBytes:]
	if !bytes.Equal(tail[24:], []byte(magicTail)) {
		return nil, damaged("cut short")
	}

	// end + length = room cannot overflow, because end <= room.
	end, length := binary.LittleEndian.Uint64(tail), binary.LittleEndian.Uint64(tail[8:])
	room := uint64(len(file) - tailBytes)
	if end < HeadBytes || end > room || length < 8 || end+length != room {
		return nil, damaged("table out of place")
	}

	body := file[end : end+length]
	if checksum(body) != binary.LittleEndian.Uint32(tail[16:]) {
		return nil, damaged("table checksum")
	}
	return parseTable(body, int64(end))
}

// parseTable reads a table with a correct checksum. It still checks the numbers, so that a bug of
// the writer cannot crash a reader.
func parseTable(body []byte, end int64) (*table, error) {
	sections, pages := binary.LittleEndian.Uint32(body), binary.LittleEndian.Uint32(body[4:])
	body = body[8:]

	// The length of the table must agree with the counts. So the slices below are not larger than it.
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

// Seal changes the head and the sections of a file and corrects the checksums. Tests use it to make
// files that a bug of the writer or another version could have written.
func Seal(data []byte, kind Kind, change func(data []byte)) error {
	t, err := readTable(data, kind)
	if err != nil {
		return err
	}
	change(data[:t.end])

	for p := range t.pages {
		t.pages[p] = checksum(data[p*pageBytes : min((p+1)*pageBytes, int(t.end))])
	}
	copy(data[t.end:], appendTable(nil, t))
	return nil
}
