package suggest

import (
	"strings"

	"github.com/shoalsearch/shoal/shard/query"
)

// Explanation is how a search understands a query.
type Explanation struct {
	Tokens    []Token   `json:"tokens"`             // in order; those up to the mistake, where there is one
	Canonical string    `json:"canonical,omitzero"` // the query with what it leaves unsaid; "" with a mistake, and where no text says it
	Warnings  []Warning `json:"warnings"`
	Mistake   *Mistake  `json:"error,omitzero"` // nil for none
}

// Token is a part of a query: the bytes from Start to End.
type Token struct {
	Kind    TokenKind `json:"kind"`
	Start   int       `json:"start"`
	End     int       `json:"end"`
	Text    string    `json:"text"`
	Meaning string    `json:"meaning,omitzero"` // of a filter or a sign; "" for none
}

// TokenKind is what a part of a query is.
type TokenKind string

// The kinds of parts.
const (
	TextToken   TokenKind = "text"   // what is searched for
	RegexpToken TokenKind = "regexp" // the same, as an expression
	FilterToken TokenKind = "filter" // a name with its colon
	ValueToken  TokenKind = "value"  // of the filter before it
	NotToken    TokenKind = "not"
	OrToken     TokenKind = "or"
	OpenToken   TokenKind = "open" // of a group
	CloseToken  TokenKind = "close"
)

// signs are the kinds of the parts that stand for themselves, and what they mean.
var signs = map[query.TokenKind]struct {
	kind  TokenKind
	means string
}{
	query.NotToken:   {NotToken, "leaves out what matches behind it"},
	query.OrToken:    {OrToken, "what stands before it, or what stands behind"},
	query.OpenToken:  {OpenToken, ""},
	query.CloseToken: {CloseToken, ""},
	query.ValueToken: {ValueToken, ""},
}

// Warning is a part of a query that was hardly meant as it is understood.
type Warning struct {
	Start      int    `json:"start"`
	End        int    `json:"end"`
	Message    string `json:"message"`
	Suggestion string `json:"suggestion,omitzero"` // for the place of the part; "" for none
}

// Mistake is why a text is no query: at Offset are Length bytes that are wrong, or
// something is missing where Length is 0.
type Mistake struct {
	Message    string `json:"message"` // as a search has it
	Offset     int    `json:"offset"`
	Length     int    `json:"length"`
	Expected   string `json:"expected"`
	Suggestion string `json:"suggestion,omitzero"` // a query that may be meant; "" for none
}

// Explain tells how a search with these toggles understands a text. It looks nothing
// up: whether there is what a filter names only a search finds out.
func Explain(text string, opt query.Options) *Explanation {
	r := query.Read(text, opt)
	out := &Explanation{Tokens: make([]Token, len(r.Tokens))}
	for i, t := range r.Tokens {
		out.Tokens[i] = token(text[t.Start:t.End], t, opt)
	}

	if r.Err != nil {
		out.Mistake = &Mistake{r.Err.Error(), r.Err.Offset, r.Err.Length, r.Err.Expected, query.Meant(text, opt)}
		return out
	}

	if canonical, ok := query.Format(r.Query, opt); ok {
		out.Canonical = canonical
	}
	for _, h := range r.Query.Hints {
		out.Warnings = append(out.Warnings, Warning{h.Offset, h.Offset + len(h.Word), h.String(), h.Ours})
	}
	return out
}

// token is a part of a query as it is told.
func token(text string, t query.Token, opt query.Options) Token {
	out := Token{Kind: TextToken, Start: t.Start, End: t.End, Text: text}
	if sign, ok := signs[t.Kind]; ok {
		out.Kind, out.Meaning = sign.kind, sign.means
		return out
	}

	switch {
	case t.Kind == query.FilterToken:
		out.Kind, out.Meaning = FilterToken, meaningOf(strings.TrimSuffix(text, ":"))
	case opt.Regexp:
		out.Kind = RegexpToken
	}
	return out
}

// meaningOf is what a filter asks for, by any of its names.
func meaningOf(name string) string {
	if f := query.FilterNamed(name); f != nil {
		return f.Meaning()
	}
	return ""
}
