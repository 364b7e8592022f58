package shard

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/shoalsearch/shoal/shard/lz"
	"github.com/shoalsearch/shoal/trigram"
)

// Symbolize writes the symbols side of a part and gives the part with it. The
// file is not in the set yet: the caller says what keeps it, then calls Add. An error of tag for one file costs the symbols of
// that file; only the end of ctx ends the whole. Documents whose symbols are
// known from known parts are copied instead of read.
func (s *Set) Symbolize(ctx context.Context, p Part, known []Part, tag Tagger) (Part, error) {
	p.Symbols = ""
	v, missing := s.Acquire([]Part{p})
	defer v.Release()
	if len(missing) > 0 {
		return p, fmt.Errorf("symbolize: shard %s is not here", p.Shard)
	}
	m := v.members[0]
	if err := m.ready(); err != nil {
		s.quarantine(m.bad.name, err)
		return p, fmt.Errorf("symbolize: %w", err)
	}
	old, _ := s.Acquire(known)
	defer old.Release()
	y := &symbolizer{m: m, tag: tag, known: knownSymbols(old), names: map[string]uint32{}, kinds: map[string]uint32{}, parents: map[parent]uint32{}}
	if err := y.run(ctx); err != nil {
		return p, fmt.Errorf("symbolize: %w", err)
	}
	name, err := y.write(s.dir)
	if err != nil {
		return p, fmt.Errorf("symbolize: %w", err)
	}
	p.Symbols = name
	return p, nil
}

// knownDoc is a document whose symbols an older file has.
type knownDoc struct {
	y   *symbolsFile
	doc int
}

// knownSymbols lists the documents of parts with symbols, by blob id and
// language, on which the symbols depend.
func knownSymbols(v *View) map[place]knownDoc {
	out := map[place]knownDoc{}
	for _, m := range v.members {
		if m.ready() != nil || m.sym == nil {
			continue
		}
		for d := range m.sh.m.documents {
			o := int(m.sh.docOccur.at(d))
			out[place{m.sh.m.languages[m.sh.occLang.at(o)], m.sh.oid(d)}] = knownDoc{m.sym.sym, d}
		}
	}
	return out
}

// symbolizer collects the symbols of a shard.
type symbolizer struct {
	m     *member
	tag   Tagger
	known map[place]knownDoc

	mu      sync.Mutex // guards the fields below
	names   map[string]uint32
	list    []string // by number
	kinds   map[string]uint32
	kindsBy []string
	parents map[parent]uint32
	parBy   []parent
	docs    [][]tempSymbol // by document
	failed  int
	next    int
	err     error
}

// tempSymbol is a symbol whose name has the number of its first appearance.
type tempSymbol struct {
	offset, name, kind, parent uint32
}

// found is a symbol in words, on its way to numbers.
type found struct {
	offset int
	Symbol
}

// run tags the documents, as many at a time as there are cores.
func (y *symbolizer) run(ctx context.Context) error {
	y.docs = make([][]tempSymbol, y.m.sh.m.documents)
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) + 1 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			var t text
			for d, ok := y.take(ctx); ok; d, ok = y.take(ctx) {
				var symbols []found
				err := guarded(func() (err error) {
					symbols, err = y.document(ctx, &t, d)
					return err
				})
				y.put(d, symbols, err)
			}
		}()
	}
	wg.Wait()
	if y.err != nil {
		return y.err
	}
	return y.number(ctx)
}

// take gives the next document.
func (y *symbolizer) take(ctx context.Context) (int, bool) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.err == nil {
		y.err = ctx.Err()
	}
	d := y.next
	y.next++
	return d, y.err == nil && d < len(y.docs)
}

// put notes the symbols of a document. Damage ends the whole; any other error
// was the tagger's.
func (y *symbolizer) put(d int, symbols []found, err error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if errors.Is(err, ErrDamaged) {
		y.err = err
		return
	}
	if err != nil {
		y.failed++
	}
	rows := make([]tempSymbol, 0, len(symbols))
	for _, f := range symbols {
		row := tempSymbol{offset: uint32(f.offset), name: y.nameNumber(f.Name)}
		kind, ok := y.kinds[f.Kind]
		if !ok {
			kind = uint32(len(y.kindsBy))
			y.kinds[f.Kind] = kind
			y.kindsBy = append(y.kindsBy, f.Kind)
		}
		row.kind = kind
		if f.ParentName != "" {
			p := parent{f.ParentName, f.ParentKind}
			n, ok := y.parents[p]
			if !ok {
				n = uint32(len(y.parBy))
				y.parents[p] = n
				y.parBy = append(y.parBy, p)
			}
			row.parent = n + 1
		}
		rows = append(rows, row)
	}
	y.docs[d] = rows
}

func (y *symbolizer) nameNumber(name string) uint32 {
	n, ok := y.names[name]
	if !ok {
		n = uint32(len(y.list))
		name = strings.Clone(name)
		y.names[name] = n
		y.list = append(y.list, name)
	}
	return n
}

// maxSymbolName is the longest name that is kept: more is not written by
// people, and a page of names must hold it.
const maxSymbolName = 1024

// document gives the symbols of a document in the order of offsets.
func (y *symbolizer) document(ctx context.Context, t *text, d int) ([]found, error) {
	sh := y.m.sh
	o := int(sh.docOccur.at(d))
	t.open(sh, d)
	if t.units == 0 || o == int(sh.docOccur.at(d+1)) {
		return nil, nil
	}
	lang := sh.m.languages[sh.occLang.at(o)]
	if k, ok := y.known[place{lang, sh.oid(d)}]; ok {
		return k.symbols()
	}
	if err := t.load(0, t.units-1); err != nil {
		return nil, err
	}
	definitions, err := y.tag(ctx, string(sh.path(int(sh.occPath.at(o)))), lang, t.buf)
	if err != nil {
		return nil, err
	}
	return locate(t.buf, definitions), nil
}

// symbols reads the symbols of a known document.
func (k knownDoc) symbols() ([]found, error) {
	var out []found
	var failed error
	var buf [symbolPage]byte
	err := k.y.rows(k.doc, func(r symbolRow) bool {
		s, err := k.y.symbol(r, buf[:])
		failed = err
		out = append(out, found{r.offset, s})
		return err == nil
	})
	return out, errors.Join(failed, err)
}

// locate finds the names in their lines. A name that does not stand in its
// line, as a generated one, points at the beginning of the line's words.
func locate(text []byte, definitions []Definition) []found {
	slices.SortStableFunc(definitions, func(a, b Definition) int { return cmp.Compare(a.Line, b.Line) })
	var out []found
	line, start := uint32(1), 0
	for _, d := range definitions {
		if d.Name == "" || len(d.Name) > maxSymbolName || strings.ContainsAny(d.Name, "\n\x00") {
			continue
		}
		for line < d.Line {
			i := bytes.IndexByte(text[start:], '\n')
			if i < 0 {
				break
			}
			start += i + 1
			line++
		}
		if line != d.Line {
			break
		}
		end := len(text)
		if i := bytes.IndexByte(text[start:], '\n'); i >= 0 {
			end = start + i
		}
		if at := wordIn(text[start:end], d.Name); at >= 0 {
			out = append(out, found{start + at, d.Symbol})
		}
	}
	slices.SortStableFunc(out, func(a, b found) int { return cmp.Compare(a.offset, b.offset) })
	return slices.CompactFunc(out, func(a, b found) bool { return a == b })
}

// wordIn gives where a name stands in a line as a word of its own, or at all,
// or -1.
func wordIn(line []byte, name string) int {
	first := bytes.Index(line, []byte(name))
	for at := first; at >= 0; {
		end := at + len(name)
		if (at == 0 || isBorder(line[at-1], line[at])) && (end == len(line) || isBorder(line[end-1], line[end])) {
			return at
		}
		i := bytes.Index(line[at+1:], []byte(name))
		if i < 0 {
			break
		}
		at += 1 + i
	}
	return first
}

// number sorts the names, kinds and parents, so that the order in which
// documents were tagged leaves no trace in the file.
func (y *symbolizer) number(ctx context.Context) error {
	names := sortedNames(y.list)
	kinds := sortedNumbers(y.kindsBy, func(a, b string) int { return cmp.Compare(a, b) })
	parents := sortedNumbers(y.parBy, func(a, b parent) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.kind, b.kind))
	})
	for _, rows := range y.docs {
		for i := range rows {
			r := &rows[i]
			r.name, r.kind = names[r.name], kinds[r.kind]
			if r.parent > 0 {
				r.parent = parents[r.parent-1] + 1
			}
		}
	}
	return ctx.Err()
}

// sortedNumbers sorts a list and gives for each old place the new one.
func sortedNumbers[T any](list []T, compare func(a, b T) int) []uint32 {
	order := make([]uint32, len(list))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(a, b uint32) int { return compare(list[a], list[b]) })
	return reorder(list, order)
}

// reorder puts a list into an order of its places, and gives for each old place
// the new one.
func reorder[T any](list []T, order []uint32) []uint32 {
	sorted, back := make([]T, len(list)), make([]uint32, len(list))
	for i, o := range order {
		sorted[i], back[o] = list[o], uint32(i)
	}
	copy(list, sorted)
	return back
}

// sortedNames is sortedNumbers for names, without regard to case first. There
// are millions of them: what is compared is made once, and most comparisons
// look at eight bytes in a row of memory.
func sortedNames(list []string) []uint32 {
	type key struct {
		head uint64 // first bytes of low
		at   uint32
	}
	low, keys := make([]string, len(list)), make([]key, len(list))
	for i, name := range list {
		low[i] = strings.ToLower(name)
		var head [8]byte
		copy(head[:], low[i])
		keys[i] = key{binary.BigEndian.Uint64(head[:]), uint32(i)}
	}
	slices.SortFunc(keys, func(a, b key) int {
		if a.head != b.head {
			return cmp.Compare(a.head, b.head)
		}
		return cmp.Or(cmp.Compare(low[a.at], low[b.at]), cmp.Compare(list[a.at], list[b.at]))
	})
	order := make([]uint32, len(list))
	for i, k := range keys {
		order[i] = k.at
	}
	return reorder(list, order)
}

// write writes the file.
func (y *symbolizer) write(dir string) (string, error) {
	w, err := newFileWriter(dir, kindSymbols)
	if err != nil {
		return "", err
	}
	if err := y.pages(w); err != nil {
		w.abort()
		return "", err
	}
	var e encoder
	e.text(y.m.sh.f.name)
	e.uint(uint64(len(y.docs)))
	e.uint(uint64(len(y.list)))
	e.uint(uint64(len(y.kindsBy)))
	for _, k := range y.kindsBy {
		e.text(k)
	}
	e.uint(uint64(len(y.parBy)))
	for _, p := range y.parBy {
		e.text(p.name)
		e.text(p.kind)
	}
	w.add(secSymMeta, e.b)
	var docs, ends []byte
	for _, rows := range y.docs {
		var last tempSymbol
		for _, r := range rows {
			gap := uint64(r.offset-last.offset) << 1
			if r.kind != last.kind || r.parent != last.parent {
				gap |= 1
			}
			docs = binary.AppendUvarint(docs, gap)
			docs = binary.AppendVarint(docs, int64(r.name)-int64(last.name))
			if gap&1 != 0 {
				docs = binary.AppendUvarint(docs, uint64(r.kind))
				docs = binary.AppendUvarint(docs, uint64(r.parent))
			}
			last = r
		}
		ends = binary.LittleEndian.AppendUint32(ends, uint32(len(docs)))
	}
	w.add(secSymDocs, docs)
	w.add(secSymDocEnd, ends)
	name, _, err := w.finish()
	return name, err
}

// pages writes the names in pages, with postings and references.
func (y *symbolizer) pages(w *fileWriter) error {
	le := binary.LittleEndian
	refs := y.references()
	segment := sectionID(0)
	post := trigram.New(trigram.Options{Emit: func(parts ...[]byte) error {
		w.add(secText+segment, parts...)
		segment++
		return w.err
	}})
	defer post.Close()
	enc := lz.NewEncoder(nil, true)
	var blocks, blockEnd, size, number, first, firstEnd, ref, refEnd, page, coded []byte
	start := 0
	flush := func(next int) error {
		if len(page) == 0 {
			return nil
		}
		if _, _, err := post.Add(page, 0); err != nil {
			return err
		}
		coded = coded[:0]
		for i := start; i < next; i++ {
			before := ""
			if i > start {
				before = y.list[i-1]
			}
			coded = front(coded, before, y.list[i])
		}
		blocks = enc.Encode(blocks, coded)
		blockEnd = le.AppendUint32(blockEnd, uint32(len(blocks)))
		size = le.AppendUint32(size, uint32(len(coded)))
		number = le.AppendUint32(number, uint32(start))
		first = append(first, y.list[start]...)
		firstEnd = le.AppendUint32(firstEnd, uint32(len(first)))
		last := 0
		for _, r := range refs[start:next] {
			ref = appendReference(ref, last, r)
			last = r.first
		}
		refEnd = le.AppendUint32(refEnd, uint32(len(ref)))
		page, start = page[:0], next
		return nil
	}
	for i, name := range y.list {
		if len(page)+len(name)+1 > symbolPage {
			if err := flush(i); err != nil {
				return err
			}
		}
		page = append(append(page, name...), '\n')
	}
	if err := flush(len(y.list)); err != nil {
		return err
	}
	if err := post.Finish(); err != nil {
		return err
	}
	for _, c := range []struct {
		id sectionID
		b  []byte
	}{
		{secSymPages, blocks}, {secSymPageEnd, blockEnd}, {secSymPageSize, size}, {secSymPageName, number}, {secSymFirst, first},
		{secSymFirstEnd, firstEnd}, {secSymRefs, ref}, {secSymRefEnd, refEnd},
	} {
		w.add(c.id, c.b)
	}
	return w.err
}

// references gives for each name the documents that define it.
func (y *symbolizer) references() []reference {
	refs := make([]reference, len(y.list))
	last := make([]int32, len(y.list)) // document of the name, and one
	for d, rows := range y.docs {
		for _, r := range rows {
			switch gap := int32(d) + 1 - last[r.name]; {
			case last[r.name] == 0:
				refs[r.name].first = d
			case gap > 0:
				refs[r.name].rest = binary.AppendUvarint(refs[r.name].rest, uint64(gap-1))
			}
			last[r.name] = int32(d) + 1
		}
	}
	return refs
}
