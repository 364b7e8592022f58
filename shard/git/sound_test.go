package git

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The test flips a bit in any file of a mirror. Then a fetch of something new works, if necessary
// by making a new mirror. Reads afterwards return what the remote has, or fail and Sound reports
// the damage.
func TestFetch_repairsFlippedBits(t *testing.T) {
	t.Parallel()
	r, ctx := newRepo(t), within(t)
	h := &stream{}
	for i := range 5 {
		h.commit("refs/heads/main", i+1, "Ann", "a commit", fmt.Sprintf("f%d", i), strings.Repeat(fmt.Sprintf("line %d\n", i), 20))
	}
	r.load(h)
	good := fetched(t, r.url()).Dir()
	h.commit("refs/heads/main", 10, "Ann", "new", "new", "new\n")
	r.load(h)
	want := r.git("ls-tree", "-r", "main")
	rounds, renewed, found := 60, 0, 0
	if testing.Short() {
		rounds = 15
	}
	rng := rand.New(rand.NewPCG(5, 6))
	for range rounds {
		dir := filepath.Join(t.TempDir(), "mirror.git")
		if out, err := exec.Command("cp", "-a", good, dir).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		what := turnBit(t, dir, rng)
		m := Open(dir)
		t.Cleanup(func() { m.Close() })
		before, err := os.Stat(dir)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Fetch(ctx, Remote{URL: r.url()}, FetchOptions{}); err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		if after, err := os.Stat(dir); err == nil && !os.SameFile(before, after) {
			renewed++
		}
		if got, err := readMirror(ctx, m); err == nil {
			if got != want {
				t.Errorf("%s: the mirror has\n%s\nwant\n%s", what, got, want)
			}
			continue
		}
		found++
		if m.Sound(ctx) {
			t.Errorf("%s: the mirror cannot be read, and is called sound", what)
			continue
		}
		if err := m.Discard(ctx); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Fetch(ctx, Remote{URL: r.url()}, FetchOptions{}); err != nil {
			t.Fatal(err)
		}
		if got, err := readMirror(ctx, m); err != nil || got != want {
			t.Errorf("%s: made anew, the mirror has\n%s\n%v", what, got, err)
		}
	}
	t.Logf("of %d mirrors %d were made anew by the fetch, %d were found damaged by reading", rounds, renewed, found)
}

func turnBit(t *testing.T, dir string, rng *rand.Rand) string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if info, e := os.Stat(path); e == nil && info.Mode().IsRegular() && info.Size() > 0 {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	path := files[rng.IntN(len(files))]
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := rng.IntN(len(data))
	data[at] ^= 1 << rng.IntN(8)
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("byte %d of %s", at, strings.TrimPrefix(path, dir))
}

// readMirror reads all files of HEAD and lists them as git ls-tree does.
func readMirror(ctx context.Context, m *Mirror) (string, error) {
	commit, err := m.Resolve(ctx, "HEAD")
	if err != nil {
		return "", err
	}
	var list []string
	files, err := m.Files(ctx, commit, nil)
	if err != nil {
		return "", err
	}
	for _, e := range files {
		s, err := m.Source(ctx, commit, e.Path, SourceOptions{})
		if err != nil {
			return "", err
		}
		if len(s.Content) == 0 {
			return "", fmt.Errorf("%s is empty", e.Path)
		}
		list = append(list, fmt.Sprintf("100644 blob %s\t%s", e.OID, e.Path))
	}
	return strings.Join(list, "\n"), nil
}

// Git's message about a damaged mirror depends on the file. Even if no pattern matches the message,
// the fetch continues with a new mirror.
func TestFetch_remakesAMirrorWithADamagedConfiguration(t *testing.T) {
	t.Parallel()
	r, ctx := newRepo(t), within(t)
	h := &stream{}
	h.commit("refs/heads/main", 1, "Ann", "one", "a", "1\n")
	r.load(h)
	for name, text := range map[string]string{"config": "[core]\n\x0drepositoryformatversion\n= 0\n", "HEAD": "rdf: refs/heads/main\n"} {
		m := fetched(t, r.url())
		if err := os.WriteFile(filepath.Join(m.Dir(), name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Fetch(ctx, Remote{URL: r.url()}, FetchOptions{}); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got, err := readMirror(ctx, m); err != nil || got != r.git("ls-tree", "-r", "main") {
			t.Errorf("%s: the new mirror has %q, %v", name, got, err)
		}
	}
}
