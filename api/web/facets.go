package web

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/search"
)

var facetsTemplate = layout.Parse(templates, "templates/facets.html")

// narrowing is the data of the facets.
type narrowing struct {
	Facets []facet
	Count  string // address that counts further; "" if everything is counted
	Note   string // says how complete a requested count is
	Exact  bool   // all files were counted
	Others bool   // all files were counted; Count counts the values beside the chosen ones

	Summary string // of the answer, by a requested count
}

// narrow returns the facets of a page's answer, with an address that counts further: all files if the
// answer was cut, or the values beside chosen ones.
func (r *results) narrow(resp *search.Response) narrowing {
	n := narrowing{Facets: facetsOf(resp.CountFiles(), r.Box, facetRows)}
	// Not if everything is counted already, or if a count has nothing to show.
	n.Others = resp.HasEveryFile() && slices.ContainsFunc(facetKinds, func(k facetKind) bool { return k.chosen(r.Box.Query).filters != nil })
	if (!resp.HasEveryFile() || n.Others) && len(n.Facets) > 0 {
		n.Count = searchURL(r.Box, r.From) + "&facets=all"
	}
	return n
}

// A script requests a count with facets=quick without the reader's wish. It may take quickCount.
const (
	countQuickly = "quick"
	quickCount   = 100 * time.Millisecond
)

// countFacets counts all files of a query by a search without lines, and the values beside chosen
// ones. mode is the value of facets in the address: countQuickly limits its time.
func (p *searching) countFacets(ctx context.Context, v catalog.Viewer, r *results, mode string) (narrowing, error) {
	req, err := r.request()
	if err != nil {
		return narrowing{}, err
	}

	if mode == countQuickly && !strings.Contains(req.Query, "timeout:") {
		req.Query = "timeout:" + quickCount.String() + " " + req.Query
	}

	resp, err := p.searcher.Search(ctx, v, req.Counting())
	if err != nil {
		return narrowing{}, err
	}
	found := resp.CountFiles()
	p.countUnchosen(ctx, v, r, found)
	return narrowing{
		Facets:  facetsOf(found, r.Box, countedRows),
		Note:    countNote(resp),
		Exact:   resp.HasEveryFile(),
		Summary: summaryOf(resp, resp.HasEveryFile()),
	}, nil
}

// countUnchosen replaces the counts of each facet that has chosen values by those of the query without
// them, so that a reader can also choose further values. It keeps the old counts if the new ones would
// not be exact.
func (p *searching) countUnchosen(ctx context.Context, v catalog.Viewer, r *results, found *search.Facets) {
	for i := range facetKinds {
		k := &facetKinds[i]
		c := k.chosen(r.Box.Query)
		if c.filters == nil || len(tokensOf(c.rest)) == 0 {
			continue
		}
		unchosen := &results{Box: r.Box, typed: true}
		unchosen.Box.Query = "timeout:" + quickCount.String() + " " + grouped(c.rest)
		req, err := unchosen.request()
		if err != nil {
			continue
		}
		if resp, err := p.searcher.Search(ctx, v, req.Counting()); err == nil && resp.HasEveryFile() {
			*k.valuesOf(found) = *k.valuesOf(resp.CountFiles())
		}
	}
}

// countNote returns a sentence that says how complete the counts of a response are.
func countNote(resp *search.Response) string {
	s := &resp.Stats
	switch {
	case resp.HasEveryFile():
		return "Counted exactly: " + counted(s.Files, "file", "files") + "."
	case s.FlushReason == search.FlushTimeout:
		return "Time ran out after " + counted(s.Files, "file", "files") + ": there may be more of each."
	case s.FlushReason == search.FlushLimit:
		return fmt.Sprintf("The best %s of %s are counted: there may be more of each.", grouping(len(resp.Files)), counted(s.Files, "file", "files"))
	}
	return "Some files were not searched: there may be more of each."
}

// showFacets answers a script with the facets of a query.
func (p *searching) showFacets(ctx context.Context, v *layout.Visit, r *results) error {
	n, err := p.countFacets(ctx, v.Viewer, r, v.Query.Get("facets"))
	if err != nil {
		return err
	}
	return v.Show(r.head(), facetsTemplate, n)
}

// wantsCount reports whether a reader without scripts requests a count of facets.
func wantsCount(v *layout.Visit) bool { return strings.EqualFold(v.Query.Get("facets"), "all") }
