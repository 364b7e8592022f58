package symbols

import (
	"bytes"
	"context"
	"math"
	"slices"
)

// tagging is what one goroutine of a collector keeps from document to document. Symbols stay
// numbers and bytes all the way: a string for each name would cost more than all the rest.
type tagging struct {
	c     *collector
	group int // bytes of text that are tagged together
	read  func(doc int, dst []byte) (text []byte, path string, err error)
	kinds []taggedKind // met so far

	docs  []int      // documents being tagged
	texts []Untagged // of docs
	room  []byte     // their contents

	rows    []taggedRow    // symbols of one document
	parents []taggedParent // of rows
	bytes   []byte         // the names of both
	coded   []byte
	extents extentWriter
	lineEnd []uint32 // where the lines of the document end
}

// taggedRow is a symbol of the document.
type taggedRow struct {
	line, offset uint32
	last, extent uint32 // line, and bytes from offset to its end; 0 where it is that of the name, or not known
	at, end      uint32 // where its name is in bytes
	hash, name   uint32 // of the name; its number
	kind         uint32 // index in kinds, later the number
	parent       uint32 // index in parents and one, later the number and one; 0 for none
}

// taggedParent is a parent of symbols of the document.
type taggedParent struct {
	at, end uint32 // where its key (parentKey) is in bytes
	name    uint32 // how many bytes of the key are the name
	kind    string
	number  uint32 // and one; 0 until a row needs it
}

// taggedKind is a kind, with its number and one; 0 until a row needs it.
type taggedKind struct {
	name   string
	number uint32
}

// next tags the next documents. It reports false when there are no more.
func (w *tagging) next(ctx context.Context) (more bool, err error) {
	w.docs, w.texts, w.room = w.docs[:0], w.texts[:0], w.room[:0]

	// Contents lie side by side in room, which serves the next group, too.
	for more = true; more && len(w.room) < w.group; {
		var doc int
		if doc, more = w.c.take(ctx); !more {
			break
		}

		if err := w.open(doc); err != nil {
			return false, err
		}
	}

	w.clear()
	return more, w.c.tag(ctx, w.texts, w.add, w.done)
}

// open adds a document to those to be tagged.
func (w *tagging) open(doc int) error {
	key, ok := w.c.texts.Key(doc)
	if !ok {
		return nil
	}
	from := len(w.room)
	room, path, err := w.read(doc, w.room)
	if err != nil {
		return err
	}

	// If room has moved, the contents before stay valid where they were.
	w.room = room
	w.docs = append(w.docs, doc)
	w.texts = append(w.texts, Untagged{path, key.Language, room[from:len(room):len(room)], int(w.c.tries[doc])})
	w.c.tries[doc] = min(w.c.tries[doc], math.MaxUint8-1) + 1
	return nil
}

// clear makes room for the symbols of the next document.
func (w *tagging) clear() { w.rows, w.parents, w.bytes = w.rows[:0], w.parents[:0], w.bytes[:0] }

// done ends text i: it stores the symbols that add was given. After an error it drops them, so that
// the text's symbols stay unknown.
func (w *tagging) done(i int, err error) {
	if err == nil {
		w.locate(w.texts[i])
		if w.number() {
			doc := w.docs[i]
			w.c.docs[doc], w.c.extents[doc] = w.encode()
		}
	}
	w.clear()
}

// add receives a definition from the tagger.
func (w *tagging) add(d Definition) {
	// A page has a name a line, and the keys that names are sorted by end in zeros.
	if len(d.Name) == 0 || len(d.Name) > MaxName || bytes.IndexByte(d.Name, '\n') >= 0 || bytes.IndexByte(d.Name, 0) >= 0 {
		return
	}

	row := taggedRow{line: d.Line, last: d.End, kind: w.kind(d.Kind), at: uint32(len(w.bytes))}
	w.bytes = append(w.bytes, d.Name...)
	row.end = uint32(len(w.bytes))

	if len(d.ParentName) > 0 && len(d.ParentName) <= MaxName {
		row.parent = w.parent(d.ParentName, d.ParentKind)
	}
	w.rows = append(w.rows, row)
}

// kind returns the index of a kind. There are few, and each comes often.
func (w *tagging) kind(kind string) uint32 {
	// So long a word is no kind: what an outside program says is not believed.
	if len(kind) > maxKind {
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

// parent returns the index of a parent, and one. Most symbols have the parent of the one
// before.
func (w *tagging) parent(name []byte, kind string) uint32 {
	if len(kind) > maxKind {
		kind = ""
	}

	// An earlier equal parent is not looked for: parentNumberLocked gives both one number, by their key.
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

// number replaces names, kinds and parents by their numbers. It reports false if there is no room
// for more. Unused ones get no number.
func (w *tagging) number() bool {
	c := w.c

	for i := range w.rows {
		w.rows[i].hash = c.names.hash(w.name(&w.rows[i]))
	}

	// All at once under the lock, with the hashes ready.
	c.mu.Lock()
	defer c.mu.Unlock()

	// The rows' own numbers become those of the whole file.
	for i := range w.rows {
		r, ok := &w.rows[i], true
		if r.name, ok = c.names.number(w.name(r), r.hash); !ok {
			return false
		}

		if r.parent > 0 {
			if r.parent, ok = w.parentNumberLocked(&w.parents[r.parent-1]); !ok {
				return false
			}
		}

		r.kind = w.kindNumberLocked(r.kind)
	}
	return true
}

// parentNumberLocked returns the number of a parent, and one. c.mu is held.
func (w *tagging) parentNumberLocked(p *taggedParent) (uint32, bool) {
	if p.number == 0 {
		key := w.bytes[p.at:p.end]
		n, ok := w.c.parents.number(key, w.c.parents.hash(key))
		if !ok {
			return 0, false
		}
		p.number = n + 1
	}
	return p.number, true
}

// kindNumberLocked returns the number of a kind by its index. c.mu is held.
func (w *tagging) kindNumberLocked(place uint32) uint32 {
	k := &w.kinds[place]
	if k.number == 0 {
		k.number = w.c.kindNumberLocked(k.name) + 1
	}
	return k.number - 1
}

// encode returns the rows and their extents as the collector keeps them, without
// duplicates.
func (w *tagging) encode() (rows, extents []byte) {
	w.coded = w.coded[:0]
	w.extents.reset()
	before := Row{}

	// The rows are sorted by offset and name, so a symbol that was reported twice is next to
	// itself.
	for i, r := range w.rows {
		row := Row{int(r.offset), int(r.name), int(r.kind), int(r.parent)}
		if i > 0 && row == before {
			continue
		}

		w.coded = appendRow(w.coded, before, row)
		w.extents.add(int(r.extent))
		before = row
	}

	// The buffers serve the next document; what is kept has no room to spare.
	return append(make([]byte, 0, len(w.coded)), w.coded...), slices.Clone(w.extents.coded)
}
