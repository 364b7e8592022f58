package suggest

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/paste"
	"github.com/shoalsearch/shoal/node/search"
	"github.com/shoalsearch/shoal/shard"
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
	sourceShare = 0.3 // of the letters, where tests and documents have more of them
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
	var told *Nearest // the most of it that only tests and documents have
	for _, p := range patterns {
		least := 0.0
		switch {
		case told != nil || resp.Together():
			least = sourceShare
		case len(resp.Files) > 0:
			least = leastShare
		}
		if share(p.Text, patterns[0].Text) < least {
			continue
		}
		near := req
		near.Query, near.Regexp, near.CaseSensitive, near.Facets = filters+query.QuoteRegexp(p.Expr), true, false, false
		near.After, near.Pages, near.Progress = "", false, nil
		r, err := s.d.Search.Search(ctx, v, near)
		if err != nil || len(r.Files) == 0 {
			continue
		}
		slices.SortStableFunc(r.Files, func(a, b search.File) int { return ofSource(&b) - ofSource(&a) })
		if ofSource(&r.Files[0]) == 1 {
			return &Nearest{p.Text, near, r}
		}
		if told == nil && len(resp.Files) == 0 {
			told = &Nearest{p.Text, near, r}
		}
	}
	return told
}

// prose is the endings of documents.
var (
	prose = regexp.MustCompile(`(?i)\.(?:md|markdown|rst|txt|adoc|html?|aml)\z`)
	tests = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(shard.TestPaths()) })
)

// ofSource is 1 for a file that may print a message, 0 for tests and documents, which
// only repeat it.
func ofSource(f *search.File) int {
	if prose.MatchString(f.Path) || tests().MatchString(f.Path) {
		return 0
	}
	return 1
}

// apart reports whether no file of source has the words of a query next to each other. A
// query of one or two words has no text that could be meant.
func apart(req search.Request, resp *search.Response) bool {
	if len(resp.Files) == 0 && len(resp.Repositories) == 0 {
		return true
	}
	n := 0
	if q, err := query.Parse(req.Query, query.Options{CaseSensitive: req.CaseSensitive}); err == nil {
		n = query.Words(q.Q)
	}
	return n == 0 && strings.HasPrefix(req.Query, "-") || n >= leastWords && (!resp.Together() || !slices.ContainsFunc(resp.Files, func(f search.File) bool { return ofSource(&f) == 1 }))
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
