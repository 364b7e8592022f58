package query

import (
	"errors"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
)

func TestSimplify_resolvesRepositoriesAndShortensTheTree(t *testing.T) {
	t.Parallel()
	repos := map[string][]uint32{"a": {1, 2}, "b": {2, 3}, "none": nil}
	lookup := func(atom Q) (*roaring.Bitmap, error) {
		switch n := atom.(type) {
		case *Repo:
			return roaring.BitmapOf(repos[n.Pattern]...), nil
		case *Context:
			return nil, errors.New("no context " + n.Name)
		default:
			return roaring.BitmapOf(1, 2, 3, 4), nil
		}
	}
	for _, tt := range []struct{ in, want string }{
		{`repo:a repo:b x`, `(and content:"x"i rev:"HEAD" repos:{2})`},
		{`(repo:a or repo:b) x`, `(and content:"x"i rev:"HEAD" repos:{1,2,3})`},
		{`repo:none x`, `false`},
		{`repo:none or x`, `(and content:"x"i rev:"HEAD")`},
		{`-repo:a x`, `(and (not repos:{1,2}) content:"x"i rev:"HEAD")`},
		{`-repo:none x`, `(and content:"x"i rev:"HEAD")`},
		{`reposet:q fork:no repo:b`, `(and rev:"HEAD" repos:{2,3})`},
		{`context:zz`, `no context zz`},
	} {
		q, err := Parse(tt.in, Options{})
		if err != nil {
			t.Fatal(err)
		}
		before := q.Q.String()
		got := ""
		if r, err := Resolve(q.Q, lookup); err != nil {
			got = err.Error()
		} else {
			got = Simplify(r).String()
		}
		if got != tt.want {
			t.Errorf("%s\n got %s\nwant %s", tt.in, got, tt.want)
		}
		if q.Q.String() != before {
			t.Errorf("%s: the tree has changed", tt.in)
		}
	}
}

// TestSimplify_keepsTheMeaning compares a tree with its simplified form under
// every assignment of its atoms.
func TestSimplify_keepsTheMeaning(t *testing.T) {
	t.Parallel()
	atoms := []string{"a", "b", "c"}
	var holds func(q Q, set int) bool
	holds = func(q Q, set int) bool {
		switch n := q.(type) {
		case *And:
			for _, s := range n.Subs {
				if !holds(s, set) {
					return false
				}
			}
			return true
		case *Or:
			for _, s := range n.Subs {
				if holds(s, set) {
					return true
				}
			}
			return false
		case *Not:
			return !holds(n.Sub, set)
		case Const:
			return bool(n)
		}
		for i, a := range atoms {
			if q.(*Text).Pattern == a {
				return set>>i&1 == 1
			}
		}
		return false
	}
	leaves := []Q{Const(true), Const(false), &Text{Pattern: "a"}, &Text{Pattern: "b"}, &Text{Pattern: "c"}}
	grow := func(from []Q) []Q {
		var out []Q
		for _, x := range from {
			out = append(out, &Not{Sub: x})
			for _, y := range from {
				out = append(out, &And{Subs: []Q{x, y}}, &Or{Subs: []Q{x, y}})
			}
		}
		return out
	}
	level := append(leaves, grow(leaves)...)
	for _, q := range append(level, grow(level)...) {
		s := Simplify(q)
		for set := range 1 << len(atoms) {
			if holds(q, set) != holds(s, set) {
				t.Fatalf("%s and %s differ at %b", q, s, set)
			}
		}
	}
}

func TestFormat_printsTheParsedQuery(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		in   string
		opt  Options
		want string
	}{
		{`foo (bar or -baz) -file:_test\.go$`, Options{}, `"foo" ("bar" or -"baz") -file:"_test\.go$" rev:"HEAD"`},
		{`a case:yes count:all timeout:1s type:repo`, Options{}, `"a" rev:"HEAD" case:yes type:repo count:all timeout:1s`},
		{`a at:2026-01-31`, Options{}, `"a" rev:"HEAD" at:2026-01-31T23:59:59Z`},
		{`()`, Options{}, `()`},
		{`a"b lang:c++ fork:no -(x y)`, Options{}, `"a\"b" lang:"C++" fork:no -("x" "y") rev:"HEAD"`},
		{`a.*"b c\.d`, Options{Regexp: true}, `"a.*\"b" "c\.d" rev:"HEAD"`},
	} {
		q, err := Parse(tt.in, tt.opt)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := Format(q, tt.opt); !ok || got != tt.want {
			t.Errorf("Format(%s)\n got %s, %t\nwant %s", tt.in, got, ok, tt.want)
		}
	}
}

func FuzzParse_printedQueryParsesToTheSame(f *testing.F) {
	for _, s := range []string{
		``, `foo (bar or baz) -file:_test\.go$`, `"a \"b\" c" or -x`, `(((a b) c) or ())`, `rev:* lang:go case:auto sym:^New`,
		`(foo|bar)baz [)] (a\) b)`, `count:all timeout:1s type:file`, `- file:x ->y --z -1 -(`, "\x00\xff", `c::d c:d "a":"b" (int)x`,
	} {
		f.Add(s, false, false)
		f.Add(s, true, true)
	}
	f.Fuzz(func(t *testing.T, text string, regexp, sensitive bool) {
		opt := Options{Regexp: regexp, CaseSensitive: sensitive}
		q, err := Parse(text, opt)
		if err != nil {
			var pe *ParseError
			if !errors.As(err, &pe) || pe.Offset < 0 || pe.Offset > len(text) {
				t.Fatalf("Parse(%q): %v", text, err)
			}
			return
		}
		printed, ok := Format(q, opt)
		if !ok || len(printed) > MaxLength {
			return
		}
		again, err := Parse(printed, opt)
		if err != nil {
			t.Fatalf("Parse(%q), printed from %q: %v", printed, text, err)
		}
		twice, ok := Format(again, opt)
		if !ok || twice != printed {
			t.Fatalf("%q prints as %q, and that as %q", text, printed, twice)
		}
	})
}

func TestWords_returnsTheWordsOfAQuery(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"":                     0,
		"a":                    1,
		"a b lang:go file:x c": 3,
		"(a b) c":              3,
		"a b or c":             0,
		"a (b or c)":           1,
		"-a":                   0,
		"-a b c":               2,
		"b c -a":               2,
		"a sym:c":              1,
	} {
		q, err := Parse(text, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := Words(q.Q); got != want {
			t.Errorf("%s: %d words, want %d", text, got, want)
		}
	}
}
