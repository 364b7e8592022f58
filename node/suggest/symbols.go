package suggest

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/symbols"
)

// Limits of a search for a symbol.
const (
	MaxSymbols = 200
	MaxName    = 256 // bytes of a query
)

// SymbolsRequest asks for symbols of a repository whose names contain the letters of Query in
// order.
type SymbolsRequest struct {
	Repo, Ref string // Ref "" is HEAD; another one must be indexed
	Query     string
	Limit     int // symbols, at most MaxSymbols; 0 means 50

	Signature bool // add the source line of each definition
}

// SymbolsResponse has the symbols: first the name itself, then names that begin with it, then
// names with its letters, the best first.
type SymbolsResponse struct {
	Commit  string        `json:"commit"` // of the index
	Symbols []FoundSymbol `json:"symbols"`
	Cut     bool          `json:"isTruncated"`            // more symbols match, or some files could not be searched
	Unknown []string      `json:"unknownPaths,omitempty"` // files whose symbols could not be found; only for lists of files
	Similar []string      `json:"similarNames,omitempty"` // if there are none: similar names, the nearest first
}

// FoundSymbol is a definition in a file.
type FoundSymbol struct {
	Name       string `json:"name"`
	Kind       string `json:"kind"`
	ParentName string `json:"parentName,omitzero"` // enclosing definition; "" at the top level
	ParentKind string `json:"parentKind,omitzero"`
	Signature  string `json:"signature,omitzero"` // source up to the body, at most 200 bytes; if requested
	Line       int    `json:"firstLine"`          // from 1
	Last       int    `json:"lastLine,omitzero"`  // 0 if unknown
	Path       string `json:"path,omitzero"`      // "" if all are in one file
}

// Symbols finds symbols of a repository by some letters of their names.
func (s *Suggester) Symbols(ctx context.Context, v catalog.Viewer, req SymbolsRequest) (*SymbolsResponse, error) {
	switch {
	case req.Limit < 0 || req.Limit > MaxSymbols:
		return nil, call.Fail(call.ErrInvalid, "limit must be from 0 to %d", MaxSymbols)
	case strings.TrimSpace(req.Query) == "" || len(req.Query) > MaxName:
		return nil, call.Fail(call.ErrInvalid, "query must have 1 to %d bytes, and not only blanks", MaxName)
	}

	// This returns the usual errors for an unknown repository or revision.
	c, err := s.d.Browse.Commit(ctx, v, browse.CommitRequest{Repo: req.Repo, Ref: req.Ref})
	if err != nil {
		return nil, err
	}
	limit := cmp.Or(req.Limit, 50)

	// Search by prefix first, because a short query has more matches than one answer may hold.
	want := symbols.SymbolRequest{Symbol: req.Query, Repo: req.Repo, Revision: req.Ref, Prefix: true, Signature: req.Signature}
	r, err := s.indexedDefinitions(ctx, v, &want, c.Hash)
	if err != nil {
		return nil, err
	}
	out := &SymbolsResponse{Commit: r.Commit(req.Repo), Symbols: foundSymbols(r), Cut: !r.Coverage.Exhaustive()}

	if len(out.Symbols) <= limit {
		want.Prefix, want.Letters = false, true
		if r, err = s.d.Search.Definitions(ctx, v, want); err != nil {
			return nil, err
		}

		// The answer repeats matches by prefix, unless there are too many.
		begin := out.Symbols
		others := slices.DeleteFunc(foundSymbols(r), func(x FoundSymbol) bool { return slices.Contains(begin, x) })
		out.Symbols, out.Similar, out.Cut = append(begin, others...), r.Similar, !r.Coverage.Exhaustive()
	}

	rankSymbols(out.Symbols, req.Query)
	if len(out.Symbols) > limit {
		out.Symbols, out.Cut = out.Symbols[:limit], true
	}
	return out, nil
}

// indexedDefinitions finds definitions in an indexed revision: by the given name, or else by its commit.
func (s *Suggester) indexedDefinitions(ctx context.Context, v catalog.Viewer, want *symbols.SymbolRequest, commit string) (*symbols.SymbolResponse, error) {
	name := cmp.Or(want.Revision, "HEAD")
	for _, rev := range []string{name, commit} {
		want.Revision = rev
		r, err := s.d.Search.Definitions(ctx, v, *want)
		if err != nil {
			return nil, err
		}
		if r.Commit(want.Repo) != "" {
			return r, nil
		}
	}
	return nil, call.Fail(call.ErrRef, "%q of %s is not indexed: by name symbols are found in indexed revisions only; with path those of a file are listed at any commit", name, want.Repo)
}

// foundSymbols returns the definitions of an answer.
func foundSymbols(r *symbols.SymbolResponse) []FoundSymbol {
	out := []FoundSymbol{}
	for i := range r.Files {
		f := &r.Files[i]
		for _, m := range f.Matches {
			out = append(out, FoundSymbol{Path: f.Path, Line: int(m.Range.Start.Line), Name: m.Name, Kind: m.Kind, ParentName: m.ParentName, ParentKind: m.ParentKind, Signature: m.Signature})
		}
	}
	return out
}

// rankSymbols sorts symbols by how well their names match a text. It keeps the order of equal
// ones.
func rankSymbols(list []FoundSymbol, text string) {
	letters := lettersOf(text)

	// Higher than any score of fuzzy.
	const begins, is = 1 << 20, 1 << 21
	score := func(x *FoundSymbol) int {
		n, _ := fuzzy(x.Name, letters, nil)
		switch {
		case x.Name == text:
			n += is + begins
		case strings.EqualFold(x.Name, text):
			n += is
		case len(x.Name) >= len(text) && strings.EqualFold(x.Name[:len(text)], text):
			n += begins
		}
		return n
	}

	// Many symbols share a name, so each name is scored once.
	scores := map[string]int{}
	for i := range list {
		if _, known := scores[list[i].Name]; !known {
			scores[list[i].Name] = score(&list[i])
		}
	}

	// If scores are equal, the shorter name comes first.
	slices.SortStableFunc(list, func(a, b FoundSymbol) int {
		return cmp.Or(scores[b.Name]-scores[a.Name], len(a.Name)-len(b.Name), strings.Compare(a.Name, b.Name))
	})
}
