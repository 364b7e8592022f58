package shard

import (
	"cmp"
	"slices"
	"sort"

	"github.com/shoalsearch/shoal/shard/match"
	"github.com/shoalsearch/shoal/shard/query"
	"github.com/shoalsearch/shoal/shard/symbols"
)

// symbolHits are the symbol names of a shard in which a pattern matches.
type symbolHits struct {
	names []symbols.Hit // sorted by number
	set   docSet        // documents that define one of the names; nil if the shard has no symbols
}

// matchSymbols finds the names in which a pattern matches and the documents that define them.
func (m *member) matchSymbols(p *pattern) (*symbolHits, error) {
	h := &symbolHits{}
	if m.sym == nil {
		return h, nil
	}

	h.set = newDocSet(m.sh.m.documents)
	var err error
	h.names, err = m.sym.sym.Match(symbols.Pattern{Matcher: p.m, Formula: p.formula, InLine: p.reach != reachDocument}, h.set.add)
	return h, err
}

// copySet returns a copy of the set, which the caller may change; an empty set if the shard has no
// symbols. documents is the number of documents of the shard.
func (h *symbolHits) copySet(documents int) docSet {
	if h.set == nil {
		return newDocSet(documents)
	}
	return append(docSet(nil), h.set...)
}

func (h *symbolHits) has(doc int) bool { return h.set != nil && h.set.has(doc) }

// findDefiners finds the documents that define a symbol whose name is a word of the query, and sets
// b.defs, b.defExact and b.defNames. A reader most likely wants these documents.
func (b *bound) findDefiners() error {
	if b.m.sym == nil {
		return nil
	}

	for _, p := range b.p.patterns {
		// Only a literal word can be the name of a symbol.
		if p.text.Field != query.Content || p.text.Regexp || !p.positive || !isName(p.text.Pattern) {
			continue
		}

		err := b.m.sym.sym.FindName(p.text.Pattern, p.text.Fold, func(number int, exact bool, doc int) {
			if b.defs == nil {
				b.defs, b.defExact, b.defNames = newDocSet(b.s.m.documents), newDocSet(b.s.m.documents), map[int]bool{}
			}

			b.defs.add(doc)
			if exact {
				b.defExact.add(doc)
			}

			// If case is ignored, a name in the case of the query ranks higher.
			b.defNames[number] = b.defNames[number] || exact && p.text.Fold
		})

		if err != nil {
			return err
		}
	}
	return nil
}

// isName reports whether a literal could be the name of a symbol.
func isName(s string) bool {
	for i := range len(s) {
		if !symbols.IsWord(s[i]) {
			return false
		}
	}
	return len(s) > 1
}

// maxScoredDefiners is for how many documents moveDefinersFirst reads the symbols. Reading those of
// more documents would take too long.
const maxScoredDefiners = 512

// moveDefinersFirst moves the documents that define a word of the query to the front of b.docs,
// those with the best definitions first: a search that stops early must not miss them.
func (b *bound) moveDefinersFirst() {
	if b.defs == nil {
		return
	}
	type definer struct {
		doc   uint32
		score float64
	}

	var definers []definer
	var recent symbols.Recent
	others, scored := make([]uint32, 0, len(b.docs)), 0
	for _, doc := range b.docs {
		if !b.defs.has(int(doc)) {
			others = append(others, doc)
			continue
		}

		d := definer{doc, scoreDefinition}
		if b.defExact.has(int(doc)) {
			d.score += scoreExact
			if scored++; scored <= maxScoredDefiners {
				d.score = b.bestDefinition(int(doc), &recent, nil)
			}
		}
		definers = append(definers, d)
	}

	slices.SortStableFunc(definers, func(x, y definer) int { return cmp.Compare(y.score, x.score) })
	b.docs = b.docs[:0]
	for _, d := range definers {
		b.docs = append(b.docs, d.doc)
	}
	b.docs = append(b.docs, others...)
}

// bestDefinition returns the score of the best symbol that a document defines within some ranges and whose
// name is a word of the query; 0 if it defines none. No ranges stand for the whole document.
func (b *bound) bestDefinition(doc int, recent *symbols.Recent, within []match.Span) float64 {
	if b.defs == nil || !b.defs.has(doc) {
		return 0
	}

	best := 0.0
	y := b.m.sym.sym

	// Ignore damage: the search reports it when it reads the symbols of a match.
	_ = y.Rows(doc, recent, func(r symbols.Row) bool {
		if exact, ok := b.defNames[r.Name]; ok && isWithin(r.Offset, within) {
			score := scoreDefinition + scoreKind[KindRank(y.Kind(r.Kind))]
			if exact {
				score += scoreExact
			}
			best = max(best, score)
		}
		return true
	})
	return best
}

// findSymbols appends the spans of the document at which the name of a symbol matches pattern pat.
func (e *evaluator) findSymbols(pat int, spans []match.Span) ([]match.Span, error) {
	h := e.b.syms[pat]
	if !h.has(e.doc) {
		return spans, nil
	}

	err := e.b.m.sym.sym.Rows(e.doc, &e.symbols, func(r symbols.Row) bool {
		i := sort.Search(len(h.names), func(i int) bool { return int(h.names[i].Name) >= r.Name })
		if i < len(h.names) && int(h.names[i].Name) == r.Name {
			hit := h.names[i]
			if end := r.Offset + int(hit.End); end <= e.t.size {
				spans = append(spans, match.Span{Start: r.Offset + int(hit.Start), End: end})
			}
		}
		return true
	})
	return spans, err
}

// symbolsOf returns for each span the symbol whose name contains the span, or a zero Symbol; nil if
// no span is in a name. Spans and rows are both sorted, so one pass merges them.
func (e *evaluator) symbolsOf(spans []match.Span) ([]Symbol, error) {
	if e.b.m.sym == nil || len(spans) == 0 {
		return nil, nil
	}
	y := e.b.m.sym.sym
	var out []Symbol
	var failed error
	i := 0

	err := y.RowsFrom(e.doc, spans[0].Start-symbols.MaxName, &e.symbols, func(r symbols.Row) bool {
		// i is the first span that this row or a later one can contain.
		for i < len(spans) && spans[i].Start < r.Offset {
			i++
		}
		if i == len(spans) {
			return false
		}

		if spans[i].Start > r.Offset+symbols.MaxName {
			return true
		}

		// Most names are one word. A span that begins after the end of the word at the offset
		// cannot be in the name, so the name need not be looked up.
		if spans[i].Start > r.Offset && !e.insideName(r.Offset, spans[i].Start) {
			return true
		}

		s, err := y.Symbol(r, &e.symbols)
		if err != nil {
			failed = err
			return false
		}

		for k := i; k < len(spans) && spans[k].Start < r.Offset+len(s.Name); k++ {
			if spans[k].End <= r.Offset+len(s.Name) {
				if out == nil {
					out = make([]Symbol, len(spans))
				}
				out[k] = s
			}
		}

		return true
	})
	if failed != nil {
		return nil, failed
	}
	return out, err
}

// definitionsAround returns for each range of a chunk the definition that encloses its line, or a
// zero Symbol; nil if no line has one.
func (e *evaluator) definitionsAround(c Chunk) (out []Symbol, err error) {
	if e.b.m.sym == nil {
		return nil, nil
	}

	lines := make([]symbols.Line, len(c.Ranges))

	for i, r := range c.Ranges {
		from, err := e.t.lineStart(int(r.Start.Offset))
		if err != nil {
			return nil, err
		}
		to, err := e.t.lineEnd(int(r.Start.Offset))
		if err != nil {
			return nil, err
		}
		if to > from && e.t.buf[to-1] == '\n' {
			to--
		}
		lines[i] = symbols.Line{Start: from, End: to}
	}

	err = e.b.m.sym.sym.Around(e.doc, lines, &e.symbols, func(i int, y Symbol) {
		if out == nil {
			out = make([]Symbol, len(lines))
		}
		out[i] = y
	})
	return out, err
}

// insideName reports whether the bytes from a symbol's offset up to at may all belong to its name:
// none of them ends a name. If they cannot be decoded, it returns true.
func (e *evaluator) insideName(from, at int) bool {
	if e.t.decodeRange(from, at) != nil {
		return true
	}
	for _, c := range e.t.buf[from:at] {
		if c == '\n' || c == ' ' || c == '(' || c == ';' {
			return false
		}
	}
	return true
}
