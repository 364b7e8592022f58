package suggest

import (
	"bytes"
	"cmp"
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
	eitherWords = 6   // in a query with "or", which is an operator, to search for its parts
	oldWords    = 4   // in a query, to search for its parts in old revisions too
	leastShare  = 0.5 // of the letters, if files have all words apart
	leastRun    = 7   // words in a row that are enough too
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

	n := &nearest{s: s, viewer: v, asked: req, found: resp, filters: filters, patterns: paste.Literal(text)}
	if found := n.firstMatch(ctx, ""); found != nil || len(strings.Fields(text)) < oldWords || strings.Contains(filters, "rev:") {
		return cmp.Or(found, n.fallback)
	}
	// Also search older revisions: the newest may not have the message any more.
	return cmp.Or(n.firstMatch(ctx, "rev:* "), n.fallback)
}

// nearest is one call of Nearest.
type nearest struct {
	s        *Suggester
	viewer   catalog.Viewer
	asked    search.Request
	found    *search.Response // the answer to asked
	filters  string           // ends with a space
	patterns []paste.Pattern
	fallback *Nearest // the best match in tests and documents
}

// firstMatch returns the answer for the first pattern that source files match, in the default branches
// or in the revisions that rev names. The first answer with only tests and documents becomes n.fallback.
func (n *nearest) firstMatch(ctx context.Context, rev string) *Nearest {
	ctx, cancel := context.WithTimeout(ctx, max(nearestTime, n.s.d.Within))
	defer cancel()
	for _, p := range n.patterns {
		if !n.isBetter(&p) {
			continue
		}
		found := n.search(ctx, rev, &p)
		if found == nil {
			continue
		}
		if sourceRank(&found.Response.Files[0]) == 1 && !n.isWeak(&p, found) {
			return found
		}
		if n.fallback == nil && (len(n.found.Files) == 0 || p.Name && !n.found.Together()) {
			n.fallback = found
		}
	}
	return nil
}

// search returns the answer for a pattern, the file that likely prints the message first; nil for none.
// Where a limit cuts the answer, it searches without tests and documents, which repeat messages.
func (n *nearest) search(ctx context.Context, rev string, p *paste.Pattern) *Nearest {
	near := n.asked
	near.Query, near.Regexp, near.CaseSensitive, near.Facets = rev+n.filters+query.QuoteRegexp(p.Expr), true, false, false
	near.After, near.Pages, near.Progress = "", false, nil
	r, err := n.s.d.Search.Search(ctx, n.viewer, near)
	if err != nil || len(r.Files) == 0 {
		return nil
	}
	if !r.HasEveryFile() && slices.ContainsFunc(r.Files, func(f search.File) bool { return sourceRank(&f) == 0 }) {
		only := near
		only.Query = near.Query + " -file:" + query.QuoteRegexp(prose.String()) + " -file:" + query.QuoteRegexp(tests().String())
		if sources, err := n.s.d.Search.Search(ctx, n.viewer, only); err == nil && len(sources.Files) > 0 {
			near, r = only, sources
		}
	}
	closestFirst(r.Files, p, n.asked.Query)
	return &Nearest{p.Text, near, r}
}

// isWeak reports whether only a small part of the message matched, one of several that were looked for.
func (n *nearest) isWeak(p *paste.Pattern, found *Nearest) bool {
	return !p.Name && strings.Contains(p.Expr, "|") && float64(longestMatch(&found.Response.Files[0])) < sourceShare*float64(len(p.Text))
}

// isBetter reports whether a pattern has enough of the text to be better than what was found.
func (n *nearest) isBetter(p *paste.Pattern) bool {
	share := letterShare(p.Text, n.patterns[0].Text)
	switch {
	case p.Name:
		return true
	case n.fallback != nil || n.found.Together():
		return share >= sourceShare
	case len(n.found.Files) > 0:
		return share >= leastShare || longestRun(p.Text) >= leastRun
	}
	return true
}

// longestRun counts the words of the longest part of a text without ellipsis.
func longestRun(text string) (longest int) {
	for part := range strings.SplitSeq(text, "…") {
		longest = max(longest, len(strings.Fields(part)))
	}
	return longest
}

// prose matches documents by their extension.
var (
	prose = regexp.MustCompile(`(?i)\.(?:md|markdown|rst|txt|adoc|html?|aml|po)\z`)
	tests = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(shard.TestPaths() + `|(?i:(?:^|/)[^/]*[_-]tests?/)|(?:^|/)t/[^/]+$|\.\w*tests?$`)
	})
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
	words, least := 0, leastWords
	if q, err := query.Parse(req.Query, query.Options{CaseSensitive: req.CaseSensitive}); err == nil {
		words = query.Words(q.Q)
		if hasOr(q.Q) {
			words, least = len(strings.Fields(req.Query)), eitherWords
		}
	}
	switch {
	case words == 0:
		return strings.HasPrefix(req.Query, "-")
	case words < least && !paste.IsSetting(req.Query):
		return false
	}
	return !slices.ContainsFunc(resp.Files, func(f search.File) bool { return shard.Together(f.Score) && sourceRank(&f) == 1 })
}

// hasOr reports whether a query has alternatives.
func hasOr(q query.Q) bool {
	or := false
	query.Map(q, func(q query.Q) query.Q {
		if _, is := q.(*query.Or); is {
			or = true
		}
		return q
	})
	return or
}

// namesIn counts the parts of a text with ellipses that the lines of a file have.
func namesIn(f *search.File, text string) (n int) {
	for name := range strings.SplitSeq(text, " … ") {
		if slices.ContainsFunc(f.Chunks, func(c shard.Chunk) bool { return bytes.Contains(c.Content, []byte(name)) }) {
			n++
		}
	}
	return n
}

// longestMatch returns the bytes of the longest match in a file.
func longestMatch(f *search.File) (longest int) {
	for _, c := range f.Chunks {
		for _, r := range c.Ranges {
			longest = max(longest, int(r.End.Offset)-int(r.Start.Offset))
		}
	}
	return longest
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
