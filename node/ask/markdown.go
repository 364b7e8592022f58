package ask

import (
	"fmt"
	"regexp"
	"strings"
)

// Markdown is an answer with links below base. Only citations that were
// verified are links: images, raw HTML and addresses that the model wrote, for
// itself or because a file told it to, are text.
func Markdown(answer []Piece, base string) string {
	// Citations stand as a character that no text has while the rest is disarmed.
	var text strings.Builder
	var cites []*Citation
	for _, p := range answer {
		if p.Cite != nil {
			cites = append(cites, p.Cite)
			text.WriteByte(0)
		} else {
			text.WriteString(clean(p.Text))
		}
	}

	var out strings.Builder
	for i, part := range strings.Split(disarm(text.String()), "\x00") {
		if i > 0 {
			out.WriteString(link(cites[i-1], base))
		}
		out.WriteString(part)
	}
	return out.String()
}

// link is a citation in markdown.
func link(c *Citation, base string) string {
	label := disarmText(strings.NewReplacer("`", "'", "\\", "/", "~", "-", "\n", " ").Replace(clean(c.Label())))
	if u := c.URL(base); u != "" {
		return fmt.Sprintf("[%s](%s)", label, strings.NewReplacer("(", "%28", ")", "%29").Replace(u))
	}
	// The space keeps the name from becoming the end of an address that the text before began.
	return " " + label + " (" + string(c.State) + ")"
}

var (
	fence     = regexp.MustCompile("^( {0,3})(?:(```+)([^`]*)|(~~~+)(.*))$")
	fenceEnd  = regexp.MustCompile("^[ \t]*(```+|~~~+)[ \t]*$")
	delimiter = regexp.MustCompile(`(?m)^[ \t>|:-]*-[ \t>|:-]*$`)
)

// disarm takes from markdown what would fetch, link or run something: outside
// of code, which is shown as it stands.
func disarm(text string) string {
	lines := strings.SplitAfter(text, "\n")
	open, indent := "", ""
	// Cells of a table end at each |, also within back-quotes, which then quote nothing.
	tables := delimiter.MatchString(text)
	for i, line := range lines {
		bare := strings.TrimRight(line, "\n")

		// As CommonMark has it: a block ends with as many signs as it began with, and nothing
		// behind them. A renderer that saw it end elsewhere would read code as markup.
		if open != "" {
			switch m := fenceEnd.FindStringSubmatch(bare); {
			case m != nil && strings.HasPrefix(m[1], open) && (indent != "" || fence.MatchString(bare)):
				// Whether an indented block stands in a list is not known here, but this ends it in
				// either case.
				if indent != "" {
					lines[i] = indent + m[1] + line[len(bare):]
				}
				open = ""
				continue
			case strings.TrimSpace(bare) == "" || strings.HasPrefix(bare, indent) || strings.HasPrefix(bare, "\t"):
				continue
			}

			// Less indented, it ends the block if that stands in a list: so it is ended always.
			lines[i-1] += indent + open + "\n"
			open = ""
		}

		if m := fence.FindStringSubmatch(bare); m != nil {
			open, indent = m[2]+m[4], m[1]
			lines[i] = line
			continue
		}
		lines[i] = disarmLine(line, tables)
	}

	return strings.Join(lines, "")
}

// disarmLine leaves what stands in back-quotes, where they close on the line
// and in the cell of a table.
func disarmLine(line string, tables bool) string {
	var out strings.Builder
	for line != "" {
		at := strings.IndexByte(line, '`')
		if at < 0 {
			out.WriteString(disarmText(line))
			break
		}

		run := len(line[at:]) - len(strings.TrimLeft(line[at:], "`"))
		end := closing(line[at+run:], run)
		if end < 0 || tables && strings.Contains(line[at:at+run+end], "|") { // they do not close: escaped, so that nobody sees it otherwise
			out.WriteString(disarmText(line[:at]) + strings.Repeat("\\`", run))
			line = line[at+run:]
			continue
		}

		out.WriteString(disarmText(line[:at]))
		out.WriteString(line[at : at+run+end])
		line = line[at+run+end:]
	}
	return out.String()
}

// closing is where a run of so many back-quotes ends, -1 for nowhere.
func closing(text string, run int) int {
	for at := 0; at < len(text); {
		if text[at] != '`' {
			at++
			continue
		}
		n := len(text[at:]) - len(strings.TrimLeft(text[at:], "`"))
		if at += n; n == run {
			return at
		}
	}
	return -1
}

// disarmText escapes what begins links, images, tags and addresses.
func disarmText(text string) string {
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		before, next := byte(' '), byte(0) // a citation, or what else follows, is as a sign
		if i > 0 {
			before = text[i-1]
		}
		if i+1 < len(text) {
			next = text[i+1]
		}

		switch c := text[i]; {
		// Read in pairs, or the second half of one would free what follows. One that would escape
		// what is put behind this text is doubled.
		case c == '\\' && next == 0:
			out.WriteString(`\\`)
		case c == '\\' && next == '<':
			out.WriteString("&lt;")
			i++
		case c == '\\' && isPunct(next):
			out.WriteString(text[i : i+2])
			i++

		case c == '<':
			out.WriteString("&lt;")
		case c == '[' || c == ']' || c == '!' && next == 0:
			out.WriteString(`\` + string(c))

		// Renderers make links of bare addresses too.
		case c == ':' && (strings.HasPrefix(text[i:], "://") || next == 0 && i+1 < len(text)),
			c == '.' && i >= 3 && strings.EqualFold(text[i-3:i], "www"),
			c == '@' && before > ' ' && next != ' ' && next != '\n':
			out.WriteString(`\` + string(c))
		default:
			out.WriteByte(c)
		}
	}
	return out.String()
}

// isPunct reports whether a backslash escapes a character.
func isPunct(b byte) bool {
	return b > ' ' && b < 0x7f && (b == '_' || b == '$' || !isWord(b))
}
