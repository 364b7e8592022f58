package query

import (
	"fmt"
	"slices"
	"strings"
)

// Hint is about a word that is a filter in other search engines and plain text here.
type Hint struct {
	Offset int    // offset of the word in bytes, from 0
	Word   string // as it is in the query
	Say    string // what to write here for the same meaning
	Ours   string // our filter that can replace the word; "" if there is none
}

func (h Hint) String() string {
	if name, _ := prefixAt(h.Word, false); name == repoPrefix {
		return fmt.Sprintf("%s searches repositories with an @ in their names: %s", h.Word, h.Say)
	}
	return fmt.Sprintf("%s is searched for as text: %s", h.Word, h.Say)
}

// foreignFilters are filters of other search engines whose names are no filters here. If a row has
// values, a word with another value is probably code and gets no hint.
var foreignFilters = []struct {
	names  []string
	values []string // nil means any
	say    string   // how to get the same here, or that nothing does that
	ours   string   // our filter with the same values; "" if there is none
}{
	{[]string{"patterntype"}, []string{"keyword", "literal", "regexp", "standard", "structural"}, "whether words are expressions is a switch beside the query: isRegexEnabled, --regexp, .* in the box", ""},
	{[]string{"regex"}, nil, "whether words are expressions is a switch beside the query: isRegexEnabled, --regexp, .* in the box", ""},
	{[]string{"public"}, []string{"yes", "no", "only"}, "visibility:public or visibility:private does that", ""},
	{[]string{"t"}, []string{"file", "filematch", "filename", "path", "repo"}, "type:file or type:repo does that", ""},
	{[]string{"select"}, []string{"repo", "file", "file.path", "file.directory", "file.owners", "content", "symbol", "commit.diff.added", "commit.diff.removed"}, "type:repo or type:file says what is shown, and sym: searches the names that are defined", ""},
	{[]string{"is"}, []string{"archived", "fork", "generated", "internal", "private", "public", "vendored"}, "archived:only, fork:only and visibility: do that for repositories; no filter asks for generated or vendored files", ""},

	// Filters for files and repositories.
	{[]string{"path", "filename"}, nil, `file: does that, by an expression: file:^src/ or file:\.go$`, "file"},
	{[]string{"extension", "ext"}, nil, `file: does that, by an expression: file:\.go$, or lang: by language`, ""},
	{[]string{"language"}, nil, "lang: does that", "lang"},
	{[]string{"symbol"}, nil, "sym: does that, by an expression", "sym"},
	{[]string{"org", "user", "owner"}, nil, "repo: does that, by an expression: repo:^github\\.com/acme/ for all that are acme's", ""},
	{[]string{"repogroup"}, nil, "context: does that", "context"},
	{[]string{"license", "repohasfile", "repohascommitafter"}, nil, "no filter asks for that here", ""},

	// Filters for commits, which only queries with type:commit or type:diff return.
	{[]string{"author", "committer"}, nil, "type:commit author: searches commits by who wrote them", ""},
	{[]string{"message", "msg"}, nil, "type:commit message: searches commits by their message", ""},
	{[]string{"before", "until"}, nil, "type:commit until: searches commits; at:2026-01-31 searches the files as they were that day", ""},
	{[]string{"after", "since"}, nil, "type:commit since: searches commits from a day on", ""},
}

// addRevisionHint adds a hint if the value of a repo: filter has a revision after the name, as
// other search engines write it: repo:name@rev. The value begins at offset at.
func (p *parser) addRevisionHint(value string, at int) {
	name, rev, ok := strings.Cut(value, "@")
	if !ok || name == "" || rev == "" || strings.HasSuffix(name, `\`) || checkRegexp(name, at) != nil {
		return
	}
	start := at - len("r:") // where the filter begins
	if strings.HasSuffix(p.text[:at], repoPrefix.String()) {
		start = at - len(repoPrefix.String())
	}
	h := Hint{Offset: start, Word: p.text[start:p.pos], Say: "rev: names the revision"}
	if !strings.Contains(rev, ":") && !strings.HasSuffix(p.text[:start], "-") { // a single revision
		h.Ours = p.text[start:at] + name + " " + revPrefix.String() + rev
	}
	p.out.Hints = append(p.out.Hints, h)
}

// addHint adds a hint if a word is probably meant as a filter of another search engine.
func (p *parser) addHint(word string, offset int) {
	name, value, _ := strings.Cut(word, ":")
	if value == "" || value[0] == ':' {
		return // a name in C++ or Rust
	}

	for _, f := range foreignFilters {
		if !slices.Contains(f.names, strings.ToLower(name)) || f.values != nil && !slices.Contains(f.values, strings.ToLower(value)) {
			continue
		}
		sameWord := func(h Hint) bool { return h.Word == word }
		if !slices.ContainsFunc(p.out.Hints, sameWord) {
			h := Hint{Offset: offset, Word: word, Say: f.say}
			if f.ours != "" {
				h.Ours = f.ours + ":" + value
			}
			p.out.Hints = append(p.out.Hints, h)
		}
	}
}
