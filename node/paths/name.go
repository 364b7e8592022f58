package paths

import (
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Written is the one written form of a name of a file: its text, or, where it has bytes
// that are no UTF-8 or characters that nobody sees, JSON's escapes of them. Each byte that
// is no UTF-8 is \ufffd, since JSON can say no more of it.
func Written(name string) string {
	if !escapes(name) {
		return name
	}

	var b strings.Builder
	for i, size := 0, 0; i < len(name); i += size {
		var r rune
		r, size = utf8.DecodeRuneInString(name[i:])
		if r != utf8.RuneError && !Hidden(r) && r != '\t' {
			b.WriteString(name[i : i+size])
			continue
		}
		b.WriteString(Escape(r))
	}
	return b.String()
}

// escapes reports whether a name differs from its written form.
func escapes(name string) bool {
	return strings.ContainsFunc(name, func(r rune) bool { return r == utf8.RuneError || r == '\t' || Hidden(r) })
}

// LinkTarget returns the path in the repository to which a symbolic link leads; ok is false
// for one that leads out of it.
func LinkTarget(link, target string) (at string, ok bool) {
	at = path.Join(path.Dir(link), target)
	return at, target != "" && !path.IsAbs(target) && at != ".." && !strings.HasPrefix(at, "../")
}

// Quoted is the written form of a name as a string of JSON, which can be copied into the
// arguments of a call.
func Quoted(name string) string {
	text := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace
	if !escapes(name) {
		return `"` + text(name) + `"`
	}

	// The escapes are JSON's already.
	var b strings.Builder
	for i, size := 0, 0; i < len(name); i += size {
		_, size = utf8.DecodeRuneInString(name[i:])
		if part := name[i : i+size]; escapes(part) {
			b.WriteString(Written(part))
		} else {
			b.WriteString(text(part))
		}
	}
	return `"` + b.String() + `"`
}

// Escape is a character as JSON writes it by its code: one of more than 16 bits is two.
func Escape(r rune) string {
	text := ""
	for _, unit := range utf16.AppendRune(nil, r) {
		text += fmt.Sprintf(`\u%04x`, unit)
	}
	return text
}

// Hidden reports whether nobody sees a character where it stands. Joiners are none: letters
// of some scripts, and pictures of several, are written with them.
func Hidden(r rune) bool {
	const nonJoiner, joiner = 0x200c, 0x200d
	return r != '\t' && r != nonJoiner && r != joiner && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

// Alike reports whether a text is a written form that may stand for a name other than
// itself.
func Alike(text string) bool {
	return strings.ContainsRune(text, utf8.RuneError) || codes.MatchString(text)
}

// codes matches characters that are written by their codes.
var codes = regexp.MustCompile(`(?i)(?:\\u[0-9a-f]{4})+`)

// Characters is a text with the characters that it writes by their codes.
func Characters(text string) string {
	return codes.ReplaceAllStringFunc(text, func(escaped string) string {
		var units []uint16
		for at := 0; at < len(escaped); at += 6 {
			n, _ := strconv.ParseUint(escaped[at+2:at+6], 16, 16) // the expression has no others
			units = append(units, uint16(n))
		}
		return string(utf16.Decode(units))
	})
}
