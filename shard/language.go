package shard

import (
	"bytes"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/go-enry/go-enry/v2"
	"github.com/go-enry/go-enry/v2/data"
)

// TrimClassifier frees 4 of the 11 MB of go-enry's classifier: the data about languages that never
// share an extension with another one. Several goroutines may call it; only the first call has an
// effect.
var TrimClassifier = sync.OnceFunc(func() {
	sharesExtension := map[string]bool{}
	for _, languages := range data.LanguagesByExtension {
		for _, l := range languages[min(len(languages), 1):] {
			sharesExtension[l], sharesExtension[languages[0]] = true, true
		}
	}
	maps.DeleteFunc(data.TokensLogProbabilities, func(l string, _ map[string]float64) bool { return !sharesExtension[l] })
})

// SkippedLanguage is the language of files whose content is not in the index.
const SkippedLanguage = "skipped"

// headBytesForLanguage is how many bytes of a file languageOf reads if several languages have its
// extension.
const headBytesForLanguage = 4 << 10

// LanguageOfPath returns the language of a file by its path alone.
func LanguageOfPath(p string) string { return languageOf(p, nil) }

// languageOf returns the language of a file as go-enry does, but faster: the name decides if it
// can, and a few marks in the text decide for the most frequent extensions. Only for the other
// files it calls go-enry's expressions and its classifier.
func languageOf(p string, content []byte) string {
	if l := enry.GetLanguagesByFilename(p, nil, nil); len(l) == 1 {
		return l[0]
	}

	// For these extensions, marks in the text tell the languages apart.
	head := content[:min(len(content), headBytesForLanguage)]
	switch ext := path.Ext(p); ext {
	case ".h":
		return headerLanguage(content[:min(len(content), 4*headBytesForLanguage)])

	// YAML and JSON without signs of a dialect need none of go-enry's expressions.
	case ".yaml", ".json":
		if plainData(head) {
			return map[string]string{".yaml": "YAML", ".json": "JSON"}[ext]
		}
	case ".s", ".S":
		if l := assemblyLanguage(head); l != "" {
			return l
		}
	}

	// If only one language has the extension, the content does not matter.
	byExt := enry.GetLanguagesByExtension(p, nil, nil)
	if len(byExt) == 1 {
		return byExt[0]
	}

	// The extension is unknown. Try the first line, then the name without extensions, as in
	// Dockerfile.prod.
	if len(byExt) == 0 {
		name, _, _ := strings.Cut(path.Base(p), ".")
		for _, l := range [][]string{enry.GetLanguagesByShebang(p, head, nil), enry.GetLanguagesByFilename(name, nil, nil)} {
			if len(l) > 0 {
				return l[0]
			}
		}
		return ""
	}
	return chooseLanguage(p, head, byExt)
}

// chooseLanguage returns which of several languages a file with this path and head has.
func chooseLanguage(p string, head []byte, languages []string) string {
	ext := path.Ext(p)
	for _, m := range marks {
		if m.ext == ext && m.in(head) {
			return m.language
		}
	}

	// Try the expressions, then the interpreter that a script names.
	for _, strategy := range []enry.Strategy{enry.GetLanguagesByContent, enry.GetLanguagesByShebang} {
		found := strategy(p, head, languages)
		if len(found) == 1 {
			return found[0]
		}
		if len(found) > 1 {
			languages = found
		}
	}

	// Let the classifier compare words, unless the file has none or the classifier is often wrong.
	if l := usualLanguage[ext]; l != "" && (classifierFails[ext] || len(bytes.TrimSpace(head)) == 0) {
		return l
	}
	TrimClassifier()
	if found := enry.GetLanguagesByClassifier(p, head, languages); len(found) > 0 {
		return found[0]
	}
	return languages[0]
}

// marks names the language of files for which go-enry has neither an expression nor enough samples.
var marks = []struct {
	ext, language string
	in            func(head []byte) bool
}{
	{".inc", "PHP", func(head []byte) bool { return bytes.Contains(head, []byte("<?php")) }},
	{".m", "MATLAB", func(head []byte) bool {
		line := func(word string) bool { return bytes.HasPrefix(head, []byte(word)) || hasAfter(head, '\n', word) }
		return line("function ") || line("classdef ")
	}},
}

// classifierFails lists extensions for which the classifier is often wrong, because it takes data
// tables for another language. Nearly all of these files have the usual language.
var classifierFails = map[string]bool{".cs": true, ".pl": true, ".pm": true, ".ts": true}

// usualLanguage maps an extension to its most frequent language. It decides if the content of a
// file does not, for example if only the path is known.
var usualLanguage = map[string]string{
	".cfg": "INI",
	".cs":  "C#",
	".fs":  "F#",
	".gs":  "JavaScript",
	".l":   "Lex",
	".m":   "Objective-C",
	".md":  "Markdown",
	".php": "PHP",
	".pl":  "Perl",
	".pm":  "Perl",
	".r":   "R",
	".rs":  "Rust",
	".sql": "SQL",
	".t":   "Perl",
	".ts":  "TypeScript",
	".tsx": "TSX",
	".v":   "Verilog",
}

// headerLanguage distinguishes the languages of .h files by marks of C++ and
// Objective-C, each searched for by its rarest byte.
func headerLanguage(head []byte) string {
	if hasAfter(head, '@', "interface", "protocol", "class", "import") || hasAfter(head, '#', "import") {
		return "Objective-C"
	}

	if hasAfter(head, '\n', "class ", "namespace ", "template") || hasBefore(head, ':', "public") ||
		hasAfter(head, ':', ":") && bytes.Contains(head, []byte("std::")) ||
		hasAfter(head, '"', `C++"`) && bytes.Contains(head, []byte(`extern "C++"`)) {
		return "C++"
	}
	return "C"
}

// hasAfter reports whether one of the words follows a byte somewhere in the text.
func hasAfter(text []byte, b byte, words ...string) bool {
	for i := bytes.IndexByte(text, b); i >= 0; i = bytes.IndexByte(text, b) {
		text = text[i+1:]
		for _, w := range words {
			if len(text) >= len(w) && text[0] == w[0] && string(text[:len(w)]) == w {
				return true
			}
		}
	}
	return false
}

// hasBefore reports whether a word precedes a byte somewhere in the text.
func hasBefore(text []byte, b byte, word string) bool {
	for at := 0; ; at++ {
		i := bytes.IndexByte(text[at:], b)
		if i < 0 {
			return false
		}
		if at += i; at >= len(word) && string(text[at-len(word):at]) == word {
			return true
		}
	}
}

// marks68000 lists the words by which go-enry recognises assembly for the 68000.
var marks68000 = []string{"moveq", "MOVEQ", "movem", "MOVEM", "movep", "MOVEP", "move.", "MOVE.", "move sr", "move\tsr",
	"move usp", "move\tusp", "MOVE SR", "MOVE\tSR", "MOVE USP", "MOVE\tUSP", "btst", "BTST", "dbra", "DBRA"}

// assemblyLanguage returns the assembler of a .s file by the operands of mov; "" if only go-enry's
// expressions can tell.
func assemblyLanguage(head []byte) string {
	found := ""
	rest := head
	for {
		i := bytes.IndexAny(rest, "mM")
		if i < 0 {
			break
		}

		rest = rest[i+1:]
		if len(rest) < 3 || rest[0]|0x20 != 'o' || rest[1]|0x20 != 'v' {
			continue
		}

		// This is mov, movl or movq with an operand as the GNU assembler writes it.
		args := rest[2:]
		if c := args[0] | 0x20; c == 'l' || c == 'q' {
			args = args[1:]
		}

		if trimmed := bytes.TrimLeft(args, " \t\n\f\r"); len(trimmed) > 0 && len(trimmed) < len(args) {
			if trimmed[0] == '%' || trimmed[0] == '$' {
				return "Unix Assembly"
			}
		}

		// Two operands with a comma between them belong to another assembler.
		if trimmed := bytes.TrimLeft(rest[2:], " \t\n\f\r"); len(trimmed) < len(rest)-2 {
			end := bytes.IndexAny(trimmed, " \t\n\f\r%")
			if end < 0 {
				end = len(trimmed)
			}
			if end > 2 && bytes.IndexByte(trimmed[2:end], ',') >= 0 {
				found = "Assembly"
			}
		}
	}

	if found == "" && !slices.ContainsFunc(marks68000, func(m string) bool { return hasAfter(head, m[0], m[1:]) }) {
		return "Assembly"
	}
	return found
}

// plainData reports whether a YAML or JSON file is none of the dialects that go-enry distinguishes:
// API descriptions, and YAML with tabs.
func plainData(head []byte) bool {
	return !bytes.Contains(head, []byte("swagger")) && !bytes.Contains(head, []byte("openapi")) &&
		!bytes.HasPrefix(head, []byte{'\t'}) && !hasAfter(head, '\n', "\t")
}

// isGenerated reports whether the first lines of a file say that a program has written it.
func isGenerated(content []byte) bool {
	head := content[:min(len(content), 1024)]

	// Few files have "enerated", so the other words are rarely searched for.
	return bytes.Contains(head, []byte("DO NOT EDIT")) || bytes.Contains(head, []byte("enerated")) &&
		(bytes.Contains(head, []byte("@generated")) || bytes.Contains(head, []byte("automatically generated")) ||
			bytes.Contains(head, []byte("Autogenerated by")))
}

// Language names the language of a file as the index does, by its path and
// content (the beginning is enough); "" when it has none.
func Language(path string, content []byte) string { return languageOf(path, content) }

// LanguageGlob returns a glob for the file names of a language. name is an extension, the name of
// the language or an alias. The result is "" if the language is unknown.
func LanguageGlob(name string) string {
	name = strings.TrimPrefix(strings.ToLower(name), ".")
	if name != "" && len(enry.GetLanguagesByExtension("x."+name, nil, nil)) > 0 {
		return "*." + name
	}
	lang, _ := enry.GetLanguageByAlias(name)
	endings := enry.GetLanguageExtensions(lang)
	if len(endings) == 0 {
		return ""
	}
	return "*{" + strings.Join(endings, ",") + "}"
}
