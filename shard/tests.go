package shard

import (
	"regexp"
	"slices"
	"strings"
)

// naming is how tests are named in some languages. Marks, starts and names are in lower case and
// match in any case.
type naming struct {
	marks  []string // parts of a name that end with the dot of an extension; or ends of a name, with the extension
	starts []string // beginnings of a name
	names  []string // whole names, without the extension
	ends   []string // ends of a name without the extension, in exactly this case: FooTest is a test, Latest is not
}

// The naming of most languages. Other languages add to it.
var (
	testMarks  = []string{"_test.", "_tests.", "_unittest.", ".test.", "-test.", "_mock."}
	testStarts = []string{"test_", "test-"}

	plainNames = &naming{marks: testMarks, starts: testStarts}
	specNames  = &naming{marks: append([]string{"_spec.", ".spec.", "-spec."}, testMarks...), starts: testStarts}
	camelNames = &naming{marks: testMarks, starts: testStarts, ends: []string{"Test", "Tests", "TestCase"}}
	bothNames  = &naming{marks: testMarks, starts: testStarts, ends: []string{"Test", "Tests", "Spec"}}

	// The Go compiler treats test_x.go and x.test.go as parts of the product.
	goNames = &naming{marks: []string{"_test.go", "_mock.go"}}
)

// testNames maps an extension in lower case to the naming of its language. Other extensions use
// plainNames. If a language has no specs, then embedded_spec.go and api.spec.json describe the
// product.
var testNames = map[string]*naming{
	"go": goNames,
	"py": {marks: testMarks, starts: testStarts, names: []string{"conftest", "tests"}},
	"rs": {marks: testMarks, starts: testStarts, names: []string{"test", "tests"}},

	"rb": specNames, "cr": specNames, "lua": specNames, "moon": specNames, "coffee": specNames,
	"js": specNames, "jsx": specNames, "mjs": specNames, "cjs": specNames, "vue": specNames, "svelte": specNames,
	"ts": specNames, "tsx": specNames, "mts": specNames, "cts": specNames,

	"java": camelNames, "kt": camelNames, "cs": camelNames, "fs": camelNames, "vb": camelNames, "php": camelNames, "swift": camelNames,
	"m": camelNames, "mm": camelNames, "cc": camelNames, "cpp": camelNames, "cxx": camelNames,

	"scala": bothNames, "groovy": bothNames, "hs": bothNames,
	"erl": {marks: testMarks, starts: testStarts, ends: []string{"_SUITE"}},
}

// hasSpecs reports whether the language of an extension calls its tests specs. Then a directory
// named spec contains tests.
func hasSpecs(ext string) bool {
	n := testNames[ext]
	return n == specNames || n == bothNames
}

// isTest reports whether a file is a test, by its directories and by its name. lower is the path in
// lower case, dirs the kinds of its directories.
func isTest(path, lower string, dirs dirMask) bool {
	if dirs&testDir != 0 {
		return true
	}

	slash := strings.LastIndexByte(lower, '/') + 1
	base := lower[slash:]
	ext, stem := "", base
	if dot := strings.LastIndexByte(base, '.'); dot >= 0 {
		ext, stem = base[dot+1:], base[:dot]
	}

	n := testNames[ext]
	if n == nil {
		n = plainNames
	}
	switch {
	case dirs&specDir != 0 && hasSpecs(ext):
		return true
	case hasMark(base, ext, n.marks), hasAnyPrefix(base, n.starts), slices.Contains(n.names, stem):
		return true
	}

	// Cut the extension from path, not from lower, which may have another length.
	return n.ends != nil && hasAnySuffix(path[:strings.LastIndexByte(path, '.')], n.ends)
}

// hasMark reports whether a name contains one of the marks, which show that a file is a test. A
// mark that includes the extension must be at the end: a_test.go.go is no test.
func hasMark(base, ext string, marks []string) bool {
	return slices.ContainsFunc(marks, func(mark string) bool {
		if ext != "" && strings.HasSuffix(mark, "."+ext) {
			return strings.HasSuffix(base, mark)
		}
		return strings.Contains(base, mark)
	})
}

// TestPaths returns a regular expression for the paths that isTest accepts.
func TestPaths() string {
	const begin, anything, ending = `(?:\A|/)`, `(?s:.*)`, `\z`

	parts := []string{
		begin + anyOf(directoryNames(testDir)) + "/",
		begin + anyOf(directoryNames(specDir)) + "/" + anything + `\.` + anyOf(selectExtensions(hasSpecs)) + ending,

		// The rules of most languages do not apply to Go files, which notGo excludes.
		begin + anyOf(testStarts) + "(?:" + notGo + "|go)?" + ending,
		anyOf(testMarks) + "(?:" + notGo + ")?" + ending,
	}
	for _, ext := range selectExtensions(func(string) bool { return true }) {
		parts = append(parts, testNames[ext].ownExpressions(ext)...)
	}
	slices.Sort(parts)
	return "(?i:" + strings.Join(slices.Compact(parts), "|") + ")"
}

// notGo matches the rest of a path's last part, after a mark or a start, if it does not end in .go.
const notGo = `[^/]*(?:[^/o]|[^/g]o|[^/.]go)|o`

// ownExpressions returns regular expressions for the tests with an extension that the rules of most
// languages do not cover.
func (n *naming) ownExpressions(ext string) (parts []string) {
	last := `\.` + regexp.QuoteMeta(ext) + `\z`

	for _, mark := range n.marks {
		// A mark with its extension stands at the end.
		switch {
		case strings.HasSuffix(mark, "."+ext):
			parts = append(parts, regexp.QuoteMeta(mark)+`\z`)
		case !slices.Contains(testMarks, mark):
			// The last dot of the mark may be that of the extension.
			parts = append(parts, regexp.QuoteMeta(strings.TrimSuffix(mark, "."))+`(?:\.[^/]*)?`+last)
		}
	}
	if n.names != nil {
		parts = append(parts, `(?:\A|/)`+anyOf(n.names)+last)
	}
	if n.ends != nil {
		parts = append(parts, `(?-i:`+anyOf(n.ends)+`)`+last)
	}
	return parts
}

// directoryNames returns the names of the directories of some kinds, sorted.
func directoryNames(mask dirMask) (names []string) {
	for name, m := range dirCategories {
		if m&mask != 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// selectExtensions returns the extensions in testNames for which wanted returns true, sorted.
func selectExtensions(wanted func(ext string) bool) (exts []string) {
	for ext := range testNames {
		if wanted(ext) {
			exts = append(exts, ext)
		}
	}
	slices.Sort(exts)
	return exts
}

// anyOf returns an expression for one of several texts.
func anyOf(texts []string) string {
	quoted := make([]string, len(texts))
	for i, t := range texts {
		quoted[i] = regexp.QuoteMeta(t)
	}
	return "(?:" + strings.Join(quoted, "|") + ")"
}
