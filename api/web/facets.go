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

// narrowing is the properties of what was found, for their template.
type narrowing struct {
	Facets []facet
	Count  string // address of the page with all files counted; "" where they are
	Note   string // what was counted, where somebody asked
	Exact  bool   // all files were counted
	Others bool   // they are; what is asked for is values beside those that are chosen

	Summary string // of the answer, by that count
}

// narrow is the facets of the answer that a page shows. Where that was cut they
// are lower bounds, and one may have all files counted.
func (r *results) narrow(resp *search.Response) narrowing {
	n := narrowing{Facets: facetsOf(resp.CountFiles(), r.Box, facetRows)}
	// Not where all is counted already, nor where there is nothing that a count could tell of.
	n.Others = resp.HasEveryFile() && slices.ContainsFunc(facetKinds, func(k facetKind) bool { return k.chosen(r.Box.Query).filters != nil })
	if (!resp.HasEveryFile() || n.Others) && len(n.Facets) > 0 {
		n.Count = searchURL(r.Box, r.From) + "&facets=all"
	}
	return n
}

// countQuickly is the value of facets in an address by which a page counts unasked.
const (
	countQuickly = "quick"
	quickCount   = 100 * time.Millisecond
)

// countFacets counts all files of a query by one search that lists them without
// their lines.
func (p *searching) countFacets(ctx context.Context, v catalog.Viewer, r *results, wanted string) (narrowing, error) {
	req, err := r.request()
	if err != nil {
		return narrowing{}, err
	}

	// Unasked, a page counts only what is quick to count.
	if wanted == countQuickly && !strings.Contains(req.Query, "timeout:") {
		req.Query = "timeout:" + quickCount.String() + " " + req.Query
	}

	// Only the names of the files are needed: lines would be most of the answer.
	resp, err := p.searcher.Search(ctx, v, req.Counting())
	if err != nil {
		return narrowing{}, err
	}
	found := resp.CountFiles()
	p.countOthers(ctx, v, r, found)
	return narrowing{
		Facets:  facetsOf(found, r.Box, countedRows),
		Note:    countNote(resp),
		Exact:   resp.HasEveryFile(),
		Summary: summaryOf(resp, resp.HasEveryFile()),
	}, nil
}

// countOthers puts, for each facet of which the query has chosen values, the counts of
// the query without them: so that a reader may choose others beside them. A count that
// is not exact is none.
func (p *searching) countOthers(ctx context.Context, v catalog.Viewer, r *results, found *search.Facets) {
	for i := range facetKinds {
		k := &facetKinds[i]
		c := k.chosen(r.Box.Query)
		if c.filters == nil || len(tokensOf(c.rest)) == 0 {
			continue
		}
		other := &results{Box: r.Box, typed: true}
		other.Box.Query = "timeout:" + quickCount.String() + " " + grouped(c.rest)
		req, err := other.request()
		if err != nil {
			continue
		}
		if resp, err := p.searcher.Search(ctx, v, req.Counting()); err == nil && resp.HasEveryFile() {
			*k.of(found) = *k.of(resp.CountFiles())
		}
	}
}

// countNote says what a count has counted.
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

// counts shows the facets of a query alone, for a script.
func (p *searching) counts(ctx context.Context, v *layout.Visit, r *results) error {
	n, err := p.countFacets(ctx, v.Viewer, r, v.Query.Get("facets"))
	if err != nil {
		return err
	}
	return v.Show(r.head(), facetsTemplate, n)
}

// wantsCount reports whether the address of a page asks for its facets to be counted.
func wantsCount(v *layout.Visit) bool { return strings.EqualFold(v.Query.Get("facets"), "all") }
