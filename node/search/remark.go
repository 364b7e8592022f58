package search

import (
	"bytes"
	"slices"
	"strings"
)

// remark says how the comments and texts of a family of languages look.
type remark struct {
	line   []string // begin a comment that ends with the line
	block  bool     // /* */
	quotes string   // bytes that begin and end a text
}

// The families. What is in none is taken for code throughout.
var remarks = map[string]remark{
	"c":      {line: []string{"//"}, block: true, quotes: `"`},
	"script": {line: []string{"//"}, block: true, quotes: "\"'`"},
	"php":    {line: []string{"//", "#"}, block: true, quotes: `"'`},
	"hash":   {line: []string{"#"}, quotes: `"'`},
	"dash":   {line: []string{"--"}, block: true, quotes: `"'`},
	"lisp":   {line: []string{";"}, quotes: `"`},
	"semi":   {line: []string{"#", ";", "//"}, block: true, quotes: `"`},
	"tex":    {line: []string{"%"}, quotes: `"`},
}

// families tells the family of a language, by its name in go-enry.
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

// prose is texts for people: nothing in them is code.
var prose = []string{"Markdown", "MDX", "Text", "reStructuredText", "AsciiDoc", "Org", "Textile", "Roff", "Roff Manpage", "Texinfo", "Gettext Catalog"}

// inRemark guesses whether the byte at a place of a line stands in a comment
// or in a text. It looks at the line alone, so what a comment of several
// lines holds is known by its stars only.
func inRemark(lang string, line []byte, at int) bool {
	if slices.Contains(prose, lang) {
		return true
	}

	look, ok := remarks[families[lang]]
	if !ok {
		return false
	}
	if look.block && insideStars(line) {
		return true
	}

	// i is always the beginning of something: of a comment, a text, a character,
	// or a byte of code.
	at = min(max(at, 0), len(line))
	for i := 0; i < at; {
		rest := line[i:]
		switch {
		case beginsAny(rest, look.line) && !isDirective(lang, line[:i], rest):
			return true
		case look.block && bytes.HasPrefix(rest, []byte("/*")):
			end := bytes.Index(rest[2:], []byte("*/"))
			if end < 0 || i+2+end+2 > at {
				return true
			}
			i += 2 + end + 2
		case strings.IndexByte(look.quotes, rest[0]) >= 0:
			end := textEnd(rest)
			if i+end > at {
				return !interpolated(rest[:at-i])
			}
			i += end
		case rest[0] == '\'' && len(rest) > 3 && rest[1] == '\\' && rest[3] == '\'':
			i += 4 // '\"' is a character
		case rest[0] == '\'' && len(rest) > 2 && rest[2] == '\'':
			i += 3
		default:
			i++
		}
	}
	return false
}

// insideStars tells a line that begins as those within a comment of several
// lines do: with a star, and then a blank or the end of the comment.
func insideStars(line []byte) bool {
	line = bytes.TrimLeft(line, " \t")
	if len(line) == 0 || line[0] != '*' {
		return false
	}
	return len(line) == 1 || line[1] == ' ' || line[1] == '/' || line[1] == '*'
}

// isDirective tells # that is no comment: of the C preprocessor in assembly,
// of a shell's parameter.
func isDirective(lang string, before, rest []byte) bool {
	if rest[0] != '#' {
		return false
	}
	if strings.HasSuffix(lang, "Assembly") {
		word := bytes.TrimLeft(rest[1:], " \t")
		return beginsAny(word, []string{"define", "if", "include", "undef", "el", "endif"})
	}

	if lang != "Shell" || len(before) == 0 {
		return false
	}
	last := before[len(before)-1]
	return last != ' ' && last != '\t' && last != ';'
}

func beginsAny(b []byte, starts []string) bool {
	for _, s := range starts {
		if bytes.HasPrefix(b, []byte(s)) {
			return true
		}
	}
	return false
}

// textEnd is the length of the text that b begins with, its quotes included;
// that of b and one more when it does not end.
func textEnd(b []byte) int {
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

// interpolated tells whether a text up to a place ends inside ${ } or #{ }.
func interpolated(text []byte) bool {
	open := max(bytes.LastIndex(text, []byte("${")), bytes.LastIndex(text, []byte("#{")))
	return open >= 0 && bytes.LastIndexByte(text, '}') < open
}
