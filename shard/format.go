package shard

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strings"
)

// The fixed parts of every file of this package: shards and their sides.
const (
	magicHead   = "SHOALIDX"
	magicTail   = "SHOALEND"
	headBytes   = 16      // magic, version, kind of file
	tailBytes   = 32      // offset, length and checksum of the table, zero, magic
	pageBytes   = 1 << 16 // bytes under one checksum
	maxSections = 1 << 16
)

// fileKind tells the three kinds of files apart.
type fileKind uint32

const (
	kindShard fileKind = 1 + iota
	kindDead
	kindSymbols
)

// version is that of the form which this program writes and reads.
func (k fileKind) version() uint32 {
	return [...]uint32{0, 2, 2, 3}[k]
}

// extension is how names of the kind end.
func (k fileKind) extension() string {
	return [...]string{"", ".shard", ".dead", ".symbols"}[k]
}

// kindOf gives the kind of a file by its name, which must be 64 lower-case
// hex digits and a known extension: nothing else is ever opened.
func kindOf(name string) (fileKind, bool) {
	for k := kindShard; k <= kindSymbols; k++ {
		stem, ok := strings.CutSuffix(name, k.extension())
		if ok && len(stem) == 64 && strings.Trim(stem, "0123456789abcdef") == "" {
			return k, true
		}
	}
	return 0, false
}

// sectionID names a section in the table of a file.
type sectionID uint32

// The sections of a file. Content and text postings have a section for each
// segment of 65,536 units, numbered from secBlocks and secText.
const (
	secMeta     sectionID = 1 + iota // repositories, revisions, languages, counts
	secBlockEnd                      // column32: end of each unit's block in the content of its segment
	secUnitLine                      // column32: newlines before each unit in its document
	secDocUnit                       // column32: first unit of each document, and one more
	secDocSize                       // column32: bytes of each document
	secDocSkip                       // a byte for each document: why it has no content
	secDocOccur                      // column32: first occurrence of each document, and one more
	secDocID                         // blob id of each document, in binary
	secOccPath                       // column32: path of each occurrence
	secOccRepo                       // column16: repository, by its place in secMeta
	secOccMask                       // column32: revisions, by place in secMasks
	secOccLang                       // column16: language, by its place in secMeta
	secOccKind                       // a byte for each occurrence: category
	secMasks                         // column64: the distinct revision masks
	secPathEnd                       // column32: end of each path in secPaths
	secPaths                         // the distinct paths, one behind the other
	secNamePost                      // postings of the paths
	secDict                          // dictionary that the blocks were compressed with
	secText     sectionID = 1 << 12
	secBlocks   sectionID = 1 << 13
)

// section is a run of bytes of a file.
type section struct {
	id     sectionID
	offset int64
	length int64
}

// table is the list of sections at the end of a file, with the checksums of
// all pages before it.
type table struct {
	sections []section
	pages    []uint32 // CRC-32C of each page of pageBytes, the last one short
	end      int64    // where the table begins
}

func castagnoli(p []byte) uint32 { return crc32.Checksum(p, crc32.MakeTable(crc32.Castagnoli)) }

// appendTable appends the table and the tail of a file of which everything
// before is t.end bytes long.
func appendTable(dst []byte, t *table) []byte {
	start := len(dst)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(t.sections)))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(t.pages)))
	for _, s := range t.sections {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(s.id))
		dst = binary.LittleEndian.AppendUint64(dst, uint64(s.offset))
		dst = binary.LittleEndian.AppendUint64(dst, uint64(s.length))
	}
	for _, p := range t.pages {
		dst = binary.LittleEndian.AppendUint32(dst, p)
	}
	sum := castagnoli(dst[start:])
	length := len(dst) - start
	dst = binary.LittleEndian.AppendUint64(dst, uint64(t.end))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(length))
	dst = binary.LittleEndian.AppendUint32(dst, sum)
	dst = binary.LittleEndian.AppendUint32(dst, 0)
	return append(dst, magicTail...)
}

// readTable checks the head, the tail and the table of a file.
func readTable(file []byte, kind fileKind) (*table, error) {
	damaged := func(what string) error { return fmt.Errorf("%w: %s", ErrDamaged, what) }
	if len(file) < headBytes+tailBytes {
		return nil, damaged("too short")
	}
	if string(file[:8]) != magicHead {
		return nil, damaged("not a file of the index")
	}
	if v := binary.LittleEndian.Uint32(file[8:]); v != kind.version() {
		return nil, damaged(fmt.Sprintf("version %d, this program reads %d", v, kind.version()))
	}
	if k := binary.LittleEndian.Uint32(file[12:]); k != uint32(kind) {
		return nil, damaged("another kind of file than its name says")
	}
	tail := file[len(file)-tailBytes:]
	if !bytes.Equal(tail[24:], []byte(magicTail)) {
		return nil, damaged("cut short")
	}
	end, length := binary.LittleEndian.Uint64(tail), binary.LittleEndian.Uint64(tail[8:])
	room := uint64(len(file) - tailBytes)
	if end < headBytes || end > room || length < 8 || end+length != room {
		return nil, damaged("table out of place")
	}
	body := file[end : end+length]
	if castagnoli(body) != binary.LittleEndian.Uint32(tail[16:]) {
		return nil, damaged("table checksum")
	}
	return parseTable(body, int64(end))
}

// parseTable reads a table whose checksum is right; its numbers are checked
// all the same.
func parseTable(body []byte, end int64) (*table, error) {
	sections, pages := binary.LittleEndian.Uint32(body), binary.LittleEndian.Uint32(body[4:])
	body = body[8:]
	if sections > maxSections || int64(len(body)) != int64(sections)*24+int64(pages)*4 ||
		int64(pages) != (end+pageBytes-1)/pageBytes {
		return nil, fmt.Errorf("%w: table size", ErrDamaged)
	}
	t := &table{end: end, sections: make([]section, sections), pages: make([]uint32, pages)}
	for i := range t.sections {
		row := body[i*24:]
		s := section{
			id:     sectionID(binary.LittleEndian.Uint64(row)),
			offset: int64(binary.LittleEndian.Uint64(row[8:])),
			length: int64(binary.LittleEndian.Uint64(row[16:])),
		}
		if s.offset < headBytes || s.length < 0 || s.offset > end || s.length > end-s.offset {
			return nil, fmt.Errorf("%w: section %d out of place", ErrDamaged, s.id)
		}
		t.sections[i] = s
	}
	sums := body[sections*24:]
	for i := range t.pages {
		t.pages[i] = binary.LittleEndian.Uint32(sums[i*4:])
	}
	return t, nil
}
