package web

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/search"
	"github.com/shoalsearch/shoal/node/symbols"
	"github.com/shoalsearch/shoal/shard"
	"github.com/shoalsearch/shoal/shard/lex"
	"github.com/shoalsearch/shoal/shard/query"
)

// A mark is at the right bytes, also in files that are not UTF-8.
func TestMatchMarks_standAroundMatchesInFilesThatAreNotUTF8(t *testing.T) {
	t.Parallel()
	f := &search.File{Repository: "r", Path: "a.txt", Chunks: []shard.Chunk{{
		Content: []byte("caf\xe9 needle\n"), Start: shard.Position{Offset: 10, Line: 2, Column: 1},
		Ranges: []shard.Range{{Start: shard.Position{Offset: 15, Line: 2, Column: 6}, End: shard.Position{Offset: 21, Line: 2, Column: 12}}},
	}}}
	if got := string(appendFile(nil, f, "", layout.Box{}, marking{}, folded)); !strings.Contains(got, "caf\uFFFD <mark>needle</mark>") {
		t.Errorf("the mark is not around needle: %s", got)
	}
}

// A row says how much of its line is left out, by the answer and by the page.
func TestSourceRow_tellsHowMuchOfALineIsCut(t *testing.T) {
	t.Parallel()
	f := &search.File{Repository: "r", Path: "a.txt", Chunks: []shard.Chunk{{
		Content: []byte("tail\nwhole\nhead" + strings.Repeat("x", longestLine)), Before: 9000, After: 7, Start: shard.Position{Offset: 9000, Line: 1, Column: 9001},
	}}}
	got := string(appendFile(nil, f, "", layout.Box{}, marking{}, folded))
	for _, want := range []string{`<span class="cut">9,000 bytes</span>`, `<span class="cut">11 bytes</span>`} {
		if strings.Count(got, want) != 1 {
			t.Errorf("want %s once: %s", want, got)
		}
	}
}

func TestSearchPage_listsRepositories(t *testing.T) {
	t.Parallel()
	repos := []browse.RepoInfo{{ID: 7, Name: "acme/shoal"}}
	rows := dating{time.Now}.repoRows(repos, layout.Box{Query: "type:repo needle"})
	if len(rows) != 1 || rows[0].Name != "acme/shoal" || !strings.Contains(rows[0].Search, "needle") {
		t.Errorf("repoRows = %+v", rows)
	}
}

// A search linked from a repository only covers that repository, even if the query has an or.
func TestRepositoryRow_searchLinkStaysInTheRepository(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"type:repo needle":           "reposet:\"r\" needle",
		"a or b type:repo":           "reposet:\"r\" (a or b)",
		"a type:repo OR b":           "reposet:\"r\" (a OR b)",
		"a or type:repo":             "reposet:\"r\" a",
		"a or b type:repo count:all": "reposet:\"r\" (a or b count:all)",
		"type:repo":                  "reposet:\"r\"",
		"type:repo x type:file":      "reposet:\"r\" x",
	} {
		row := dating{time.Now}.repoRows([]browse.RepoInfo{{Name: "r"}}, layout.Box{Query: text})[0]
		if w := searchURL(layout.Box{Query: want}, 0); row.Search != w {
			t.Errorf("%q leads to %s, want %s", text, row.Search, w)
		}
		if _, err := query.Parse(want, query.Options{}); err != nil {
			t.Errorf("%s: %v", want, err)
		}
	}
}

func TestSearchPage_foldsTheManyMatchesOfOneFile(t *testing.T) {
	t.Parallel()
	f := &search.File{Repository: "r", Path: "a.go", Language: "Go"}
	for i := range uint32(60) {
		at := shard.Position{Offset: i * 10, Line: i*3 + 1, Column: 1}
		f.Chunks = append(f.Chunks, shard.Chunk{Content: []byte("needle\n"), Start: at, Ranges: []shard.Range{{Start: at, End: shard.Position{Offset: at.Offset + 6, Line: at.Line, Column: 7}}}})
	}
	got := string(appendFile(nil, f, "", layout.Box{Query: "needle"}, marking{}, folded))
	open, rest, _ := strings.Cut(got, "<details")
	if n := strings.Count(open, "<mark>"); n != openChunks {
		t.Errorf("%d matches stand open, want %d", n, openChunks)
	}
	if !strings.Contains(rest, "+57 more in this file") || !strings.Contains(rest, "all matches in this file") {
		t.Errorf("the fold does not say what it has: %.300s", rest)
	}
	if got := string(appendFile(nil, f, "", layout.Box{Query: "needle"}, marking{}, linked)); strings.Count(got, "<mark>") != openChunks || !strings.Contains(got, "+57 more in this file</a>") {
		t.Errorf("without folds there is a link: %.300s", got)
	}
}

// Where files are the answer, nothing of them is drawn, and the count leads to the matches.
func TestSearchPage_showsTheCountOfAFileWithoutChunks(t *testing.T) {
	t.Parallel()
	f := &search.File{Repository: "r", Path: "a.go", Language: "Go", Matches: 254}
	got := string(appendFile(nil, f, "", layout.Box{Query: "type:file dict"}, marking{}, folded))
	if strings.Contains(got, "more in this file") || !strings.Contains(got, `+file%3A%22%5Ea%5C.go%24%22+dict">254 matches</a></h2>`) {
		t.Errorf("it is %s", got)
	}
}

// A use of a name says what it stands in, once a line, with the name marked, file by file.
func TestNamedLines_sayWhatTheyStandIn(t *testing.T) {
	t.Parallel()
	at := func(line uint32) shard.Range { return shard.Range{Start: shard.Position{Line: line}} }
	comment := lex.For("C").After([]byte("/*\n"), 0)
	use := func(line string, n uint32) symbols.SymbolMatch {
		return symbols.SymbolMatch{Line: []byte(line), Range: at(n)}
	}
	inside, remark := use("add(adder);", 4), use(" * if add fails, add again", 9)
	inside.Around.Name, remark.Open, remark.OutsideCode = "main", comment, true
	r := &symbols.SymbolResponse{Files: []symbols.SymbolFile{
		{Repository: "r", Path: "a.c", Language: "C", Matches: []symbols.SymbolMatch{inside, remark, remark, use("add();", 12)}},
		{Repository: "other", Path: "a.c", Language: "C", Matches: []symbols.SymbolMatch{use("add", 1)}},
	}}
	var got []string
	for _, lines := range byFile((&reading{}).namedLines(r, "add", place{Repo: "r"})) {
		for _, row := range lines {
			got = append(got, fmt.Sprint(row.Where(), " ", row.Kind, " ", row.Code, row.outside))
		}
	}
	want := []string{
		`a.c:4 in main <mark>add</mark>(adder);false`,
		`a.c:9  <i class="c">* if <mark>add</mark> fails, <mark>add</mark> again</i>true`,
		`a.c:12  <mark>add</mark>();false`, `other › a.c:1  <mark>add</mark>false`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("they are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Queries made by facets and folds are valid, and narrower than the original.
func TestFacetAndFoldLinks_narrowTheQuery(t *testing.T) {
	t.Parallel()
	for _, toggle := range []bool{false, true} {
		text := "file:" + fieldRegexp(`^a\.b/"c"$`) + " " + grouped(`x or "a b"`)
		q, err := query.Parse(text, query.Options{Regexp: toggle})
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if got := q.Q.String(); !strings.Contains(got, `file_regexp:"^a\\.b/\\\"c\\\"$"`) {
			t.Errorf("toggle %t: %s is %s", toggle, text, got)
		}
	}
	chips := chipsOf(layout.Box{Query: `repo:x "a repo:y b" -lang:go z`})
	if len(chips) != 2 || chips[0].Text != "repo:x" || chips[1].Text != "-lang:go" {
		t.Errorf("chips = %+v", chips)
	}
}

// If a filter is all of one side of an or, the or is removed too, because alone it would be a
// word.
func TestRemoveFilter_removesItsOrToo(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a or lang:go":          "a",
		"lang:go or a":          "a",
		"a OR lang:go or b":     "a or b",
		"a or b lang:go":        "a or b",
		"a lang:go or b":        "a or b",
		"a or lang:go b":        "a or b",
		"lang:go a or b":        "a or b",
		"or lang:go":            "or",
		"lang:go or":            "or",
		"or lang:go or b":       "or or b",
		"a or or lang:go":       "a or or",
		"a or (b or c) lang:go": "a or (b or c)",
		"lang:go":               "",
	} {
		tokens := tokensOf(text)
		at := slices.IndexFunc(tokens, func(x token) bool { return x.filter == "lang" })
		if got := without(text, tokens, at); got != want {
			t.Errorf("%q without its filter is %q, want %q", text, got, want)
		}
	}
}

func TestQueryMistake_isMarkedAtItsPosition(t *testing.T) {
	t.Parallel()
	text := "foo lang:nothing bar"
	err := parseError(search.Request{Query: text})
	if err == nil {
		t.Fatal("no error")
	}
	if tr := troubleOf(err, text); !tr.Placed || tr.Before+tr.At != text || !strings.HasPrefix(tr.Before, "foo ") {
		t.Errorf("trouble = %+v", tr)
	}
}

// Filters added in front during typing do not move the mark.
func TestQueryMistake_positionIgnoresFiltersAddedInFront(t *testing.T) {
	t.Parallel()
	r := &results{Box: layout.Box{Query: "foo lang:nothing bar"}, typed: true}
	_, err := r.request()
	if err == nil {
		t.Fatal("no error")
	}
	if tr := troubleOf(err, r.Query); tr.Before != "foo lang:" || tr.At != "nothing bar" {
		t.Errorf("trouble = %+v", tr)
	}
}

// A file of fifty thousand lines has few elements, and a line of half a megabyte is cut.
func TestFilePage_ofALargeFileHasFewElements(t *testing.T) {
	t.Parallel()
	text := []byte(strings.Repeat("x := \"one\" // two\n", 50_000))
	if n := elements(t, appendBlocks(nil, text, "Go")); n > 6000 {
		t.Errorf("50,000 lines are %d elements, want at most 6,000", n)
	}
	long := appendBlocks(nil, []byte(strings.Repeat("x", 480_000)), "JavaScript")
	if len(long) > 20_000 || !strings.Contains(string(long), "bytes more") {
		t.Errorf("a line of 480 kB is %d bytes of HTML", len(long))
	}
}

func elements(t *testing.T, page []byte) (n int) {
	t.Helper()
	z := html.NewTokenizer(strings.NewReader(string(page)))
	for {
		switch z.Next() {
		case html.ErrorToken:
			return n
		case html.StartTagToken:
			n++
		}
	}
}

// FuzzSourceBlocks_showTheFileWithoutMarkup checks that the text of a block equals the file, without markup.
func FuzzSourceBlocks_showTheFileWithoutMarkup(f *testing.F) {
	f.Add([]byte("func <b>() { // \u202e */ \"x\n`raw\n"), "Go")
	f.Add([]byte("r#\"a\"# 'c' /* <!-- */ \xff\xfe"), "Rust")
	f.Fuzz(func(t *testing.T, text []byte, language string) {
		z := html.NewTokenizer(strings.NewReader(string(appendBlocks(nil, text, language))))
		for {
			switch z.Next() {
			case html.ErrorToken:
				return
			case html.StartTagToken:
				if tok := z.Token(); !strings.Contains(" div pre span i bdi ", " "+tok.Data+" ") {
					t.Fatalf("%q makes the element %v", text, tok)
				}
			case html.CommentToken, html.DoctypeToken:
				t.Fatalf("%q makes markup", text)
			}
		}
	})
}

// Several values of a facet can be chosen, and a second click removes one. Filters written in
// another form are unchanged.
func TestFacets_allowSeveralValues(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ kind, query, value, want string }{
		{"Languages", "x", "Go", "lang:Go x"},
		{"Languages", "lang:Go x", "C", "(lang:Go or lang:C) x"},
		{"Languages", "(lang:Go or lang:C) x", "Rust", "(lang:Go or lang:C or lang:Rust) x"},
		{"Languages", "(lang:Go or lang:C) x", "Go", "lang:C x"},
		{"Languages", "lang:Go x", "Go", "x"},
		{"Languages", "lang:Go x or y", "C", "(lang:Go or lang:C) (x or y)"},
		{"Languages", "-lang:Go x", "C", "lang:C -lang:Go x"},
		{"Repositories", "reposet:h/a x", "h/b c", `(reposet:h/a or reposet:"h/b c") x`},
		{"Directories", `file:\.go$ x`, "src/", `file:"^src/" file:\.go$ x`},
		{"Directories", `file:"^src/" x`, "docs/", `(file:"^src/" or file:"^docs/") x`},
		{"Revisions", "rev:* x", "v1", "rev:v1 rev:* x"},
		{"Languages", "(lang:Go or y) x", "C", "lang:C (lang:Go or y) x"},
	} {
		k := facetKinds[slices.IndexFunc(facetKinds, func(k facetKind) bool { return k.name == c.kind })]
		row := facetOf(k, []search.FacetValue{{Value: c.value, Files: 1}}, true, layout.Box{Query: c.query}, 1).Rows[0]
		if want := searchURL(layout.Box{Query: c.want}, 0); strings.ReplaceAll(row.Include, `%22%5Esrc%2F%22`, "%5Esrc%2F") != strings.ReplaceAll(want, `%22%5Esrc%2F%22`, "%5Esrc%2F") {
			t.Errorf("%s of %q with %s: %s, want %s", c.kind, c.query, c.value, row.Include, want)
		}
	}
}

// In a search for repositories, matching names come before matching contents.
func TestRepositorySearch_matchingNamesComeFirst(t *testing.T) {
	t.Parallel()
	rows := dating{time.Now}.repoRows([]browse.RepoInfo{{Name: "h/app"}, {Name: "h/my-redis"}, {Name: "h/redis"}, {Name: "h/web"}}, layout.Box{Query: "type:repo Redis"})
	if rows[0].Name != "h/redis" || rows[1].Name != "h/my-redis" || rows[2].Name != "h/app" || rows[3].Name != "h/web" {
		t.Errorf("the order is %+v", rows)
	}
}
