package query

import (
	"slices"
	"strings"
	"testing"
)

// A filter of another search is still a word, and who writes it is told what to
// write. Code that looks like one is left alone.
func TestFiltersOfOthersAreHinted(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"foo patterntype:regexp":        {"isRegexEnabled"},
		"(foo patternType:literal)":     {"patternType:literal is searched for as text"},
		"foo public:yes or bar t:repo":  {"visibility:public", "type:repo"},
		"foo -public:no":                {"visibility:private"},
		"public:yes public:yes":         {"visibility:public"},
		"public: int x":                 nil,
		"t:int public:string t:":        nil,
		`"public:yes" content:t:repo`:   nil,
		"type:repo visibility:public x": nil,
	} {
		q, err := Parse(text, Options{})
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if !slices.EqualFunc(q.Hints, want, strings.Contains) {
			t.Errorf("%s: %q, want %q", text, q.Hints, want)
		}
	}
}
