package suggest

import (
	"context"
	"regexp"
	"strings"
	"time"
	"unicode"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/paste"
	"github.com/shoalsearch/shoal/node/search"
	"github.com/shoalsearch/shoal/shard/query"
)

// Nearest is the answer to a query that is made of the literal parts of another one.
type Nearest struct {
	Parts    string // the words that it keeps, with an ellipsis for each part that it leaves out
	Request  search.Request
	Response *search.Response
}

// The bounds of a search for literal parts.
const (
	nearestTime = 1500 * time.Millisecond
	leastWords  = 3   // of a text whose words may stand apart
	leastShare  = 0.5 // of the letters, where files have all words apart
)

// Nearest finds the lines that have most of a text which found nothing as it is written,
// or whose words are only found apart. It leaves out what a program likely filled in:
// numbers, quoted values, addresses. It returns nil where the answer has the text, and
// where nothing has most of it. req is the search, resp its answer.
func (s *Suggester) Nearest(ctx context.Context, v catalog.Viewer, req search.Request, resp *search.Response) *Nearest {
	text, filters := withoutFilters(req.Query)
	if req.Regexp || resp.UnknownRevision() || !apart(req, resp) {
		return nil
	}

	patterns := paste.Literal(text)
	if strings.HasPrefix(text, "-") && !strings.Contains(text, " ") {
		// A flag of a program, which the language takes for a negation.
		patterns = []paste.Pattern{{Expr: regexp.QuoteMeta(text), Text: text}}
	}

	ctx, cancel := context.WithTimeout(ctx, max(nearestTime, s.d.Within))
	defer cancel()
	for _, p := range patterns {
		if len(resp.Files) > 0 && share(p.Text, text) < leastShare {
			continue
		}
		near := req
		near.Query, near.Regexp, near.CaseSensitive, near.Facets = filters+query.QuoteRegexp(p.Expr), true, false, false
		near.After, near.Pages, near.Progress = "", false, nil
		r, err := s.d.Search.Search(ctx, v, near)
		if err == nil && len(r.Files) > 0 {
			return &Nearest{p.Text, near, r}
		}
	}
	return nil
}

// apart reports whether no file has the words of a query next to each other. A query of
// one or two words has no text that could be meant.
func apart(req search.Request, resp *search.Response) bool {
	if len(resp.Files) == 0 && len(resp.Repositories) == 0 {
		return true
	}
	n := 0
	if q, err := query.Parse(req.Query, query.Options{CaseSensitive: req.CaseSensitive}); err == nil {
		n = query.Words(q.Q)
	}
	return n == 0 && strings.HasPrefix(req.Query, "-") || n >= leastWords && !resp.Together()
}

// share is how many of the letters of a text its literal parts have.
func share(parts, text string) float64 {
	count := func(s string) (n float64) {
		for _, r := range s {
			if unicode.IsLetter(r) {
				n++
			}
		}
		return n
	}
	return count(strings.ReplaceAll(parts, "…", "")) / max(1, count(text))
}
