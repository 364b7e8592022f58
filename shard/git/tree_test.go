package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// strange returns a commit with every kind of entry and name.
func strange(t *testing.T) (*repo, *Mirror, string) {
	t.Helper()
	r := newRepo(t)
	h := &stream{}
	h.commit("refs/heads/main", 1, "Ann", "all kinds",
		"plain.txt", "hello\n",
		"mode 100755 bin/tool", "#!/bin/sh\n",
		"mode 120000 link", "plain.txt",
		"mode 160000 sub/module", "0123456789012345678901234567890123456789",
		"name with spaces/and \"quotes\"\\", "spaces\n",
		"new\nline/tab\there", "newline\n",
		"latin\xe9.txt", "caf\xe9\n",
		"-option", "dash\n",
		"*glob[a]", "stars\n",
		":(top)magic", "magic\n",
		"big.bin", lfsPointer+"oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n",
		"empty", "",
		"nul.bin", "a\x00b",
		"a/b/c/d/e/f/deep.txt", "deep\n",
		"a.txt", "sorts between a and a/\n",
		"last-line", "one\ntwo",
	)
	r.load(h)
	m := fetched(t, r.url())
	head, err := m.Resolve(within(t), "")
	if err != nil {
		t.Fatal(err)
	}
	return r, m, head
}

func TestTree_listsFilesAndSymlinksAsGitDoes(t *testing.T) {
	t.Parallel()
	r, m, head := strange(t)
	var got []string
	all, err := m.Files(within(t), head, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		got = append(got, fmt.Sprintf("%06o blob %s %d\t%s", e.Kind.Mode(), e.OID, e.Size, e.Path))
	}
	var want []string
	for line := range strings.SplitSeq(strings.TrimRight(r.git("ls-tree", "-r", "-z", "-l", "main"), "\x00"), "\x00") {
		head, path, _ := strings.Cut(line, "\t")
		f := strings.Fields(head)
		if f[1] == "blob" {
			want = append(want, strings.Join(f, " ")+"\t"+path)
		}
	}
	slices.SortFunc(want, func(a, b string) int { return strings.Compare(a[strings.Index(a, "\t"):], b[strings.Index(b, "\t"):]) })
	if !slices.Equal(got, want) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
}

func TestReadBlobs_keepTheOrderOfTheirIDs(t *testing.T) {
	t.Parallel()
	_, m, head := strange(t)
	ctx := within(t)
	entries, err := m.Files(ctx, head, nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := m.Blobs(ctx, func(yield func(string) bool) {
		for range 500 {
			for _, e := range entries {
				if !yield(e.OID) {
					return
				}
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	buf := make([]byte, 0, 1<<10)
	for i := range 500 * len(entries) {
		e := entries[i%len(entries)]
		buf, err = b.Next(append(buf[:0], "before"...))
		if err != nil || int64(len(buf)-6) != e.Size || !bytes.HasPrefix(buf, []byte("before")) {
			t.Fatalf("%s: %d bytes, %v, want %d", e.Path, len(buf), err, e.Size)
		}
	}
	if _, err := b.Next(nil); err != io.EOF {
		t.Errorf("after the last: %v", err)
	}
}

func TestReadBlobs_failForMissingOrInvalidIDs(t *testing.T) {
	t.Parallel()
	_, m, head := strange(t)
	for name, oid := range map[string]string{
		"missing": strings.Repeat("ab", 20), "not a blob": head, "not an id": "HEAD:plain.txt",
	} {
		b, err := m.Blobs(within(t), slices.Values([]string{oid}))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Next(nil); err == nil || err == io.EOF {
			t.Errorf("%s: error %v", name, err)
		}
		b.Close()
	}
	ctx, cancel := context.WithCancel(within(t))
	b, err := m.Blobs(ctx, func(yield func(string) bool) {
		for yield(strings.Repeat("ab", 20)) {
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	for err == nil {
		_, err = b.Next(nil)
	}
	b.Close() // returns although the input never ends
}

// TestTreeUnion_agreesWithGitLsTree compares with git over random histories.
func TestTreeUnion_agreesWithGitLsTree(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"sha1", "sha256"} {
		r := newRepo(t, "--object-format="+format)
		rnd := rand.New(rand.NewSource(7))
		h := &stream{}
		for i := range 40 {
			var files []string
			for range 30 {
				path := fmt.Sprintf("d%d/e%d/f%d", rnd.Intn(4), rnd.Intn(5), rnd.Intn(6))
				if rnd.Intn(4) == 0 {
					path = fmt.Sprintf("d%d", rnd.Intn(6)) // a file where other commits have a directory
				}
				content := fmt.Sprint(rnd.Intn(40))
				if rnd.Intn(10) == 0 {
					content = "D"
				} else if rnd.Intn(5) == 0 {
					path = "mode 100755 " + path
				}
				files = append(files, path, content)
			}
			h.commit("refs/heads/main", i, "Ann", "commit", files...)
		}
		r.load(h)
		m := fetched(t, r.url())
		commits := strings.Fields(r.git("rev-list", "main"))
		blobs, err := m.Union(within(t), commits)
		if err != nil {
			t.Fatal(err)
		}
		got := make([][]string, len(commits))
		seen := map[string]bool{}
		for _, b := range blobs {
			if seen[b.OID] {
				t.Errorf("%s is there twice", b.OID)
			}
			seen[b.OID] = true
			for _, o := range b.Occurrences {
				for i := range commits {
					if o.Commits&(1<<i) != 0 {
						got[i] = append(got[i], fmt.Sprintf("%06o blob %s %d %s", o.Kind.Mode(), b.OID, b.Size, o.Path))
					}
				}
			}
		}
		for i, c := range commits {
			var want []string
			for line := range strings.Lines(r.git("ls-tree", "-r", "-l", c)) {
				want = append(want, strings.Join(strings.Fields(line), " "))
			}
			slices.Sort(got[i])
			slices.Sort(want)
			if !slices.Equal(got[i], want) {
				t.Fatalf("%s, commit %d:\ngot  %q\nwant %q", format, i, got[i], want)
			}
		}
	}
}

func TestListTree_listsEntriesUpToADepth(t *testing.T) {
	t.Parallel()
	_, m, head := strange(t)
	ctx := within(t)
	for _, tt := range []struct {
		path string
		o    ListOptions
		want string
		err  error
	}{
		{"a", ListOptions{Depth: 2}, "a/b/ a/b/c/", nil},
		{"/a/b/", ListOptions{Depth: -1}, "a/b/c/ a/b/c/d/ a/b/c/d/e/ a/b/c/d/e/f/ a/b/c/d/e/f/deep.txt", nil},
		{"", ListOptions{Max: 3}, "a/ bin/ name with spaces/ cut", nil},
		{"sub", ListOptions{}, "sub/module", nil},
		{"plain.txt", ListOptions{}, "", ErrNotDir},
		{"nothing/here", ListOptions{}, "", ErrNoPath},
		{"../..", ListOptions{}, "", ErrBadPath},
		{"a\x00", ListOptions{}, "", ErrBadPath},
	} {
		entries, cut, err := m.List(ctx, head, tt.path, tt.o)
		var got []string
		for _, e := range entries {
			if e.Kind == Dir {
				e.Path += "/"
			}
			got = append(got, e.Path)
		}
		if cut {
			got = append(got, "cut")
		}
		if strings.Join(got, " ") != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("%q %+v: %q, %v", tt.path, tt.o, got, err)
		}
	}
}

func TestReadFile_acceptsAnyName(t *testing.T) {
	t.Parallel()
	_, m, head := strange(t)
	ctx := within(t)
	for _, tt := range []struct {
		path string
		o    SourceOptions
		want string // content, first line, lines, total
		err  error
	}{
		{"plain.txt", SourceOptions{}, "hello\n 1+1/1", nil},
		{"link", SourceOptions{}, "plain.txt 1+1/1", nil},
		{"name with spaces/and \"quotes\"\\", SourceOptions{}, "spaces\n 1+1/1", nil},
		{"new\nline/tab\there", SourceOptions{}, "newline\n 1+1/1", nil},
		{"latin\xe9.txt", SourceOptions{}, "caf\xe9\n 1+1/1", nil},
		{"-option", SourceOptions{}, "dash\n 1+1/1", nil},
		{":(top)magic", SourceOptions{}, "magic\n 1+1/1", nil},
		{"empty", SourceOptions{}, " 1+0/0", nil},
		{"empty", SourceOptions{FirstLine: 1, Lines: 5, Count: true}, " 1+0/0", nil},
		{"last-line", SourceOptions{FirstLine: 2, Lines: 5}, "two 2+1/2", nil},
		{"last-line", SourceOptions{FirstLine: 1, Lines: 1}, "one\n 1+1/-1", nil},
		{"last-line", SourceOptions{FirstLine: 1, Lines: 1, Count: true}, "one\n 1+1/2", nil},
		{"last-line", SourceOptions{FirstLine: 9, Lines: 1}, " 9+0/2", nil},
		{"last-line", SourceOptions{MaxBytes: 5}, "one\nt 1+2/2", nil},
		{"sub/module", SourceOptions{}, "", ErrNoPath},
		{"sub", SourceOptions{}, "", ErrIsDir},
		{"", SourceOptions{}, "", ErrIsDir},
		{"plain.txt/x", SourceOptions{}, "", ErrNoPath},
		{"missing", SourceOptions{}, "", ErrNoPath},
		{"a/../plain.txt", SourceOptions{}, "", ErrBadPath},
	} {
		s, err := m.Source(ctx, head, tt.path, tt.o)
		if !errors.Is(err, tt.err) {
			t.Errorf("%q: error %v, want %v", tt.path, err, tt.err)
		}
		if got := fmt.Sprintf("%s %d+%d/%d", s.Content, s.FirstLine, s.Lines, s.Total); err == nil && got != tt.want {
			t.Errorf("%q %+v: %q, want %q", tt.path, tt.o, got, tt.want)
		}
	}
	if s, _ := m.Source(ctx, head, "big.bin", SourceOptions{}); !s.LFS {
		t.Error("a pointer of LFS is not seen")
	}
	if s, _ := m.Source(ctx, head, "nul.bin", SourceOptions{}); !s.Binary {
		t.Error("a binary file is not seen")
	}
}

func TestReadFile_returnsSomeLinesOfALargeFile(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	line := strings.Repeat("x", 99) + "\n"
	h := &stream{}
	h.commit("refs/heads/main", 1, "Ann", "large", "large", strings.Repeat(line, 400_000))
	r.load(h)
	m, ctx := fetched(t, r.url()), within(t)
	head, _ := m.Resolve(ctx, "main")
	for range 10 { // data left in the pipe must not become a part of the next answer
		s, err := m.Source(ctx, head, "large", SourceOptions{FirstLine: 3, Lines: 2})
		if err != nil || string(s.Content) != line+line || s.Size != 40_000_000 {
			t.Fatalf("%d of %d bytes, %v", len(s.Content), s.Size, err)
		}
	}
	s, err := m.Source(ctx, head, "large", SourceOptions{FirstLine: 399_999, Lines: 500, Count: true})
	if err != nil || s.Lines != 2 || s.Total != 400_000 {
		t.Errorf("%d lines of %d, %v", s.Lines, s.Total, err)
	}
}

func TestTreeScan_findsTheFilesOfTheSearchIndex(t *testing.T) {
	t.Parallel()
	_, m, head := strange(t)
	var got []string
	files, err := m.Files(within(t), head, func(p string) bool { return filepath.Ext(p) == ".txt" })
	if err != nil || len(files) != 4 {
		t.Fatalf("%+v, %v", files, err)
	}
	err = m.Scan(within(t), files, 20, func(e Entry, content []byte) bool {
		got = append(got, fmt.Sprintf("%s=%d", e.Path, len(content)))
		return true
	})
	if want := "a/b/c/d/e/f/deep.txt=5 latin\xe9.txt=5 plain.txt=6"; err != nil || strings.Join(got, " ") != want {
		t.Errorf("%q, %v", got, err)
	}
}

func TestChangedFiles_agreeWithGitDiffTree(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	h := &stream{}
	h.commit("refs/heads/main", 1, "Ann", "one", "same", "same\n", "dir/changed", "1\n", "dir/gone", "gone\n", "was/file", "x\n")
	h.commit("refs/heads/main", 60, "Ann", "two", "dir/changed", "22\n", "dir/gone", "D", "dir/ne\tw", "333\n", "was/file", "D")
	r.load(h)
	m, ctx := fetched(t, r.url()), within(t)
	base, _ := m.Resolve(ctx, "main~1")
	head, _ := m.Resolve(ctx, "main")
	d, err := m.Changes(ctx, base, head, 10)
	if err != nil || d.Cut || strings.Join(d.Gone, " ") != "dir/changed dir/gone was/file" {
		t.Errorf("%+v, %v", d, err)
	}
	if len(d.Now) != 2 || d.Now[0].Path != "dir/changed" || d.Now[0].Size != -1 || d.Now[1].Path != "dir/ne\tw" || d.Now[1].Size != -1 {
		t.Errorf("%+v", d.Now)
	}
	if d, err = m.Changes(ctx, base, head, 2); err != nil || !d.Cut || d.Now != nil || d.Gone != nil {
		t.Errorf("more than wanted: %+v, %v", d, err)
	}
	if d, err = m.Changes(ctx, head, head, 10); err != nil || len(d.Now)+len(d.Gone) != 0 {
		t.Errorf("the same commit: %+v, %v", d, err)
	}
	missing := strings.Repeat("0", 40)
	for want, among := range map[int][]string{0: {head, base}, 1: {missing, base, head}, -1: {missing}} {
		if got, err := m.Nearest(ctx, map[bool]string{true: head, false: base}[want == 0], among); err != nil || got != want {
			t.Errorf("nearest of %q: %d, %v, want %d", among, got, err, want)
		}
	}
}
