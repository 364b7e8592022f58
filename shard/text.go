package shard

import (
	"bytes"
	"unicode/utf8"

	"github.com/shoalsearch/shoal/shard/file"
	"github.com/shoalsearch/shoal/shard/lz"
	"github.com/shoalsearch/shoal/shard/match"
	"github.com/shoalsearch/shoal/trigram"
)

// text is the content of one document. Only the units that were needed are decoded. Offsets in the
// buffer are offsets in the document.
//
//	unit          0        1        2        3
//	decoded     true              true     true
//	buf       |aaaaaaaa|a.......|cccccccc|dddd|     the overlap of unit 0 reaches into 1
type text struct {
	s             *shard
	row           int          // row of the document's first unit in the shard
	units         int          // units of the document
	size          int          // bytes of the document
	seg           file.Section // content section of the segment
	first         int          // row of the segment's first unit
	buf           []byte
	decoded       []bool      // by unit: it is decoded
	bytes         int64       // bytes decoded, of all documents
	index         int64       // compressed bytes read, of all documents
	loads         int         // documents with a decoded unit
	hasUnit       bool        // a unit of the current document is decoded
	found         knownLine   // the latest line, in the current document
	searchedBytes int64       // bytes searched for the ends of lines, of all documents; for tests
	cache         *blockCache // nil to bypass the cache
}

// knownLine caches the start and the end of the latest line, so that a line with many matches is
// searched once. There is no newline in [start, startTo) or in [endFrom, end-1). The zero value
// means that nothing is known.
type knownLine struct{ start, startTo, endFrom, end int }

// moveTo makes a document the current one. None of its units is decoded yet.
func (t *text) moveTo(s *shard, doc int) {
	t.s = s
	t.size = 0
	t.units = int(s.docUnit.At(doc+1) - s.docUnit.At(doc))
	t.hasUnit = false
	t.found = knownLine{}
	if t.units == 0 {
		t.buf = t.buf[:0]
		return
	}

	t.size = int(s.docSize.At(doc))
	t.row = int(s.docUnit.At(doc))
	seg := s.segmentOf(t.row)
	t.seg, t.first = s.content[seg], s.segStart[seg]

	// The decoder may write Slack bytes beyond the end.
	if cap(t.buf) < t.size+lz.Slack {
		t.buf = make([]byte, t.size, t.size+t.size/4+lz.Slack)
	}
	t.buf = t.buf[:t.size]

	if cap(t.decoded) < t.units {
		t.decoded = make([]bool, t.units+t.units/4)
	}
	t.decoded = t.decoded[:t.units]
	clear(t.decoded)
}

// readableEnd returns the end of the text that decoding unit u makes readable: the unit with its
// overlap.
func (t *text) readableEnd(u int) int {
	return min(u*trigram.UnitSize+trigram.UnitSize+trigram.Overlap, t.size)
}

// decodeUnits decodes the units from a to b, both included.
func (t *text) decodeUnits(a, b int) error {
	for u := a; u <= b && u < t.units; u++ {
		if t.decoded[u] {
			continue
		}
		if err := t.decodeUnit(u); err != nil {
			return err
		}
	}
	return nil
}

// decodeUnit decodes a unit, or copies it from the cache.
func (t *text) decodeUnit(u int) error {
	s, row := t.s, t.row+u
	start := u * trigram.UnitSize
	dst := t.buf[start:t.readableEnd(u)]

	if t.cache != nil && t.cache.get(s.f, row, dst) {
		t.markDecoded(u, len(dst), 0)
		return nil
	}

	// The block is [from, to) in the content of the segment.
	from := uint32(0)
	if row > t.first {
		from = s.blockEnd.At(row - 1)
	}
	to := s.blockEnd.At(row)
	if from > to || int64(to) > t.seg.Length {
		return s.f.Damaged("block %d out of place", row)
	}

	at := t.seg.Offset + int64(from)
	if err := s.f.Touch(at, int64(to-from)); err != nil {
		return err
	}

	// The decoder may write up to Slack bytes after dst. If the next unit is decoded already, save
	// its first bytes and put them back.
	var saved [lz.Slack]byte
	nextDecoded := u+1 < t.units && t.decoded[u+1]
	after := t.buf[start+len(dst) : min(start+len(dst)+lz.Slack, cap(t.buf))]
	if nextDecoded {
		copy(saved[:], after)
	}

	if err := lz.Decode(dst, s.f.Data()[at:at+int64(to-from)], s.dict); err != nil {
		return s.f.Damaged("block %d: %w", row, err)
	}

	if nextDecoded {
		copy(after, saved[:])
	}

	if t.cache != nil {
		t.cache.put(s.f, row, dst)
	}
	t.markDecoded(u, len(dst), int64(to-from))
	return nil
}

// markDecoded marks a unit as decoded, and counts its size bytes of text and the bytes of the index
// that were read for them.
func (t *text) markDecoded(u, size int, read int64) {
	t.decoded[u] = true
	t.bytes += int64(size)
	t.index += read
	if !t.hasUnit {
		t.hasUnit = true
		t.loads++
	}
}

// unitAt returns the unit that owns a byte.
func (t *text) unitAt(offset int) int {
	return min(offset/trigram.UnitSize, t.units-1)
}

// decodeRange decodes the units that contain [from, to).
func (t *text) decodeRange(from, to int) error {
	a, b := t.unitAt(from), t.unitAt(max(to-1, from))

	// The overlap of unit b-1 may be enough.
	if b > a && t.readableEnd(b-1) >= to {
		b--
	}
	return t.decodeUnits(a, b)
}

// lineStart returns where the line begins that contains the byte at offset.
func (t *text) lineStart(offset int) (int, error) {
	k := &t.found
	if k.start <= offset && offset <= k.startTo {
		return k.start, nil
	}

	// If the offset is after startTo, search back only to startTo.
	start, floor := 0, 0
	if offset > k.startTo {
		start, floor = k.start, k.startTo
	}

	for end := offset; end > floor; {
		u := t.unitAt(end - 1)
		if err := t.decodeUnits(u, u); err != nil {
			return 0, err
		}

		from := max(u*trigram.UnitSize, floor)
		t.searchedBytes += int64(end - from)
		if i := bytes.LastIndexByte(t.buf[from:end], '\n'); i >= 0 {
			start = from + i + 1
			break
		}
		end = from
	}
	k.start, k.startTo = start, offset
	return start, nil
}

// lineEnd returns where the line ends that contains the byte at offset: after its newline, or at
// the end of the text.
func (t *text) lineEnd(offset int) (int, error) {
	if k := &t.found; k.endFrom <= offset && offset < k.end {
		return k.end, nil
	}

	end, err := t.findLineEnd(offset)
	if err == nil {
		t.found.endFrom, t.found.end = offset, end
	}
	return end, err
}

// findLineEnd returns the offset after the next newline, or the size of the text if there is none.
// It decodes as few units as possible.
func (t *text) findLineEnd(offset int) (int, error) {
	for from := offset; from < t.size; {
		u := t.unitAt(from)

		// The newline may be in the overlap of a unit that is already decoded.
		if u > 0 && !t.decoded[u] && t.decoded[u-1] && from < t.readableEnd(u-1) {
			if i := bytes.IndexByte(t.buf[from:t.readableEnd(u-1)], '\n'); i >= 0 {
				return from + i + 1, nil
			}
		}

		if err := t.decodeUnits(u, u); err != nil {
			return 0, err
		}

		to := t.readableEnd(u)
		t.searchedBytes += int64(to - from)
		if i := bytes.IndexByte(t.buf[from:to], '\n'); i >= 0 {
			return from + i + 1, nil
		}
		from = to
	}
	return t.size, nil
}

// runeStart returns where the rune begins that contains an offset. The text must be decoded there.
func (t *text) runeStart(offset int) int { return runeStart(t.buf, offset) }

// lineNumber returns the number of the line, from 1, that contains the byte at offset.
func (t *text) lineNumber(offset int) (uint32, error) {
	if t.units == 0 {
		return 1, nil
	}

	u := t.unitAt(offset)
	if err := t.decodeUnits(u, u); err != nil {
		return 0, err
	}
	from := u * trigram.UnitSize
	return t.s.unitLine.At(t.row+u) + uint32(bytes.Count(t.buf[from:offset], newline)) + 1, nil
}

// decodedAround returns the range of decoded text around a span, up to sight bytes on each side. It
// decodes nothing, so that scoring needs no further reads.
func (t *text) decodedAround(sp match.Span, sight int) (low, high int) {
	u := t.unitAt(sp.Start)

	low = u * trigram.UnitSize
	if u > 0 && t.decoded[u-1] {
		low -= trigram.UnitSize
	}

	last := t.unitAt(sp.End)
	for last > u && !t.decoded[last] {
		last--
	}

	return max(low, sp.Start-sight), min(max(t.readableEnd(last), sp.End), sp.End+sight)
}

var newline = []byte{'\n'}

// runeStart returns where the rune begins that contains offset i; i itself if no rune contains it.
func runeStart(text []byte, i int) int {
	for s := i - 1; s >= max(0, i-utf8.UTFMax+1) && i < len(text); s-- {
		if utf8.RuneStart(text[s]) {
			if _, size := utf8.DecodeRune(text[s:]); s+size > i {
				return s
			}
			break
		}
	}
	return i
}
