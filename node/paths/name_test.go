package paths

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestWrittenName_roundTripsThroughJSON encodes random names, as an argument of a call and as text, and
// decodes them.
func TestWrittenName_roundTripsThroughJSON(t *testing.T) {
	t.Parallel()
	pieces := []string{"a", "/", "\xff", "\xfe\xfd", "\n", "\t", "\r", "\x1b", "ö", "\u202e", "\U000e0041", " ", `"`, "%", "\u200d", "\ufffd", "検", "\xe6\xa4"}
	random := rand.New(rand.NewPCG(3, 4))
	for range 3000 {
		name := ""
		for range 1 + random.IntN(6) {
			name += pieces[random.IntN(len(pieces))]
		}

		written := Written(name)
		if strings.ContainsFunc(written, func(r rune) bool { return r < ' ' || r == '\ufffd' || Hidden(r) }) {
			t.Fatalf("%q is written %q", name, written)
		}

		// Both decodings give the name back.
		var argument string
		if err := json.Unmarshal([]byte(Quoted(name)), &argument); err != nil {
			t.Fatalf("%q is quoted %s: %v", name, Quoted(name), err)
		}
		for _, text := range []string{argument, written, Characters(written)} {
			if Written(Characters(text)) != written {
				t.Fatalf("%q is written %q, and %q is %q", name, written, text, Written(Characters(text)))
			}
			if written != name && text != name && !Alike(text) {
				t.Fatalf("%q is not known as a written form of %q", text, name)
			}
		}
	}

	for name, want := range map[string]string{"bad\xff\xfename": `bad\ufffd\ufffdname`, "a\nb": `a\u000ab`, "größe": "größe", "\U000e0041": `\udb40\udc41`} {
		if got := Written(name); got != want {
			t.Errorf("%q is written %s, want %s", name, got, want)
		}
	}
}

// TestPathFilter_readsSpecialBytesInNamesLiterally filters names with brackets, commas, line breaks and bytes
// that are not UTF-8.
func TestPathFilter_readsSpecialBytesInNamesLiterally(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		glob, path string
		want       bool
	}{
		{"app/[id]/page.tsx", "app/[id]/page.tsx", true},
		{"app/[id]/page.tsx", "app/i/page.tsx", true},
		{"app/[id]/page.tsx", "app/x/page.tsx", false},
		{"[id].tsx", "app/[id].tsx", true},
		{"{a}.go", "x/{a}.go", true},
		{`a\b`, `a\b`, true},
		{"**/*.py,*.rst", "a/b.py", true},
		{"**/*.py,*.rst", "docs/b.rst", true},
		{"**/*.py, *.rst", "docs/b.rst", true},
		{"**/*.py,*.rst", "docs/b.txt", false},
		{"*.{py,rst}", "docs/b.rst", true},
		{"[,]x", ",x", true},
		{"a,b", "a,b", true},
		{"*.go,!*_test.go", "a.go", true},
		{"*.go,!*_test.go", "a_test.go", false},
		{"d/*", "d/new\nline.txt", true},
		{"*.txt", "d/new\nline.txt", true},
		{"d/new?line.txt", "d/new\nline.txt", true},
		{"d/new\nline.txt", "d/new\nline.txt", true},
		{`d/new\u000aline.txt`, "d/new\nline.txt", true},
		{`bad\ufffd\ufffdname.txt`, "bad\xff\xfename.txt", true},
		{"bad\ufffd\ufffdname.txt", "bad\xff\xfename.txt", true},
		{"bad\ufffdname.txt", "bad\xff\xfename.txt", false},
		{`a\u000ab`, `a\u000ab`, true},
	} {
		f := Filter{Include: []string{tt.glob}}
		keeps, err := f.Keeps()
		if err != nil {
			t.Fatal(err)
		}
		if got := keeps(tt.path); got != tt.want {
			t.Errorf("include %q of %q: %v", tt.glob, tt.path, got)
		}

		if strings.Contains(tt.glob, "!") {
			continue // a ! would be a negation
		}
		of, err := OfGlob("", tt.glob)
		if err != nil {
			t.Fatal(err)
		}
		if keeps, err = of.Keeps(); err != nil || keeps(tt.path) != tt.want {
			t.Errorf("glob %q of %q: %v, %v", tt.glob, tt.path, !tt.want, err)
		}
	}

	for _, dir := range []string{"d\n", `d\u000a`} {
		f := Filter{Dir: dir}
		if keeps, err := f.Keeps(); err != nil || !keeps("d\n/a") || keeps("d/a") {
			t.Errorf("directory %q: %v", dir, err)
		}
	}
}
