package query

import (
	"regexp"
	"strings"
)

// prefix identifies a filter, by its name before the colon in a query.
type prefix uint8

const (
	noPrefix prefix = iota
	contentPrefix
	filePrefix
	repoPrefix
	revPrefix
	langPrefix
	symPrefix
	depPrefix
	contextPrefix
	repoSetPrefix
	archivedPrefix
	forkPrefix
	visibilityPrefix
	casePrefix
	typePrefix
	countPrefix
	timeoutPrefix
	atPrefix

	// Filters of commits.
	addedPrefix
	removedPrefix
	messagePrefix
	authorPrefix
	committerPrefix
	sincePrefix
	untilPrefix
	mergePrefix
)

// takesRegexp reports whether the value of the filter is an expression whatever the options are.
func (p prefix) takesRegexp() bool {
	switch p {
	case filePrefix, repoPrefix, symPrefix, authorPrefix, committerPrefix:
		return true
	}
	return false
}

// takesText reports whether the value of the filter is a text, or an expression if Options.Regexp
// is set.
func (p prefix) takesText() bool {
	return p == contentPrefix || p == addedPrefix || p == removedPrefix || p == messagePrefix
}

// isDirective reports whether the filter is about the whole query, not about files.
func (p prefix) isDirective() bool {
	switch p {
	case casePrefix, typePrefix, countPrefix, timeoutPrefix, atPrefix:
		return true
	}
	return false
}

// prefixAt returns the filter at the start of text, and the length of its name with the colon; 0 if
// there is none. A name with two colons (content::WebContents) is no filter: it is a name in C++,
// Rust or Perl. The filters of changes count only if changes is set.
func prefixAt(text string, changes bool) (prefix, int) {
	for _, e := range prefixes {
		n := len(e.name)
		if len(text) > n && (changes || !e.changes) && text[n] == ':' && text[:n] == e.name {
			if strings.HasPrefix(text[n+1:], ":") {
				return noPrefix, 0
			}
			return e.is, n + 1
		}
	}
	return noPrefix, 0
}

// isSpace reports whether a byte is a blank, which ends a word.
func isSpace(c byte) bool {
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v'
}

func hasSpace(s string) bool { return strings.ContainsAny(s, " \t\n\r\f\v") }

// quoteEnd returns the offset of the quote that closes the one at text[i], or -1.
func quoteEnd(text string, i int) int {
	for i++; i < len(text); i++ {
		switch text[i] {
		case '"':
			return i
		case '\\':
			i++
		}
	}
	return -1
}

// parenthesisPairs returns the offset of the closing parenthesis for each opening one; -1 for any
// other byte. It reads the text once, so that the parser need not search, however deep the groups
// are. Parentheses in quoted text and escaped ones do not count. In a regular expression those in a
// character class do not count either.
//
//	foo (bar or "a)b") f:[)]+      with filters of regular expressions
//	    ^            ^             is a pair; the others do not count
func parenthesisPairs(text string, regexp, changes bool) []int {
	l := &lexer{text: text, regexp: regexp, changes: changes, pair: make([]int, len(text))}
	for i := range l.pair {
		l.pair[i] = -1
	}

	for state := atWord; state != nil && l.at < len(text); {
		state = state(l)
	}
	return l.pair
}

// lexer finds the pairs in a query text. It is a state machine: a state reads from at on and
// returns the next state.
//
//	atWord     the next byte may be a blank or a minus, open a group, or begin a word, a
//	           filter or a quoted text
//	inWord     in text, up to the next blank
//	inRegexp   in an expression, up to the next blank: escapes and classes count
type lexer struct {
	text    string
	regexp  bool // words are regular expressions
	changes bool // the filters of changes count
	at      int
	pair    []int // by offset of an opening parenthesis: offset of the closing one, or -1
	open    []int // stack of opening parentheses that are not closed yet

	noClass int // no character class closes before this offset
}

// state reads a part of the text and returns the next state; nil means the end.
type state func(*lexer) state

// stateInside returns the state for the middle of a word or of an expression.
func stateInside(regexp bool) state {
	if regexp {
		return inRegexp
	}
	return inWord
}

// atWord is the state between two words.
func atWord(l *lexer) state {
	rest := l.text[l.at:]

	// A minus is an operator only before a group, quotes or a filter. Otherwise it begins a word.
	switch c := rest[0]; {
	case isSpace(c), c == '-' && len(rest) > 1 && (rest[1] == '"' || rest[1] == '(' || isFilter(rest[1:], l.changes)):
		l.at++
		return atWord
	case c == '(':
		l.takeParenthesis()
		return atWord
	case c == '"':
		l.skipQuoted()
		l.at++
		return stateInside(l.regexp)
	}

	// The value of a filter begins right after the colon. Parentheses in its quotes do not count.
	if name, n := prefixAt(rest, l.changes); n > 0 {
		l.at += n
		if l.at < len(l.text) && l.text[l.at] == '"' && l.skipQuoted() {
			l.at++
		}
		return stateInside(name.takesRegexp() || name.takesText() && l.regexp)
	}
	return stateInside(l.regexp)
}

// inWord is the state in a plain word.
func inWord(l *lexer) state {
	switch c := l.text[l.at]; {
	case isSpace(c):
		return atWord
	case c == '(', c == ')':
		l.takeParenthesis()
	default:
		l.at++
	}
	return inWord
}

// inRegexp is the state in a word that is an expression.
func inRegexp(l *lexer) state {
	switch c := l.text[l.at]; {
	case isSpace(c):
		return atWord
	case c == '(', c == ')':
		l.takeParenthesis()

	// Skip an escape. A blank ends the word even after a backslash.
	case c == '\\':
		l.at++
		if l.at < len(l.text) && !isSpace(l.text[l.at]) {
			l.at++
		}

	// Skip a class: parentheses in it are its members.
	case c == '[' && l.at >= l.noClass:
		l.skipClass()
		l.at++
	default:
		l.at++
	}
	return inRegexp
}

// skipQuoted moves from a quote to the one that closes it. If there is none, it does not move, and
// returns false.
func (l *lexer) skipQuoted() bool {
	end := quoteEnd(l.text, l.at)
	if end >= 0 {
		l.at = end
	}
	return end >= 0
}

// takeParenthesis moves past a parenthesis. It opens a pair, or closes the latest open one.
func (l *lexer) takeParenthesis() {
	if l.text[l.at] == '(' {
		l.open = append(l.open, l.at)
	} else if n := len(l.open) - 1; n >= 0 {
		l.pair[l.open[n]] = l.at
		l.open = l.open[:n]
	}
	l.at++
}

// skipClass moves from the bracket that opens a character class to the one that closes it. If there
// is none in this word, it does not move, and notes that no later bracket of the word opens a
// class.
func (l *lexer) skipClass() {
	if end := classEnd(l.text, l.at); end >= 0 {
		l.at = end
		return
	}
	l.noClass = wordEnd(l.text, l.at)
}

// isFilter reports whether a text begins with the name of a filter and its colon.
func isFilter(text string, changes bool) bool {
	_, n := prefixAt(text, changes)
	return n > 0
}

// classEnd returns the offset of the bracket that closes the character class at text[i] in the same
// word, or -1. A bracket directly after [ or [^ is a member of the class.
func classEnd(text string, i int) int {
	for j := i + 1; j < len(text) && !isSpace(text[j]); j++ {
		switch text[j] {
		case '\\':
			j++
		case '^':
			// After [^ a bracket is a member too.
			if j == i+1 && j+1 < len(text) && text[j+1] == ']' {
				j++
			}
		case ']':
			if j > i+1 {
				return j
			}
		}
	}
	return -1
}

// wordEnd returns the offset of the next blank from i on, or the length of the text.
func wordEnd(text string, i int) int {
	for i < len(text) && !isSpace(text[i]) {
		i++
	}
	return i
}

// Quote returns text in quotes, so that a query without the regular expression toggle searches it
// as one text.
func Quote(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}

// QuoteRegexp returns an expression in quotes, so that a query with the regular expression toggle
// has it as one expression. A newline becomes \n. The last backslash of expr must not escape the
// quote.
func QuoteRegexp(expr string) string {
	var b strings.Builder
	b.WriteByte('"')

	for i := 0; i < len(expr); i++ {
		switch c := expr[i]; {
		case c == '\\' && i+1 < len(expr): // with the character that it escapes
			b.WriteString(expr[i : i+2])
			i++

		case c == '"':
			b.WriteString(`\"`)
		case c == '\n':
			b.WriteString(`\n`)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// Meant returns a query for a text that Parse refuses. With Regexp it has the filters of the text,
// and the words between as expressions with blanks in them. If that is no query either, or without
// Regexp, it searches for the whole text as one literal. It returns "" if that is too long.
func Meant(text string, opt Options) string {
	candidates := []string{Quote(text)}
	if opt.Regexp {
		candidates = []string{oneExpression(text), QuoteRegexp(regexp.QuoteMeta(text))}
	}
	for _, q := range candidates {
		if _, err := Parse(q, opt); err == nil && q != "" {
			return q
		}
	}
	return ""
}

// oneExpression puts the text between filters in quotes, so that blanks do not split an expression
// such as (a|b) +c. It returns "" if that text contains quotes or operators of the query language.
func oneExpression(text string) string {
	var out []string
	start, end := -1, 0 // of the words since the last filter; start is -1 if there is none
	for i := 0; i < len(text); {
		if isSpace(text[i]) {
			i++
			continue
		}
		last := wordEnd(text, i)
		word := text[i:last]
		filter := isFilter(strings.TrimPrefix(word, "-"), false)
		if strings.Contains(word, `"`) || !filter && (word[0] == '-' || word == "or" || word == "OR") {
			return ""
		}
		if filter && start >= 0 {
			out = append(out, QuoteRegexp(text[start:end]))
			start = -1
		}
		if filter {
			out = append(out, word)
		} else if end = last; start < 0 {
			start = i
		}
		i = last
	}
	if start >= 0 {
		out = append(out, QuoteRegexp(text[start:end]))
	}
	return strings.Join(out, " ")
}

// unquote removes the escapes of quoted text: \" is a quote, \\ a backslash, and any other
// backslash is literal.
func unquote(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	return strings.NewReplacer(`\\`, `\`, `\"`, `"`).Replace(s)
}
