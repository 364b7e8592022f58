package markdown

import "bytes"

// nested reports whether a line of a document opens more quotes, lists and items
// within each other than are drawn. The parser takes time by the square of their
// number, and has no way to stop on the way, so each line is looked at before.
//
//	> - 1. text     three
//	- - - - -       none: a rule across the page
func nested(src []byte) bool {
	for line := range bytes.Lines(src) {
		if markers(bytes.TrimRight(line, "\r\n")) > mostDepth {
			return true
		}
	}
	return false
}

// markers counts the marks of containers that a line begins with.
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

// ruleFrom is where the end of a line begins that is nothing but one of - and *, and
// blanks: there it is a rule across the page, and no list.
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

// numberEnd is where the mark of a numbered item ends, as 1. or 23), and -1 where
// there is none.
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

// blankAt reports whether a line goes on with a blank, or ends.
func blankAt(line []byte, at int) bool {
	return at == len(line) || line[at] == ' ' || line[at] == '\t'
}
