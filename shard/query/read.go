package query

import "errors"

// TokenKind is how the parser understands a part of a query text.
type TokenKind uint8

// The values of TokenKind.
const (
	WordToken   TokenKind = iota // a word or a quoted text to search for
	FilterToken                  // the name of a filter with its colon
	ValueToken                   // the value of the filter before it, with quotes
	NotToken                     // a minus
	OrToken                      // the word or
	OpenToken                    // the opening parenthesis of a group
	CloseToken                   // the closing parenthesis of a group
)

// Token is a part of a query text. Between tokens there are only blanks.
type Token struct {
	Kind       TokenKind
	Start, End int // byte offsets in the text
}

// Reading is the result of parsing a query text, with its tokens.
type Reading struct {
	Tokens []Token     // in order; up to the mistake if there is one
	Query  *Query      // nil if there is a mistake
	Err    *ParseError // nil if there is no mistake
}

// Read parses a query text for a caller that shows how the text is understood.
func Read(text string, opt Options) Reading {
	p := &parser{text: text, regexp: opt.Regexp, words: opt.Words, recordTokens: true}
	q, err := p.parse(opt)

	r := Reading{Tokens: p.tokens, Query: q}
	errors.As(err, &r.Err) // every error of Parse is a ParseError
	return r
}

// addToken records a token if the parser runs for Read.
func (p *parser) addToken(kind TokenKind, start, end int) {
	if p.recordTokens {
		p.tokens = append(p.tokens, Token{kind, start, end})
	}
}
