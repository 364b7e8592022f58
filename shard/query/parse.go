package query

import (
	"errors"
	"fmt"
	"regexp"
	"time"
	"unicode"
	"unicode/utf8"
)

// Limits of a query text. A text beyond them gives a ParseError.
const (
	MaxLength = 16 << 10 // bytes
	MaxDepth  = 100      // nesting of groups
	MaxAtoms  = 1000     // number of texts and filters
)

// Options are the toggles beside a query field. case: in the text overrides CaseSensitive.
type Options struct {
	Regexp        bool // words and quoted texts are regular expressions
	CaseSensitive bool // letters match exactly, in texts and in filters that are regular expressions
	Words         bool // words and quoted texts match whole words only
}

// Query is a parsed query text.
type Query struct {
	Q       Q             // what to search; simplified
	Count   int           // count:, which is NoCount, CountAll, or 1 to MaxCount
	Timeout time.Duration // timeout:; 0 if there is none
	At      time.Time     // at:, in UTC, the last second of the period that it names; zero if there is none
	Type    Type          // type:
	Case    Case          // how letters match, by case: or the toggle
	Hints   []Hint        // about words that are filters of other search engines
}

// Special values of Query.Count, and its maximum.
const (
	NoCount  = -1 // there is no count:
	CountAll = 0  // count:all, which counts every match and file
	MaxCount = 1_000_000
)

// Type is what a query returns.
type Type uint8

// The values of Type.
const (
	AnyType    Type = iota // there is no type:; return files with their matches
	FileType               // type:file, which returns the names of the matching files
	RepoType               // type:repo, which returns the repositories with a match
	CommitType             // type:commit, which returns the matching commits
	DiffType               // type:diff, which returns the files of commits whose change matches
)

// Changes reports whether commits or their files are returned.
func (t Type) Changes() bool { return t == CommitType || t == DiffType }

// Case is how the letters of a query match.
type Case uint8

// The values of Case.
const (
	CaseNo   Case = iota // in either case
	CaseYes              // exactly
	CaseAuto             // exactly in texts that have a capital letter
)

// ParseError reports a query that cannot be understood.
type ParseError struct {
	Offset   int    // in bytes, from 0, in the text
	Expected string // what would be right in its place
	Length   int    // number of wrong bytes; 0 if something is missing

	Choices []string // texts that could replace the wrong one; nil if there are too many
}

func (e *ParseError) Error() string {
	return fmt.Sprintf("at byte %d: expected %s", e.Offset, e.Expected)
}

// Parse parses a query text. An error is always a *ParseError. A branch of the tree without a Rev
// gets one for HEAD, so that a tree has no implicit conditions.
//
//	query  = and { ("or" | "OR") and }
//	and    = item { item }
//	item   = [ "-" ] ( "(" [ query ] ")" | filter | quoted | word )
//	filter = prefix ( quoted | word )
//
// Everything that does not fit is a word: text to search for. Two rules keep code searchable. A
// group or a quoted text without a blank inside, directly in front of other text, is a word:
// (int)x, "a":"b". And with Regexp a parenthesis is part of an expression, unless its content can
// only be a query.
func Parse(text string, opt Options) (*Query, error) {
	return (&parser{text: text, regexp: opt.Regexp, words: opt.Words}).parse(opt)
}

// aboutChanges matches texts that may have a filter type:commit or type:diff.
var aboutChanges = regexp.MustCompile(`(?:^|[\s(])type:"?(?:commit|diff)`)

// parse parses the text. The filters of changes are filters in a query with type:commit or
// type:diff, and text in all others.
func (p *parser) parse(opt Options) (*Query, error) {
	if aboutChanges.MatchString(p.text) {
		attempt := *p
		attempt.changes = true
		if q, err := attempt.parseWhole(opt); err != nil || q.Type.Changes() {
			*p = attempt
			return q, err
		}
	}
	return p.parseWhole(opt)
}

// parseWhole parses the text, with p.changes for the filters of changes.
func (p *parser) parseWhole(opt Options) (*Query, error) {
	if len(p.text) > MaxLength {
		return nil, fail(MaxLength, "a query of at most %d bytes; this one has %d", MaxLength, len(p.text)).withLength(len(p.text) - MaxLength)
	}

	// Neither an expression nor an answer in JSON can contain bytes that are not UTF-8.
	if i := invalidUTF8(p.text); i >= 0 {
		return nil, fail(i, "text in UTF-8").withLength(1)
	}

	p.out = &Query{Count: NoCount}
	if opt.CaseSensitive {
		p.out.Case = CaseYes
	}

	p.pair = parenthesisPairs(p.text, opt.Regexp, p.changes)
	q, err := p.readOr(len(p.text))
	if err != nil {
		return nil, p.setErrorLength(err)
	}

	if q == nil { // there are only filters about the whole query
		q = Const(true)
	}

	// Set the case first: Simplify turns \x41 into A, a capital that nobody wrote.
	p.out.Q = Simplify(addHeadRev(setCase(q, p.out.Case)))
	return p.out, nil
}

// fail returns a ParseError.
func fail(offset int, format string, args ...any) *ParseError {
	return &ParseError{Offset: offset, Expected: fmt.Sprintf(format, args...)}
}

// withLength returns the error with the number of wrong bytes.
func (e *ParseError) withLength(length int) *ParseError {
	e.Length = length
	return e
}

// withChoices returns the error with the only texts that Parse accepts in its place.
func (e *ParseError) withChoices(choices ...string) *ParseError {
	e.Choices = choices
	return e
}

// setErrorLength sets the length of an error that has none: from its offset up to where the parser
// has read. It returns the error.
func (p *parser) setErrorLength(err error) error {
	var bad *ParseError
	if errors.As(err, &bad) && bad.Length == 0 {
		bad.Length = max(0, p.pos-bad.Offset)
	}
	return err
}

// invalidUTF8 returns the offset of the first byte that is not UTF-8, or -1.
func invalidUTF8(text string) int {
	for i, r := range text {
		if r == utf8.RuneError {
			if _, n := utf8.DecodeRuneInString(text[i:]); n == 1 {
				return i
			}
		}
	}
	return -1
}

// parser reads the text once, by recursive descent. A nil tree stands for a part that searches
// nothing, such as count:10.
type parser struct {
	text    string
	regexp  bool
	words   bool
	changes bool  // the filters of changes are filters
	pair    []int // of parenthesisPairs
	out     *Query

	pos   int // offset of the next byte
	depth int // nesting of groups
	atoms int // number of atoms so far

	recordTokens bool
	tokens       []Token
}

// skipSpace skips blanks.
func (p *parser) skipSpace(end int) {
	for p.pos < end && isSpace(p.text[p.pos]) {
		p.pos++
	}
}

// readOr reads alternatives up to end, which is the end of the text or of the group. It returns nil
// if they search nothing.
func (p *parser) readOr(end int) (Q, error) {
	var branches []Q
	for {
		branch, err := p.readAnd(end)
		if err != nil {
			return nil, err
		}

		if branch != nil {
			branches = append(branches, branch)
		}

		if p.pos >= end {
			break
		}

		// readAnd stopped at an operator.
		p.addToken(OrToken, p.pos, p.pos+len("or"))
		p.pos += len("or")
	}

	switch len(branches) {
	case 0:
		return nil, nil
	case 1:
		return branches[0], nil
	}
	return &Or{Subs: branches}, nil
}

// readAnd reads items up to end or to the operator or. It returns nil if they search nothing.
func (p *parser) readAnd(end int) (Q, error) {
	var subs []Q
	for first := true; ; first = false {
		p.skipSpace(end)

		// At the very start an operator is a word.
		if p.pos >= end || !first && p.atOr(end) {
			break
		}

		q, err := p.readItem(end)
		if err != nil {
			return nil, err
		}
		if q != nil {
			subs = append(subs, q)
		}
	}

	switch len(subs) {
	case 0:
		return nil, nil
	case 1:
		return subs[0], nil
	}
	return &And{Subs: subs}, nil
}

// atOr reports whether the parser is at the operator or. It is a word if no text follows.
func (p *parser) atOr(end int) bool {
	rest := p.text[p.pos:end]
	if len(rest) < 3 || rest[:2] != "or" && rest[:2] != "OR" || !isSpace(rest[2]) {
		return false
	}

	for i := 2; i < len(rest); i++ {
		if !isSpace(rest[i]) {
			return true
		}
	}
	return false
}

// readItem reads an item, and negates it if a minus precedes it.
func (p *parser) readItem(end int) (Q, error) {
	at := p.pos
	if p.text[at] != '-' || !p.negates(end) {
		return p.readPositive(end)
	}

	p.pos++
	p.addToken(NotToken, at, p.pos)
	p.skipSpace(end)
	if name, n := prefixAt(p.text[p.pos:end], p.changes); n > 0 && name.isDirective() {
		return nil, fail(at, "%s without a minus, because it speaks of the whole query", name).withLength(1)
	}

	q, err := p.readPositive(end)
	if err != nil {
		return nil, err
	}
	return p.negate(q, at)
}

// negates reports whether the minus at p.pos negates what follows. Otherwise it is text, as in
// ->next, --flag and -1.
func (p *parser) negates(end int) bool {
	next := p.pos + 1
	if next >= end {
		return false
	}

	// A minus negates a quoted text or a group that is closed, and a filter, which may follow after
	// blanks.
	switch c := p.text[next]; {
	case c == '"':
		e := quoteEnd(p.text, next)
		return e >= 0 && e < end
	case c == '(':
		return p.pair[next] >= 0
	case isSpace(c):
		for next < end && isSpace(p.text[next]) {
			next++
		}
		return isFilter(p.text[next:end], p.changes)
	}

	// A minus negates a word that begins like a name.
	r, _ := utf8.DecodeRuneInString(p.text[next:end])
	return r == '_' || unicode.IsLetter(r)
}

// negate returns the negation of q. -archived:yes means archived:no, as readers expect, although
// archived:yes excludes nothing.
func (p *parser) negate(q Q, at int) (Q, error) {
	if q == nil { // a group with directives only
		return nil, nil
	}

	f, ok := q.(*Flag)
	switch {
	case ok && f.Value == "yes":
		return &Flag{Kind: f.Kind, Value: "no"}, nil
	case ok && f.Value == "any":
		return nil, fail(at, "-visibility:public or -visibility:private; no repository is without a visibility").
			withChoices("-visibility:public", "-visibility:internal", "-visibility:private")
	}
	return &Not{Sub: q}, nil
}

// readPositive reads an item without a minus.
func (p *parser) readPositive(end int) (Q, error) {
	at := p.pos
	if name, n := prefixAt(p.text[at:end], p.changes); n > 0 {
		p.pos += n
		p.addToken(FilterToken, at, p.pos)
		return p.readFilter(name, end)
	}

	// A parenthesis that opens no group begins a word.
	if p.text[at] == '(' && p.opensGroup(at, end) {
		return p.readGroup(at)
	}

	value, quoted := p.readValue(end)
	p.addToken(WordToken, at, p.pos)
	if !quoted {
		p.addHint(value, at)
	}
	return p.textAtom(value, at, quoted)
}

// opensGroup reports whether the parenthesis at i opens a group. Otherwise it begins a word.
func (p *parser) opensGroup(i, end int) bool {
	last := p.pair[i]
	if last < 0 || last >= end {
		return false
	}
	if last+1 < end && !isSpace(p.text[last+1]) && !hasSpace(p.text[i+1:last]) {
		return false // code, such as (int)x
	}
	return !p.regexp || p.isQuery(i+1, last)
}

// isQuery reports whether text[i:end], the content of parentheses, can only be a query and not a
// part of an expression: it is empty, has blanks, begins with a filter, or is a quoted text or a
// group whose content can only be a query.
func (p *parser) isQuery(i, end int) bool {
	for i < end && isSpace(p.text[i]) {
		i++
	}

	// If this group has no blanks, the groups inside it have none.
	if i == end || hasSpace(p.text[i:end]) {
		return true
	}

	for i < end {
		if p.text[i] == '-' && i+1 < end {
			i++
		}

		switch {
		case p.text[i] == '"':
			return quoteEnd(p.text, i) == end-1
		case p.text[i] == '(' && p.pair[i] == end-1: // look inside
			i, end = i+1, end-1
		default:
			return isFilter(p.text[i:end], p.changes)
		}
	}
	return true
}

// readGroup reads the group whose parenthesis is at offset at. An empty group matches nothing.
func (p *parser) readGroup(at int) (Q, error) {
	if p.depth++; p.depth > MaxDepth {
		return nil, fail(at, "at most %d groups inside each other", MaxDepth)
	}

	last := p.pair[at]
	p.pos = at + 1
	p.addToken(OpenToken, at, p.pos)
	p.skipSpace(last)
	empty := p.pos == last
	q, err := p.readOr(last)
	if err != nil {
		return nil, err
	}

	p.depth--
	p.pos = last + 1
	p.addToken(CloseToken, last, p.pos)
	if empty {
		return Const(false), nil
	}
	return q, nil
}

// readValue reads a word, or a quoted text, of which it returns the text without the quotes. A
// quoted text directly in front of other text is a word, unless it has a blank.
func (p *parser) readValue(end int) (value string, quoted bool) {
	at := p.pos
	if p.text[at] == '"' {
		e := quoteEnd(p.text, at)
		if e >= 0 && e < end && (e+1 == end || isSpace(p.text[e+1]) || hasSpace(p.text[at:e])) {
			p.pos = e + 1
			return p.text[at+1 : e], true
		}
	}

	p.pos = min(wordEnd(p.text, at), end)
	return p.text[at:p.pos], false
}
