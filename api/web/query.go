package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/search"
	"github.com/shoalsearch/shoal/node/symbols"
	"github.com/shoalsearch/shoal/shard/query"
)

// token is a word, a quoted text, a filter or a group at the top level of a query.
type token struct {
	text   string
	start  int
	filter string // name of the filter; "" for a search term
	not    bool
}

var (
	filterName = namesOf(query.Filters())
	changeName = namesOf(slices.Concat(query.Filters(), query.ChangeFilters())) // of a query about commits

	changeQuery = regexp.MustCompile(`(?:^|[\s(])type:(?:commit|diff)(?:[\s)]|$)`)
	diffQuery   = regexp.MustCompile(`(?:^|[\s(])type:diff(?:[\s)]|$)`)
)

// namesOf matches each name of some filters.
func namesOf(filters []query.Filter) *regexp.Regexp {
	var names []string
	for _, f := range filters {
		names = append(names, f.Names...)
	}
	return regexp.MustCompile(`^-?(` + strings.Join(names, "|") + `):`)
}

// tokensOf splits a query at spaces outside quotes and parentheses. It is only for showing and
// removing parts; package query parses the meaning.
func tokensOf(text string) []token {
	if changeQuery.MatchString(text) {
		return tokensNamed(text, changeName)
	}
	return tokensNamed(text, filterName)
}

// tokensNamed is tokensOf with the filters whose names match.
func tokensNamed(text string, names *regexp.Regexp) []token {
	var out []token
	for i := 0; i < len(text); {
		// A filter with its value, and a group, are each one token.
		if text[i] == ' ' || text[i] == '\t' || text[i] == '\n' {
			i++
			continue
		}

		end := tokenEnd(text, i)
		t := token{text: text[i:end], start: i}

		// A minus before the name belongs to the token.
		if m := names.FindStringSubmatch(t.text); m != nil {
			t.filter, t.not = m[1], t.text[0] == '-'
		}

		out = append(out, t)
		i = end
	}
	return out
}

// tokenEnd returns where the token of a query that begins at i ends.
func tokenEnd(text string, i int) int {
	depth, quoted := 0, false
	for ; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\':
			// An escaped byte ends nothing.
			i++
		case c == '"':
			quoted = !quoted

		// Within quotes only a quote matters.
		case quoted:
		case c == '(':
			depth++
		case c == ')':
			depth--
		case (c == ' ' || c == '\t' || c == '\n') && depth <= 0:
			// An extra parenthesis must not swallow the rest, because the query may still be
			// typed.
			return i
		}
	}
	return len(text)
}

// without returns a query without one token. If the token was all of one side of an operator, the
// operator is removed too, because alone it would be a search term.
func without(text string, tokens []token, at int) string {
	first, last := at, at
	before, after := operates(tokens, at-1), operates(tokens, at+1)

	switch {
	case before && (after || at == len(tokens)-1):
		first--
	case at == 0 && after:
		last++
	}

	end := tokens[last].start + len(tokens[last].text)
	return strings.TrimSpace(strings.TrimSpace(text[:tokens[first].start]) + " " + strings.TrimSpace(text[min(len(text), end):]))
}

// operates reports whether a token is an operator. As in package query, an operator needs
// something on both sides, else it is a word.
func operates(tokens []token, at int) bool {
	if at <= 0 || at >= len(tokens)-1 {
		return false
	}
	return (tokens[at].text == "or" || tokens[at].text == "OR") && !operates(tokens, at-1)
}

// chip is a filter of the query that can be removed.
type chip struct{ Text, Remove string }

// chipsOf returns the filters of a query as chips that can be removed.
func chipsOf(b layout.Box) []chip {
	var out []chip
	tokens := tokensOf(b.Query)
	for i, t := range tokens {
		if t.filter == "" {
			continue
		}
		rest := b
		rest.Query = without(b.Query, tokens, i)
		out = append(out, chip{t.text, searchURL(rest, 0)})
	}
	return out
}

// countsAll reports whether a query requests a count of every match.
func countsAll(q string) bool {
	return slices.ContainsFunc(tokensOf(q), func(t token) bool { return t.text == "count:all" })
}

// grouped returns a query in parentheses, as part of a larger one.
func grouped(q string) string {
	for _, t := range tokensOf(q) {
		if t.text == "or" || t.text == "OR" {
			return "(" + q + ")"
		}
	}
	return q
}

// fieldRegexp returns an expression as the value of a filter, whatever the toggle: backslashes
// keep their meaning.
func fieldRegexp(expr string) string { return query.QuoteRegexp(expr) }

func quoteMeta(s string) string { return regexp.QuoteMeta(s) }

// parseError returns the error of a request's query, as a search would, but before the search.
func parseError(req search.Request) error {
	_, err := query.Parse(req.Query, query.Options{Regexp: req.Regexp, CaseSensitive: req.CaseSensitive})
	var bad *query.ParseError
	if errors.As(err, &bad) {
		return &call.Error{Kind: call.ErrQuery, Message: err.Error(), Offset: bad.Offset, Expected: bad.Expected}
	}
	return err
}

// trouble is the mistake of a query, with its place.
type trouble struct {
	Message        string
	Before, At     string // the query before and from the mistake
	Placed         bool
	AsText, AsKind string // address of a search that takes the query as text
}

// troubleOf returns a mistake in a query with its position.
func troubleOf(err error, q string) *trouble {
	t := &trouble{Message: err.Error()}
	var e *call.Error
	// Only these errors have a place in the query.
	if !errors.As(err, &e) {
		return t
	}

	t.Message = e.Message
	// Some messages already say what was expected.
	if e.Expected != "" && !strings.Contains(e.Message, "expected") {
		t.Message += "; expected " + e.Expected
	}

	// The place may be in a text made from the query, beyond its end.
	if errors.Is(err, call.ErrQuery) && e.Offset <= len(q) {
		t.Placed, t.Before, t.At = true, q[:e.Offset], q[e.Offset:]
		t.AsText, t.AsKind = searchURL(layout.Box{Query: query.Quote(q)}, 0), "search for it as a text"
	}
	return t
}

// hint is a word of a query that is a filter in another code search.
type hint struct {
	Before, Word, After, Say string
	Ours, URL                string // the filter meant, and the search with it; "" for none
}

// hintsOf returns the hints for words of a query.
func hintsOf(b layout.Box) []hint {
	q, err := query.Parse(b.Query, query.Options{Regexp: b.Regexp, CaseSensitive: b.Case})
	// The page shows errors elsewhere.
	if err != nil {
		return nil
	}

	var out []hint
	for _, h := range q.Hints {
		end := h.Offset + len(h.Word)
		row := hint{Before: b.Query[:h.Offset], Word: h.Word, After: b.Query[end:], Say: h.Say, Ours: h.Ours}
		// Some filters have no equivalent here.
		if h.Ours != "" {
			meant := b
			meant.Query = row.Before + h.Ours + row.After
			row.URL = searchURL(meant, 0)
		}
		out = append(out, row)
	}
	return out
}

// nearMiss is a search similar to one that found nothing.
type nearMiss struct {
	What, URL, Count string
}

// try is a candidate for a near miss.
type try struct {
	what string
	box  layout.Box
}

// nameLike matches a word that may be a mistyped name. Shorter words would be similar to every
// name.
var nameLike = regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_$]{3,}$`)

// respellTime limits the search for similar names, because the reader waits.
const respellTime = time.Second

// respelled returns queries in which likely mistyped words are replaced by similar names of
// definitions: all together, and each alone. It checks the last three words that may be names.
func (p *searching) respelled(ctx context.Context, v catalog.Viewer, b layout.Box) []try {
	ctx, cancel := context.WithTimeout(ctx, respellTime)
	defer cancel()

	var each []try
	all, looked := b.Query, 0
	// From the end, so that replacements do not move earlier words.
	for _, t := range slices.Backward(tokensOf(b.Query)) {
		if t.filter != "" || t.not || !nameLike.MatchString(t.text) || looked == 3 {
			continue
		}
		looked++

		// Ignore errors, because this is only a suggestion.
		r, err := p.searcher.Definitions(ctx, v, symbols.SymbolRequest{Symbol: t.text, Limit: 1})
		if err != nil || !r.Mistyped {
			continue
		}

		put := func(query string) string { return query[:t.start] + r.Similar[0] + query[t.start+len(t.text):] }
		one := try{r.Similar[0] + " in place of " + t.text, b}
		one.box.Query, all = put(b.Query), put(all)
		each = append(each, one)
	}

	// A single replacement has no combination.
	slices.Reverse(each)
	if len(each) < 2 {
		return each
	}

	var what []string
	for _, t := range each {
		what = append(what, t.what)
	}
	together := try{strings.Join(what, ", "), b}
	together.box.Query = all
	return append([]try{together}, each...)
}

// nearMisses returns similar searches that find something, each counted by its own search.
func (p *searching) nearMisses(ctx context.Context, v catalog.Viewer, b layout.Box) []nearMiss {
	// The likeliest come first, because only five are tried.
	tries := p.respelled(ctx, v, b)
	if b.Case {
		other := b
		other.Case = false
		tries = append(tries, try{"in any case", other})
	}

	if b.Whole {
		other := b
		other.Whole = false
		tries = append(tries, try{"inside words too", other})
	}

	if b.Regexp {
		other := b
		other.Regexp = false
		tries = append(tries, try{"as a text, not as an expression", other})
	}

	rev, tokens := false, tokensOf(b.Query)
	// Remove one filter at a time, to show which one was too narrow.
	for i, t := range tokens {
		if rev = rev || t.filter == "rev" || t.filter == "branch" || t.filter == "b" || t.filter == "revision"; t.filter == "" {
			continue
		}

		other := b
		// Without other parts there is nothing to search for.
		if other.Query = without(b.Query, tokens, i); other.Query != "" {
			tries = append(tries, try{"without " + t.text, other})
		}
	}

	// A reader who names a revision does not want all of them.
	if !rev {
		other := b
		other.Query = "rev:* " + grouped(b.Query)
		tries = append(tries, try{"in all indexed revisions", other})
	}

	var out []nearMiss
	// Only five, because each is a search and the reader waits.
	for _, t := range tries[:min(len(tries), 5)] {
		r := &results{Box: t.box, typed: true}
		req, err := r.request()
		// The changed query may be invalid.
		if err != nil {
			continue
		}

		resp, err := p.searcher.Search(ctx, v, req)
		// Ignore errors and empty results.
		if err == nil && resp.Stats.Files > 0 {
			out = append(out, nearMiss{t.what, searchURL(t.box, 0), summaryOf(resp, false)})
		}
	}
	return out
}

// copyAs is the search of a page in another form.
type copyAs struct{ Name, Text string }

// copiesOf returns the same search for the API, the command line and an agent.
func copiesOf(b layout.Box) []copyAs {
	body := map[string]any{"query": b.Query, "matches": pageMatches, "contextLines": 1}
	flags := ""

	if b.Regexp {
		body["isRegexEnabled"], flags = true, flags+" -e"
	}
	if b.Case {
		body["isCaseSensitivityEnabled"], flags = true, flags+" --case-sensitive"
	}

	route := "/api/search"
	if changeQuery.MatchString(b.Query) {
		route = "/api/search_commits"
		delete(body, "contextLines")
	}
	text, _ := json.Marshal(body)                             // strings, numbers and booleans cannot fail
	tool, _ := json.Marshal(map[string]any{"query": b.Query}) // as above

	return []copyAs{
		{"API call", fmt.Sprintf("curl -s \"$SHOAL_URL%s\" -H \"Authorization: Bearer $SHOAL_API_KEY\" -H 'Content-Type: application/json' -d %s", route, shellQuote(string(text)))},
		{"Command line", "shoal search" + flags + " -- " + shellQuote(b.Query)},
		{"Tool call", `{"name": "search", "arguments": ` + string(tool) + `}`},
	}
}

// shellQuote quotes a word for the shell.
func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
