package query

import "errors"

// TokenKind is what a part of a query text is to the parser.
type TokenKind uint8

// The kinds of tokens.
const (
	WordToken   TokenKind = iota // a word or a quoted text that is searched for
	FilterToken                  // the name of a filter, with its colon
	ValueToken                   // the value of the filter before it, with its quotes
	NotToken                     // a minus
	OrToken                      // an operator
	OpenToken                    // the parenthesis that opens a group
	CloseToken                   // the one that closes it
)

// Token is a part of a query text. Between two of them there are only blanks.
type Token struct {
	Kind       TokenKind
	Start, End int // bytes of the text
}

// Reading is what Parse makes of a query text, with the parts that it found.
type Reading struct {
	Tokens []Token     // in order; those up to the mistake, where there is one
	Query  *Query      // nil with a mistake
	Err    *ParseError // nil without one
}

// Read is Parse for somebody who wants to see how a text is understood.
func Read(text string, opt Options) Reading {
	p := &parser{text: text, regexp: opt.Regexp, words: opt.Words, tell: true}
	q, err := p.parse(opt)

	r := Reading{Tokens: p.tokens, Query: q}
	errors.As(err, &r.Err) // an error of Parse is always one
	return r
}

// note keeps a token for Read. A search has no use for them.
func (p *parser) note(kind TokenKind, start, end int) {
	if p.tell {
		p.tokens = append(p.tokens, Token{kind, start, end})
	}
}
