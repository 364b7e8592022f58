package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// story returns a repository with a merge, a rename and several authors.
func story(t *testing.T) (*repo, *Mirror) {
	t.Helper()
	r := newRepo(t)
	h := &stream{}
	h.commit("refs/heads/main", 1, "Ann", "Begin\n\nWith a body\nof two lines\n", "src/a.go", "one\ntwo\nthree\nfour\nfive\n", "README", "read me\n")
	h.commit("refs/heads/main", 2, "Bob", "Fix the arr[0] crash", "src/a.go", "one\nTWO\nthree\nfour\nfive\n")
	h.commit("refs/heads/main", 3, "Cleo", "Rename", "src/a.go", "D", "src/b.go", "one\nTWO\nthree\nfour\nfive\nsix\n")
	h.commit("refs/heads/main", 4, "Ann", "Add a binary", "bin", "\x00\x01", "nonl", "no newline")
	h.commit("refs/heads/dev", 5, "Bob", "Elsewhere", "x", "x\n")
	r.load(h)
	r.git("tag", "-a", "-m", "t", "v1", "main~1")
	r.git("tag", "dev", "main~2") // a branch has this name too
	return r, fetched(t, r.url())
}

func TestResolve_findsOnlyCommits(t *testing.T) {
	t.Parallel()
	r, m := story(t)
	ctx := within(t)
	head := r.git("rev-parse", "main")
	for _, ref := range []string{"", "HEAD", "main", "heads/main", "refs/heads/main", "v1", "refs/tags/v1", "dev", "heads/dev", "HEAD~2", "main^", "v1~1^0", head, head[:7], head[:4], head + "~1", strings.ToUpper(head[:10])} {
		want := r.git("rev-parse", strings.ToLower(strings.NewReplacer("HEAD", "main", "dev", "main~2", "heads/dev", "refs/heads/dev").Replace(map[string]string{"": "main"}[ref]+ref))+"^{commit}")
		got, err := m.Resolve(ctx, ref)
		if err != nil || got != want {
			t.Errorf("%q: %s, %v, want %s", ref, got, err, want)
		}
	}
	tree, blob := r.git("rev-parse", "main^{tree}"), r.git("rev-parse", "main:README")
	for ref, want := range map[string]error{
		"nothing": ErrNoRef, "main~99": ErrNoRef, "main^5": ErrNoRef, strings.Repeat("0", 40): ErrNoRef, "abc": ErrNoRef,
		tree: ErrNoRef, blob: ErrNoRef, "refs/heads": ErrNoRef, "0000": ErrNoRef,
		"--all": ErrBadRef, "-n1": ErrBadRef, "main:README": ErrBadRef, "main..dev": ErrBadRef, "@{-1}": ErrBadRef, "main@{1}": ErrBadRef,
		":/Fix": ErrBadRef, "main^{/Fix}": ErrBadRef, "a b": ErrBadRef, "a\x00b": ErrBadRef, "a\nb": ErrBadRef, "*": ErrBadRef, "../../HEAD": ErrBadRef,
		strings.Repeat("x", 2000): ErrBadRef, "\xff\xfe": ErrBadRef,
	} {
		if got, err := m.Resolve(ctx, ref); !errors.Is(err, want) {
			t.Errorf("%q: %s, error %v, want %v", ref, got, err, want)
		}
	}
	if _, err := newMirror(t).Resolve(ctx, "HEAD"); !errors.Is(err, ErrEmpty) {
		t.Errorf("a mirror that was never fetched: %v", err)
	}
}

// A branch name may look like an option. Resolve looks it up, and never gives it to git.
func TestResolve_neverTakesANameForAnOption(t *testing.T) {
	t.Parallel()
	r, _ := story(t)
	head := r.git("rev-parse", "main")
	r.git("update-ref", "refs/heads/--all", head)
	m := fetched(t, r.url())
	for ref, of := range map[string]string{"--all": "main", "refs/heads/--all": "main", "--all~1": "main~1"} {
		if got, err := m.Resolve(within(t), ref); err != nil || got != r.git("rev-parse", of) {
			t.Errorf("%q: %s, %v", ref, got, err)
		}
	}
}

// counted calls Log until the page has a count.
func counted(ctx context.Context, m *Mirror, q LogQuery) (LogPage, error) {
	for {
		page, err := m.Log(ctx, q)
		if err != nil || !page.AtLeast {
			return page, err
		}
	}
}

func TestLog_returnsFilteredCommitsInPages(t *testing.T) {
	t.Parallel()
	r, m := story(t)
	ctx := within(t)
	head := r.git("rev-parse", "main")
	day := func(minute int) time.Time { return time.Unix(at(minute), 0) }
	for _, tt := range []struct {
		q    LogQuery
		want string
	}{
		{LogQuery{}, "Add a binary|Rename|Fix the arr[0] crash|Begin of 4"},
		{LogQuery{Skip: 1, Limit: 2}, "Rename|Fix the arr[0] crash of 4"},
		{LogQuery{Skip: 9}, " of 4"},
		{LogQuery{Query: "fix"}, "Fix the arr[0] crash of 1"},
		{LogQuery{Query: "arr[0]"}, "Fix the arr[0] crash of 1"},
		{LogQuery{Query: "f.x.*CRASH$"}, "Fix the arr[0] crash of 1"},
		{LogQuery{Query: "[unbalanced"}, " of 0"},
		{LogQuery{Query: "a ("}, " of 0"},
		{LogQuery{Query: "two lines"}, "Begin of 1"},
		{LogQuery{Query: "--all"}, " of 0"},
		{LogQuery{Author: "BOB"}, "Fix the arr[0] crash of 1"},
		{LogQuery{Author: "ann@example.org"}, "Add a binary|Begin of 2"},
		{LogQuery{Path: "src"}, "Rename|Fix the arr[0] crash|Begin of 3"},
		{LogQuery{Path: "src/b.go"}, "Rename of 1"},
		{LogQuery{Path: ":(glob)**"}, " of 0"},
		{LogQuery{Since: day(3)}, "Add a binary|Rename of 2"},
		{LogQuery{Until: day(2)}, "Fix the arr[0] crash|Begin of 2"},
		{LogQuery{Since: day(2), Until: day(3), Author: "cleo"}, "Rename of 1"},
	} {
		q := tt.q
		q.Commit = head
		page, err := counted(ctx, m, q)
		var got []string
		for _, c := range page.Commits {
			got = append(got, c.Subject)
		}
		if s := fmt.Sprintf("%s of %d", strings.Join(got, "|"), page.Total); err != nil || s != tt.want || page.AtLeast {
			t.Errorf("%+v: %q, %v, want %q", tt.q, s, err, tt.want)
		}
	}
	for _, q := range []LogQuery{{Commit: "HEAD"}, {Commit: "--all"}, {Commit: head, Path: "../x"}, {Commit: head, Query: "a\nb"}} {
		if _, err := m.Log(ctx, q); err == nil {
			t.Errorf("%+v is accepted", q)
		}
	}
	c, err := m.Show(ctx, r.git("rev-parse", "main~3"))
	if err != nil || c.Body != "With a body\nof two lines" || c.AuthorEmail != "ann@example.org" || len(c.Parents) != 0 || c.AuthorTime.Unix() != at(1) {
		t.Errorf("%+v, %v", c, err)
	}
	c, _ = m.Show(ctx, head)
	if !c.Head || !slices.Equal(c.Refs, []string{"refs/heads/main"}) {
		t.Errorf("refs %q of HEAD: %v", c.Refs, c.Head)
	}
	authors, err := m.Authors(ctx, head, "", nil)
	if want := "[{Ann ann@example.org 2} {Bob bob@example.org 1} {Cleo cleo@example.org 1}]"; err != nil || fmt.Sprint(authors) != want {
		t.Errorf("authors %v, %v", authors, err)
	}
	files, commits, _, err := m.Together(ctx, head, "src")
	if err != nil || commits < 2 || len(files) == 0 || files[0].Commits == 0 || !slices.ContainsFunc(files, func(f FileCount) bool { return strings.HasPrefix(f.Path, "src/") }) {
		t.Errorf("together: %v of %d, %v", files, commits, err)
	}
	if authors, _ = m.Authors(ctx, head, "src", nil); len(authors) != 3 || authors[0].Commits != 1 {
		t.Errorf("authors of src: %v", authors)
	}
}

// show prints a diff as git prints it.
func show(d Diff) string {
	var b strings.Builder
	for _, f := range d.Files {
		fmt.Fprintf(&b, "%c %s>%s", f.Status, f.OldPath, f.NewPath)
		if f.Binary {
			b.WriteString(" binary")
		}
		if f.Cut {
			b.WriteString(" cut")
		}
		b.WriteByte('\n')
		for _, h := range f.Hunks {
			fmt.Fprintf(&b, "@@ -%d,%d +%d,%d @@%s\n%s", h.Old.Start, h.Old.Lines, h.New.Start, h.New.Lines, h.Heading, h.Body)
		}
	}
	return b.String()
}

func TestDiff_returnsHunksAndLines(t *testing.T) {
	t.Parallel()
	r, m := story(t)
	ctx := within(t)
	id := func(ref string) string { return r.git("rev-parse", ref+"^{commit}") }
	for _, tt := range []struct {
		base, head string
		o          DiffOptions
		want       string
	}{
		{"main~3", "main~2", DiffOptions{Context: 1}, "M src/a.go>src/a.go\n@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n"},
		{"main~2", "main~1", DiffOptions{Context: -1}, "R src/a.go>src/b.go\n@@ -5,0 +6,1 @@five\n+six\n"},
		{"main~1", "main", DiffOptions{}, "A >bin binary\nA >nonl\n@@ -0,0 +1,1 @@\n+no newline\n\\ No newline at end of file\n"},
		{"main", "main~1", DiffOptions{Path: "nonl"}, "D nonl>\n@@ -1,1 +0,0 @@\n-no newline\n\\ No newline at end of file\n"},
		{"main", "main", DiffOptions{}, ""},
		{"main~3", "main", DiffOptions{MaxFiles: 1}, "A >bin binary\n"},
	} {
		d, err := m.Diff(ctx, id(tt.base), id(tt.head), tt.o)
		if got := show(d); err != nil || got != tt.want {
			t.Errorf("%s..%s %+v: %v\ngot\n%s\nwant\n%s", tt.base, tt.head, tt.o, err, got, tt.want)
		}
	}
	d, err := m.Diff(ctx, id("main~3"), id("main"), DiffOptions{MaxFiles: 1})
	if err != nil || !d.Cut {
		t.Errorf("a diff of more files than allowed is not marked: %v", err)
	}
}

func TestDiff_coversEveryKindOfEntryAndName(t *testing.T) {
	t.Parallel()
	r, _, base := strange(t)
	h := &stream{}
	h.commit("refs/heads/main", 2, "Ann", "types change",
		"plain.txt", "D",
		"mode 120000 plain.txt", "elsewhere\n",
		"mode 100755 empty", "",
		"new\nline/tab\there", "other\n",
		"latin\xe9.txt", "+++ b/not a header\n@@ -1 +1 @@\ndiff --git a/x b/x\n",
		"mode 160000 sub/module", "1123456789012345678901234567890123456789",
		"-option", "D")
	h.Reset()
	h.commit("refs/heads/next", 2, "Ann", "types change",
		"new\nline/tab\there", "other\n",
		"latin\xe9.txt", "+++ b/not a header\n@@ -1 +1 @@\ndiff --git a/x b/x\n",
		"mode 120000 plain.txt", "elsewhere\n",
		"mode 100755 empty", "",
		"mode 160000 sub/module", "1123456789012345678901234567890123456789")
	r.load(h)
	m, ctx := fetched(t, r.url()), within(t)
	head, _ := m.Resolve(ctx, "next")
	d, err := m.Diff(ctx, base, head, DiffOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	names := strings.Split(strings.TrimRight(r.git("diff-tree", "-r", "-z", "-M", "--name-status", base, head), "\x00"), "\x00")
	for i := 0; i+1 < len(names); i += 2 {
		if names[i][0] == 'R' {
			want = append(want, "R "+names[i+2])
			i++
		} else {
			want = append(want, names[i]+" "+names[i+1])
		}
	}
	var got []string
	for _, f := range d.Files {
		path := f.NewPath
		if path == "" {
			path = f.OldPath
		}
		got = append(got, string(f.Status)+" "+path)
		switch path {
		case "latin\xe9.txt":
			if len(f.Hunks) != 1 || f.Added != 3 || f.Removed != 1 {
				t.Errorf("%q: %+v", path, f)
			}
		case "plain.txt":
			if f.Status != 'T' || len(f.Hunks) != 2 {
				t.Errorf("%q: %+v", path, f)
			}
		case "empty":
			if f.OldMode != "100644" || f.NewMode != "100755" || len(f.Hunks) != 0 {
				t.Errorf("%q: %+v", path, f)
			}
		case "new\nline/tab\there":
			if len(f.Hunks) != 1 || f.Hunks[0].Body != "-newline\n+other\n" {
				t.Errorf("%q: %+v", path, f)
			}
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
}

func TestDiff_isCutAtItsByteLimit(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	h := &stream{}
	h.commit("refs/heads/main", 1, "Ann", "one", "a", strings.Repeat("old line of text\n", 50_000), "b", "1\n")
	h.commit("refs/heads/main", 2, "Ann", "two", "a", strings.Repeat("new line of text\n", 50_000), "b", "2\n")
	r.load(h)
	m, ctx := fetched(t, r.url()), within(t)
	head, _ := m.Resolve(ctx, "main")
	base, _ := m.Resolve(ctx, "main~1")
	d, err := m.Diff(ctx, base, head, DiffOptions{})
	if err != nil || d.Cut || len(d.Files) != 2 || d.Files[0].Added != 50_000 || d.Files[0].Removed != 50_000 {
		t.Errorf("%d files, cut %v, %v", len(d.Files), d.Cut, err)
	}
	d, err = m.Diff(ctx, base, head, DiffOptions{MaxBytes: 1000})
	if err != nil || !d.Cut || len(d.Files) != 2 || !d.Files[0].Cut || !d.Files[1].Cut || len(d.Files[0].Hunks[0].Body) > 1000 {
		t.Errorf("%+v, %v", d, err)
	}
}

func TestBlame_returnsTheCommitOfEachLine(t *testing.T) {
	t.Parallel()
	r, m := story(t)
	head := r.git("rev-parse", "main")
	b, err := m.Blame(within(t), BlameQuery{Commit: head, Path: "src/b.go"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, x := range b.Ranges {
		c := b.Commits[x.Commit]
		got = append(got, fmt.Sprintf("%d+%d %s %s (%s) after %s", x.First, x.Lines, c.AuthorName, x.Path, c.Summary, c.PreviousPath))
	}
	want := []string{
		"1+1 Ann src/a.go (Begin) after ",
		"2+1 Bob src/a.go (Fix the arr[0] crash) after src/a.go",
		"3+3 Ann src/a.go (Begin) after ",
		"6+1 Cleo src/b.go (Rename) after src/a.go",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if _, err := m.Blame(within(t), BlameQuery{Commit: head, Path: "bin"}); !errors.Is(err, ErrBinary) {
		t.Errorf("blame of a binary file: %v", err)
	}
	if _, err := m.Blame(within(t), BlameQuery{Commit: head, Path: "none"}); !errors.Is(err, ErrNoPath) {
		t.Errorf("blame of nothing: %v", err)
	}
	_, s, id := strange(t)
	for _, path := range []string{"new\nline/tab\there", "latin\xe9.txt", "-option", ":(top)magic", "name with spaces/and \"quotes\"\\"} {
		b, err := s.Blame(within(t), BlameQuery{Commit: id, Path: path})
		if err != nil || len(b.Ranges) != 1 || b.Ranges[0].Path != path {
			t.Errorf("%q: %+v, %v", path, b.Ranges, err)
		}
	}
}

func TestMirrorMaintenance_keepsAllObjectsReadable(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	m, ctx := newMirror(t), within(t)
	for i := range 25 {
		h := &stream{}
		h.commit("refs/heads/main", i, "Ann", fmt.Sprintf("commit %d", i), fmt.Sprintf("f%d", i), "content\n")
		if i > 0 {
			text := strings.Replace(h.String(), "M 100644", "from refs/heads/main^0\nM 100644", 1)
			h.Reset()
			h.WriteString(text)
		}
		r.load(h)
		if _, err := m.Fetch(ctx, Remote{URL: r.url()}, FetchOptions{}); err != nil {
			t.Fatal(err)
		}
		if i%5 == 4 {
			if err := m.Groom(ctx); err != nil {
				t.Fatal(err)
			}
		}
		head, err := m.Resolve(ctx, "main")
		if err != nil || head != r.git("rev-parse", "main") {
			t.Fatalf("commit %d: %s, %v", i, head, err)
		}
		if s, err := m.Source(ctx, head, fmt.Sprintf("f%d", i), SourceOptions{}); err != nil || string(s.Content) != "content\n" {
			t.Fatalf("commit %d: %q, %v", i, s.Content, err)
		}
	}
	// A week later, groom removes objects without references.
	old := time.Now().Add(-30 * 24 * time.Hour)
	if err := os.Chtimes(filepath.Join(m.Dir(), pruned), old, old); err != nil {
		t.Fatal(err)
	}
	if err := m.Groom(ctx); err != nil {
		t.Fatal(err)
	}
	head, _ := m.Resolve(ctx, "HEAD")
	page, err := m.Log(ctx, LogQuery{Commit: head, Path: "f3"})
	if err != nil || page.Total != 1 {
		t.Errorf("%+v, %v", page, err)
	}
	packs, _ := m.packs()
	if len(packs) != 1 {
		t.Errorf("%d packs are left", len(packs))
	}
	if _, err := os.Stat(filepath.Join(m.Dir(), "objects/info/commit-graphs")); err != nil {
		t.Error(err)
	}
	if err := newMirror(t).Groom(ctx); err != nil {
		t.Errorf("a mirror that was never fetched: %v", err)
	}
}
