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

// Written returns the one written form of a file name. Bytes that are not UTF-8 and invisible
// characters become JSON's escapes, and so does a space at its beginning, which would look like an
// indentation; everything else stays. Each byte that is not UTF-8 becomes \ufffd, because JSON cannot
// say more about it.
func Written(name string) string {
	if !escapes(name) {
		return name
	}

	var b strings.Builder
	for i, size := 0, 0; i < len(name); i += size {
		var r rune
		r, size = utf8.DecodeRuneInString(name[i:])
		if r != utf8.RuneError && !Hidden(r) && r != '\t' && (r != ' ' || i > 0) {
			b.WriteString(name[i : i+size])
			continue
		}
		b.WriteString(Escape(r))
	}
	return b.String()
}

// escapes reports whether a name differs from its written form.
func escapes(name string) bool {
	return strings.HasPrefix(name, " ") || strings.ContainsFunc(name, func(r rune) bool { return r == utf8.RuneError || r == '\t' || Hidden(r) })
}

// LinkTarget returns the path in the repository to which a symbolic link points; ok is false if it
// points outside.
func LinkTarget(link, target string) (at string, ok bool) {
	at = path.Join(path.Dir(link), target)
	return at, target != "" && !path.IsAbs(target) && at != ".." && !strings.HasPrefix(at, "../")
}

// Quoted returns the written form of a name as a JSON string, which can be copied into the
// arguments of a call.
func Quoted(name string) string {
	text := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace
	if !escapes(name) {
		return `"` + text(name) + `"`
	}

	// The escapes are JSON already.
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

// Escape returns a character as JSON writes it by its code. A character of more than 16 bits has
// two codes.
func Escape(r rune) string {
	text := ""
	for _, unit := range utf16.AppendRune(nil, r) {
		text += fmt.Sprintf(`\u%04x`, unit)
	}
	return text
}

// Hidden reports whether a character is invisible. Joiners are not: letters of some scripts, and
// combined pictures, need them.
func Hidden(r rune) bool {
	const nonJoiner, joiner = 0x200c, 0x200d
	return r != '\t' && r != nonJoiner && r != joiner && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

// Alike reports whether a text is a written form that may also stand for another name.
func Alike(text string) bool {
	return strings.ContainsRune(text, utf8.RuneError) || codes.MatchString(text)
}

// codes matches characters that are written by their codes.
var codes = regexp.MustCompile(`(?i)(?:\\u[0-9a-f]{4})+`)

// Characters returns a text in which characters written by their codes are replaced by themselves.
func Characters(text string) string {
	return codes.ReplaceAllStringFunc(text, func(escaped string) string {
		var units []uint16
		for at := 0; at < len(escaped); at += 6 {
			n, _ := strconv.ParseUint(escaped[at+2:at+6], 16, 16) // the expression matches only hexadecimal digits
			units = append(units, uint16(n))
		}
		return string(utf16.Decode(units))
	})
}
