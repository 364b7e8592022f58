package suggest

import (
	"strings"

	"github.com/shoalsearch/shoal/shard/query"
)

// Explanation explains a query.
type Explanation struct {
	Tokens    []Token   `json:"tokens"`             // in order; up to the mistake if there is one
	Canonical string    `json:"canonical,omitzero"` // the query in full form; "" if there is a mistake or no such form
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

// TokenKind is the kind of a part of a query.
type TokenKind string

// Kinds of tokens.
const (
	TextToken   TokenKind = "text"   // a search term
	RegexpToken TokenKind = "regexp" // a search term as an expression
	FilterToken TokenKind = "filter" // a name with its colon
	ValueToken  TokenKind = "value"  // of the filter before it
	NotToken    TokenKind = "not"
	OrToken     TokenKind = "or"
	OpenToken   TokenKind = "open" // begin of a group
	CloseToken  TokenKind = "close"
)

// signs has kinds and meanings of the tokens that need no parsing.
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

// Warning marks a part of a query that the user likely meant differently.
type Warning struct {
	Start      int    `json:"start"`
	End        int    `json:"end"`
	Message    string `json:"message"`
	Suggestion string `json:"suggestion,omitzero"` // replaces the part; "" for none
}

// Mistake describes a syntax error: Length bytes at Offset are wrong, or something is missing
// there if Length is 0.
type Mistake struct {
	Message    string `json:"message"` // same as the error of a search
	Offset     int    `json:"offset"`
	Length     int    `json:"length"`
	Expected   string `json:"expected"`
	Suggestion string `json:"suggestion,omitzero"` // a corrected query; "" for none
}

// Explain returns how a search with these options parses a text. It does not look up whether
// repositories, files and so on exist.
func Explain(text string, opt query.Options) *Explanation {
	r := query.Read(text, opt)
	out := &Explanation{Tokens: make([]Token, len(r.Tokens))}
	for i, t := range r.Tokens {
		out.Tokens[i] = describeToken(text[t.Start:t.End], t, opt)
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

// describeToken returns a token for display.
func describeToken(text string, t query.Token, opt query.Options) Token {
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

// meaningOf returns the meaning of a filter by any of its names.
func meaningOf(name string) string {
	if f := query.FilterNamed(name); f != nil {
		return f.Meaning()
	}
	return ""
}
