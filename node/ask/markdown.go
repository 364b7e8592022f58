package ask

import (
	"fmt"
	"regexp"
	"strings"
)

// Markdown formats an answer; base is the prefix of its links. Only verified citations become
// links. Images, raw HTML and addresses in the model's text become plain text, because the model
// may have copied them from a malicious file.
func Markdown(answer []Piece, base string) string {
	// Replace citations by NUL, which no text contains, while disarming the text.
	var text strings.Builder
	var cites []*Citation
	for _, p := range answer {
		if p.Cite != nil {
			cites = append(cites, p.Cite)
			text.WriteByte(0)
		} else {
			text.WriteString(removeInvisible(p.Text))
		}
	}

	var out strings.Builder
	for i, part := range strings.Split(escapeMarkdown(text.String()), "\x00") {
		if i > 0 {
			out.WriteString(citationLink(cites[i-1], base))
		}
		out.WriteString(part)
	}
	return out.String()
}

// citationLink formats a citation as markdown.
func citationLink(c *Citation, base string) string {
	label := escapeText(strings.NewReplacer("`", "'", "\\", "/", "~", "-", "\n", " ").Replace(removeInvisible(c.Label())))
	if u := c.URL(base); u != "" {
		return fmt.Sprintf("[%s](%s)", label, strings.NewReplacer("(", "%28", ")", "%29").Replace(u))
	}
	// The space keeps the label from joining an address at the end of the text before.
	return " " + label + " (" + string(c.State) + ")"
}

var (
	fence     = regexp.MustCompile("^( {0,3})(?:(```+)([^`]*)|(~~~+)(.*))$")
	fenceEnd  = regexp.MustCompile("^[ \t]*(```+|~~~+)[ \t]*$")
	delimiter = regexp.MustCompile(`(?m)^[ \t>|:-]*-[ \t>|:-]*$`)
)

// escapeMarkdown escapes everything in markdown that would load, link or run something. Code is left as
// it is, because it is only shown.
func escapeMarkdown(text string) string {
	lines := strings.SplitAfter(text, "\n")
	open, indent := "", ""
	// Table cells end at each |, even inside back-quotes, so back-quotes must not span one.
	tables := delimiter.MatchString(text)
	for i, line := range lines {
		bare := strings.TrimRight(line, "\n")

		// As in CommonMark, a block ends with at least as many signs as it began with, and
		// nothing after them. If a renderer saw the end elsewhere, it would treat code as markup.
		if open != "" {
			switch m := fenceEnd.FindStringSubmatch(bare); {
			case m != nil && strings.HasPrefix(m[1], open) && (indent != "" || fence.MatchString(bare)):
				// An indented block may be in a list or not. Ending it this way works in both
				// cases.
				if indent != "" {
					lines[i] = indent + m[1] + line[len(bare):]
				}
				open = ""
				continue
			case strings.TrimSpace(bare) == "" || strings.HasPrefix(bare, indent) || strings.HasPrefix(bare, "\t"):
				continue
			}

			// A less indented line ends the block if it is in a list, so always end it here.
			lines[i-1] += indent + open + "\n"
			open = ""
		}

		if m := fence.FindStringSubmatch(bare); m != nil {
			open, indent = m[2]+m[4], m[1]
			lines[i] = line
			continue
		}
		lines[i] = escapeLine(line, tables)
	}

	return strings.Join(lines, "")
}

// escapeLine leaves code in back-quotes unchanged if it ends on the line and within the table
// cell.
func escapeLine(line string, tables bool) string {
	var out strings.Builder
	for line != "" {
		at := strings.IndexByte(line, '`')
		if at < 0 {
			out.WriteString(escapeText(line))
			break
		}

		run := len(line[at:]) - len(strings.TrimLeft(line[at:], "`"))
		end := endOfCode(line[at+run:], run)
		if end < 0 || tables && strings.Contains(line[at:at+run+end], "|") { // not closed: escape them, so that no renderer finds another end
			out.WriteString(escapeText(line[:at]) + strings.Repeat("\\`", run))
			line = line[at+run:]
			continue
		}

		out.WriteString(escapeText(line[:at]))
		out.WriteString(line[at : at+run+end])
		line = line[at+run+end:]
	}
	return out.String()
}

// endOfCode returns the end of the code that a run of back-quotes opens; -1 if it does not end.
func endOfCode(text string, run int) int {
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

// escapeText escapes the beginnings of links, images, tags and addresses.
func escapeText(text string) string {
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		before, next := byte(' '), byte(0) // next is 0 at the end, where a citation or other text may follow
		if i > 0 {
			before = text[i-1]
		}
		if i+1 < len(text) {
			next = text[i+1]
		}

		switch c := text[i]; {
		// Read escapes in pairs, or the second half of one would unescape what follows. Double a
		// backslash at the end, which would escape the text put after it.
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

		// Renderers also link bare addresses.
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

// isPunct reports whether a backslash escapes b.
func isPunct(b byte) bool {
	return b > ' ' && b < 0x7f && (b == '_' || b == '$' || !isWord(b))
}
