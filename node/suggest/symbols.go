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

// The bounds of a search for a symbol.
const (
	MaxSymbols = 200
	MaxName    = 256 // bytes of what is looked for
)

// SymbolsRequest asks for the symbols of a repository whose names have the letters of
// Query in them, in their order.
type SymbolsRequest struct {
	Repo, Ref string // Ref "" is HEAD; any other one has to be indexed
	Query     string
	Limit     int // symbols, at most MaxSymbols; 0 means 50

	Signature bool // tell each with the source that begins it
}

// SymbolsResponse has the symbols: the name itself, names that begin with it, then
// those that have its letters, the best first.
type SymbolsResponse struct {
	Commit  string        `json:"commit"` // whose index was looked at
	Symbols []FoundSymbol `json:"symbols"`
	Cut     bool          `json:"isTruncated"`            // more match, or some could not be looked at
	Unknown []string      `json:"unknownPaths,omitempty"` // files whose symbols could not be found; not of a search
	Similar []string      `json:"similarNames,omitempty"` // where there are none: names that are like it, the nearest first
}

// FoundSymbol is a definition in a file.
type FoundSymbol struct {
	Name       string `json:"name"`
	Kind       string `json:"kind"`
	ParentName string `json:"parentName,omitzero"` // what it is defined in; "" at the top
	ParentKind string `json:"parentKind,omitzero"`
	Signature  string `json:"signature,omitzero"` // where it was asked for: its source up to the body, at most 200 bytes
	Line       int    `json:"firstLine"`          // from 1
	Last       int    `json:"lastLine,omitzero"`  // 0 where it is not known
	Path       string `json:"path,omitzero"`      // "" where all are of one file
}

// Symbols finds symbols of a repository by a few letters of their names.
func (s *Suggester) Symbols(ctx context.Context, v catalog.Viewer, req SymbolsRequest) (*SymbolsResponse, error) {
	switch {
	case req.Limit < 0 || req.Limit > MaxSymbols:
		return nil, call.Fail(call.ErrInvalid, "limit must be from 0 to %d", MaxSymbols)
	case strings.TrimSpace(req.Query) == "" || len(req.Query) > MaxName:
		return nil, call.Fail(call.ErrInvalid, "query must have 1 to %d bytes, and not only blanks", MaxName)
	}

	// A repository or a revision that is not there fails as with every other route.
	c, err := s.d.Browse.Commit(ctx, v, browse.CommitRequest{Repo: req.Repo, Ref: req.Ref})
	if err != nil {
		return nil, err
	}
	limit := cmp.Or(req.Limit, 50)

	// What begins so is asked for first: of a short query the rest may be cut anywhere.
	want := symbols.SymbolRequest{Symbol: req.Query, Repo: req.Repo, Revision: req.Ref, Prefix: true, Signature: req.Signature}
	r, err := s.indexed(ctx, v, &want, c.Hash)
	if err != nil {
		return nil, err
	}
	out := &SymbolsResponse{Commit: r.Commit(req.Repo), Symbols: foundSymbols(r), Cut: !r.Coverage.Exhaustive()}

	if len(out.Symbols) <= limit {
		want.Prefix, want.Letters = false, true
		if r, err = s.d.Search.Definitions(ctx, v, want); err != nil {
			return nil, err
		}

		// Those that begin so are among them, unless so many were too many.
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

// indexed finds definitions in a revision that the index has: by the name that was
// given, or else by its commit.
func (s *Suggester) indexed(ctx context.Context, v catalog.Viewer, want *symbols.SymbolRequest, commit string) (*symbols.SymbolResponse, error) {
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

// foundSymbols is the definitions of an answer.
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

// rankSymbols puts symbols in the order in which somebody who types a text looks for
// them. What is alike in all of it keeps its place.
func rankSymbols(list []FoundSymbol, text string) {
	letters := lettersOf(text)

	// Above every score of letters: so many are never in a name.
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

	// Many symbols have one name: each is looked at once.
	scores := map[string]int{}
	for i := range list {
		if _, known := scores[list[i].Name]; !known {
			scores[list[i].Name] = score(&list[i])
		}
	}

	// Of equal ones the shorter name: its letters are a greater part of it.
	slices.SortStableFunc(list, func(a, b FoundSymbol) int {
		return cmp.Or(scores[b.Name]-scores[a.Name], len(a.Name)-len(b.Name), strings.Compare(a.Name, b.Name))
	})
}
