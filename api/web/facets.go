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
	Count  string // address of the page with all files counted; "" if they are
	Note   string // what was counted, on request
	Exact  bool   // all files were counted
	Others bool   // all files were counted; the request is for other values of chosen facets

	Summary string // of the answer, by that count
}

// narrow returns the facets of a page's answer. If the answer was cut they are lower bounds, with
// a link to count all files.
func (r *results) narrow(resp *search.Response) narrowing {
	n := narrowing{Facets: facetsOf(resp.CountFiles(), r.Box, facetRows)}
	// Not if everything is counted already, or if a count has nothing to show.
	n.Others = resp.HasEveryFile() && slices.ContainsFunc(facetKinds, func(k facetKind) bool { return k.chosen(r.Box.Query).filters != nil })
	if (!resp.HasEveryFile() || n.Others) && len(n.Facets) > 0 {
		n.Count = searchURL(r.Box, r.From) + "&facets=all"
	}
	return n
}

// countQuickly is the value of facets in an address for a page that counts without a request of
// the reader.
const (
	countQuickly = "quick"
	quickCount   = 100 * time.Millisecond
)

// countFacets counts all files of a query by a search without lines.
func (p *searching) countFacets(ctx context.Context, v catalog.Viewer, r *results, wanted string) (narrowing, error) {
	req, err := r.request()
	if err != nil {
		return narrowing{}, err
	}

	// Without a request of the reader, a page only counts what is quick.
	if wanted == countQuickly && !strings.Contains(req.Query, "timeout:") {
		req.Query = "timeout:" + quickCount.String() + " " + req.Query
	}

	// Names suffice; lines would be most of the answer.
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

// countOthers adds, for each facet with chosen values, the counts without them, so that a reader
// can choose others too. Counts that are not exact are left out.
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

// counts shows only the facets of a query, for a script.
func (p *searching) counts(ctx context.Context, v *layout.Visit, r *results) error {
	n, err := p.countFacets(ctx, v.Viewer, r, v.Query.Get("facets"))
	if err != nil {
		return err
	}
	return v.Show(r.head(), facetsTemplate, n)
}

// wantsCount reports whether an address requests a count of facets.
func wantsCount(v *layout.Visit) bool { return strings.EqualFold(v.Query.Get("facets"), "all") }
