package main

import (
	"bufio"
	"os"
	"strconv"
	"strings"

	"github.com/shoalsearch/shoal/node/paths"
	"golang.org/x/term"
)

// The colors of grep: names magenta, numbers green, separators cyan, matches bold red.
const (
	colorName  = "\x1b[35m"
	colorLine  = "\x1b[32m"
	colorMark  = "\x1b[36m"
	colorMatch = "\x1b[1;31m"
	colorOff   = "\x1b[0m"
)

// maxLineBytes limits the bytes of a line on a terminal. A longer line is cut around its first match.
const maxLineBytes = 400

// printer prints results as lines.
type printer struct {
	out      *bufio.Writer
	color    bool
	terminal bool // replace control characters
}

func (p *printer) paint(color, s string) {
	if p.color {
		p.out.WriteString(color + s + colorOff)
		return
	}
	p.out.WriteString(s)
}

// printName prints the repository and the path of a file.
func (p *printer) printName(f *fileAnswer) {
	p.paint(colorName, p.sanitize(f.Repository))
	p.paint(colorMark, ":")
	p.paint(colorName, oneLine(f.FileName.Text))
}

// oneLine returns a name for a line of results. It quotes a name that could break the line or the
// terminal, as git does.
func oneLine(name string) string {
	if strings.ContainsFunc(name, func(r rune) bool { return r == '\t' || paths.Hidden(r) }) {
		return strconv.Quote(name)
	}
	return name
}

// span is a range of matching bytes in a line.
type span struct{ from, to int }

// printFile prints every line with a match, and with context the other lines of the answer too. As in
// grep, these have dashes in place of colons, and a line of two dashes marks a gap.
func (p *printer) printFile(f *fileAnswer, context bool) {
	last := 0
	for i := range f.Chunks {
		c := &f.Chunks[i]
		number, offset := c.ContentStart.LineNumber, c.ContentStart.ByteOffset

		if context && last > 0 && number > last+1 {
			p.paint(colorMark, "--")
			p.out.WriteByte('\n')
		}

		for line := range strings.Lines(c.Content) {
			// Remove "\r" too, which would move the cursor.
			text := strings.TrimRight(line, "\r\n")
			spans := c.spans(offset, len(text))
			if len(spans) > 0 || context {
				atStart := offset == c.ContentStart.ByteOffset
				atEnd := offset+len(line)-c.ContentStart.ByteOffset >= len(c.Content)
				p.printLine(f, number, text, spans, atStart && c.Cut.Before > 0, atEnd && c.Cut.After > 0)
			}
			last = number
			number++
			offset += len(line)
		}
	}
}

// spans returns the matches in a line of n bytes that begins at offset. Offsets count bytes of the file,
// but the answer has its text as UTF-8: in a file with another encoding spans may be wrong.
func (c *chunkAnswer) spans(offset, n int) []span {
	var out []span
	for _, r := range c.MatchRanges {
		from, to := max(r.Start.ByteOffset-offset, 0), min(r.End.ByteOffset-offset, n)
		if from < to || r.Start.ByteOffset == r.End.ByteOffset && from == to {
			out = append(out, span{from, to})
		}
	}
	return out
}

// printLine prints a line with its matches in color. cutBefore and cutAfter mean that the answer lacks
// the line's beginning or end.
func (p *printer) printLine(f *fileAnswer, number int, text string, spans []span, cutBefore, cutAfter bool) {
	sep := ":"
	if len(spans) == 0 {
		sep = "-"
	}

	p.printName(f)
	p.paint(colorMark, sep)
	p.paint(colorLine, strconv.Itoa(number))
	p.paint(colorMark, sep)

	from, to := 0, len(text)
	if p.terminal && len(text) > maxLineBytes {
		from, to = visiblePart(text, spans)
	}

	if from > 0 || cutBefore {
		p.out.WriteString("…")
	}

	// Do not color a match that overlaps an earlier one, or is not wholly in the printed part.
	at := from
	for _, s := range spans {
		if s.from < at || s.to > to {
			continue
		}
		p.out.WriteString(p.sanitize(text[at:s.from]))
		if s.from < s.to {
			p.paint(colorMatch, p.sanitize(text[s.from:s.to]))
		}
		at = s.to
	}

	p.out.WriteString(p.sanitize(text[at:to]))
	if to < len(text) || cutAfter {
		p.out.WriteString("…")
	}
	p.out.WriteByte('\n')
}

// visiblePart returns the range of a long line to print: about maxLineBytes around its first match.
func visiblePart(text string, spans []span) (from, to int) {
	if len(spans) > 0 {
		from = max(0, spans[0].from-maxLineBytes/4)
	}

	to = min(len(text), from+maxLineBytes)

	// Do not cut a UTF-8 character: all its bytes but the first are 10xxxxxx.
	for from > 0 && text[from]&0xC0 == 0x80 {
		from--
	}
	for to < len(text) && text[to]&0xC0 == 0x80 {
		to++
	}
	return from, to
}

// sanitize replaces characters that would affect the terminal, unless the output is no terminal.
func (p *printer) sanitize(s string) string {
	if !p.terminal {
		return s
	}
	return replaceHidden(s)
}

// replaceHidden replaces hidden and control characters except tabs.
func replaceHidden(s string) string {
	return strings.Map(func(r rune) rune {
		if paths.Hidden(r) {
			return '\uFFFD'
		}
		return r
	}, s)
}

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }
