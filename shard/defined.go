package shard

import (
	"cmp"
	"slices"
	"sort"

	"github.com/shoalsearch/shoal/shard/match"
	"github.com/shoalsearch/shoal/shard/query"
)

// definitions finds, for the words of a query, the documents that define a
// symbol of that name. They are what a reader most likely looks for, so they
// are decided before all others and an early stop cannot miss them.
func (b *bound) definitions() error {
	if b.m.sym == nil {
		return nil
	}
	for _, p := range b.p.patterns {
		if p.text.Field != query.Content || p.text.Regexp || !p.positive || !isName(p.text.Pattern) {
			continue
		}
		err := b.m.sym.sym.defining(p.text.Pattern, p.text.Fold, func(number int, exact bool, doc int) {
			if b.defs == nil {
				b.defs, b.defExact, b.defNames = newDocSet(b.s.m.documents), newDocSet(b.s.m.documents), map[int]bool{}
			}
			b.defs.add(doc)
			if exact {
				b.defExact.add(doc)
			}
			b.defNames[number] = b.defNames[number] || exact && p.text.Fold
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// isName tells whether a literal could be the name of a symbol.
func isName(s string) bool {
	for i := range len(s) {
		if !isWord(s[i]) {
			return false
		}
	}
	return len(s) > 1
}

// definersJudged is how many documents that define a name in the case of the
// query are ordered by what they define.
const definersJudged = 512

// definitionsFirst moves the defining documents to the front, those first that
// define the name in the case of the query, and of these the ones that define
// what is looked for most: of a common name there may be more than a search
// that stops early decides.
func (b *bound) definitionsFirst() {
	if b.defs == nil {
		return
	}
	type definer struct {
		doc   uint32
		worth float64
	}
	var definers []definer
	var held heldSymbols
	others, judged := make([]uint32, 0, len(b.docs)), 0
	for _, doc := range b.docs {
		if !b.defs.has(int(doc)) {
			others = append(others, doc)
			continue
		}
		d := definer{doc, scoreDefinition}
		if b.defExact.has(int(doc)) {
			d.worth += scoreExact
			if judged++; judged <= definersJudged {
				d.worth = b.definition(int(doc), &held)
			}
		}
		definers = append(definers, d)
	}
	slices.SortStableFunc(definers, func(x, y definer) int { return cmp.Compare(y.worth, x.worth) })
	b.docs = b.docs[:0]
	for _, d := range definers {
		b.docs = append(b.docs, d.doc)
	}
	b.docs = append(b.docs, others...)
}

// definition is the score of the best symbol that a document defines under a
// word of the query; 0 when it defines none.
func (b *bound) definition(doc int, held *heldSymbols) float64 {
	if b.defs == nil || !b.defs.has(doc) {
		return 0
	}
	best := 0.0
	y := b.m.sym.sym
	// Damage shows elsewhere: here it only costs a better rank.
	_ = y.rows(doc, held, func(r symbolRow) bool {
		if exact, ok := b.defNames[r.name]; ok {
			score := scoreDefinition + scoreKind[KindRank(y.kinds[r.kind])]
			if exact {
				score += scoreExact
			}
			best = max(best, score)
		}
		return true
	})
	return best
}

// findSymbols gives the places in the document where a pattern of opSymbol
// matches.
func (e *evaluator) findSymbols(pat int, spans []match.Span) ([]match.Span, error) {
	h := e.b.syms[pat]
	if !h.has(e.doc) {
		return spans, nil
	}
	err := e.b.m.sym.sym.rows(e.doc, &e.symbols, func(r symbolRow) bool {
		i := sort.Search(len(h.names), func(i int) bool { return int(h.names[i].name) >= r.name })
		if i < len(h.names) && int(h.names[i].name) == r.name {
			hit := h.names[i]
			if end := r.offset + int(hit.end); end <= e.t.size {
				spans = append(spans, match.Span{Start: r.offset + int(hit.start), End: end})
			}
		}
		return true
	})
	return spans, err
}

// symbolsOf gives the symbol whose name holds each span; nil when none does.
func (e *evaluator) symbolsOf(spans []match.Span) ([]Symbol, error) {
	if e.b.m.sym == nil || len(spans) == 0 {
		return nil, nil
	}
	y := e.b.m.sym.sym
	var out []Symbol
	var failed error
	i := 0
	err := y.rows(e.doc, &e.symbols, func(r symbolRow) bool {
		for i < len(spans) && spans[i].Start < r.offset {
			i++
		}
		if i == len(spans) {
			return false
		}
		if spans[i].Start > r.offset+symbolPage {
			return true
		}
		// Names are words mostly: a span that begins behind the word at the
		// offset cannot be in it, and the name need not be looked up.
		if spans[i].Start > r.offset && !e.insideName(r.offset, spans[i].Start) {
			return true
		}
		s, err := y.symbol(r, &e.symbols)
		if err != nil {
			failed = err
			return false
		}
		for k := i; k < len(spans) && spans[k].Start < r.offset+len(s.Name); k++ {
			if spans[k].End <= r.offset+len(s.Name) {
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

// insideName tells whether the bytes from a symbol's offset up to at may all
// belong to its name: names do not cross lines.
func (e *evaluator) insideName(from, at int) bool {
	if e.t.need(from, at) != nil {
		return true
	}
	for _, c := range e.t.buf[from:at] {
		if c == '\n' || c == ' ' || c == '(' || c == ';' {
			return false
		}
	}
	return true
}
