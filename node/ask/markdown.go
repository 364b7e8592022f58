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
			text.WriteString(strings.ReplaceAll(p.Text, "\x00", ""))
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
	label := strings.NewReplacer("[", `\[`, "]", `\]`, "<", "&lt;", "`", "'", "\\", "/", "\n", " ").Replace(c.Label())
	label = address.ReplaceAllString(label, `$1\:$2`)
	if u := c.URL(base); u != "" {
		return fmt.Sprintf("[%s](%s)", label, strings.NewReplacer("(", "%28", ")", "%29").Replace(u))
	}
	return label + " (unverified)"
}

var fence = regexp.MustCompile("^ {0,3}(```+|~~~+)([^`]*)$")

// disarm takes from markdown what would fetch, link or run something: outside
// of code, which is shown as it stands.
func disarm(text string) string {
	lines := strings.SplitAfter(text, "\n")
	open := ""
	for i, line := range lines {
		// As CommonMark has it: a block ends with as many signs as it began with, and nothing
		// behind them. A renderer that saw it end elsewhere would read code as markup.
		bare := strings.TrimRight(line, "\n")

		m := fence.FindStringSubmatch(bare)

		switch {
		case open == "" && m != nil:
			open = m[1]
		case open != "" && m != nil && strings.HasPrefix(m[1], open) && strings.TrimSpace(m[2]) == "":
			open = ""
		case open == "":
			lines[i] = disarmLine(line)
		}
	}

	return strings.Join(lines, "")
}

// disarmLine leaves what stands in back-quotes, where they close on the line.
func disarmLine(line string) string {
	var out strings.Builder
	for line != "" {
		at := strings.IndexByte(line, '`')
		if at < 0 {
			out.WriteString(disarmText(line))
			break
		}

		run := len(line[at:]) - len(strings.TrimLeft(line[at:], "`"))
		end := closing(line[at+run:], run)
		if end < 0 { // they do not close: escaped, so that nobody sees it otherwise
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

var (
	address = regexp.MustCompile(`(?i)\b([a-z][a-z0-9+.-]*):(//|[^\s/:][^\s]*@)`)
	www     = regexp.MustCompile(`(?i)\bwww\.`)
)

// disarmText escapes what begins links, images and tags.
func disarmText(text string) string {
	// Also where the model has escaped the bracket already: two escapes would free it again.
	text = strings.NewReplacer("[", `\[`, "]", `\]`, "<", "&lt;", "\\[", `\[`, "\\]", `\]`, "\\", "\\").Replace(text)
	// Renderers make links of bare addresses too.
	text = address.ReplaceAllString(text, `$1\:$2`)
	return www.ReplaceAllString(text, `www\.`)
}
