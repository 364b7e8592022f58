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

// Nearest is the answer to a query made of literal parts of another one.
type Nearest struct {
	Parts    string // the words of the query, with an ellipsis for each part left out
	Request  search.Request
	Response *search.Response
}

// Limits of a search for literal parts.
const (
	nearestTime = 1500 * time.Millisecond
	leastWords  = 3   // in a query, to search for its parts
	leastShare  = 0.5 // of the letters, if files have all words apart
	sourceShare = 0.3 // of the letters, if only tests and documents have more
)

// Nearest finds lines that have most of a text, after a search found nothing or only its words
// apart. It leaves out values that a program likely filled in: numbers, quoted text, addresses.
// It returns nil if the answer already has the text, or if no line has most of it. resp is the
// answer to req.
func (s *Suggester) Nearest(ctx context.Context, v catalog.Viewer, req search.Request, resp *search.Response) *Nearest {
	text, filters := withoutFilters(req.Query)
	if req.Regexp || resp.UnknownRevision() || !lacksPhrase(req, resp) {
		return nil
	}

	patterns := paste.Literal(text)
	if strings.HasPrefix(text, "-") && !strings.Contains(text, " ") {
		// A flag of a program, which the query language takes as a negation.
		patterns = []paste.Pattern{{Expr: regexp.QuoteMeta(text), Text: text}}
	}

	ctx, cancel := context.WithTimeout(ctx, max(nearestTime, s.d.Within))
	defer cancel()
	var fallback *Nearest // the best match in tests and documents
	for _, p := range patterns {
		least := 0.0
		switch {
		case fallback != nil || resp.Together():
			least = sourceShare
		case len(resp.Files) > 0:
			least = leastShare
		}
		if letterShare(p.Text, patterns[0].Text) < least {
			continue
		}
		near := req
		near.Query, near.Regexp, near.CaseSensitive, near.Facets = filters+query.QuoteRegexp(p.Expr), true, false, false
		near.After, near.Pages, near.Progress = "", false, nil
		r, err := s.d.Search.Search(ctx, v, near)
		if err != nil || len(r.Files) == 0 {
			continue
		}
		slices.SortStableFunc(r.Files, func(a, b search.File) int { return sourceRank(&b) - sourceRank(&a) })
		if sourceRank(&r.Files[0]) == 1 {
			return &Nearest{p.Text, near, r}
		}
		if fallback == nil && len(resp.Files) == 0 {
			fallback = &Nearest{p.Text, near, r}
		}
	}
	return fallback
}

// prose matches documents by their extension.
var (
	prose = regexp.MustCompile(`(?i)\.(?:md|markdown|rst|txt|adoc|html?|aml)\z`)
	tests = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(shard.TestPaths()) })
)

// sourceRank is 1 for a file that may print a message, 0 for tests and documents, which only
// repeat it.
func sourceRank(f *search.File) int {
	if prose.MatchString(f.Path) || tests().MatchString(f.Path) {
		return 0
	}
	return 1
}

// lacksPhrase reports whether no source file has the words of a query next to each other. It is
// false for one or two words, which are no message.
func lacksPhrase(req search.Request, resp *search.Response) bool {
	if len(resp.Files) == 0 && len(resp.Repositories) == 0 {
		return true
	}
	n := 0
	if q, err := query.Parse(req.Query, query.Options{CaseSensitive: req.CaseSensitive}); err == nil {
		n = query.Words(q.Q)
	}
	return n == 0 && strings.HasPrefix(req.Query, "-") || n >= leastWords && (!resp.Together() || !slices.ContainsFunc(resp.Files, func(f search.File) bool { return sourceRank(&f) == 1 }))
}

// letterShare returns the share of a text's letters that its literal parts have.
func letterShare(parts, text string) float64 {
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
