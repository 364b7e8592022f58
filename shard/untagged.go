package shard

import (
	"context"

	"github.com/shoalsearch/shoal/shard/file"
	"github.com/shoalsearch/shoal/shard/query"
	"github.com/shoalsearch/shoal/shard/symbol"
)

// UntaggedFiles are files with unknown symbols, in which a query for symbols finds nothing.
type UntaggedFiles struct {
	Count int
	First []UntaggedFile // at most firstUntagged of them
}

// UntaggedFile names one of the files.
type UntaggedFile struct {
	Repo uint32
	Path string
}

// firstUntagged is the greatest length of UntaggedFiles.First.
const firstUntagged = 3

// Untagged returns the files with unknown symbols that q could match. If ctx ends, some may be
// missing.
func (v *View) Untagged(ctx context.Context, q query.Q) (UntaggedFiles, error) {
	reached := query.Simplify(reachSymbols(q))
	res, err := v.Search(ctx, Request{Q: reached, MaxMatches: firstUntagged, MaxFiles: firstUntagged, CountAll: true, NoChunks: true, untagged: true})
	if err != nil {
		return UntaggedFiles{}, err
	}

	out := UntaggedFiles{Count: res.Stats.Files}
	for _, f := range res.Files {
		out.First = append(out.First, UntaggedFile{f.Repo, f.Path})
	}
	return out, nil
}

// reachSymbols returns q with true in place of each condition on symbols, negated or not: every file
// with unknown symbols that could satisfy q satisfies the result.
func reachSymbols(q query.Q) query.Q {
	switch n := q.(type) {
	case *query.Text:
		if n.Field == query.Symbol {
			return query.Const(true)
		}
	case *query.And:
		return &query.And{Subs: reachSymbolsOfAll(n.Subs)}
	case *query.Or:
		return &query.Or{Subs: reachSymbolsOfAll(n.Subs)}
	case *query.Not:
		if asksSymbols(n.Sub) {
			return query.Const(true)
		}
	}
	return q
}

// reachSymbolsOfAll returns the result of reachSymbols for each query.
func reachSymbolsOfAll(subs []query.Q) []query.Q {
	out := make([]query.Q, len(subs))
	for i, s := range subs {
		out[i] = reachSymbols(s)
	}
	return out
}

// asksSymbols reports whether q asks for symbols.
func asksSymbols(q query.Q) (asks bool) {
	query.Map(q, func(q query.Q) query.Q {
		t, ok := q.(*query.Text)
		asks = asks || ok && t.Field == query.Symbol
		return q
	})
	return asks
}

// withKeys is the version from which on symbols files have the keys of configuration.
var withKeys = file.Versions{KindSymbols: 8}

// hasUnknownSymbols reports whether the member has a document with unknown symbols.
func (m *member) hasUnknownSymbols() bool {
	return m.sym == nil || m.sym.f.Older(withKeys) || len(m.sym.sym.Unknown()) > 0
}

// untaggedDocs returns the documents of the member with unknown symbols. The caller may change the
// set.
func (m *member) untaggedDocs() docSet {
	docs := newDocSet(m.sh.m.documents)
	hasUnknown := symbol.MayHaveSymbols // reports whether the files of a language have unknown symbols
	if m.sym != nil {
		for _, u := range m.sym.sym.Unknown() {
			docs.add(u.Doc)
		}
		if !m.sym.f.Older(withKeys) {
			return docs
		}
		hasUnknown = symbol.HasKeys
	}

	unknownLanguages := make([]bool, len(m.sh.m.languages))
	for i, language := range m.sh.m.languages {
		unknownLanguages[i] = hasUnknown(language)
	}
	for doc := range m.sh.m.documents {
		o := int(m.sh.docOccur.At(doc))
		hasText := o < int(m.sh.docOccur.At(doc+1)) && m.sh.docUnit.At(doc) < m.sh.docUnit.At(doc+1)
		if hasText && unknownLanguages[m.sh.occLang.At(o)] {
			docs.add(doc)
		}
	}
	return docs
}
