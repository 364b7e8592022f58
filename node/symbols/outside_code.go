package symbols

import (
	"bytes"
	"slices"
	"strings"
)

// syntax describes comments and string literals in a family of languages.
type syntax struct {
	line   []string // begin a comment that ends with the line
	block  bool     // /* */
	quotes string   // bytes that begin and end a string literal
}

// The families of languages. Other languages count as code throughout.
var syntaxes = map[string]syntax{
	"c":      {line: []string{"//"}, block: true, quotes: `"`},
	"script": {line: []string{"//"}, block: true, quotes: "\"'`"},
	"php":    {line: []string{"//", "#"}, block: true, quotes: `"'`},
	"hash":   {line: []string{"#"}, quotes: `"'`},
	"dash":   {line: []string{"--"}, block: true, quotes: `"'`},
	"lisp":   {line: []string{";"}, quotes: `"`},
	"semi":   {line: []string{"#", ";", "//"}, block: true, quotes: `"`},
	"tex":    {line: []string{"%"}, quotes: `"`},
}

// families has the family of each language, by its name in go-enry.
var families = map[string]string{
	"C": "c", "C++": "c", "C#": "c", "Objective-C": "c", "Objective-C++": "c", "Go": "script", "Java": "c", "Kotlin": "c", "Scala": "c",
	"Rust": "c", "Swift": "c", "Dart": "script", "Zig": "c", "D": "c", "Cuda": "c", "GLSL": "c", "HLSL": "c", "Verilog": "c", "SystemVerilog": "c",
	"Protocol Buffer": "c", "Solidity": "script", "Groovy": "script", "Yacc": "c", "Lex": "c", "Linker Script": "c", "CSS": "script", "SCSS": "script", "Less": "script",
	"JavaScript": "script", "TypeScript": "script", "TSX": "script", "JSX": "script", "Vue": "script", "Svelte": "script",
	"PHP": "php", "Python": "hash", "Ruby": "hash", "Shell": "hash", "Perl": "hash", "R": "hash", "Elixir": "hash", "Julia": "hash", "Nim": "hash",
	"Tcl": "hash", "CMake": "hash", "Makefile": "hash", "Dockerfile": "hash", "YAML": "hash", "TOML": "hash", "Nix": "hash", "Awk": "hash",
	"PowerShell": "hash", "Starlark": "hash", "Crystal": "hash", "GDScript": "hash", "Cython": "hash",
	"Lua": "dash", "SQL": "dash", "PLpgSQL": "dash", "PLSQL": "dash", "TSQL": "dash", "Haskell": "dash", "Elm": "dash", "Ada": "dash", "VHDL": "dash", "PureScript": "dash",
	"Common Lisp": "lisp", "Emacs Lisp": "lisp", "Scheme": "lisp", "Racket": "lisp", "Clojure": "lisp",
	"Assembly": "semi", "Unix Assembly": "semi", "LLVM": "semi", "INI": "semi",
	"TeX": "tex", "Erlang": "tex", "MATLAB": "tex", "Prolog": "tex",
}

// prose lists text formats without any code.
var prose = []string{"Markdown", "MDX", "Text", "reStructuredText", "AsciiDoc", "Org", "Textile", "Roff", "Roff Manpage", "Texinfo", "Gettext Catalog"}

// OutsideCode guesses whether the byte at an offset of a line is in a comment or a string literal.
// It only examines the line, so it recognizes multi-line comments by their leading stars.
func OutsideCode(lang string, line []byte, at int) bool { return tokenAt(lang, line, at) != code }

// InComment guesses whether the byte at an offset of a line is in a comment, or in a text without any
// code.
func InComment(lang string, line []byte, at int) bool { return tokenAt(lang, line, at) == comment }

// tokenAt returns the kind of token around the byte at an offset of a line. Prose is a comment.
func tokenAt(lang string, line []byte, at int) token {
	if slices.Contains(prose, lang) {
		return comment
	}

	syntax, ok := syntaxes[families[lang]]
	if !ok {
		return code
	}
	if syntax.block && insideStars(line) {
		return comment
	}

	// Read tokens until one reaches beyond the byte.
	at = min(max(at, 0), len(line))
	for i := 0; i < at; {
		kind, n := syntax.token(lang, line[:i], line[i:])
		if i+n > at {
			if kind == literal && interpolated(line[i:at]) {
				kind = code
			}
			return kind
		}
		i += n
	}
	return code
}

// token is a kind of token in a line.
type token uint8

const (
	code token = iota // one byte of it, or a character literal
	comment
	literal // a string literal
)

// token returns the kind and length of the token at the start of rest. before is the line up to
// there. A token that does not end on the line is one byte longer than rest.
func (s *syntax) token(lang string, before, rest []byte) (token, int) {
	switch {
	case beginsAny(rest, s.line) && !isDirective(lang, before, rest):
		return comment, len(rest) + 1
	case s.block && bytes.HasPrefix(rest, []byte("/*")):
		end := bytes.Index(rest[2:], []byte("*/"))
		if end < 0 {
			return comment, len(rest) + 1
		}
		return comment, 2 + end + 2
	case strings.IndexByte(s.quotes, rest[0]) >= 0:
		return literal, literalEnd(rest)

	// In languages where ' does not begin a string, it begins a character such as '\"' or '"', or
	// something else.
	case rest[0] == '\'' && len(rest) > 3 && rest[1] == '\\' && rest[3] == '\'':
		return code, 4
	case rest[0] == '\'' && len(rest) > 2 && rest[2] == '\'':
		return code, 3
	}
	return code, 1
}

// insideStars reports whether a line looks like one inside a multi-line comment: a star, then a
// blank or the end of the comment.
func insideStars(line []byte) bool {
	line = bytes.TrimLeft(line, " \t")
	if len(line) == 0 || line[0] != '*' {
		return false
	}
	return len(line) == 1 || line[1] == ' ' || line[1] == '/' || line[1] == '*'
}

// isDirective reports whether # does not begin a comment: in assembly, a preprocessor directive; in
// a shell, an expansion such as ${#list}.
func isDirective(lang string, before, rest []byte) bool {
	if rest[0] != '#' {
		return false
	}
	if strings.HasSuffix(lang, "Assembly") {
		// "el" covers else and elif.
		word := bytes.TrimLeft(rest[1:], " \t")
		return beginsAny(word, []string{"define", "if", "include", "undef", "el", "endif"})
	}

	if lang != "Shell" || len(before) == 0 {
		return false
	}
	last := before[len(before)-1]
	return last != ' ' && last != '\t' && last != ';'
}

// beginsAny reports whether b begins with one of starts.
func beginsAny(b []byte, starts []string) bool {
	for _, s := range starts {
		if bytes.HasPrefix(b, []byte(s)) {
			return true
		}
	}
	return false
}

// literalEnd returns the length of the string literal at the start of b, including quotes, or
// len(b)+1 if it does not end.
func literalEnd(b []byte) int {
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case b[0]:
			return i + 1
		}
	}
	return len(b) + 1
}

// interpolated reports whether a string literal up to an offset ends inside ${ } or #{ }, which is
// code.
func interpolated(text []byte) bool {
	open := max(bytes.LastIndex(text, []byte("${")), bytes.LastIndex(text, []byte("#{")))
	return open >= 0 && bytes.LastIndexByte(text, '}') < open
}
