package layout

import (
	"bytes"
	"fmt"
	"html/template"
	"strings"
	"unicode/utf8"
)

// AppendText appends text of a repository as HTML. Invalid UTF-8 becomes the replacement character.
// Characters that are invisible or reorder others get an element of their own, which isolates and
// names them; copying the text still gives the original.
//
//	a<RLO>b  ->  a<bdi class=hid data-c="U+202E">&#x202E;</bdi>b
func AppendText(dst, text []byte) []byte {
	// Copy each run of plain characters at once, because this function draws every line of a file.
	done := 0 // bytes that are appended
	for i := 0; i < len(text); {
		b := text[i]
		if needsNoEscape[b] {
			i++
			continue
		}
		// The other ASCII characters are escaped or invisible.
		if b < utf8.RuneSelf {
			dst = append(dst, text[done:i]...)
			if escaped := escapes[b]; escaped != "" {
				dst = append(dst, escaped...)
			} else {
				dst = appendHidden(dst, rune(b))
			}
			i++
			done = i
			continue
		}

		// A replacement character in the file itself is three bytes long, and stays.
		r, size := utf8.DecodeRune(text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			dst = append(append(dst, text[done:i]...), "\uFFFD"...)
			done = i + size
		case Hidden(r):
			dst = appendHidden(append(dst, text[done:i]...), r)
			done = i + size
		}
		i += size
	}
	return append(dst, text[done:]...)
}

var escapes = [utf8.RuneSelf]string{'<': "&lt;", '>': "&gt;", '&': "&amp;", '"': "&#34;", '\'': "&#39;"}

// needsNoEscape reports for each byte whether HTML contains it unescaped: most of ASCII.
var needsNoEscape = func() (table [256]bool) {
	for b := range utf8.RuneSelf {
		table[b] = escapes[b] == "" && (b >= ' ' || b == '\n' || b == '\t') && b != 0x7f
	}
	return table
}()

// appendHidden appends an invisible character. HTML does not allow control characters, so those are
// only named.
func appendHidden(dst []byte, r rune) []byte {
	dst = fmt.Appendf(dst, `<bdi class="hid" data-c="U+%04X">`, r)
	if r >= 0xA0 {
		dst = fmt.Appendf(dst, "&#x%X;", r)
	}
	return append(dst, "</bdi>"...)
}

// Hidden reports whether a character is invisible: control characters except tab and line break,
// characters that order or join others, and tags.
func Hidden(r rune) bool {
	switch {
	case r < ' ':
		return r != '\n' && r != '\t'
	case r >= 0x7f && r <= 0x9f, r == 0xad, r == 0x61c, r >= 0x200b && r <= 0x200f, r >= 0x2028 && r <= 0x202e,
		r >= 0x2060 && r <= 0x206f, r == 0xfeff, r >= 0xfff9 && r <= 0xfffb, r >= 0xe0000 && r <= 0xe007f:
		return true
	}
	return false
}

// CountForged counts the characters that make a text look like another one: direction overrides,
// isolates, and tags. Joiners in emoji and accents do not count.
func CountForged(text []byte) int {
	n := 0
	for _, lead := range []byte{0xe2, 0xf3} { // first bytes of all these characters
		for rest := text; ; {
			// Search for the first byte only: that is fast, and hardly any text contains it.
			i := bytes.IndexByte(rest, lead)
			if i < 0 {
				break
			}
			r, _ := utf8.DecodeRune(rest[i:])
			if r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r >= 0xe0000 && r <= 0xe007f {
				n++
			}
			rest = rest[i+1:]
		}
	}
	return n
}

// Plain returns a text for places without elements, such as titles and attributes. Invisible
// characters are written as codes, and invalid UTF-8 is replaced.
func Plain(s string) string {
	s = string([]rune(s)) // each byte that is no UTF-8 is one character
	if strings.IndexFunc(s, Hidden) < 0 {
		return s
	}

	// Use brackets, because there can be no elements here.
	var b strings.Builder
	for _, r := range s {
		if Hidden(r) {
			fmt.Fprintf(&b, "[U+%04X]", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Text is AppendText for templates.
func Text(s string) template.HTML { return template.HTML(AppendText(nil, []byte(s))) }

// Name returns a name (a path, a branch, an author) in an element that isolates its text direction.
func Name(s string) template.HTML {
	return template.HTML(append(AppendName([]byte("<bdi>"), s), "</bdi>"...))
}

// RepoName returns the name of a repository as HTML: its host stands back, and a line may break
// after each slash.
func RepoName(s string) template.HTML {
	parts := strings.Split(s, "/")
	dst := []byte("<bdi>")
	for i, part := range parts {
		last := i == len(parts)-1
		if i == 0 && !last {
			dst = append(AppendName(append(dst, `<span class="dir">`...), part), "/</span><wbr>"...)
			continue
		}
		if dst = AppendName(dst, part); !last {
			dst = append(dst, "/<wbr>"...)
		}
	}
	return template.HTML(append(dst, "</bdi>"...))
}

// AppendName appends a name as HTML. Unlike AppendText it also shows tabs and line breaks.
func AppendName(dst []byte, name string) []byte {
	for i := strings.IndexAny(name, "\t\n"); i >= 0; i = strings.IndexAny(name, "\t\n") {
		dst = appendHidden(AppendText(dst, []byte(name[:i])), rune(name[i]))
		name = name[i+1:]
	}
	return AppendText(dst, []byte(name))
}
