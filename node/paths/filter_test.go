package paths

import (
	"errors"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/node/call"
)

// keeps reports whether a filter accepts a path.
func keeps(t *testing.T, f Filter, path string) bool {
	t.Helper()
	keep, err := f.Keeps()
	if err != nil {
		t.Fatal(err)
	}
	return keep(path)
}

// A glob must match a whole name, not a line of it.
func TestPathFilter_matchesWholeNamesWithLineBreaks(t *testing.T) {
	t.Parallel()
	const odd = "dir with space/new\nline.txt"
	for glob, want := range map[string]bool{
		"line.txt": false, "dir with space/new": false, "new": false, "*.txt": true, "dir with space/*.txt": true, "new?line.txt": true, "**/*.txt": true,
		"dir with space": true, "dir with space/**": true, "**": true, "new\nline.txt": true, "dir with space/new\n*.txt": true,
	} {
		if got := keeps(t, Filter{Include: []string{glob}}, odd); got != want {
			t.Errorf("%q takes %q: %v, want %v", glob, odd, got, want)
		}
	}
	if keeps(t, Filter{Dir: "line.txt"}, odd) || !keeps(t, Filter{Dir: "dir with space"}, odd) {
		t.Error("a directory is not where a line of a name begins")
	}
	for _, glob := range []string{"*.txt", "/a/*.txt", "a/*.txt", "?.txt"} {
		if !keeps(t, Filter{Include: []string{glob}}, "a/b.txt") {
			t.Errorf("%q does not take a/b.txt", glob)
		}
	}
}

// The directory of a filter may be a file, and the pattern of the tool glob matches files only.
func TestPathFilter_directoryMayBeAFile(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		dir, glob, path  string
		include, pattern bool
	}{
		{"src/a.go", "*.go", "src/a.go", true, true}, {"src/a.go", "**/*.go", "src/a.go", true, true}, {"src/a.go", "a.go", "src/a.go", true, true}, {"src/a.go", "src/a.go", "src/a.go", true, true}, {"src/a.go", "**", "src/a.go", true, true},
		{"src/a.go", "*.c", "src/a.go", false, false}, {"src/a.go", "*.go", "src/a.go.go", false, false}, {"src/a.go", "b.go", "src/b.go", false, false},
		{"", "a.go", "a.go", true, true}, {"", "a", "a.go", false, false}, {"", "-", "-dash", false, false}, {"", "src", "src/a.go", true, false}, {"", "src/", "src/a.go", true, false}, {"", "src/a", "src/a.go", false, false}, {"lib", "src", "lib/src/a.go", true, false},
	} {
		include := keeps(t, Filter{Dir: c.dir, Include: []string{c.glob}}, c.path)
		of, err := OfGlob(c.dir, c.glob)
		if err != nil {
			t.Fatal(err)
		}
		keep, err := of.Keeps()
		if err != nil {
			t.Fatal(err)
		}
		if pattern := keep(c.path); include != c.include || pattern != c.pattern {
			t.Errorf("%q in %q takes %q: %v, as a pattern %v", c.glob, c.dir, c.path, include, pattern)
		}
	}
}

// The expansion of globs is limited: a short glob may mean an expression of megabytes, which no
// index accepts and which would take hundreds of megabytes to compile.
func TestPathFilter_refusesGlobsThatAreTooLarge(t *testing.T) {
	t.Parallel()
	const digits = "{0,1,2,3,4,5,6,7,8,9}"
	many := make([]string, maxGlobs)
	for i := range many {
		many[i] = strings.Repeat("a", 1000)
	}
	for name, f := range map[string]Filter{
		"a class":          {Include: []string{"[" + strings.Repeat("a", 4000) + "]*"}},
		"ranges":           {Include: []string{strings.Repeat("{1..999}", 5) + "*"}},
		"stars":            {Exclude: []string{strings.Repeat("?*", 4900)}},
		"globs one by one": {Include: many},
		"no glob":          {Include: []string{"[" + strings.Repeat("a", 1<<20)}},
	} {
		if _, err := f.Exprs(); !errors.Is(err, call.ErrInvalid) || len(err.Error()) > 500 {
			t.Errorf("%s: %.300v, want a short refusal", name, err)
		}
	}

	for _, glob := range []string{digits + digits + digits + "*.go", strings.Repeat("*b", 1000)} {
		if _, err := (&Filter{Include: []string{glob}}).Exprs(); err != nil {
			t.Errorf("%.40q: %v", glob, err)
		}
	}
}

// A path from an answer works as a glob, even together with a directory.
func TestPathFilter_globMayBeginWithTheDirectory(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		glob, path string
		want       bool
	}{
		{"lib/a.js", "lib/a.js", true},
		{"lib/a.js", "lib/lib/a.js", true}, // relative to the directory, as any other glob
		{"lib/*.js", "lib/b.js", true},
		{"lib/*.js", "lib/c/b.js", false},
		{"lib/c/", "lib/c/b.js", true},
		{"c/b.js", "lib/c/b.js", true},
		{"li/a.js", "lib/a.js", false},
		{"/lib/a.js", "lib/a.js", false}, // the slash ties it to the directory
	} {
		if got := keeps(t, Filter{Dir: "lib", Include: []string{tt.glob}}, tt.path); got != tt.want {
			t.Errorf("%q below lib takes %q: %v, want %v", tt.glob, tt.path, got, tt.want)
		}
		if got := !keeps(t, Filter{Dir: "lib", Exclude: []string{tt.glob}}, tt.path); got != tt.want {
			t.Errorf("%q below lib leaves out %q: %v, want %v", tt.glob, tt.path, got, tt.want)
		}
	}
}
