package markdown

import "bytes"

// nested reports whether a line of a document opens more than mostDepth quotes, lists and items
// within each other. The parser's time grows with the square of their number and it cannot be
// stopped in between, so each line is checked first.
//
//	> - 1. text     three
//	- - - - -       none: a horizontal rule
func nested(src []byte) bool {
	for line := range bytes.Lines(src) {
		if markers(bytes.TrimRight(line, "\r\n")) > mostDepth {
			return true
		}
	}
	return false
}

// markers counts the quote and list markers at the start of a line.
func markers(line []byte) (n int) {
	rule := ruleFrom(line)
	for at := 0; at < len(line) && n <= mostDepth; {
		switch c := line[at]; {
		case c == ' ' || c == '\t':
			at++
			continue
		case c == '>':
			at++
		case at >= rule:
			return n
		case c == '-' || c == '+' || c == '*':
			if at++; !blankAt(line, at) {
				return n
			}
		default:
			if at = numberEnd(line, at); at < 0 {
				return n
			}
		}
		n++
	}
	return n
}

// ruleFrom returns where the trailing part of a line begins that consists only of - or *, and
// blanks. Such a part is a horizontal rule, not nested lists.
func ruleFrom(line []byte) int {
	text := bytes.TrimRight(line, " \t")
	if len(text) == 0 {
		return len(line)
	}
	mark := text[len(text)-1]
	if mark != '-' && mark != '*' {
		return len(line)
	}
	from := len(text)
	for from > 0 && (text[from-1] == mark || text[from-1] == ' ' || text[from-1] == '\t') {
		from--
	}
	return from
}

// numberEnd returns the end of a list number such as "1." or "23)"; -1 if there is none.
func numberEnd(line []byte, at int) int {
	from := at
	for at < len(line) && at-from < 9 && line[at] >= '0' && line[at] <= '9' {
		at++
	}
	if at == from || at == len(line) || line[at] != '.' && line[at] != ')' || !blankAt(line, at+1) {
		return -1
	}
	return at + 1
}

// blankAt reports whether a line has a blank at an offset, or ends there.
func blankAt(line []byte, at int) bool {
	return at == len(line) || line[at] == ' ' || line[at] == '\t'
}
