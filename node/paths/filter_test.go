package paths

import "testing"

// keeps reports whether a filter takes a path.
func keeps(t *testing.T, f Filter, path string) bool {
	t.Helper()
	keep, err := f.Keeps()
	if err != nil {
		t.Fatal(err)
	}
	return keep(path)
}

// A glob has to match a whole name, not a line of it.
func TestALineOfANameIsNoName(t *testing.T) {
	t.Parallel()
	const odd = "dir with space/new\nline.txt"
	for glob, want := range map[string]bool{
		"*.txt": false, "line.txt": false, "dir with space/*.txt": false, "new?line.txt": false, "dir with space/new": false, "**/*.txt": false,
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
