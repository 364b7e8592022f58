package query

import "strings"

// prefix is a filter: what stands before the colon.
type prefix uint8

const (
	noPrefix prefix = iota
	contentPrefix
	filePrefix
	repoPrefix
	revPrefix
	langPrefix
	symPrefix
	contextPrefix
	repoSetPrefix
	archivedPrefix
	forkPrefix
	visibilityPrefix
	casePrefix
	typePrefix
	countPrefix
	timeoutPrefix
)

// prefixes are the names of the filters, the first one of each the one that
// is printed.
var prefixes = [...]struct {
	name string
	is   prefix
}{
	{"content", contentPrefix}, {"c", contentPrefix},
	{"file", filePrefix}, {"f", filePrefix},
	{"repo", repoPrefix}, {"r", repoPrefix},
	{"rev", revPrefix}, {"revision", revPrefix}, {"branch", revPrefix}, {"b", revPrefix},
	{"lang", langPrefix}, {"l", langPrefix},
	{"sym", symPrefix},
	{"context", contextPrefix},
	{"reposet", repoSetPrefix},
	{"archived", archivedPrefix},
	{"fork", forkPrefix},
	{"visibility", visibilityPrefix},
	{"case", casePrefix},
	{"type", typePrefix},
	{"count", countPrefix},
	{"timeout", timeoutPrefix},
}

func (p prefix) String() string {
	for _, e := range prefixes {
		if e.is == p {
			return e.name + ":"
		}
	}
	return ""
}

// regexp reports whether the value of the filter is a regular expression,
// whatever the toggle says.
func (p prefix) regexp() bool {
	return p == filePrefix || p == repoPrefix || p == symPrefix
}

// prefixAt returns the filter that text begins with and how many bytes its
// name and colon take. A name with two colons (content::WebContents) is not
// a filter but a name in C++, Rust or Perl.
func prefixAt(text string) (prefix, int) {
	for _, e := range prefixes {
		n := len(e.name)
		if len(text) > n && text[n] == ':' && text[:n] == e.name {
			if strings.HasPrefix(text[n+1:], ":") {
				return noPrefix, 0
			}
			return e.is, n + 1
		}
	}
	return noPrefix, 0
}

func isSpace(c byte) bool {
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v'
}

func hasSpace(s string) bool { return strings.ContainsAny(s, " \t\n\r\f\v") }

// quoteEnd returns the offset of the quote that closes the one at text[i],
// or -1. A quoted text ends in its line.
func quoteEnd(text string, i int) int {
	for i++; i < len(text); i++ {
		switch text[i] {
		case '"':
			return i
		case '\n':
			return -1
		case '\\':
			if i+1 < len(text) && text[i+1] == '\n' {
				return -1
			}
			i++
		}
	}
	return -1
}

// pairs finds for each opening parenthesis the one that closes it: out[i] is
// its offset, or -1. It goes over the text once, so that the parser asks
// nothing twice however deep the groups are. Parentheses in quoted texts do
// not count, nor do escaped ones and those in a class where a regular
// expression stands.
func pairs(text string, regexp bool) []int {
	out := make([]int, len(text))
	for i := range out {
		out[i] = -1
	}
	var open []int
	start, re := true, regexp // at the start of a word; in a regular expression
	noClass := 0              // no class closes before this offset
	for i := 0; i < len(text); i++ {
		c := text[i]
		if isSpace(c) {
			start, re = true, regexp
			continue
		}
		if start {
			re = regexp
			next := text[i:]
			if c == '-' && len(next) > 1 && (next[1] == '"' || next[1] == '(' || isFilter(next[1:])) {
				continue
			}
			if p, n := prefixAt(next); n > 0 {
				re = p.regexp() || p == contentPrefix && regexp
				start = false
				i += n - 1
				if i+1 < len(text) && text[i+1] == '"' {
					if end := quoteEnd(text, i+1); end >= 0 {
						i = end
					}
				}
				continue
			}
			if c == '"' {
				if end := quoteEnd(text, i); end >= 0 {
					i = end
				}
			}
			if start = c == '('; !start && c == '"' {
				continue
			}
		}
		switch {
		case c == '(':
			open = append(open, i)
		case c == ')' && len(open) > 0:
			out[open[len(open)-1]] = i
			open = open[:len(open)-1]
		case c == '\\' && re:
			if i+1 < len(text) && !isSpace(text[i+1]) {
				i++
			}
		case c == '[' && re && i >= noClass:
			end := classEnd(text, i)
			if end < 0 {
				noClass = wordEnd(text, i)
			} else {
				i = end
			}
		}
	}
	return out
}

func isFilter(text string) bool {
	_, n := prefixAt(text)
	return n > 0
}

// classEnd returns the offset of the bracket that closes the class which
// begins at text[i], if it does so in the same word, or -1.
func classEnd(text string, i int) int {
	for j := i + 1; j < len(text) && !isSpace(text[j]); j++ {
		switch text[j] {
		case '\\':
			j++
		case '^':
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

func wordEnd(text string, i int) int {
	for i < len(text) && !isSpace(text[i]) {
		i++
	}
	return i
}

// Quote returns text in quotes, so that it is one text to search for in a
// query without the regular expression toggle. A line break cannot be quoted;
// it becomes a space.
func Quote(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", " ").Replace(text) + `"`
}

// QuoteRegexp returns an expression in quotes, so that it is one expression in
// a query with the regular expression toggle, where a backslash keeps the
// meaning that it has in the expression. A line break becomes \n.
func QuoteRegexp(expr string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := 0; i < len(expr); i++ {
		switch c := expr[i]; {
		case c == '\\' && i+1 < len(expr) && expr[i+1] != '\n':
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

// unquote undoes the escapes of a quoted text: \" is a quote, \\ a
// backslash, and any other backslash stands for itself.
func unquote(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	return strings.NewReplacer(`\\`, `\`, `\"`, `"`).Replace(s)
}
