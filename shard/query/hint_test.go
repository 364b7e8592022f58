package query

import (
	"slices"
	"strings"
	"testing"
)

// A filter of another search engine is still a word, and a hint says what to write instead. Code
// that looks like a filter gets no hint.
func TestHint_namesTheReplacementOfAnotherEnginesFilter(t *testing.T) {
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

		// If only some values make a filter, other words are code.
		"is:archived select:repo":       {"archived:only", "type:repo"},
		"is:true select:all":            nil,
		"path::Path user::Name before:": nil,

		// A revision after a repository gets a hint.
		"repo:odd@main x":                  {"rev: names the revision"},
		`-r:^a/odd$@v1:v2 (repo:b@x)`:      {"rev: names the revision", "rev: names the revision"},
		`repo:a\@b repo:[@x] repo:@a r:b@`: nil,

		// Each filter of other search engines gets its hint, and none of ours does.
		"path:src language:go symbol:Foo":      {"file: does that", "lang: does that", "sym: does that"},
		"org:acme user:joe extension:go":       {"repo: does that", "repo: does that", "file: does that"},
		"Author:joe committer:joe message:fix": {"type:commit author:", "type:commit author:", "type:commit message:"},
		"before:2026-01-01 after:yesterday":    {"at:2026-01-31", "from a day on"},
		"repohasfile:x license:mit":            {"no filter", "no filter"},
		"content:a file:b repo:c rev:d lang:go sym:e context:f archived:no fork:no visibility:any case:yes count:1 timeout:1s at:2026": nil,
	} {
		q, err := Parse(text, Options{})
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		says := func(h Hint, want string) bool { return strings.Contains(h.String(), want) }
		if !slices.EqualFunc(q.Hints, want, says) {
			t.Errorf("%s: %q, want %q", text, q.Hints, want)
		}
		for _, h := range q.Hints {
			if !strings.HasPrefix(text[h.Offset:], h.Word) {
				t.Errorf("%s: %q does not stand at %d", text, h.Word, h.Offset)
			}
		}
	}
}

func TestHint_suggestsTheRevisionFilter(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"repo:odd@main": "repo:odd rev:main", "r:^odd$@v1": "r:^odd$ rev:v1", "-r:odd@v1": "", "r:a@b:c": ""} {
		if q, err := Parse(text, Options{}); err != nil || len(q.Hints) != 1 || q.Hints[0].Ours != want {
			t.Errorf("%s: %+v, %v", text, q, err)
		}
	}
}
