package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxText is the size limit of the default configuration. Larger files are not searched by any
// engine.
const maxText = 2 << 20

// corpora makes the folders to search, on demand, under dir.
type corpora struct {
	dir string
	log func(format string, args ...any)
}

// linuxTree returns the folder with the Linux source. It unpacks Debian's package if that is not done
// yet.
func (c corpora) linuxTree(ctx context.Context) (string, error) {
	dir := filepath.Join(c.dir, "linux")
	if ok, err := exists(filepath.Join(dir, ".complete")); ok || err != nil {
		return dir, err
	}

	// The package is the same for everybody with that version.
	tarballs, err := filepath.Glob("/usr/src/linux-source-6.*.tar.xz")
	if err != nil || len(tarballs) == 0 {
		return "", errors.New("no Linux source in /usr/src: install the package linux-source-6.1")
	}

	c.log("unpacking %s", tarballs[0])
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}

	if _, err := measure(ctx, dir, nil, "tar", "-xJf", tarballs[0], "--strip-components=1"); err != nil {
		return "", err
	}

	// Write this file last, so that a run after an interrupted one begins again.
	return dir, os.WriteFile(filepath.Join(dir, ".complete"), nil, 0o644)
}

// largeRepository returns L: a bare repository with the whole Linux tree in one commit.
func (c corpora) largeRepository(ctx context.Context) (string, error) {
	tree, err := c.linuxTree(ctx)
	if err != nil {
		return "", err
	}
	return c.commitTree(ctx, tree, filepath.Join(c.dir, "L.git"))
}

// commitTree commits the work tree dir to a bare repository at path, which it returns. It does nothing if
// that is done already.
func (c corpora) commitTree(ctx context.Context, dir, path string) (string, error) {
	if ok, err := exists(filepath.Join(path, "complete")); ok || err != nil {
		return path, err
	}

	c.log("committing %s", dir)

	// Pack the objects, as those of a fetched mirror are: loose objects are slower.
	steps := [][]string{
		{"init", "-q", "--bare", "-b", "main", path},
		{"--git-dir", path, "--work-tree", dir, "add", "-A", "-f", "--", ".", ":!.complete"},
		{"--git-dir", path, "--work-tree", dir, "-c", "gc.auto=0", "-c", "user.name=bench", "-c", "user.email=bench@localhost", "commit", "-q", "-m", "corpus"},
		{"--git-dir", path, "gc", "-q"},
	}

	for _, args := range steps {
		if _, err := measure(ctx, dir, nil, "git", args...); err != nil {
			return "", err
		}
	}
	return path, os.WriteFile(filepath.Join(path, "complete"), nil, 0o644)
}

// manyRepositories returns M: a folder with one repository for each directory that has files, and the
// paths of these repositories.
func (c corpora) manyRepositories(ctx context.Context) (root string, repos []string, err error) {
	root = filepath.Join(c.dir, "M")
	done, err := exists(filepath.Join(root, ".complete"))
	if err == nil && !done {
		err = c.makeMany(ctx, root)
	}
	if err != nil {
		return "", nil, err
	}

	repos, err = filepath.Glob(filepath.Join(root, "*.git"))
	return root, repos, err
}

// makeMany makes the repositories of M.
func (c corpora) makeMany(ctx context.Context, root string) error {
	tree, err := c.linuxTree(ctx)
	if err != nil {
		return err
	}

	c.log("cutting %s into repositories", tree)

	// importDirectory skips directories without files.
	err = filepath.WalkDir(tree, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		name, err := filepath.Rel(tree, path)
		if err != nil {
			return err
		}
		return importDirectory(ctx, path, filepath.Join(root, strings.ReplaceAll(name, "/", "-")+".git"))
	})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, ".complete"), nil, 0o644)
}

// someRepositories returns a folder with copies of n repositories of M, evenly chosen.
func (c corpora) someRepositories(ctx context.Context, n int) (string, error) {
	root := filepath.Join(c.dir, fmt.Sprintf("M-%d", n))
	if ok, err := exists(filepath.Join(root, ".complete")); ok || err != nil {
		return root, err
	}

	many, repos, err := c.manyRepositories(ctx)
	if err != nil {
		return "", err
	}

	if len(repos) < n {
		return "", fmt.Errorf("%s has %d repositories, not %d", many, len(repos), n)
	}

	for i := range n {
		from := repos[i*len(repos)/n]
		to := filepath.Join(root, filepath.Base(from))
		if err := os.RemoveAll(to); err != nil {
			return "", err
		}

		if err := os.CopyFS(to, os.DirFS(from)); err != nil {
			return "", err
		}
	}

	return root, os.WriteFile(filepath.Join(root, ".complete"), nil, 0o644)
}

// importDirectory makes a bare repository of the files directly in dir, or none if there are no files.
func importDirectory(ctx context.Context, dir, path string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}

	// Use fast-import: three commands for each of thousands of repositories would take an hour.
	var stream bytes.Buffer
	stream.WriteString("commit refs/heads/main\ncommitter bench <bench@localhost> 1700000000 +0000\ndata 6\ncorpus\n")
	files := 0

	for _, e := range entries {
		if !e.Type().IsRegular() || e.Name() == ".complete" {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}

		fmt.Fprintf(&stream, "M 100644 inline %q\ndata %d\n", e.Name(), len(data))
		stream.Write(data)
		stream.WriteByte('\n')
		files++
	}

	if files == 0 {
		return nil
	}

	if _, err := measure(ctx, dir, nil, "git", "init", "-q", "--bare", "-b", "main", path); err != nil {
		return err
	}
	return fastImport(ctx, path, &stream)
}

// partOfLarge returns a bare repository with every nth file of L, in the order of paths.
func (c corpora) partOfLarge(ctx context.Context, n int) (string, error) {
	path := filepath.Join(c.dir, fmt.Sprintf("L-1-%d.git", n))
	if ok, err := exists(filepath.Join(path, "complete")); ok || err != nil {
		return path, err
	}
	large, err := c.largeRepository(ctx)
	if err != nil {
		return "", err
	}

	c.log("taking 1/%d of %s", n, large)
	list, err := measure(ctx, large, nil, "git", "ls-tree", "-r", "-z", "HEAD")
	if err != nil {
		return "", err
	}

	// Share the objects of L first. Later pack those of the commit, because a node copies packs faster.
	index := filepath.Join(path, "index.tmp")
	if _, err := measure(ctx, large, nil, "git", "clone", "-q", "--bare", "--shared", large, path); err != nil {
		return "", err
	}

	var pick bytes.Buffer
	for i, entry := range bytes.Split(list.Out, []byte{0}) {
		if i%n == 0 && len(entry) > 0 {
			pick.Write(entry)
			pick.WriteByte(0)
		}
	}
	if err := commitEntries(ctx, path, index, &pick); err != nil {
		return "", err
	}

	if _, err := measure(ctx, path, nil, "git", "repack", "-a", "-d", "-q"); err != nil {
		return "", err
	}
	if err := os.Remove(filepath.Join(path, "objects", "info", "alternates")); err != nil {
		return "", err
	}
	return path, os.WriteFile(filepath.Join(path, "complete"), nil, 0o644)
}

func exists(path string) (bool, error) {
	_, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
