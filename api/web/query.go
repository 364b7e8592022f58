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

// token is a word, a quoted text, a filter or a group at the top of a query.
type token struct {
	text   string
	start  int
	filter string // name of the filter; "" for what is searched for
	not    bool
}

var filterName = regexp.MustCompile(`^-?(` + strings.Join(filterNames(), "|") + `):`)

// filterNames are all names of the filters of the language.
func filterNames() (names []string) {
	for _, f := range query.Filters() {
		names = append(names, f.Names...)
	}
	return names
}

// tokensOf cuts a query at the blanks that stand in no quotes and no
// parentheses. It is for showing the parts of a query and taking one out; what
// a query means is package query's.
func tokensOf(text string) []token {
	var out []token
	for i := 0; i < len(text); {
		// A filter is taken out with its value, a group as a whole: each is one token.
		if text[i] == ' ' || text[i] == '\t' || text[i] == '\n' {
			i++
			continue
		}

		end := tokenEnd(text, i)
		t := token{text: text[i:end], start: i}

		// A minus stands before the name, and is a part of the token that is taken out.
		if m := filterName.FindStringSubmatch(t.text); m != nil {
			t.filter, t.not = m[1], t.text[0] == '-'
		}

		out = append(out, t)
		i = end
	}
	return out
}

func tokenEnd(text string, i int) int {
	depth, quoted := 0, false
	for ; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\':
			// What is escaped ends nothing, a quote or a blank least of all.
			i++
		case c == '"':
			quoted = !quoted

		// Within quotes only the next quote counts.
		case quoted:
		case c == '(':
			depth++
		case c == ')':
			depth--
		case (c == ' ' || c == '\t' || c == '\n') && depth <= 0:
			// A parenthesis too many must not swallow the rest: a query is read here while it is typed.
			return i
		}
	}
	return len(text)
}

// without is a query without the token at a place among its tokens. Where that was
// all of an arm, an operator goes with it: else it would be a word to search for.
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

// operates reports whether the token at a place joins what stands around it. As
// package query has it, an operator needs something at both sides, else it is a word.
func operates(tokens []token, at int) bool {
	if at <= 0 || at >= len(tokens)-1 {
		return false
	}
	return (tokens[at].text == "or" || tokens[at].text == "OR") && !operates(tokens, at-1)
}

// chip is a filter of the query that can be taken out.
type chip struct{ Text, Remove string }

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

// countsAll reports whether a query asks for every match to be counted.
func countsAll(q string) bool {
	return slices.ContainsFunc(tokensOf(q), func(t token) bool { return t.text == "count:all" })
}

// grouped is a query as one part of a larger one.
func grouped(q string) string {
	for _, t := range tokensOf(q) {
		if t.text == "or" || t.text == "OR" {
			return "(" + q + ")"
		}
	}
	return q
}

// fieldRegexp is an expression as the value of a filter that takes one, whatever
// the toggle says: a backslash in it keeps its meaning.
func fieldRegexp(expr string) string { return query.QuoteRegexp(expr) }

func quoteMeta(s string) string { return regexp.QuoteMeta(s) }

// parseError is what is wrong with the query of a request, as a search would say
// it: a page knows it before anything is searched.
func parseError(req search.Request) error {
	_, err := query.Parse(req.Query, query.Options{Regexp: req.Regexp, CaseSensitive: req.CaseSensitive})
	var bad *query.ParseError
	if errors.As(err, &bad) {
		return &call.Error{Kind: call.ErrQuery, Message: err.Error(), Offset: bad.Offset, Expected: bad.Expected}
	}
	return err
}

// trouble is what is wrong with a query, and where.
type trouble struct {
	Message        string
	Before, At     string // the query up to the place, and from it on
	Placed         bool
	AsText, AsKind string // address of a search that takes the query as a text
}

func troubleOf(err error, q string) *trouble {
	t := &trouble{Message: err.Error()}
	var e *call.Error
	// Only these errors know a place in the query.
	if !errors.As(err, &e) {
		return t
	}

	t.Message = e.Message
	// Some messages of the parser say themselves what was expected.
	if e.Expected != "" && !strings.Contains(e.Message, "expected") {
		t.Message += "; expected " + e.Expected
	}

	// The place may be one of a text that was made of this one, and lie beyond it.
	if errors.Is(err, call.ErrQuery) && e.Offset <= len(q) {
		t.Placed, t.Before, t.At = true, q[:e.Offset], q[e.Offset:]
		t.AsText, t.AsKind = searchURL(layout.Box{Query: query.Quote(q)}, 0), "search for it as a text"
	}
	return t
}

// hint is a word of a query that is a filter of other searches, in its place.
type hint struct {
	Before, Word, After, Say string
	Ours, URL                string // the filter that is meant, and the search with it; "" for none
}

// hintsOf is what is to be said of the words of a query.
func hintsOf(b layout.Box) []hint {
	q, err := query.Parse(b.Query, query.Options{Regexp: b.Regexp, CaseSensitive: b.Case})
	// What is wrong with it is told elsewhere, at its place.
	if err != nil {
		return nil
	}

	var out []hint
	for _, h := range q.Hints {
		end := h.Offset + len(h.Word)
		row := hint{Before: b.Query[:h.Offset], Word: h.Word, After: b.Query[end:], Say: h.Say, Ours: h.Ours}
		// Some words are a filter elsewhere for which there is none here.
		if h.Ours != "" {
			meant := b
			meant.Query = row.Before + h.Ours + row.After
			row.URL = searchURL(meant, 0)
		}
		out = append(out, row)
	}
	return out
}

// nearMiss is a search that is near one that found nothing.
type nearMiss struct {
	What, URL, Count string
}

// try is a search that may be a near miss.
type try struct {
	what string
	box  layout.Box
}

// nameLike is a word that may be a name with a letter wrong; of a shorter one every
// name would be near.
var nameLike = regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_$]{3,}$`)

// respellTime bounds the look for names that may have been meant: a reader who found
// nothing should hear so soon.
const respellTime = time.Second

// respelled is the searches with names of definitions in place of words that are
// likely these names with some letters wrong: all of them, and each alone. The last
// three words that may be names are looked at.
func (p *searching) respelled(ctx context.Context, v catalog.Viewer, b layout.Box) []try {
	ctx, cancel := context.WithTimeout(ctx, respellTime)
	defer cancel()

	var each []try
	all, looked := b.Query, 0
	// From the end, so that what is put in moves nothing that is still to be looked at.
	for _, t := range slices.Backward(tokensOf(b.Query)) {
		if t.filter != "" || t.not || !nameLike.MatchString(t.text) || looked == 3 {
			continue
		}
		looked++

		// What fails here is no failure of the page.
		r, err := p.searcher.Definitions(ctx, v, symbols.SymbolRequest{Symbol: t.text, Limit: 1})
		if err != nil || !r.Mistyped {
			continue
		}

		put := func(query string) string { return query[:t.start] + r.Similar[0] + query[t.start+len(t.text):] }
		one := try{r.Similar[0] + " in place of " + t.text, b}
		one.box.Query, all = put(b.Query), put(all)
		each = append(each, one)
	}

	// Of one there is nothing to put together.
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

// nearMisses is the searches near one that found nothing which find something,
// each counted by a search of its own.
func (p *searching) nearMisses(ctx context.Context, v catalog.Viewer, b layout.Box) []nearMiss {
	// The likeliest first: only five are tried.
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
	// Without each of the filters, one at a time: so it is seen which of them had been too narrow.
	for i, t := range tokens {
		if rev = rev || t.filter == "rev" || t.filter == "branch" || t.filter == "b" || t.filter == "revision"; t.filter == "" {
			continue
		}

		other := b
		// A filter alone leaves nothing to search for.
		if other.Query = without(b.Query, tokens, i); other.Query != "" {
			tries = append(tries, try{"without " + t.text, other})
		}
	}

	// Somebody who has named a revision does not want all of them.
	if !rev {
		other := b
		other.Query = "rev:* " + grouped(b.Query)
		tries = append(tries, try{"in all indexed revisions", other})
	}

	var out []nearMiss
	// Five, since each is a search of its own while the reader waits.
	for _, t := range tries[:min(len(tries), 5)] {
		r := &results{Box: t.box, typed: true}
		req, err := r.request()
		// Without a part, or as a text, what is left may be no query.
		if err != nil {
			continue
		}

		resp, err := p.searcher.Search(ctx, v, req)
		// What fails here is no failure of the page, and what finds nothing is no help.
		if err == nil && resp.Stats.Files > 0 {
			out = append(out, nearMiss{t.what, searchURL(t.box, 0), summaryOf(resp, false)})
		}
	}
	return out
}

// copyAs is the search of a page in another form.
type copyAs struct{ Name, Text string }

// copiesOf is the same search for the API, the terminal and an agent.
func copiesOf(b layout.Box) []copyAs {
	body := map[string]any{"query": b.Query, "matches": pageMatches, "contextLines": 1}
	flags := ""

	if b.Regexp {
		body["isRegexEnabled"], flags = true, flags+" -e"
	}
	if b.Case {
		body["isCaseSensitivityEnabled"], flags = true, flags+" --case-sensitive"
	}

	text, _ := json.Marshal(body)                             // of strings, numbers and booleans
	tool, _ := json.Marshal(map[string]any{"query": b.Query}) // the same

	return []copyAs{
		{"API call", fmt.Sprintf("curl -s \"$SHOAL_URL/api/search\" -H \"Authorization: Bearer $SHOAL_API_KEY\" -H 'Content-Type: application/json' -d %s", shellQuote(string(text)))},
		{"Command line", "shoal search" + flags + " -- " + shellQuote(b.Query)},
		{"Tool call", `{"name": "search", "arguments": ` + string(tool) + `}`},
	}
}

// shellQuote is a word of a shell.
func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
