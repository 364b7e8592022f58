package shard

import (
	"bytes"
	"cmp"
	"context"
	"slices"
)

// maxSymbolName is the longest name that is kept: more is not written by
// people, and a page of names must hold it.
const maxSymbolName = 1024

// maxKindName is the longest kind that is believed.
const maxKindName = 100

// tagging is what one goroutine of a symbolizer uses from document to
// document. Symbols stay rows of numbers and bytes on their way: a string for
// each word of each one would cost more than all else.
type tagging struct {
	y     *symbolizer
	group int // bytes of text that are tagged together
	text  text
	kinds []taggedKind

	docs  []int      // the documents under way
	texts []Untagged // of docs
	room  []byte     // their contents

	rows    []taggedRow    // symbols of the document
	parents []taggedParent // of rows
	bytes   []byte         // names of both
	coded   []byte
}

// taggedRow is a symbol of the document under way.
type taggedRow struct {
	line, offset uint32
	at, end      uint32 // of the name in bytes
	hash, name   uint32 // its number
	kind         uint32 // place in kinds, then its number
	parent       uint32 // place in parents and one, then its number and one; or 0
}

// taggedParent is a parent of the document under way.
type taggedParent struct {
	at, end uint32 // in bytes: as symbolizer.parents has it
	name    uint32 // bytes of the name in that
	kind    string
	number  uint32 // and one; 0 as long as no row needs it
}

// taggedKind is a kind, with its number and one; 0 as long as no row needs it.
type taggedKind struct {
	name   string
	number uint32
}

// next finds the symbols of the next documents; false when there are no more.
func (w *tagging) next(ctx context.Context) (more bool, err error) {
	w.docs, w.texts, w.room = w.docs[:0], w.texts[:0], w.room[:0]
	for more = true; more && len(w.room) < w.group; {
		var d int
		if d, more = w.y.take(ctx); !more {
			break
		}
		if err := w.read(d); err != nil {
			return false, err
		}
	}
	w.clear()
	return more, w.y.tag(ctx, w.texts, w.add, w.done)
}

// read adds a document to those under way.
func (w *tagging) read(d int) error {
	sh := w.y.m.sh
	key, ok := w.y.m.key(d)
	if !ok {
		return nil
	}
	w.text.open(sh, d)
	if err := w.text.load(0, w.text.units-1); err != nil {
		return err
	}
	from := len(w.room)
	w.room = append(w.room, w.text.buf...)
	path := string(sh.path(int(sh.occPath.at(int(sh.docOccur.at(d))))))
	w.docs = append(w.docs, d)
	// The contents of those before stay where they are when room moves.
	w.texts = append(w.texts, Untagged{path, key.path, w.room[from:len(w.room):len(w.room)]})
	return nil
}

func (w *tagging) clear() { w.rows, w.parents, w.bytes = w.rows[:0], w.parents[:0], w.bytes[:0] }

// done takes what add was given as the symbols of a text. An error costs just
// these.
func (w *tagging) done(i int, err error) {
	if err == nil {
		w.locate(w.texts[i])
		if w.number() {
			w.y.docs[w.docs[i]] = w.encode()
		}
	}
	w.clear()
}

// add takes a definition from the tagger.
func (w *tagging) add(d Definition) {
	if len(d.Name) == 0 || len(d.Name) > maxSymbolName || bytes.IndexByte(d.Name, '\n') >= 0 || bytes.IndexByte(d.Name, 0) >= 0 {
		return
	}
	row := taggedRow{line: d.Line, kind: w.kind(d.Kind), at: uint32(len(w.bytes))}
	w.bytes = append(w.bytes, d.Name...)
	row.end = uint32(len(w.bytes))
	if len(d.ParentName) > 0 && len(d.ParentName) <= maxSymbolName {
		row.parent = w.parent(d.ParentName, d.ParentKind)
	}
	w.rows = append(w.rows, row)
}

// kind gives the place of a kind. There are few, and each comes for long.
func (w *tagging) kind(kind string) uint32 {
	if len(kind) > maxKindName {
		kind = ""
	}
	for i := range w.kinds {
		if w.kinds[i].name == kind {
			return uint32(i)
		}
	}
	w.kinds = append(w.kinds, taggedKind{name: kind})
	return uint32(len(w.kinds) - 1)
}

// parent gives the place of a parent and one. Most symbols have that of the
// one before.
func (w *tagging) parent(name []byte, kind string) uint32 {
	if len(kind) > maxKindName {
		kind = ""
	}
	if n := len(w.parents); n > 0 {
		if p := w.parents[n-1]; p.kind == kind && bytes.Equal(w.bytes[p.at:p.at+p.name], name) {
			return uint32(n)
		}
	}
	p := taggedParent{at: uint32(len(w.bytes)), name: uint32(len(name)), kind: kind}
	w.bytes = parentKey(w.bytes, name, kind)
	p.end = uint32(len(w.bytes))
	w.parents = append(w.parents, p)
	return uint32(len(w.parents))
}

func (w *tagging) name(r *taggedRow) []byte { return w.bytes[r.at:r.end] }

// locate finds the names in their lines, drops those that do not stand there,
// as generated ones, and those that are only imported, and orders the rest by
// offset.
func (w *tagging) locate(t Untagged) {
	text := t.Content
	byLine := func(a, b taggedRow) int { return cmp.Compare(a.line, b.line) }
	if !slices.IsSortedFunc(w.rows, byLine) {
		slices.SortStableFunc(w.rows, byLine)
	}
	found := w.rows[:0]
	line, start, end := uint32(1), 0, -1 // end is that of the line, -1: not yet known
	for _, r := range w.rows {
		for line < r.line {
			i := bytes.IndexByte(text[start:], '\n')
			if i < 0 {
				break
			}
			start += i + 1
			end = -1
			line++
		}
		if line != r.line {
			break
		}
		if end < 0 {
			if end = bytes.IndexByte(text[start:], '\n') + start; end < start {
				end = len(text)
			}
		}
		at := wordIn(text[start:end], w.name(&r))
		if at >= 0 {
			at += start
		} else {
			at = wordBefore(text[:start], w.name(&r))
		}
		if at >= 0 && !imported(t.Language, w.kinds[r.kind].name, text[at+int(r.end-r.at):]) {
			r.offset = uint32(at)
			found = append(found, r)
		}
	}
	w.rows = found
	byOffset := func(a, b taggedRow) int {
		if a.offset != b.offset {
			return cmp.Compare(a.offset, b.offset)
		}
		return bytes.Compare(w.name(&a), w.name(&b))
	}
	if !slices.IsSortedFunc(w.rows, byOffset) {
		slices.SortStableFunc(w.rows, byOffset)
	}
}

// wordIn gives where a name stands in a line as a word of its own, or at all,
// or -1.
func wordIn(line, name []byte) int {
	first := bytes.Index(line, name)
	for at := first; at >= 0; {
		end := at + len(name)
		if (at == 0 || isBorder(line[at-1], line[at])) && (end == len(line) || isBorder(line[end-1], line[end])) {
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

// linesBefore is how far before its line a name is looked for: parsers that have
// read on tell the line where they are.
const linesBefore = 3

// wordBefore gives where a name stands as a word of its own in the last lines of
// a text, the last of all, or -1.
func wordBefore(text, name []byte) int {
	for range linesBefore {
		if len(text) == 0 {
			break
		}
		text = text[:len(text)-1]
		start := bytes.LastIndexByte(text, '\n') + 1
		line := text[start:]
		if at := wordIn(line, name); at >= 0 && (at == 0 || isBorder(line[at-1], line[at])) {
			if end := at + len(name); end == len(line) || isBorder(line[end-1], line[end]) {
				return start + at
			}
		}
		text = text[:start]
	}
	return -1
}

// imported tells of a name by its kind and what follows that it is defined
// elsewhere. Those of types in TypeScript are aliases as are types of their own,
// which go on as `type T = ...` or `type T<V> = ...`; a name that Python gives
// what it imports is a namespace.
func imported(language, kind string, after []byte) bool {
	switch language {
	case "TypeScript", "TSX":
		after = bytes.TrimLeft(after, " \t")
		return kind == "alias" && !bytes.HasPrefix(after, []byte("=")) && !bytes.HasPrefix(after, []byte("<"))
	case "Python":
		return kind == "namespace" || kind == "unknown"
	}
	return false
}

// number gives names, kinds and parents their numbers; false where there is no
// room for more of them. What no row is left of gets none.
func (w *tagging) number() bool {
	y := w.y
	for i := range w.rows {
		w.rows[i].hash = y.names.hash(w.name(&w.rows[i]))
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	for i := range w.rows {
		r, ok := &w.rows[i], true
		if r.name, ok = y.names.number(w.name(r), r.hash); !ok {
			return false
		}
		if r.parent > 0 {
			if r.parent, ok = w.parentNumber(&w.parents[r.parent-1]); !ok {
				return false
			}
		}
		r.kind = w.kindNumber(r.kind)
	}
	return true
}

// parentNumber gives the number of a parent and one. The lock is held.
func (w *tagging) parentNumber(p *taggedParent) (uint32, bool) {
	if p.number == 0 {
		key := w.bytes[p.at:p.end]
		n, ok := w.y.parents.number(key, w.y.parents.hash(key))
		if !ok {
			return 0, false
		}
		p.number = n + 1
	}
	return p.number, true
}

// kindNumber gives the number of a kind by its place. The lock is held.
func (w *tagging) kindNumber(place uint32) uint32 {
	k := &w.kinds[place]
	if k.number == 0 {
		k.number = w.y.kindNumber(k.name) + 1
	}
	return k.number - 1
}

// encode gives the rows as the symbolizer keeps them, each once.
func (w *tagging) encode() []byte {
	w.coded = w.coded[:0]
	last := symbolRow{}
	for i, r := range w.rows {
		row := symbolRow{int(r.offset), int(r.name), int(r.kind), int(r.parent)}
		if i > 0 && row == last {
			continue
		}
		w.coded = appendRow(w.coded, last, row)
		last = row
	}
	return append(make([]byte, 0, len(w.coded)), w.coded...)
}
