package git

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// These are random changes to a directory: each pair of bytes in the input selects one change and
// the place for it.
var (
	handPlaces = []string{"", ".git", ".git/HEAD", ".git/config", ".git/commondir", ".git/gitdir", ".git/packed-refs", ".git/shallow", ".git/refs", ".git/refs/heads",
		".git/refs/heads/main", ".git/refs/heads/a/b", ".git/refs/tags/v1", ".git/objects", ".git/objects/info", ".git/objects/info/alternates",
		".git/objects/info/commit-graph", ".git/objects/pack", ".git/objects/pack/pack-%s.pack", ".git/objects/pack/pack-%s.idx", ".git/objects/pack/multi-pack-index",
		".git/objects/ab", ".git/reftable/tables.list", "HEAD", "objects/info/alternates", "refs/heads/main"}
	handTexts = []string{"", "\n", "ref: refs/heads/main\n", "ref: refs/heads/../../../x\n", "gitdir: .git\n", "gitdir: ../secret/.git\n", "../secret/.git\n", ".\n",
		"../../secret/.git/objects\n", "\"../../secret/.git/objects\"\n", "[core]\n\tbare = true\n", "[include]\n\tpath = ../../secret/.git/config\n",
		"[extensions]\n\trefstorage = reftable\n", "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tobjectformat = sha256\n", "PACK\x00\x00\x00\x02\x00\x00\x00\x01x", "\xfftOc\x00\x00\x00\x02"}
	handLinks = []string{"../secret", "../secret/.git", "../../secret/.git", "../../../secret/.git/objects", "/dev/zero", ".", "..", "loop", "main"}
)

// FuzzFetch_ofAHostileDirectoryShowsNoOtherFiles makes random changes to a directory, then checks it
// and fetches from it. The mirror may contain nothing from another repository beside it.
func FuzzFetch_ofAHostileDirectoryShowsNoOtherFiles(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{10, 0x10})          // a reference to the commit of the secret
	f.Add([]byte{1, 0x20, 15, 0x08}) // alternates
	f.Add([]byte{1, 0x41})
	model := f.TempDir()
	commit := secretRepo(f, filepath.Join(model, "secret"))
	own := secretRepo(f, filepath.Join(model, "users", "app"))
	if commit == own {
		f.Fatal("both repositories have the same commit")
	}
	f.Fuzz(func(t *testing.T, moves []byte) {
		if len(moves) > 24 {
			return
		}
		top := t.TempDir()
		if err := os.CopyFS(top, os.DirFS(model)); err != nil {
			t.Fatal(err)
		}
		mine := filepath.Join(top, "users", "app")
		for i := 0; i+1 < len(moves); i += 2 {
			place := handPlaces[int(moves[i])%len(handPlaces)]
			put(filepath.Join(mine, strings.Replace(place, "%s", own, 1)), moves[i+1], commit)
		}

		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		m := Open(filepath.Join(top, "mirror.git"))
		defer m.Close()
		used := allocated(func() {
			OpenLocal(ctx, mine, filepath.Join(top, "users"))
			m.Fetch(ctx, Remote{URL: LocalURL(mine), Within: filepath.Join(top, "users")}, FetchOptions{})
		})
		if ctx.Err() != nil {
			t.Fatal("it was waited for")
		}
		if used > 48<<20 {
			t.Fatalf("%d MB were allocated", used>>20)
		}
		if _, err := os.Stat(m.Dir()); err != nil {
			return
		}
		if exec.Command("git", "--git-dir", m.Dir(), "cat-file", "-e", commit).Run() == nil {
			t.Fatal("the mirror has the commit of another repository")
		}
	})
}

// put makes the change of a byte at a path. It ignores changes that fail.
func put(path string, what byte, commit string) {
	kind, which := what>>5, int(what&31)
	os.MkdirAll(filepath.Dir(path), 0o755)
	switch kind {
	case 0:
		os.RemoveAll(path)
		os.WriteFile(path, []byte(handTexts[which%len(handTexts)]), 0o644)
	case 1:
		os.RemoveAll(path)
		os.WriteFile(path, []byte(commit+"\n"), 0o644)
	case 2:
		os.RemoveAll(path)
		os.Symlink(handLinks[which%len(handLinks)], path)
	case 3:
		os.RemoveAll(path)
		syscall.Mkfifo(path, 0o644)
	case 4:
		os.RemoveAll(path)
		os.Mkdir(path, 0o755)
	case 5:
		os.Truncate(path, 1<<uint(10+which)) // up to 2 TiB, all holes
	case 6:
		os.RemoveAll(path)
	case 7:
		if text, err := os.ReadFile(path); err == nil && len(text) < 1<<20 {
			for i := range text {
				if i%31 == which {
					text[i] ^= 0x55
				}
			}
			os.Chmod(path, 0o644)
			os.WriteFile(path, text, 0o644)
		}
	}
}
