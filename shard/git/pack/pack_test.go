package pack

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// git runs git for a test, with a fixed identity and without configuration.
func git(t testing.TB, dir string, stdin []byte, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Stdin = bytes.NewReader(stdin)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "HOME=/nonexistent", "LC_ALL=C", "TZ=UTC",
		"GIT_AUTHOR_NAME=Ann", "GIT_AUTHOR_EMAIL=ann@example.org", "GIT_COMMITTER_NAME=Ann", "GIT_COMMITTER_EMAIL=ann@example.org")
	if dir != "" {
		cmd.Env = append(cmd.Env, "GIT_DIR="+dir)
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// empty returns a new bare repository.
func empty(t testing.TB, extra ...string) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "source.git")
	git(t, "", nil, append(append([]string{"init", "--quiet", "--bare", "--initial-branch=main"}, extra...), dir)...)
	return dir
}

// story returns a stream for git fast-import: commits with small changes to some files, so that
// packs have chains of deltas.
func story(commits int) []byte {
	var s bytes.Buffer
	rnd := rand.New(rand.NewSource(5))
	lines := strings.Split(strings.Repeat("a line of the text that changes\nanother one\n\n", 300), "\n")
	for i := range commits {
		lines[rnd.Intn(len(lines))] = fmt.Sprintf("line %d of %d", rnd.Intn(1e6), i)
		message := fmt.Sprintf("change %d", i)
		fmt.Fprintf(&s, "commit refs/heads/main\ncommitter Ann <ann@example.org> %d +0000\ndata %d\n%s\n", 1_700_000_000+i, len(message), message)
		for name, text := range map[string]string{"a.txt": strings.Join(lines, "\n"), fmt.Sprintf("dir/b%d", i%7): strings.Join(lines[i%len(lines):], "\n"), "empty": ""} {
			fmt.Fprintf(&s, "M 100644 inline %s\ndata %d\n%s\n", name, len(text), text)
		}
		s.WriteByte('\n')
	}
	return s.Bytes()
}

// object is an object as git prints it.
type object struct {
	kind string
	text string
}

// deltas returns a repository whose pack has long chains of deltas, and its objects.
func deltas(t testing.TB, extra ...string) (dir string, objects map[string]object) {
	t.Helper()
	dir = empty(t, extra...)
	git(t, dir, story(60), "fast-import", "--quiet")
	git(t, dir, nil, "repack", "-adfq", "--depth=50", "--window=50")
	return dir, allObjects(t, dir)
}

// allObjects reads all objects of a repository with git.
func allObjects(t testing.TB, dir string) map[string]object {
	t.Helper()
	objects := map[string]object{}
	rest := git(t, dir, nil, "cat-file", "--batch", "--batch-all-objects", "--unordered")
	for rest != "" {
		var oid, kind string
		var size int
		head, after, _ := strings.Cut(rest, "\n")
		if n, err := fmt.Sscan(head, &oid, &kind, &size); n != 3 {
			t.Fatalf("git says %q: %v", head, err)
		}
		objects[oid] = object{kind, after[:size]}
		rest = after[size+1:]
	}
	return objects
}

func raw(oid string) []byte {
	id, _ := hex.DecodeString(oid)
	return id
}

var kinds = map[string]Kind{"commit": Commit, "tree": Tree, "blob": Blob, "tag": Tag}

// agree compares all objects with git, and returns how many only git can read.
func agree(t testing.TB, dir string, objects map[string]object) (asked int) {
	t.Helper()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for oid, want := range objects {
		got, err := s.Read([]byte("before"), kinds[want.kind], raw(oid))
		if errors.Is(err, ErrAskGit) {
			asked++
			continue
		}
		if err != nil || string(got) != "before"+want.text {
			t.Fatalf("%s: %d bytes, %v, want %d", oid, len(got), err, len(want.text))
		}
		kind, size, err := s.Info(raw(oid))
		if err != nil || kind.String() != want.kind || size != int64(len(want.text)) {
			t.Fatalf("%s is a %v of %d bytes, %v; want a %s of %d", oid, kind, size, err, want.kind, len(want.text))
		}
	}
	return asked
}

func TestObjectStore_agreesWithGit(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"sha1", "sha256"} {
		dir, objects := deltas(t, "--object-format="+format)
		if asked := agree(t, dir, objects); asked != 0 {
			t.Errorf("%s: git has to be asked for %d of %d objects", format, asked, len(objects))
		}

		s, err := Open(dir)
		if err != nil || len(s.files) != 1 {
			t.Fatalf("%d packs, %v", len(s.files), err)
		}
		longest := 0
		for oid, o := range objects {
			if _, err := s.Read(nil, kinds[o.kind], raw(oid)); err != nil {
				t.Fatal(err)
			}
			longest = max(longest, len(s.chain))
			s.bases = bases{} // so that chains are long
		}
		if longest < 8 {
			t.Errorf("the longest chain has %d deltas, which proves little", longest)
		}
		head := strings.TrimSpace(git(t, dir, nil, "rev-parse", "HEAD"))
		if _, err := s.Read(nil, Blob, raw(head)); !errors.Is(err, ErrAskGit) {
			t.Errorf("a commit was read as a blob: %v", err)
		}
		if _, err := s.Read(nil, Blob, bytes.Repeat([]byte{0xab}, len(raw(head)))); !errors.Is(err, ErrAskGit) {
			t.Errorf("an object that is not there: %v", err)
		}
		s.Close()
	}
}

// Every form that git writes is either read correctly, or left to git.
func TestObjectStore_readsEveryFormatOfGit(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		init  []string
		after [][]string
		all   bool // nothing may be left to git
	}{
		{"an index of version 1", nil, [][]string{{"-c", "pack.indexVersion=1", "repack", "-adfq"}}, false},
		{"a multi-pack index", nil, [][]string{{"repack", "-adq"}, {"multi-pack-index", "write", "--bitmap"}}, true},
		{"a multi-pack index of SHA-256", []string{"--object-format=sha256"}, [][]string{{"repack", "-adq"}, {"multi-pack-index", "write"}}, true},
		{"many packs", nil, [][]string{{"-c", "pack.packSizeLimit=1m", "repack", "-adq"}}, true},
		{"deltas by id", nil, [][]string{{"-c", "repack.useDeltaBaseOffset=false", "repack", "-adfq"}}, true},
		{"a cruft pack", nil, [][]string{{"repack", "-adq", "--cruft"}}, true},
		{"loose objects", nil, [][]string{{"unpack"}}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := empty(t, tt.init...)
			git(t, dir, story(30), "fast-import", "--quiet")
			for _, args := range tt.after {
				if args[0] == "unpack" {
					unpack(t, dir)
					continue
				}
				git(t, dir, nil, args...)
			}
			objects := allObjects(t, dir)
			asked := agree(t, dir, objects)
			if tt.all && asked != 0 || !tt.all && asked == 0 {
				t.Errorf("git has to be asked for %d of %d objects", asked, len(objects))
			}
		})
	}
}

// unpack makes all objects of a repository loose.
func unpack(t testing.TB, dir string) {
	t.Helper()
	packs, err := filepath.Glob(filepath.Join(dir, "objects/pack/*.pack"))
	if err != nil || len(packs) == 0 {
		t.Fatalf("no packs: %v", err)
	}
	for _, p := range packs {
		data, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		for _, ext := range []string{"pack", "idx", "rev"} {
			os.Remove(strings.TrimSuffix(p, "pack") + ext)
		}
		git(t, dir, data, "unpack-objects", "-q")
	}
}

// A store finds a pack that comes while it is open. A pack that goes does not matter.
func TestObjectStore_findsNewPacks(t *testing.T) {
	t.Parallel()
	dir := empty(t)
	git(t, dir, story(10), "fast-import", "--quiet")
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	git(t, dir, story(30), "fast-import", "--quiet", "--force")
	git(t, dir, nil, "repack", "-adq")
	for oid, want := range allObjects(t, dir) {
		if _, err := s.Read(nil, kinds[want.kind], raw(oid)); err != nil {
			t.Fatalf("%s: %v", oid, err)
		}
	}
}

// TestObjectStore_damagedPacksAreErrors flips bytes of a pack and of its index: an object is read
// correctly, or not at all.
func TestObjectStore_damagedPacksAreErrors(t *testing.T) {
	t.Parallel()
	dir, objects := deltas(t)
	files, err := filepath.Glob(filepath.Join(dir, "objects/pack/pack-*"))
	if err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewSource(9))
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(name, 0o644); err != nil {
			t.Fatal(err)
		}
		for range 40 {
			broken := bytes.Clone(data)
			broken[rnd.Intn(len(broken))] ^= 1 << rnd.Intn(8)
			if err := os.WriteFile(name, broken, 0o644); err != nil {
				t.Fatal(err)
			}
			agree(t, dir, objects)
		}
		if err := os.WriteFile(name, data[:len(data)/2], 0o644); err != nil {
			t.Fatal(err)
		}
		agree(t, dir, objects)
		if err := os.WriteFile(name, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if asked := agree(t, dir, objects); asked != 0 {
		t.Errorf("%d objects of %d are not read after repair", asked, len(objects))
	}
}
