package git

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/shard/git/pack"
	"github.com/shoalsearch/shoal/shard/git/pack/packtest"
)

// write writes a file and makes its directory.
func write(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}

func symlink(t *testing.T, to, path string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.Symlink(to, path)); err != nil {
		t.Fatal(err)
	}
}

// secretRepo makes a repository with a work tree and one commit.
func secretRepo(t testing.TB, dir string) (commit string) {
	t.Helper()
	runGit(t, "", nil, "init", "--quiet", "--initial-branch=main", dir)
	r := &repo{t, filepath.Join(dir, ".git")}
	h := &stream{}
	h.commit("refs/heads/main", 1, "Ann", filepath.Base(dir), "s.txt", "TOPSECRETVALUE\n")
	r.load(h)
	r.git("gc", "--quiet")
	return r.git("rev-parse", "main")
}

// An operator may keep repositories elsewhere and link to them. The error tells which path to
// configure.
func TestLocalRepository_linkedElsewhereSaysWhatToConfigure(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	real, link := filepath.Join(top, "disk2/app"), filepath.Join(top, "srv/app")
	secretRepo(t, real)
	symlink(t, real, link)

	_, err := newMirror(t).Fetch(within(t), Remote{URL: LocalURL(link), Within: filepath.Join(top, "srv")}, FetchOptions{})
	if want := "name " + real + " in the url of a connection"; !errors.Is(err, ErrOutside) || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}

// Files in a user's directory lead only to repositories of that user. Without the checks, each of
// these would show another repository to everybody.
func TestHostileLocalRepository_cannotShowAnotherRepository(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		make func(t *testing.T, mine, secret, commit string)
	}{
		{"alternates", func(t *testing.T, mine, secret, commit string) {
			newRepoAt(t, filepath.Join(mine, ".git"))
			write(t, filepath.Join(mine, ".git/objects/info/alternates"), secret+"/.git/objects\n")
			write(t, filepath.Join(mine, ".git/refs/heads/main"), commit+"\n")
		}},
		{"relative alternates", func(t *testing.T, mine, secret, commit string) {
			newRepoAt(t, filepath.Join(mine, ".git"))
			write(t, filepath.Join(mine, ".git/objects/info/alternates"), "../../../../../priv/secret/.git/objects\n")
			write(t, filepath.Join(mine, ".git/refs/heads/main"), commit+"\n")
		}},
		{"quoted alternates", func(t *testing.T, mine, secret, commit string) {
			newRepoAt(t, filepath.Join(mine, ".git"))
			write(t, filepath.Join(mine, ".git/objects/info/alternates"), "\""+secret+"/.git/objects\"\n")
			write(t, filepath.Join(mine, ".git/refs/heads/main"), commit+"\n")
		}},
		{"alternates of alternates", func(t *testing.T, mine, secret, commit string) {
			newRepoAt(t, filepath.Join(mine, ".git"))
			newRepoAt(t, filepath.Join(mine, "other.git"))
			write(t, filepath.Join(mine, ".git/objects/info/alternates"), mine+"/other.git/objects\n")
			write(t, filepath.Join(mine, "other.git/objects/info/alternates"), secret+"/.git/objects\n")
			write(t, filepath.Join(mine, ".git/refs/heads/main"), commit+"\n")
		}},
		{"commondir", func(t *testing.T, mine, secret, _ string) {
			write(t, filepath.Join(mine, ".git/HEAD"), "ref: refs/heads/main\n")
			write(t, filepath.Join(mine, ".git/commondir"), secret+"/.git\n")
		}},
		{"a .git file", func(t *testing.T, mine, secret, _ string) {
			write(t, filepath.Join(mine, ".git"), "gitdir: "+secret+"/.git\n")
		}},
		{"a .git link", func(t *testing.T, mine, secret, _ string) { symlink(t, secret+"/.git", filepath.Join(mine, ".git")) }},
		{"a link to a work tree", func(t *testing.T, mine, secret, _ string) { symlink(t, secret, mine) }},
		{"a link of the objects", func(t *testing.T, mine, secret, commit string) {
			newRepoAt(t, filepath.Join(mine, ".git"))
			os.RemoveAll(filepath.Join(mine, ".git/objects"))
			symlink(t, secret+"/.git/objects", filepath.Join(mine, ".git/objects"))
			write(t, filepath.Join(mine, ".git/refs/heads/main"), commit+"\n")
		}},
		{"a link of the packs", func(t *testing.T, mine, secret, commit string) {
			newRepoAt(t, filepath.Join(mine, ".git"))
			os.RemoveAll(filepath.Join(mine, ".git/objects/pack"))
			symlink(t, secret+"/.git/objects/pack", filepath.Join(mine, ".git/objects/pack"))
			write(t, filepath.Join(mine, ".git/refs/heads/main"), commit+"\n")
		}},
		{"links of single packs", func(t *testing.T, mine, secret, commit string) {
			newRepoAt(t, filepath.Join(mine, ".git"))
			packs, _ := filepath.Glob(secret + "/.git/objects/pack/*")
			for _, p := range packs {
				symlink(t, p, filepath.Join(mine, ".git/objects/pack", filepath.Base(p)))
			}
			write(t, filepath.Join(mine, ".git/refs/heads/main"), commit+"\n")
		}},
		{"a link of the references", func(t *testing.T, mine, secret, _ string) {
			newRepoAt(t, filepath.Join(mine, ".git"))
			os.RemoveAll(filepath.Join(mine, ".git/refs"))
			symlink(t, secret+"/.git/refs", filepath.Join(mine, ".git/refs"))
		}},
		{"a link of the packed references", func(t *testing.T, mine, secret, _ string) {
			newRepoAt(t, filepath.Join(mine, ".git"))
			symlink(t, secret+"/.git/packed-refs", filepath.Join(mine, ".git/packed-refs"))
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			top := t.TempDir()
			mine, secret := filepath.Join(top, "users/mallory/app"), filepath.Join(top, "priv/secret")
			commit := secretRepo(t, secret)
			tt.make(t, mine, secret, commit)

			for _, reach := range []string{filepath.Join(top, "users"), ""} {
				m := newMirror(t)
				_, err := m.Fetch(within(t), Remote{URL: LocalURL(mine), Within: reach}, FetchOptions{})
				switch {
				case err == nil:
					t.Error("it was fetched without an error")
				case strings.Contains(err.Error(), "objects in the url"):
					t.Errorf("objects are named for a repository: %v", err)
				}
				if out, err := exec.Command("git", "--git-dir", m.Dir(), "cat-file", "-t", commit).Output(); err == nil {
					t.Errorf("the mirror has the commit of another repository: %s", out)
				}
			}
		})
	}
}

// Users need symbolic links, a .git file, alternates and commondir that stay inside the directory
// of the connection. Git may follow those.
func TestLocalRepository_followsSymlinksInsideTheConnectionsDirectory(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	src := filepath.Join(top, "src")
	commit := secretRepo(t, filepath.Join(src, "main"))
	runGit(t, filepath.Join(src, "main/.git"), nil, "worktree", "add", "--quiet", "--detach", filepath.Join(src, "wt"), "main")
	runGit(t, "", nil, "clone", "--quiet", "--shared", "--bare", filepath.Join(src, "main"), filepath.Join(src, "shared.git"))
	symlink(t, "main", filepath.Join(src, "link"))
	symlink(t, src, filepath.Join(top, "by-link"))
	for _, name := range []string{"main", "wt", "shared.git", "link", "../by-link/main"} {
		m, ctx := newMirror(t), within(t)
		dir := filepath.Join(src, name)
		if _, err := m.Fetch(ctx, Remote{URL: LocalURL(dir), Within: filepath.Dir(dir)}, FetchOptions{}); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got, err := m.Resolve(ctx, "HEAD"); err != nil || got != commit {
			t.Errorf("%s: HEAD is %s, %v, want %s", name, got, err, commit)
		}
		if _, err := os.Stat(filepath.Join(m.Dir(), viewName)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: the view was left in the mirror: %v", name, err)
		}
	}
}

// Inside the directory of the connection too, nobody may show files of another owner.
func TestHostileLocalRepository_showsNoFilesOfAnotherOwner(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can give a file away")
	}
	top := t.TempDir()
	commit := secretRepo(t, filepath.Join(top, "alice/deep/secret"))
	write(t, filepath.Join(top, "mallory/gitfile/.git"), "gitdir: "+top+"/alice/deep/secret/.git\n")
	write(t, filepath.Join(top, "mallory/common/.git/HEAD"), "ref: refs/heads/main\n")
	write(t, filepath.Join(top, "mallory/common/.git/commondir"), top+"/alice/deep/secret/.git\n")
	newRepoAt(t, filepath.Join(top, "mallory/alt/.git"))
	write(t, filepath.Join(top, "mallory/alt/.git/objects/info/alternates"), top+"/alice/deep/secret/.git/objects\n")
	write(t, filepath.Join(top, "mallory/alt/.git/refs/heads/main"), commit+"\n")
	symlink(t, top+"/alice/deep/secret", filepath.Join(top, "mallory/link"))
	chown(t, filepath.Join(top, "alice"), 65533)
	chown(t, filepath.Join(top, "mallory"), 65534)
	for _, name := range []string{"gitfile", "common", "alt", "link"} {
		dir := filepath.Join(top, "mallory", name)
		if _, err := OpenLocal(t.Context(), dir, top); !errors.Is(err, ErrOutside) {
			t.Errorf("%s: listed: %v", name, err)
		}
		if _, err := newMirror(t).Fetch(within(t), Remote{URL: LocalURL(dir), Within: top}, FetchOptions{}); !errors.Is(err, ErrOutside) {
			t.Errorf("%s: fetched: %v", name, err)
		}
	}
	if _, err := OpenLocal(t.Context(), filepath.Join(top, "alice/deep/secret"), top); err != nil {
		t.Errorf("the owner's own: %v", err)
	}
}

// chown changes the owner of everything below a directory.
func chown(t *testing.T, dir string, user int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, user, user))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Files are cached by object id. An index that gives one text the id of another would show it to
// everybody who has the other.
func TestHostileLocalRepository_forgedPackIndexIsIgnored(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can give a file away")
	}
	r := newRepo(t)
	w := packtest.NewWriter()
	genuine := packtest.ID(packtest.Blob, []byte("genuine\n"))
	w.Add(genuine, packtest.Blob, len("forged!\n"), 0, packtest.Deflate([]byte("forged!\n")))
	tree := w.AddText(packtest.Tree, fmt.Appendf(nil, "100644 a\x00%s", genuine))
	commit := w.AddText(packtest.Commit, fmt.Appendf(nil, "tree %x\nauthor A <a> 1 +0000\ncommitter A <a> 1 +0000\n\nm\n", tree))
	data, index := w.Finish()
	name := filepath.Join(r.dir, "objects/pack/pack-"+hex.EncodeToString(data[len(data)-20:]))
	write(t, name+".pack", string(data))
	write(t, name+".idx", string(index))
	write(t, filepath.Join(r.dir, "refs/heads/main"), hex.EncodeToString(commit)+"\n")
	chown(t, r.dir, 65534)

	m, ctx := newMirror(t), within(t)
	if _, err := m.Fetch(ctx, Remote{URL: r.url()}, FetchOptions{}); err == nil {
		s, err := m.Source(ctx, hex.EncodeToString(commit), "a", SourceOptions{})
		t.Errorf("it was fetched, and the file is %q, %v", s.Content, err)
	}
}

// Some files never end, are larger than memory, or are pipes without a writer. Reading stops at a
// limit, and never waits.
func TestHostileLocalRepository_filesAreReadWithinBounds(t *testing.T) {
	fifo := func(t *testing.T, path string) {
		os.RemoveAll(path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), syscall.Mkfifo(path, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	zero := func(t *testing.T, path string) {
		os.RemoveAll(path)
		symlink(t, "/dev/zero", path)
	}
	sparse := func(t *testing.T, path string) {
		os.RemoveAll(path)
		write(t, path, "")
		if err := os.Truncate(path, 40<<30); err != nil {
			t.Fatal(err)
		}
	}
	for name, put := range map[string]func(*testing.T, string){"fifo": fifo, "zero": zero, "sparse": sparse} {
		for _, file := range []string{".git", ".git/HEAD", ".git/commondir", ".git/config", ".git/packed-refs", ".git/refs/heads/big", ".git/shallow",
			".git/objects/info/alternates", ".git/objects/pack/pack-0123456789012345678901234567890123456789.pack",
			".git/objects/01/23456789012345678901234567890123456789", ".git/objects/info/commit-graph", ".git/objects/pack/multi-pack-index"} {
			dir := filepath.Join(t.TempDir(), "app")
			secretRepo(t, dir)
			if file == ".git" {
				os.RemoveAll(filepath.Join(dir, ".git"))
			}
			put(t, filepath.Join(dir, file))

			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			m := Open(filepath.Join(t.TempDir(), "m.git"))
			var list, fetch error
			used := allocated(func() {
				_, list = OpenLocal(ctx, dir, "")
				_, fetch = m.Fetch(ctx, Remote{URL: LocalURL(dir)}, FetchOptions{})
			})
			m.Close()
			if ctx.Err() != nil {
				t.Errorf("%s as %s: it was waited for: %v; %v", file, name, list, fetch)
			}
			cancel()
			if used > 16<<20 {
				t.Errorf("%s as %s: %d MB were allocated", file, name, used>>20)
			}
			if strings.Contains(file, "objects/") && name == "sparse" && !strings.HasSuffix(file, "alternates") {
				continue // git reads only a part of a large file
			}
			if fetch == nil {
				t.Errorf("%s as %s: the fetch succeeded", file, name)
			}
		}
	}
}

// An include in a configuration may name any file of the machine.
func TestHostileLocalRepository_gitConfigIncludeIsIgnored(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "app")
	commit := secretRepo(t, dir)
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o644); err != nil {
		t.Fatal(err)
	}
	config, err := os.ReadFile(filepath.Join(dir, ".git/config"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, ".git/config"), fmt.Sprintf("%s[include]\n\tpath = %s\n[remote \"origin\"]\n\turl = \"https://example.org/\\\"a\"\n", config, pipe))
	m, ctx := newMirror(t), within(t)
	l, err := OpenLocal(ctx, dir, "")
	if err != nil || l.OriginURL != `https://example.org/"a` {
		t.Errorf("origin %q, %v", l.OriginURL, err)
	}
	if _, err := m.Fetch(ctx, Remote{URL: LocalURL(dir)}, FetchOptions{}); err != nil {
		t.Fatal(err)
	}
	if got, err := m.Resolve(ctx, "main"); err != nil || got != commit {
		t.Errorf("main is %s, %v, want %s", got, err, commit)
	}
}

// If git does not know the format of the references, the error says so.
func TestLocalRepository_unknownReferenceFormatIsReported(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "app")
	if err := exec.Command("git", "init", "--quiet", "--ref-format=reftable", dir).Run(); err == nil {
		t.Skip("this git knows reftable: see TestLocalRepository_readsReftable")
	}
	secretRepo(t, dir)
	runGit(t, filepath.Join(dir, ".git"), nil, "config", "core.repositoryformatversion", "1")
	runGit(t, filepath.Join(dir, ".git"), nil, "config", "extensions.refstorage", "reftable")
	m := newMirror(t)
	_, err := m.Fetch(within(t), Remote{URL: LocalURL(dir)}, FetchOptions{})
	if !errors.Is(err, ErrUnknown) {
		t.Errorf("error %v, want ErrUnknown", err)
	}
	if _, err := os.Stat(m.Dir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty mirror was left: %v", err)
	}
}

// If git knows the format reftable, it reads the table through the view.
func TestLocalRepository_readsReftable(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "source.git")
	if err := exec.Command("git", "init", "--quiet", "--bare", "--initial-branch=main", "--ref-format=reftable", dir).Run(); err != nil {
		t.Skip("this git does not know reftable: see TestLocalRepository_unknownReferenceFormatIsReported")
	}
	r := &repo{t, dir}
	h := &stream{}
	h.commit("refs/heads/main", 1, "Ann", "one", "a", "1\n")
	r.load(h)
	m := fetched(t, r.url())
	if got, err := m.Resolve(within(t), "main"); err != nil || got != r.git("rev-parse", "main") {
		t.Errorf("main is %s, %v", got, err)
	}
}

func TestHostileLocalRepository_opensOnlyRegularFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "plain"), "12345")
	symlink(t, "plain", filepath.Join(dir, "link"))
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	root := must(os.OpenRoot(dir))(t)
	defer root.Close()
	for name, want := range map[string]error{"plain": nil, "link": pack.ErrSpecial, "pipe": pack.ErrSpecial, ".": pack.ErrSpecial, "none": fs.ErrNotExist} {
		if text, err := pack.ReadFile(root, name, 5); !errors.Is(err, want) || err == nil && string(text) != "12345" {
			t.Errorf("%s: %q, %v, want %v", name, text, err, want)
		}
	}
	if _, err := pack.ReadFile(root, "plain", 4); !errors.Is(err, pack.ErrTooLarge) {
		t.Errorf("more than the bound: %v", err)
	}
	if _, err := pack.ReadFile(root, "../"+filepath.Base(dir)+"/plain", 5); err == nil {
		t.Error("a path leads out of the root")
	}
}
