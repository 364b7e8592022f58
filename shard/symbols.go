package shard

import "github.com/shoalsearch/shoal/shard/match"

// symbolsFile is the symbols side of a shard.
type symbolsFile struct{ f *file }

func (y *symbolsFile) ready(s *shard) error { return nil }

// symbolHits is what a pattern of opSymbol found in one shard.
type symbolHits struct{ set docSet }

func (h *symbolHits) docs(documents int) docSet {
	if h.set == nil {
		return newDocSet(documents)
	}
	return append(docSet(nil), h.set...)
}

func (h *symbolHits) has(doc int) bool { return h.set != nil && h.set.has(doc) }

func (m *member) matchSymbols(p *pattern) (*symbolHits, error) { return &symbolHits{}, nil }

// symbolsOf gives the symbol of each span, nil where there is none.
func (e *evaluator) symbolsOf(spans []match.Span) []Symbol { return nil }

// definedAt tells whether a span is the name of a symbol at its definition.
func (e *evaluator) definedAt(sp match.Span) bool { return false }
