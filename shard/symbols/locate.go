package symbols

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
)

// locateNames finds the offset of the name of each row in text t, and sorts the rows by it. It drops
// rows whose name is not in their line, such as generated names, and names that are only imported.
// It adds rows for the parts of Objective-C selectors, and sets the extent of each row.
func (w *tagging) locateNames(t Untagged) {
	byLine := func(a, b taggedRow) int { return cmp.Compare(a.line, b.line) }
	if !slices.IsSortedFunc(w.rows, byLine) {
		slices.SortStableFunc(w.rows, byLine)
	}

	found := w.rows[:0]
	lines := lineReader{text: t.Content, number: 1, end: -1}
	var parts []taggedRow // of selectors

	for _, r := range w.rows {
		if !lines.goTo(r.line) {
			break // the text ends before the line of the row
		}

		at := lines.findName(firstPart(t.Language, w.name(&r)))
		if at < 0 {
			at = w.findWithoutBlank(&r, &lines)
		}
		if at >= 0 && !isImport(t.Language, w.kinds[r.kind].name, t.Content[min(at+int(r.end-r.at), len(t.Content)):]) {
			r.offset = uint32(at)
			found = append(found, r)
			if isObjectiveC(t.Language) {
				parts = w.appendParts(parts, r, t.Content)
			}
		}
	}
	w.rows = append(found, parts...)

	byOffset := func(a, b taggedRow) int {
		if a.offset != b.offset {
			return cmp.Compare(a.offset, b.offset)
		}
		return bytes.Compare(w.name(&a), w.name(&b))
	}
	if !slices.IsSortedFunc(w.rows, byOffset) {
		slices.SortStableFunc(w.rows, byOffset)
	}

	w.measureExtents(t.Content)
}

func isObjectiveC(language string) bool { return strings.HasPrefix(language, "Objective-C") }

// firstPart returns the part of a name that is in the text as a whole. Ctags joins the parts of an
// Objective-C selector, which are separated by parameters in the text:
//
//   - (id)bagWith:(id)a and:(id)b { ... }    is bagWith:and:
func firstPart(language string, name []byte) []byte {
	if end := bytes.IndexByte(name, ':') + 1; end > 0 && isObjectiveC(language) {
		return name[:end]
	}
	return name
}

// appendParts appends a row for each part of an Objective-C selector, because people also search
// for the parts. The selector is in the text at the row's offset.
func (w *tagging) appendParts(rows []taggedRow, r taggedRow, text []byte) []taggedRow {
	at := int(r.offset)
	head := text[at:]
	if end := bytes.IndexAny(head, "{;"); end >= 0 {
		head = head[:end]
	}

	for name := w.name(&r); len(name) > 0; {
		part, rest, joined := bytes.Cut(name, []byte(":"))
		found := wordIn(head, name[:min(len(part)+1, len(name))])
		if !joined || found < 0 {
			break
		}

		if len(part) > 0 {
			p := r
			p.at, p.offset = r.end-uint32(len(name)), uint32(at+found)
			p.end = p.at + uint32(len(part))
			rows = append(rows, p)
		}
		at, head, name = at+found+len(part)+1, head[found+len(part)+1:], rest
	}
	return rows
}

// findWithoutBlank searches for the name of a C++ operator without the blank that ctags adds, such
// as `operator+`. If it finds that name, it makes it the name of the row and returns its offset; otherwise
// -1.
func (w *tagging) findWithoutBlank(r *taggedRow, lines *lineReader) int {
	sign, ok := bytes.CutPrefix(w.name(r), []byte("operator "))
	if !ok {
		return -1
	}

	at := lines.findName(slices.Concat([]byte("operator"), sign))
	if at >= 0 {
		r.at = uint32(len(w.bytes))
		w.bytes = append(append(w.bytes, "operator"...), sign...)
		r.end = uint32(len(w.bytes))
	}
	return at
}

// measureExtents sets the extent of each symbol with a known last line: the bytes from its name to
// the end of that line.
func (w *tagging) measureExtents(text []byte) {
	w.lineEnd = w.lineEnd[:0]
	at := 0 // where the next line begins

	for i := range w.rows {
		r := &w.rows[i]
		if r.last <= r.line {
			continue
		}

		for len(w.lineEnd) < int(r.last) && at <= len(text) {
			end := bytes.IndexByte(text[at:], '\n') + at
			if end < at {
				end = len(text)
			}
			w.lineEnd = append(w.lineEnd, uint32(end))
			at = end + 1
		}

		if int(r.last) <= len(w.lineEnd) {
			r.extent = w.lineEnd[r.last-1] - r.offset
		}
	}
}

// lineReader reads the lines of a text forward.
type lineReader struct {
	text   []byte
	number uint32 // number of the current line, from 1
	start  int    // offset of its first byte
	end    int    // offset of its end, without the newline; -1 while not known
}

// goTo moves to a line. It returns false if the text has fewer lines, or if it is past the line
// already.
func (l *lineReader) goTo(number uint32) bool {
	for l.number < number {
		i := bytes.IndexByte(l.text[l.start:], '\n')
		if i < 0 {
			return false
		}

		l.start += i + 1
		l.end = -1
		l.number++
	}
	return l.number == number
}

// findName returns the offset of a name in the line or in the linesBefore lines before it; -1 if it
// is in none of them.
func (l *lineReader) findName(name []byte) int {
	if l.end < 0 {
		if l.end = bytes.IndexByte(l.text[l.start:], '\n') + l.start; l.end < l.start {
			l.end = len(l.text)
		}
	}

	if at := wordIn(l.text[l.start:l.end], name); at >= 0 {
		return l.start + at
	}
	return wordBefore(l.text[:l.start], name)
}

// wordIn returns the position of a name in a line, preferably as a whole word; -1 if there is none.
func wordIn(line, name []byte) int {
	first := bytes.Index(line, name)

	// A name may first occur within a longer word, as `in` does in `int in`.
	for at := first; at >= 0; {
		end := at + len(name)
		if (at == 0 || IsBorder(line[at-1], line[at])) && (end == len(line) || IsBorder(line[end-1], line[end])) {
			return at
		}

		i := bytes.Index(line[at+1:], name)
		if i < 0 {
			break
		}
		at += 1 + i
	}
	return first
}

// linesBefore is how many lines before the reported line findName searches, too. Some parsers of
// ctags read ahead, and report the line that they have reached.
const linesBefore = 3

// wordBefore returns the position of a name as a whole word in the last lines of a text, searching
// backwards; -1 if there is none.
func wordBefore(text, name []byte) int {
	for range linesBefore {
		if len(text) == 0 {
			break
		}

		// The text ends with the newline of the line before.
		text = text[:len(text)-1]
		start := bytes.LastIndexByte(text, '\n') + 1
		line := text[start:]

		// Before the reported line, the name must be a whole word.
		if at := wordIn(line, name); at >= 0 && (at == 0 || IsBorder(line[at-1], line[at])) {
			if end := at + len(name); end == len(line) || IsBorder(line[end-1], line[end]) {
				return start + at
			}
		}
		text = text[:start]
	}
	return -1
}

// isImport reports whether a symbol is an import, which is defined elsewhere. after is the text
// after its name. In TypeScript, ctags calls both an import and a type definition an alias, but a
// definition goes on as `type T = ...` or `type T<V> = ...`. In Python it calls a name for an
// import a namespace.
func isImport(language, kind string, after []byte) bool {
	switch language {
	case "TypeScript", "TSX":
		after = bytes.TrimLeft(after, " \t")
		return kind == "alias" && !bytes.HasPrefix(after, []byte("=")) && !bytes.HasPrefix(after, []byte("<"))
	case "Go":
		return kind == "packageName"
	case "Python":
		return kind == "namespace" || kind == "unknown"
	}
	return false
}
