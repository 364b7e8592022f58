package git

import (
	"strings"
	"testing"
)

// reformatted returns a repository whose second commit changes little except blanks. It contains
// one change of each kind; the tests list them in want.
func reformatted(t *testing.T) (r *repo, m *Mirror, base, head string) {
	t.Helper()
	lines := strings.Repeat("a line that stays\n", 20)
	r = newRepo(t)
	h := &stream{}
	h.commit("refs/heads/main", 1, "Ann", "one",
		"a blank", "one\n  two\n", "b\t\"quoted\"", "one\n  two\n", "c.bin", "a\x00b", "d mode", "one\n  two\n",
		"e real", "one\n  two\nthree\n", "f gone", "g\n", "h type", "one\n", "i old", lines, "z last", "one\n  two\n")
	h.commit("refs/heads/main", 2, "Bob", "two",
		"a blank", "one\n\ttwo\n", "b\t\"quoted\"", "one\ntwo\n", "c.bin", "a\x00 b", "mode 100755 d mode", "one\ntwo\n",
		"e real", "one\ntwo\nTHREE\n", "f gone", "D", "mode 120000 h type", "one\n", "i old", "D", "j new", "  "+lines, "z last", "one \ntwo\n")
	r.load(h)
	return r, fetched(t, r.url()), r.git("rev-parse", "main~1"), r.git("rev-parse", "main")
}

// Git lists files that differ only in blanks, but prints no patch for them. The reader must not
// take the patch of the next file for theirs.
func TestDiff_omitsWhitespaceChangesOnRequest(t *testing.T) {
	t.Parallel()
	_, m, base, head := reformatted(t)
	const want = "M c.bin>c.bin binary\nM d mode>d mode\nM e real>e real\n@@ -1,3 +1,3 @@\n one\n two\n-three\n+THREE\n" +
		"D f gone>\n@@ -1,1 +0,0 @@\n-g\n" +
		"T h type>h type\n@@ -1,1 +0,0 @@\n-one\n@@ -0,0 +1,1 @@\n+one\nR i old>j new\n"
	d, err := m.Diff(within(t), base, head, DiffOptions{IgnoreBlanks: true})
	if got := show(d); err != nil || got != want || d.Cut {
		t.Errorf("%v, cut %t\ngot\n%s\nwant\n%s", err, d.Cut, got, want)
	}

	// A count of lines lists the same files.
	stat, err := m.Diff(within(t), base, head, DiffOptions{IgnoreBlanks: true, Stat: true})
	if err != nil || len(stat.Files) != len(d.Files) {
		t.Fatalf("%v\ngot\n%s\nwant\n%s", err, show(stat), show(d))
	}
	for i, f := range stat.Files {
		w := d.Files[i]
		if f.NewPath != w.NewPath || f.OldPath != w.OldPath || f.Binary != w.Binary || f.Status != 'T' && (f.Added != w.Added || f.Removed != w.Removed) {
			t.Errorf("counted %+v, want %+v", f, w)
		}
	}

	// Without IgnoreBlanks the difference is complete.
	whole, err := m.Diff(within(t), base, head, DiffOptions{})
	if err != nil || len(whole.Files) != 9 || whole.Files[0].Added != 1 || whole.Files[7].Similarity < 90 {
		t.Errorf("%v: %+v", err, whole)
	}
}

// A limit on files or bytes keeps every file that may differ in more than blanks.
func TestDiff_withoutWhitespaceIsCutAtItsLimits(t *testing.T) {
	t.Parallel()
	_, m, base, head := reformatted(t)
	for most, want := range map[int]string{1: "", 2: "", 3: "M c.bin>c.bin binary\n"} {
		for _, stat := range []bool{false, true} {
			d, err := m.Diff(within(t), base, head, DiffOptions{IgnoreBlanks: true, MaxFiles: most, Stat: stat})
			if got := show(d); err != nil || got != want || !d.Cut {
				t.Errorf("%d files, stat %t: %v, cut %t, %q, want %q", most, stat, err, d.Cut, got, want)
			}
		}
	}

	// The last file is cut, so it is unknown whether it differs only in blanks.
	d, err := m.Diff(within(t), base, head, DiffOptions{IgnoreBlanks: true, MaxBytes: 3})
	if err != nil || !d.Cut || len(d.Files) != 7 || d.Files[6].NewPath != "z last" || !d.Files[6].Cut {
		t.Errorf("%v, cut %t:\n%s", err, d.Cut, show(d))
	}
}

func TestPaths_areQuotedAsGitDoes(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"a b/ü": "a b/ü", `a"b`: `"a\"b"`, `a\b`: `"a\\b"`, "\a\b\t\n\v\f\r": `"\a\b\t\n\v\f\r"`, "\x01\x7f\xff": "\"\\001\\177\xff\"",
	} {
		if got := quotePath(path); got != want || unquote(got) != path {
			t.Errorf("%q is quoted as %s, want %s", path, got, want)
		}
	}
}
