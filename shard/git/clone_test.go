package git

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/shard/git/pack"
)

// A first copy made without git's transport equals a clone. Git itself copies unusual repositories.
func TestCloneLocal_equalsAGitClone(t *testing.T) {
	t.Parallel()
	filled := func(t *testing.T) *repo {
		r := newRepo(t)
		h := &stream{}
		h.commit("refs/heads/main", 1, "Ann", "one", "a.txt", "1\n", "dir/b.txt", "2\n")
		h.commit("refs/heads/main", 2, "Ann", "two", "a.txt", "one more\n")
		h.commit("refs/heads/dev/x", 3, "Bob", "three", "c.txt", "3\n")
		r.load(h)
		r.git("tag", "-a", "-m", "annotated", "v1", "main")
		return r
	}
	for _, tt := range []struct {
		name  string
		make  func(r *repo)
		quick bool
	}{
		{"loose", func(r *repo) {}, true},
		{"packed", func(r *repo) { r.git("gc", "--quiet") }, true},
		{"both", func(r *repo) {
			r.git("gc", "--quiet")
			h := &stream{}
			h.commit("refs/heads/late", 4, "Ann", "four", "d.txt", "4\n")
			r.load(h)
		}, true},
		{"detached", func(r *repo) { r.git("update-ref", "--no-deref", "HEAD", r.git("rev-parse", "main~1")) }, true},
		{"unborn", func(r *repo) { r.git("symbolic-ref", "HEAD", "refs/heads/none") }, true},
		{"hidden references", func(r *repo) { r.git("config", "transfer.hideRefs", "refs/heads/dev") }, false},
		{"a symbolic branch", func(r *repo) { r.git("symbolic-ref", "refs/heads/alias", "refs/heads/main") }, false},
		{"a missing object", func(r *repo) {
			oid := r.git("rev-parse", "main:a.txt")
			if err := os.Remove(filepath.Join(r.dir, "objects", oid[:2], oid[2:])); err != nil {
				r.t.Fatal(err)
			}
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := filled(t)
			tt.make(r)
			m, ctx := newMirror(t), within(t)
			quick := func() (Fetched, bool) {
				f, err := openForeign(r.dir, "")
				if err != nil {
					t.Fatal(err)
				}
				defer f.close()
				there, err := f.readRefs()
				if err != nil || f.mayLackHistory() {
					return Fetched{}, false
				}
				return m.fetchWithoutGit(ctx, f, there)
			}
			f, ok := quick()
			if ok != tt.quick {
				t.Fatalf("copied %v, want %v", ok, tt.quick)
			}
			if !ok {
				if _, err := os.Stat(m.Dir()); err == nil {
					t.Error("half a mirror was left")
				}
				return
			}
			other := newMirror(t)
			if err := other.viaGit(t, r); err != nil {
				t.Fatal(err)
			}
			for _, args := range [][]string{{"for-each-ref"}, {"rev-list", "--objects", "--all"}, {"rev-parse", "HEAD"}, {"fsck", "--full"}} {
				if got, want := runGit(t, m.Dir(), nil, args...), runGit(t, other.Dir(), nil, args...); got != want {
					t.Errorf("git %v: %q, want %q", args, got, want)
				}
			}
			if again, ok := quick(); !ok || again.Changed || again.DefaultBranch != f.DefaultBranch || !f.Changed {
				t.Errorf("once more: %+v, %v; first %+v", again, ok, f)
			}
			r.git("update-ref", "refs/heads/new", r.git("rev-parse", "main"))
			if _, ok := quick(); ok {
				t.Error("a change was not seen")
			}
		})
	}
}

// viaGit fills a mirror by git's transport.
func (m *Mirror) viaGit(t *testing.T, r *repo) error {
	t.Helper()
	from := source{Remote: Remote{URL: r.url()}}
	there, err := list(within(t), from, FetchOptions{})
	if err != nil {
		return err
	}
	_, err = m.updateTo(within(t), from, FetchOptions{}, there)
	return err
}

// all returns pointers to blobs.
func all(blobs []Blob) []*Blob {
	list := make([]*Blob, len(blobs))
	for i := range blobs {
		list[i] = &blobs[i]
	}
	return list
}

// Sizes equal those that git prints, for whole blobs and deltas in packs, and for loose objects.
func TestObjectSizes_agreeWithGit(t *testing.T) {
	t.Parallel()
	r, ctx := newRepo(t), within(t)
	h := &stream{}
	var files []string
	for i := range 2*blobsPerWorker + 100 {
		files = append(files, fmt.Sprintf("d%d/f%d", i%40, i), fmt.Sprint(i))
	}
	text := strings.Repeat("a line of a file that is changed little\n", 50)
	h.commit("refs/heads/main", 0, "Ann", "many", files...)
	for i := range 20 {
		h.commit("refs/heads/main", 1+i, "Ann", "change", "a.txt", text+strings.Repeat("x", i)+"\n")
	}
	r.load(h)
	r.git("gc", "--quiet")
	m := fetched(t, r.url())
	var got []Blob
	for _, commit := range []string{"main", "main~7"} {
		for line := range strings.Lines(r.git("ls-tree", "-r", commit)) {
			got = append(got, Blob{OID: strings.Fields(line)[2]})
		}
	}
	got = append(got, Blob{OID: runGit(t, m.dir, []byte("loose\n"), "hash-object", "-w", "--stdin")})
	want := slices.Clone(got)
	if err := errors.Join(m.setSizes(ctx, got), m.setSizesByGit(ctx, all(want))); err != nil {
		t.Fatal(err)
	}
	for i := range got {
		if got[i].Size != want[i].Size {
			t.Fatalf("%s: %d bytes, want %d", got[i].OID, got[i].Size, want[i].Size)
		}
	}
	if rest := m.setPackedSizes(ctx, got); len(rest) != 1 {
		t.Errorf("git is asked for %d, want 1", len(rest))
	}
	missing := []Blob{{OID: strings.Repeat("ab", 20)}}
	if err := m.setSizes(ctx, missing); err == nil {
		t.Error("a blob that is not there has a size")
	}
}

// Reading the files of a small mirror directly gives what git reads.
func TestSmallMirror_readsAgreeWithGit(t *testing.T) {
	t.Parallel()
	r, ctx := newRepo(t), within(t)
	h := &stream{}
	text := strings.Repeat("a line of a file that is changed little\n", 50)
	for i := range 20 {
		h.commit("refs/heads/main", i, "Ann", "change", "a.txt", text+strings.Repeat("x", i)+"\n", "dir/sub/f", strings.Repeat("y", i))
	}
	r.load(h)
	r.git("tag", "-a", "-m", "annotated", "v1", "main~3")
	r.git("tag", "light", "main~5")
	r.git("gc", "--quiet") // makes deltas of blobs and trees
	m := fetched(t, r.url())
	commits := []string{r.git("rev-parse", "main"), r.git("rev-parse", "main~7")}
	blobs, err := m.Union(ctx, commits)
	if err != nil {
		t.Fatal(err)
	}
	for i, commit := range commits {
		var got []string
		for _, b := range blobs {
			for _, o := range b.Occurrences {
				if o.Commits>>i&1 != 0 {
					got = append(got, fmt.Sprintf("%06o blob %s %7d\t%s", o.Kind.Mode(), b.OID, b.Size, o.Path))
				}
			}
		}
		if want := strings.Split(r.git("ls-tree", "-r", "-l", commit), "\n"); !slices.Equal(got, want) {
			t.Errorf("files of commit %d: %q, want %q", i, got, want)
		}
	}
	lines, ok := m.fewRefLines()
	var refs []string
	for _, f := range lines {
		refs = append(refs, strings.Join(f, "|"))
	}
	format := strings.ReplaceAll(strings.TrimSuffix(refFormat, "%00"), "%00", "|")
	if want := runGit(t, m.Dir(), nil, "for-each-ref", "--format="+format); !ok || strings.Join(refs, "\n") != want {
		t.Errorf("references %q, want %q", refs, want)
	}
	dir := must(os.OpenRoot(r.dir))(t)
	defer dir.Close()
	if loose, err := pack.Refs(dir); err != nil || len(loose) != 3 || !maps.Equal(loose, must(m.readRefNames(ctx))(t)) {
		t.Errorf("files of references: %v, %v", loose, err)
	}
}

func must[T any](v T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func TestOrigin_isReadFromTheGitConfiguration(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text, want string
		ok         bool
	}{
		{"[core]\n\tbare = true\n", "", true},
		{"[remote \"origin\"]\n\turl = https://example.org/a.git\n\tfetch = +refs/*:refs/*\n", "https://example.org/a.git", true},
		{"[remote \"origin\"]\n\tURL=x:y\n[remote \"other\"]\n\turl = z\n", "x:y", true},
		{"[remote \"other\"]\n\turl = origin\n", "", true},
		{"[remote \"origin\"]\n\turl = a\n\turl = b\n", "", false},
		{"[remote \"origin\"] url = a\n", "", false},
		{"[remote.origin]\n\turl = a\n", "", false},
		{"[remote \"origin\"]\n\turl = \"a b\"\n", "", false},
		{"[remote \"origin\"]\n\turl = a ; comment\n", "", false},
		{"[remote \"o\\rigin\"]\n\turl = a\n", "", false},
	} {
		if got, ok := plainOrigin([]byte(tt.text)); ok != tt.ok || ok && got != tt.want {
			t.Errorf("%q: %q, %v, want %q, %v", tt.text, got, ok, tt.want, tt.ok)
		}
	}
}
