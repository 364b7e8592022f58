package shard

import (
	"regexp"
	"slices"
	"strings"
)

// naming is how tests are named in some languages. Marks, starts and names stand in
// small letters and are found in any case.
type naming struct {
	marks  []string // what a name has in it, with the dot in front of its ending; or its end, with the ending
	starts []string // what a name begins with
	names  []string // whole names, without their ending
	ends   []string // what a name ends in, as it is written: FooTest is a test, Latest is none
}

// How tests are named in most languages. A rule of another one adds to it.
var (
	testMarks  = []string{"_test.", "_tests.", "_unittest.", ".test.", "-test.", "_mock."}
	testStarts = []string{"test_", "test-"}

	plainNames = &naming{marks: testMarks, starts: testStarts}
	specNames  = &naming{marks: append([]string{"_spec.", ".spec.", "-spec."}, testMarks...), starts: testStarts}
	camelNames = &naming{marks: testMarks, starts: testStarts, ends: []string{"Test", "Tests", "TestCase"}}
	bothNames  = &naming{marks: testMarks, starts: testStarts, ends: []string{"Test", "Tests", "Spec"}}

	// The compiler takes test_x.go and x.test.go for parts of the product.
	goNames = &naming{marks: []string{"_test.go", "_mock.go"}}
)

// testNames is the naming of the languages that have one of their own, by the ending
// of a file in small letters; plainNames is that of all others. Where a language has
// no specs, embedded_spec.go and api.spec.json describe the product.
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

// hasSpecs reports whether tests are called specs in the language of an ending, so
// that a directory of that name has tests in it.
func hasSpecs(ext string) bool {
	n := testNames[ext]
	return n == specNames || n == bothNames
}

// isTest judges a path by its directories and, by the rules of its language, its
// name. lower is the path in small letters.
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
	case marked(base, ext, n.marks), prefixAny(base, n.starts), slices.Contains(n.names, stem):
		return true
	}

	// As it is written: without its ending, which may have other letters in small ones.
	return n.ends != nil && suffixAny(path[:strings.LastIndexByte(path, '.')], n.ends)
}

// marked reports whether a name has one of some marks in it. One with the ending stands at
// the end: a_test.go.go is no test.
func marked(base, ext string, marks []string) bool {
	return slices.ContainsFunc(marks, func(mark string) bool {
		if ext != "" && strings.HasSuffix(mark, "."+ext) {
			return strings.HasSuffix(base, mark)
		}
		return strings.Contains(base, mark)
	})
}

// TestPaths is a regular expression for the paths that isTest takes: what is in a
// directory for tests, or is named as tests are in its language.
func TestPaths() string {
	const begin, all, ending = `(?:\A|/)`, `(?s:.*)`, `\z`

	parts := []string{
		begin + anyOf(dirsWith(testDir)) + "/",
		begin + anyOf(dirsWith(specDir)) + "/" + all + `\.` + anyOf(extsWith(hasSpecs)) + ending,

		// What is no rule of a language holds in all but Go: there is no other way to say that.
		begin + anyOf(testStarts) + "(?:" + notGo + "|go)?" + ending,
		anyOf(testMarks) + "(?:" + notGo + ")?" + ending,
	}
	for _, ext := range extsWith(func(string) bool { return true }) {
		parts = append(parts, testNames[ext].exprs(ext)...)
	}
	slices.Sort(parts)
	return "(?i:" + strings.Join(slices.Compact(parts), "|") + ")"
}

// notGo is what may follow a mark or a start in the last part of a path that does
// not end in .go.
const notGo = `[^/]*(?:[^/o]|[^/g]o|[^/.]go)|o`

// exprs are the expressions for the files of an ending that the rules of most
// languages do not take.
func (n *naming) exprs(ext string) (parts []string) {
	last := `\.` + regexp.QuoteMeta(ext) + `\z`

	for _, mark := range n.marks {
		// A mark with its ending stands at the end.
		switch {
		case strings.HasSuffix(mark, "."+ext):
			parts = append(parts, regexp.QuoteMeta(mark)+`\z`)
		case !slices.Contains(testMarks, mark):
			// Its last dot may be that of the ending.
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

// dirsWith lists the names of directories that say something.
func dirsWith(mask dirMask) (names []string) {
	for name, m := range dirCategories {
		if m&mask != 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// extsWith lists the endings with a naming of their own that are wanted.
func extsWith(wanted func(ext string) bool) (exts []string) {
	for ext := range testNames {
		if wanted(ext) {
			exts = append(exts, ext)
		}
	}
	slices.Sort(exts)
	return exts
}

// anyOf is an expression for one of some texts.
func anyOf(texts []string) string {
	quoted := make([]string, len(texts))
	for i, t := range texts {
		quoted[i] = regexp.QuoteMeta(t)
	}
	return "(?:" + strings.Join(quoted, "|") + ")"
}
