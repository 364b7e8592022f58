package symbol

import (
	"path"
	"strings"

	"github.com/go-enry/go-enry/v2"
)

// extensions maps a language to an extension that ctags knows. nameFor uses it if the extension of
// the file is missing or misleads ctags, which takes .h for C++.
var extensions = map[string]string{
	"C": ".c", "C++": ".cpp", "Objective-C": ".m", "Shell": ".sh", "Python": ".py", "Perl": ".pl", "Ruby": ".rb", "JavaScript": ".js",
	"PHP": ".php", "Tcl": ".tcl", "Awk": ".awk", "Lua": ".lua", "TypeScript": ".ts", "Makefile": ".mk",
}

// HasKeys reports whether the keys of files in a language are symbols.
func HasKeys(language string) bool { return keyReaders[language] != nil }

// MayHaveSymbols reports whether files in a language can have symbols: definitions in code, or keys.
func MayHaveSymbols(language string) bool {
	kind := enry.GetLanguageType(language)
	return HasKeys(language) || language != "" && kind != enry.Data && kind != enry.Prose
}

// Has reports whether ctags can find symbols in a file.
func Has(file, language string) bool {
	_, ok := nameFor(file, language)
	return ok
}

// nameFor returns a name for a file that tells ctags its language, and as little else as possible.
// ok is false for a file in which ctags finds no symbols.
//
//	include/list.h, C   f.c
//	bin/build, Shell    f.sh
//	src/main.go, Go     main.go
//	src/ä b.go, Go      f.go
func nameFor(file, language string) (name string, ok bool) {
	if language == "" {
		return "", false
	}

	switch enry.GetLanguageType(language) {
	case enry.Data, enry.Prose:
		return "", false
	}

	if language == "TSX" {
		return "f.ts", true // ctags knows this dialect by one name only
	}

	base := path.Base(file)
	ext := path.Ext(base)
	if clear, ok := extensions[language]; ok && (ext == "" || ext == ".h" || ext == ".in" || ext == ".inc") {
		if language == "Makefile" && isPlainName(base) {
			return base, true
		}
		return "f" + clear, true
	}

	if isPlainName(base) && len(base) <= 100 {
		return base, true
	}

	if !isPlainName(ext) {
		return "", false
	}
	return "f" + ext, true
}

// isPlainName reports whether s is a name of ASCII letters, digits and some signs that needs no
// quoting anywhere.
func isPlainName(s string) bool {
	return s != "" && s[0] != '-' && strings.Trim(s, ".") != "" && strings.IndexFunc(s, func(r rune) bool {
		return !(r == '.' || r == '_' || r == '-' || r == '+' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z')
	}) < 0
}
