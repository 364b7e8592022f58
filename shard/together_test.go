package shard

import (
	"slices"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/shard/query"
)

func TestWords_areRecognizedAsAdjacentOrOnOneLine(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text, first string
		rest        []string
		next, line  bool
	}{
		{"func main() {}", "func", []string{"main"}, true, true},
		{"func  Main(", "func", []string{"main"}, true, true},
		{"func domain()", "func", []string{"main"}, false, true},
		{"func run() // main", "func", []string{"main"}, false, true},
		{"func run()\nmain()", "func", []string{"main"}, false, false},
		{"foo.bar(baz", "foo", []string{"bar", "baz"}, true, true},
		{"val)\n{", "val", []string{"{"}, true, false},
		{"val)\n\n\t\tint\n", "val", []string{"int"}, true, false},
		{"f(void *a, void *b)", "f(void", []string{"*a,", "void", "*b)"}, true, true},
		{"int f(void *a, void *b)", "int", []string{"f(void", "*a,", "*b)"}, false, true}, // void is not a word of the query
		{"val);  // (int", "val", []string{"int"}, false, true},
		{"foo->bar", "foo", []string{"->bar"}, true, true},
		{"foobar", "foo", []string{"bar"}, false, true},
		{"foo", "foo", []string{"bar"}, false, false},
	} {
		var words [][]byte
		for _, w := range tt.rest {
			words = append(words, []byte(w))
		}
		if got := lengthOf([]byte(tt.text)[len(tt.first):], words) >= 0; got != tt.next {
			t.Errorf("%q: next to each other %t, want %t", tt.text, got, tt.next)
		}
		if got := lineHasAll([]byte(tt.text), 0, words); got != tt.line {
			t.Errorf("%q: on a line %t, want %t", tt.text, got, tt.line)
		}
	}
}

// If no file has all words side by side, the file with the longest run of them comes first.
func TestRanking_longestPartOfAPhraseComesFirst(t *testing.T) {
	t.Parallel()
	tree := map[string][]string{
		"a.go": {"// the error\nvar value, of, kind, wrong, holding, key = 1\n"},
		"b.go": {"// key holding\n\n// the error\n// wrong kind\n// of value\n"},
		"c.go": {"// an error\n\nconst text = \"a key holding the wrong kind of value\"\n"},
	}
	w := &world{repos: []Repository{{ID: 1, Name: "r", Revisions: []Revision{{Name: "HEAD", Commit: blobID("1")}}}}, trees: []map[string][]string{tree}}
	set, parts := w.built(t, t.TempDir(), false, BuildOptions{})
	v, _ := set.Acquire(parts)
	defer v.Release()
	and := &query.And{}
	for _, word := range []string{"error", "key", "holding", "the", "wrong", "kind", "of", "value"} {
		and.Subs = append(and.Subs, &query.Text{Pattern: word, Fold: true})
	}
	res, err := v.Search(t.Context(), Request{Q: and, MaxPerFile: 50})
	if err != nil || len(res.Files) != 3 || res.Files[0].Path != "c.go" || Together(res.Files[0].Score) {
		t.Fatalf("the first of %d files is %+v, %v", len(res.Files), res.Files[0].Path, err)
	}
	if chunks := res.Files[0].Chunks; chunks[len(chunks)-1].Weight <= chunks[0].Weight {
		t.Errorf("the line with the phrase weighs no more: %+v", chunks)
	}
}

func TestRanking_adjacentWordsComeFirst(t *testing.T) {
	t.Parallel()
	tree := map[string][]string{
		"a/apart.go":    {"func run() {}\n\n// in the main\nvar main = 1\n"},
		"b/line.go":     {"package b\n\nfunc start() { main() }\n"},
		"c/together.go": {"package main\n\nfunc helper() {}\n\nfunc main() {}\n"},
	}
	w := &world{repos: []Repository{{ID: 1, Name: "r", Revisions: []Revision{{Name: "HEAD", Commit: blobID("1")}}}}, trees: []map[string][]string{tree}}
	set, parts := w.built(t, t.TempDir(), false, BuildOptions{})
	v, _ := set.Acquire(parts)
	defer v.Release()
	words := func(list ...string) query.Q {
		and := &query.And{}
		for _, word := range list {
			and.Subs = append(and.Subs, &query.Text{Pattern: word, Fold: true})
		}
		return and
	}
	for _, q := range []query.Q{words("func", "main"), &query.And{Subs: []query.Q{words("FUNC", "Main"), &query.Text{Pattern: `\.go$`, Regexp: true, Field: query.Name}}}} {
		res, err := v.Search(t.Context(), Request{Q: q})
		if err != nil {
			t.Fatal(err)
		}
		var order []string
		for _, f := range res.Files {
			order = append(order, f.Path)
		}
		if want := []string{"c/together.go", "b/line.go", "a/apart.go"}; !slices.Equal(order, want) {
			t.Errorf("%v: %q, want %q", q, order, want)
		}
	}
}

// What a file defines elsewhere does not say that it has more of a sentence. A definition in the
// sentence itself does.
func TestRanking_onlyDefinitionsInTheSentenceCount(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		words       []string
		first, then string
	}{
		{[]string{"WRONG", "value", "for", "this", "key"}, "raise(\"WRONG value for this key\")\nraise(key, key)\n", "func value() {\n}\n// WRONG value for this key\n"},
		{[]string{"WRONG", "value", "for", "a", "key"}, strings.Repeat("a ", 2*maxJoinedMatches) + "\nraise(\"WRONG value for a key\")\n", "// WRONG value for a key\n"},
		{[]string{"int", "add", "table", "value"}, "int add(table, value);\n\nint add(table, value) {\n", "int add(table, value);\n// value\n// value\n"},
	} {
		tree := map[string][]string{"b.c": {tt.first}, "a.c": {tt.then}}
		w := &world{repos: []Repository{{ID: 1, Name: "r", Revisions: []Revision{{Name: "HEAD", Commit: blobID("1")}}}}, trees: []map[string][]string{tree}}
		set, parts := w.built(t, t.TempDir(), false, BuildOptions{})
		v, _ := set.Acquire(parts)
		defer v.Release()
		and := &query.And{}
		for _, word := range tt.words {
			and.Subs = append(and.Subs, &query.Text{Pattern: word, Fold: true})
		}
		res, err := v.Search(t.Context(), Request{Q: and, MaxPerFile: 50})
		if err != nil || len(res.Files) != 2 {
			t.Fatalf("%q: %d files, %v", tt.words, len(res.Files), err)
		}
		if f := res.Files; f[0].Path != "b.c" || !Together(f[0].Score) || !Together(f[1].Score) {
			t.Errorf("%q: the first is %s with %v, then %s with %v", tt.words, f[0].Path, f[0].Score, f[1].Path, f[1].Score)
		}
	}
}
