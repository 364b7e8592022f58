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
	start  int    // offset of text in the query
	filter string // name of the filter; "" for a search term
	not    bool   // the filter is negated
}

var (
	filterName = namesOf(query.Filters())
	changeName = namesOf(slices.Concat(query.Filters(), query.ChangeFilters())) // of a query about commits

	changeQuery = regexp.MustCompile(`(?:^|[\s(])type:(?:commit|diff)(?:[\s)]|$)`)
	diffQuery   = regexp.MustCompile(`(?:^|[\s(])type:diff(?:[\s)]|$)`)
)

// namesOf returns an expression that matches a token that begins with the name of one of the filters.
func namesOf(filters []query.Filter) *regexp.Regexp {
	var names []string
	for _, f := range filters {
		names = append(names, f.Names...)
	}
	return regexp.MustCompile(`^-?(` + strings.Join(names, "|") + `):`)
}

// tokensOf splits a query at spaces outside of quotes and parentheses, to show and remove its parts.
// Only package query knows what they mean.
func tokensOf(text string) []token {
	if changeQuery.MatchString(text) {
		return tokensNamed(text, changeName)
	}
	return tokensNamed(text, filterName)
}

// tokensNamed is tokensOf with an expression for the names of filters.
func tokensNamed(text string, names *regexp.Regexp) []token {
	var out []token
	for i := 0; i < len(text); {
		if text[i] == ' ' || text[i] == '\t' || text[i] == '\n' {
			i++
			continue
		}

		end := tokenEnd(text, i)
		t := token{text: text[i:end], start: i}

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
			return i // depth is negative after an extra parenthesis, as while somebody types
		}
	}
	return len(text)
}

// without returns a query without the token at an index. If the token is all of one side of an
// operator, the operator goes too: without that side it would be a search term.
func without(text string, tokens []token, at int) string {
	first, last := at, at
	operatorBefore, operatorAfter := isOperator(tokens, at-1), isOperator(tokens, at+1)

	switch {
	case operatorBefore && (operatorAfter || at == len(tokens)-1):
		first--
	case at == 0 && operatorAfter:
		last++
	}

	end := tokens[last].start + len(tokens[last].text)
	return strings.TrimSpace(strings.TrimSpace(text[:tokens[first].start]) + " " + strings.TrimSpace(text[min(len(text), end):]))
}

// isOperator reports whether the token at an index is an operator. As in package query, an "or" is one
// only between two tokens that are no operators.
func isOperator(tokens []token, at int) bool {
	if at <= 0 || at >= len(tokens)-1 {
		return false
	}
	return (tokens[at].text == "or" || tokens[at].text == "OR") && !isOperator(tokens, at-1)
}

// chip is a filter of the query, with the address of the search without it.
type chip struct{ Text, Remove string }

// chipsOf returns a chip for each filter of a query.
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

// grouped returns a query as a part of a larger one: in parentheses if it has an operator.
func grouped(q string) string {
	for _, t := range tokensOf(q) {
		if t.text == "or" || t.text == "OR" {
			return "(" + q + ")"
		}
	}
	return q
}

// fieldRegexp returns an expression as the value of a filter, which means the same with and without the
// toggle for regular expressions.
func fieldRegexp(expr string) string { return query.QuoteRegexp(expr) }

func quoteMeta(s string) string { return regexp.QuoteMeta(s) }

// parseError returns the error of a request's query; nil if the query is valid.
func parseError(req search.Request) error {
	_, err := query.Parse(req.Query, query.Options{Regexp: req.Regexp, CaseSensitive: req.CaseSensitive})
	var bad *query.ParseError
	if errors.As(err, &bad) {
		return &call.Error{Kind: call.ErrQuery, Message: err.Error(), Offset: bad.Offset, Expected: bad.Expected}
	}
	return err
}

// trouble is why a search fails, with the position of a mistake in its query.
type trouble struct {
	Message        string
	Before, At     string // the query before the mistake, and from it on, if Placed
	Placed         bool
	AsText, AsKind string // address of a search for the query as text, and the link's words
}

// troubleOf converts the error of a search for q. A mistake in the query gets its position, and a link
// to a search for q as text.
func troubleOf(err error, q string) *trouble {
	t := &trouble{Message: err.Error()}
	var e *call.Error
	if !errors.As(err, &e) {
		return t
	}

	t.Message = e.Message
	if e.Expected != "" && !strings.Contains(e.Message, "expected") {
		t.Message += "; expected " + e.Expected
	}

	// The offset may be beyond the end of q: it may be that in a longer query made from q.
	if errors.Is(err, call.ErrQuery) && e.Offset <= len(q) {
		t.Placed, t.Before, t.At = true, q[:e.Offset], q[e.Offset:]
		t.AsText, t.AsKind = searchURL(layout.Box{Query: query.Quote(q)}, 0), "search for it as a text"
	}
	return t
}

// hint says that a word of a query is a filter in another code search.
type hint struct {
	Before, Word, After, Say string // the query in three parts, and a sentence
	Ours, URL                string // the same filter here, and the search with it; "" if there is none
}

// hintsOf returns the hints for words of a query; none for an invalid query.
func hintsOf(b layout.Box) []hint {
	q, err := query.Parse(b.Query, query.Options{Regexp: b.Regexp, CaseSensitive: b.Case})
	if err != nil {
		return nil
	}

	var out []hint
	for _, h := range q.Hints {
		end := h.Offset + len(h.Word)
		row := hint{Before: b.Query[:h.Offset], Word: h.Word, After: b.Query[end:], Say: h.Say, Ours: h.Ours}
		if h.Ours != "" {
			meant := b
			meant.Query = row.Before + h.Ours + row.After
			row.URL = searchURL(meant, 0)
		}
		out = append(out, row)
	}
	return out
}

// nearMiss is a search that finds something, and is similar to one that finds nothing.
type nearMiss struct {
	What, URL, Count string // What says how it differs
}

// candidate is a search that may be a near miss.
type candidate struct {
	what string // how it differs
	box  layout.Box
}

// nameLike matches a word that may be a mistyped name. A shorter word would be similar to too many
// names.
var nameLike = regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_$]{3,}$`)

// respellTime limits the search for similar names, for which the reader waits.
const respellTime = time.Second

// respelled returns queries in which words that are likely mistyped are replaced by similar names of
// definitions: first all together, then each alone. It checks the last three words that may be names.
func (p *searching) respelled(ctx context.Context, v catalog.Viewer, b layout.Box) []candidate {
	ctx, cancel := context.WithTimeout(ctx, respellTime)
	defer cancel()

	var each []candidate
	all, checked := b.Query, 0
	// Begin at the end, so that a replacement does not move the words before it.
	for _, t := range slices.Backward(tokensOf(b.Query)) {
		if t.filter != "" || t.not || !nameLike.MatchString(t.text) || checked == 3 {
			continue
		}
		checked++
		r, err := p.searcher.Definitions(ctx, v, symbols.SymbolRequest{Symbol: t.text, Limit: 1})
		if err != nil || !r.Mistyped {
			continue
		}

		respell := func(query string) string { return query[:t.start] + r.Similar[0] + query[t.start+len(t.text):] }
		one := candidate{r.Similar[0] + " in place of " + t.text, b}
		one.box.Query, all = respell(b.Query), respell(all)
		each = append(each, one)
	}

	slices.Reverse(each)
	if len(each) < 2 {
		return each
	}

	var what []string
	for _, t := range each {
		what = append(what, t.what)
	}
	together := candidate{strings.Join(what, ", "), b}
	together.box.Query = all
	return append([]candidate{together}, each...)
}

// nearMisses returns searches that are similar to one that found nothing, and find something. It tries
// five candidates, the likeliest first.
func (p *searching) nearMisses(ctx context.Context, v catalog.Viewer, b layout.Box) []nearMiss {
	tries := p.respelled(ctx, v, b)
	if b.Case {
		other := b
		other.Case = false
		tries = append(tries, candidate{"in any case", other})
	}

	if b.Whole {
		other := b
		other.Whole = false
		tries = append(tries, candidate{"inside words too", other})
	}

	if b.Regexp {
		other := b
		other.Regexp = false
		tries = append(tries, candidate{"as a text, not as an expression", other})
	}

	hasRev, tokens := false, tokensOf(b.Query)
	// Remove one filter at a time, to show which filter was too narrow.
	for i, t := range tokens {
		if hasRev = hasRev || t.filter == "rev" || t.filter == "branch" || t.filter == "b" || t.filter == "revision"; t.filter == "" {
			continue
		}

		other := b
		if other.Query = without(b.Query, tokens, i); other.Query != "" {
			tries = append(tries, candidate{"without " + t.text, other})
		}
	}

	if !hasRev { // a reader who names a revision does not want all
		other := b
		other.Query = "rev:* " + grouped(b.Query)
		tries = append(tries, candidate{"in all indexed revisions", other})
	}

	var out []nearMiss
	// The reader waits for these searches, so try only the first five.
	for _, t := range tries[:min(len(tries), 5)] {
		r := &results{Box: t.box, typed: true}
		req, err := r.request()
		if err != nil { // the changed query is invalid
			continue
		}

		resp, err := p.searcher.Search(ctx, v, req)
		if err == nil && resp.Stats.Files > 0 {
			out = append(out, nearMiss{t.what, searchURL(t.box, 0), summaryOf(resp, false)})
		}
	}
	return out
}

// copyAs is a search for another client, as text to copy.
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
	text, _ := json.Marshal(body) // cannot fail: it has strings, numbers and booleans only
	tool, _ := json.Marshal(map[string]any{"query": b.Query})

	return []copyAs{
		{"API call", fmt.Sprintf("curl -s \"$SHOAL_URL%s\" -H \"Authorization: Bearer $SHOAL_API_KEY\" -H 'Content-Type: application/json' -d %s", route, shellQuote(string(text)))},
		{"Command line", "shoal search" + flags + " -- " + shellQuote(b.Query)},
		{"Tool call", `{"name": "search", "arguments": ` + string(tool) + `}`},
	}
}

// shellQuote quotes a word for the shell.
func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
