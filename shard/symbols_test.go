package shard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/shoalsearch/shoal/shard/query"
)

var defines = regexp.MustCompile(`(?m)^(?:func|struct|var) (\w+)`)

// eachText returns a Tagger that calls tag for each text.
func eachText(tag func(path string, content []byte, use func(Definition)) error) Tagger {
	return func(ctx context.Context, texts []Untagged, use func(Definition), done func(int, error)) error {
		for i, t := range texts {
			done(i, tag(t.Path, t.Content, use))
		}
		return ctx.Err()
	}
}

// tagLines returns a Tagger that finds "func NAME", "struct NAME" and "var NAME" at the margin. The
// first two end with the next brace at the margin.
func tagLines(calls *atomic.Int64) Tagger {
	return eachText(func(path string, content []byte, use func(Definition)) error {
		calls.Add(1)
		for _, m := range defines.FindAllSubmatchIndex(content, -1) {
			kind := map[byte]string{'f': "function", 's': "struct", 'v': "variable"}[content[m[0]]]
			d := Definition{
				Name: content[m[2]:m[3]], Kind: kind, ParentName: []byte("pkg"), ParentKind: "package",
				Line: uint32(1 + strings.Count(string(content[:m[0]]), "\n")),
			}
			if end := bytes.Index(content[m[0]:], []byte("\n}")); end >= 0 && kind != "variable" {
				d.End = uint32(2 + strings.Count(string(content[:m[0]+end]), "\n"))
			}
			use(d)
		}
		if strings.Contains(path, "broken") {
			return errors.New("crashed")
		}
		return nil
	})
}

// symbolize adds the symbols of a part to a set.
func symbolize(set *Set, p Part, known []Part, tag Tagger) (Part, error) {
	p, err := set.Symbolize(context.Background(), p, known, false, tag)
	if err != nil {
		return p, err
	}
	return p, set.Add(p.Symbols.Name(KindSymbols))
}

// symbolWorld returns a world with one definition and many uses of some hundred names.
func symbolWorld() *world {
	w := &world{repos: []Repository{{ID: 1, Name: "r", Revisions: []Revision{{Name: "HEAD", Commit: blobID("1")}}}}}
	r := rand.New(rand.NewPCG(1, 1))
	tree := map[string][]string{}
	for i := range 120 {
		var b strings.Builder
		fmt.Fprintf(&b, "package p%d\n", i)
		for k := range 60 {
			fmt.Fprintf(&b, "\tname%d(name%d, name%d)\n", r.IntN(4000), r.IntN(4000), 7*k)
			if k%6 == 0 {
				fmt.Fprintf(&b, "func name%d(a int) {\n}\nstruct Name%d {\n}\n", i*10+k/6, i*10+k/6)
			}
		}
		tree[fmt.Sprintf("d/f%03d.go", i)] = []string{b.String()}
	}
	tree["broken.go"] = []string{"func name5(b int) {\n}\n"}
	w.trees = append(w.trees, tree)
	return w
}

func TestSymbolSearch_readsNoContent(t *testing.T) {
	t.Parallel()
	w := symbolWorld()
	set, parts := w.built(t, t.TempDir(), false, BuildOptions{})
	var calls atomic.Int64
	part, err := symbolize(set, parts[0], nil, tagLines(&calls))
	if err != nil || part.Symbols.IsZero() {
		t.Fatal(part, err)
	}
	again, err := symbolize(set, parts[0], nil, tagLines(&calls))
	if err != nil || again != part {
		t.Fatalf("a second time %v, want %v, %v", again, part, err)
	}
	v, _ := set.Acquire([]Part{part})
	defer v.Release()
	for _, c := range []struct {
		pattern string
		fold    bool
		want    int
	}{
		{`^name77$`, false, 1}, {`^name77$`, true, 2}, {`name`, false, 1200}, {`^Name1.3$`, false, 10}, {`nothing`, true, 0}, {`^pkg$`, false, 0},
	} {
		res, err := v.Search(context.Background(), Request{
			Q: &query.Text{Pattern: c.pattern, Regexp: true, Fold: c.fold, Field: query.Symbol}, MaxMatches: 5000, CountAll: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		if res.Stats.TotalMatches != c.want || res.Cut {
			t.Errorf("sym:%s: %d matches, cut %v, want %d", c.pattern, res.Stats.TotalMatches, res.Cut, c.want)
		}
		for _, f := range res.Files {
			for _, ch := range f.Chunks {
				for i, r := range ch.Ranges {
					at := int(r.Start.Offset - ch.Start.Offset)
					name := string(ch.Content[at : at+int(r.End.Offset-r.Start.Offset)])
					if s := ch.Symbols[i]; !strings.Contains(s.Name, name) || s.ParentName != "pkg" || s.Kind == "" {
						t.Fatalf("sym:%s found %q with symbol %+v", c.pattern, name, s)
					}
				}
			}
		}
	}
}

// A file on which the tagger failed is not a file without symbols: a query for symbols reports how
// many such files it could match. They stay unknown in the next generation until they are tagged
// again.
func TestSymbolSearch_countsFilesWithUnknownSymbols(t *testing.T) {
	t.Parallel()
	w := &world{repos: []Repository{{ID: 1, Name: "r", Revisions: []Revision{{Name: "HEAD", Commit: blobID("1")}}}}}
	w.trees = []map[string][]string{{
		"a.go": {"func whale() {\n}\n"}, "broken/b.go": {"func whale2() {\n}\n"}, "broken/c.go": {"func heron() {\n}\n"}, "README.md": {"whale\n"},
	}}
	set, parts := w.built(t, t.TempDir(), false, BuildOptions{})
	part, err := symbolize(set, parts[0], nil, tagLines(new(atomic.Int64)))
	if err != nil {
		t.Fatal(err)
	}

	sym := func(pattern string) query.Q { return &query.Text{Pattern: pattern, Regexp: true, Field: query.Symbol} }
	text := func(pattern string, field query.Field) query.Q { return &query.Text{Pattern: pattern, Field: field} }
	for _, c := range []struct {
		q           query.Q
		none, tried int // unknown files that the query could match: before tagging, and after it
	}{
		{sym("whale"), 3, 2},
		{&query.And{Subs: []query.Q{sym("whale"), text("heron", query.Content)}}, 1, 1},
		{&query.And{Subs: []query.Q{sym("whale"), text("a.go", query.Name)}}, 1, 0},
		{&query.And{Subs: []query.Q{text("whale", query.Content), &query.Not{Sub: sym("x")}}}, 2, 1},
		{&query.Or{Subs: []query.Q{sym("whale"), text("heron", query.Content)}}, 3, 2},
		{&query.And{Subs: []query.Q{sym("whale"), &query.Lang{Name: "Markdown"}}}, 0, 0},
		{text("whale", query.Content), 0, 0},
	} {
		for want, p := range map[int]Part{-1: parts[0], -2: part} {
			if want = c.tried; p == parts[0] {
				want = c.none
			}
			v, _ := set.Acquire([]Part{p})
			res, err := v.Search(context.Background(), Request{Q: c.q})
			if err != nil {
				t.Fatal(err)
			}
			got := UntaggedFiles{}
			if res.Untagged {
				if got, err = v.Untagged(context.Background(), c.q); err != nil {
					t.Fatal(err)
				}
			}
			if got.Count != want || len(got.First) != want {
				t.Errorf("%v: %+v, want %d files", c.q, got, want)
			}
			v.Release()
		}
	}

	// Tagging is not repeated unless it is requested. Then there is more time, and files that
	// succeed are known.
	if n, tries := set.UnknownSymbols(part); n != 2 || tries != 1 {
		t.Errorf("%d files are unknown after %d attempts", n, tries)
	}
	var calls atomic.Int64
	same, err := symbolize(set, parts[0], []Part{part}, tagLines(&calls))
	if err != nil || same != part || calls.Load() != 0 {
		t.Errorf("copied: %v, %d files tried, %v", same, calls.Load(), err)
	}
	again, err := set.Symbolize(context.Background(), parts[0], []Part{part}, true, func(ctx context.Context, texts []Untagged, use func(Definition), done func(int, error)) error {
		for i, text := range texts {
			if calls.Add(1); text.Tries != 1 {
				t.Errorf("%s is tried with %d attempts before", text.Path, text.Tries)
			}
			done(i, errors.New("not yet"))
			if strings.Contains(string(text.Content), "heron") {
				use(Definition{Name: []byte("heron"), Kind: "function", Line: 1})
				done(i, nil)
			}
		}
		return nil
	})
	if err != nil || set.Add(again.Symbols.Name(KindSymbols)) != nil {
		t.Fatal(err)
	}
	if n, tries := set.UnknownSymbols(again); n != 1 || tries != 2 || calls.Load() != 2 {
		t.Errorf("tried again: %d files are unknown after %d attempts, %d tried", n, tries, calls.Load())
	}
}

func TestUnknownSymbols_buildsNoGroupViewIfAllAreKnown(t *testing.T) {
	t.Parallel()
	w := symbolWorld()
	delete(w.trees[0], "broken.go")
	set, parts := w.built(t, t.TempDir(), false, BuildOptions{})
	var calls atomic.Int64
	part, err := symbolize(set, parts[0], nil, tagLines(&calls))
	if err != nil || set.Add(part.Symbols.Name(KindSymbols)) != nil {
		t.Fatal(err)
	}

	// Each repository of a pack is asked about, so a join for each would take the square of them.
	before := set.groupViewBytes.Load()
	if n, _ := set.UnknownSymbols(part); n != 0 || set.groupViewBytes.Load() != before {
		t.Errorf("%d files are unknown, %d bytes of joins, before %d", n, set.groupViewBytes.Load(), before)
	}
}

func TestRanking_definingFileComesFirst(t *testing.T) {
	t.Parallel()
	w := symbolWorld()
	set, parts := w.built(t, t.TempDir(), false, BuildOptions{})
	var calls atomic.Int64
	part, err := symbolize(set, parts[0], nil, tagLines(&calls))
	if err != nil {
		t.Fatal(err)
	}
	v, _ := set.Acquire([]Part{part})
	defer v.Release()
	for i := range 119 {
		name := fmt.Sprintf("name%d", 10+i*10)
		res, err := v.Search(context.Background(), Request{Q: &query.Text{Pattern: name, Fold: true}, MaxMatches: 1})
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("d/f%03d.go", i+1); len(res.Files) == 0 || res.Files[0].Path != want {
			t.Errorf("%s: first is %+v, want %s", name, res.Files, want)
		}
	}
}

func TestRanking_bestOfManyDefinitionsIsFound(t *testing.T) {
	t.Parallel()
	tree := map[string][]string{"z/last.go": {"struct config {\n}\n"}}
	for i := range 400 {
		defined := []string{"struct Config {\n}\n", "var config\n"}[i%2]
		tree[fmt.Sprintf("a/f%03d.go", i)] = []string{strings.Repeat(fmt.Sprintf("config(%d) ", i), 20) + "\n" + defined}
	}
	w := &world{repos: []Repository{{ID: 1, Name: "r", Revisions: []Revision{{Name: "HEAD", Commit: blobID("1")}}}}, trees: []map[string][]string{tree}}
	set, parts := w.built(t, t.TempDir(), false, BuildOptions{})
	part, err := symbolize(set, parts[0], nil, tagLines(new(atomic.Int64)))
	if err != nil {
		t.Fatal(err)
	}
	v, _ := set.Acquire([]Part{part})
	defer v.Release()
	res, err := v.Search(context.Background(), Request{Q: &query.Text{Pattern: "config", Fold: true, Field: query.Content}, MaxMatches: 20})
	if err != nil || !res.Cut || len(res.Files) == 0 || res.Files[0].Path != "z/last.go" {
		t.Errorf("first of %d files is not z/last.go, cut %v, %v", len(res.Files), res.Cut, err)
	}
}

// Symbolize compares a tagger's results with the text: lines of parsers that have read too far,
// generated names, and names that are only imported.
func TestSymbolize_findsNamesInTheText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		path, text, name, kind string
		line                   uint32
		want                   string // name and the text after it; "" means no symbol
	}{
		{"a.ts", "export interface Whale\n  extends Fish {\n}\n", "Whale", "interface", 2, "Whale\n"},
		{"a.ts", "export class Whale\n  // of the sea\n  implements Fish\n{\n", "Whale", "class", 4, "Whale\n"},
		{"a.ts", "class Whales {}\nclass Fish\n{\n", "Whale", "class", 3, ""},
		{"a.ts", "class Whale {}\n\n\n\n\nclass Fish {}\n", "Whale", "class", 6, ""},
		{"a.ts", "export type Whale = Fish\n", "Whale", "alias", 1, "Whale ="},
		{"a.ts", "type Whale<T> = T[]\n", "Whale", "alias", 1, "Whale<"},
		{"a.ts", "import { type Whale, b } from 'x'\n", "Whale", "alias", 1, ""},
		{"a.ts", "import {\n  type Whale\n} from 'x'\n", "Whale", "alias", 2, ""},
		{"a.rb", "alias_method :Whale, :fish\n", "Whale", "alias", 1, "Whale, :"},
		{"a.py", "import fish as Whale\n", "Whale", "namespace", 1, ""},
		{"a.py", "class Whale:\n", "Whale", "class", 1, "Whale:"},
		{"a.cs", "namespace Whale {\n", "Whale", "namespace", 1, "Whale {"},
		{"a.cpp", "S& operator<<(S& s, int b);\n", "operator <<", "function", 1, "operator<<("},
		{"a.cpp", "S& operator <<(S& s, int b);\n", "operator <<", "function", 1, "operator <<("},
		{"a.cpp", "bool operator()(int b);\n", "operator ()", "function", 1, "operator()("},
	} {
		tree := map[string][]string{c.path: {c.text}}
		w := &world{repos: []Repository{{ID: 1, Name: "r", Revisions: []Revision{{Name: "HEAD", Commit: blobID("1")}}}}, trees: []map[string][]string{tree}}
		set, parts := w.built(t, t.TempDir(), false, BuildOptions{})
		part, err := symbolize(set, parts[0], nil, eachText(func(_ string, _ []byte, use func(Definition)) error {
			use(Definition{Name: []byte(c.name), Kind: c.kind, Line: c.line})
			return nil
		}))
		if err != nil {
			t.Fatal(err)
		}
		v, _ := set.Acquire([]Part{part})
		res, err := v.Search(context.Background(), Request{Q: &query.Text{Pattern: ".+", Regexp: true, Field: query.Symbol}})
		v.Release()
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, f := range res.Files {
			got = c.text[f.Chunks[0].Ranges[0].Start.Offset:]
		}
		if (c.want == "") != (got == "") || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s in %q: %q, want %q", c.name, c.text, got, c.want)
		}
	}
}

// The parts of a selector are apart in the text. Each part is found where it is, and the selector
// where its first part is.
func TestSymbolize_findsThePartsOfAnObjectiveCSelector(t *testing.T) {
	t.Parallel()
	const text = "#import <x.h>\n@implementation Bag\n- (void)setX:(int)x { }\n+ (id)bagWith:(id)a and:(id)b { return a; }\n- (void)go:(int)a\n{\n}\n" +
		"- (id)long:(int)a\n second:(int)b\n  third:(int)c\n{ [self and:2]; }\n- (id)a:(int)a :(int)b;\n- (void)bar { }\n"
	w := &world{repos: []Repository{{ID: 1, Name: "r", Revisions: []Revision{{Name: "HEAD", Commit: blobID("1")}}}}, trees: []map[string][]string{{"B.m": {text}}}}
	set, parts := w.built(t, t.TempDir(), false, BuildOptions{})
	part, err := symbolize(set, parts[0], nil, eachText(func(_ string, _ []byte, use func(Definition)) error {
		// Ctags reports the line of the brace for some of them.
		for name, line := range map[string]uint32{"setX:": 3, "bagWith:and:": 4, "go:": 6, "long:second:third:": 11, "a::": 12, "bar": 13} {
			use(Definition{Name: []byte(name), Kind: "method", Line: line})
		}
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	v, _ := set.Acquire([]Part{part})
	defer v.Release()

	for name, want := range map[string]string{
		"setX": "setX:(int)x", "setX:": "setX:(int)x", "bagWith": "bagWith:(id)a", "and": "and:(id)b", "bagWith:and:": "bagWith:(id)a", "go": "go:(int)a\n{", "go:": "go:(int)a\n{",
		"long": "long:", "second": "second:", "third": "third:", "long:second:third:": "long:(int)a\n", "a": "a:(int)", "a::": "a:(int)", "bar": "bar {", "with": "", "self": "",
	} {
		res, err := v.Search(context.Background(), Request{Q: &query.Text{Pattern: "^" + name + "$", Regexp: true, Field: query.Symbol}})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, f := range res.Files {
			got = text[f.Chunks[0].Ranges[0].Start.Offset:]
		}
		if (want == "") != (got == "") || !strings.HasPrefix(got, want) {
			t.Errorf("%s: %.20q, want %q", name, got, want)
		}
	}
}

func TestSymbolize_copiesSymbolsOfKnownBlobs(t *testing.T) {
	t.Parallel()
	w := symbolWorld()
	set, parts := w.built(t, t.TempDir(), false, BuildOptions{})
	var calls atomic.Int64
	part, err := symbolize(set, parts[0], nil, tagLines(&calls))
	if err != nil {
		t.Fatal(err)
	}
	w.trees[0]["d/f003.go"] = []string{"func changed() {\n}\n"}
	built, err := Build(context.Background(), set.Dir(), w.source(-1), BuildOptions{})
	if err != nil || set.Add(built[0].Shard.Name(KindShard)) != nil {
		t.Fatal(err)
	}
	calls.Store(0)
	next, err := symbolize(set, built[0].Part, []Part{part}, tagLines(&calls))
	if err != nil {
		t.Fatal(err)
	}
	if calls.Load() != 1 {
		t.Fatalf("tagged %d files, want 1", calls.Load())
	}
	fresh, err := symbolize(set, built[0].Part, nil, tagLines(&calls))
	if err != nil || fresh != next {
		t.Fatalf("copied symbols give %v, tagged ones %v, %v", next, fresh, err)
	}
}

// Among several definitions of a word, the case of the query comes before the kind. A function
// comes before a variable, a variable before a member, and each before a use.
func TestRanking_bestDefinitionComesFirst(t *testing.T) {
	t.Parallel()
	w := symbolWorld()
	w.trees[0] = map[string][]string{}
	files := []string{ // in the expected order
		"def member Whale\n", "def function whale\n", "def variable whale\n", "def implementation whale\n", "func Whale() {\n", "func whale() {\n", "a Whale b\n", "a whale b\n", "whales\n",
	}
	for i, text := range files {
		w.trees[0][fmt.Sprintf("f%d.go", len(files)-i)] = []string{text}
	}
	set, parts := w.built(t, t.TempDir(), false, BuildOptions{})
	tag := eachText(func(_ string, content []byte, use func(Definition)) error {
		if f := strings.Fields(string(content)); f[0] == "def" {
			use(Definition{Name: []byte(f[2]), Kind: f[1], Line: 1})
		}
		return nil
	})
	part, err := symbolize(set, parts[0], nil, tag)
	if err != nil {
		t.Fatal(err)
	}
	v, _ := set.Acquire([]Part{part})
	defer v.Release()
	res, err := v.Search(context.Background(), Request{Q: &query.Text{Pattern: "Whale", Fold: true}})
	if err != nil || len(res.Files) != len(files) {
		t.Fatalf("%+v, %v", res, err)
	}
	for i, f := range res.Files {
		if want := fmt.Sprintf("f%d.go", len(files)-i); f.Path != want {
			t.Errorf("place %d has %s with %v, want %s: %q", i, f.Path, f.Score, want, files[i])
		}
	}
}
