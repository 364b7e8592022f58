package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// Local is a repository found in a directory of this machine.
type Local struct {
	Root      string // the directory asked for, cleaned
	GitDir    string // Root, Root/.git, or where a .git file leads
	OriginURL string // remote.origin.url; empty when not set
}

// OpenLocal looks at the repository whose root is dir, without writing
// anything. An error that is fs.ErrNotExist means that dir is not the root
// of a repository.
func OpenLocal(ctx context.Context, dir string) (Local, error) {
	dir = filepath.Clean(dir)
	l := Local{Root: dir}
	info, err := os.Stat(dir)
	if err != nil {
		return l, err
	}
	if !info.IsDir() {
		return l, fmt.Errorf("%s is not a directory: %w", dir, fs.ErrNotExist)
	}
	l.GitDir, err = gitDir(dir)
	if err != nil {
		return l, err
	}
	common, err := commonDir(l.GitDir)
	if err != nil {
		return l, err
	}
	if name, ok := plainOrigin(filepath.Join(common, "config")); ok {
		l.OriginURL = name
		return l, nil
	}
	c := &command{args: []string{"config", "--file", filepath.Join(common, "config"), "--get", "remote.origin.url"}}
	out, err := c.output(ctx)
	var failed *Failure
	if errors.As(err, &failed) && failed.Exit == 1 { // not set
		return l, nil
	}
	l.OriginURL = strings.TrimSuffix(string(out), "\n")
	return l, err
}

// plainOrigin finds remote.origin.url in a config file, where that takes no
// more than reading its lines: a listing of thousands of directories should
// not start git for each. It reports false where git should be asked.
func plainOrigin(path string) (address string, ok bool) {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > 1<<20 {
		return "", false
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", false
	}
	if !strings.Contains(strings.ToLower(string(text)), "origin") {
		return "", !strings.Contains(string(text), `\`) // which may write it in another way
	}
	found, inside := 0, false
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			inside = line == `[remote "origin"]`
			if !inside && strings.Contains(strings.ToLower(line), "remote") && strings.Contains(strings.ToLower(line), "origin") {
				return "", false // written in another way
			}
			continue
		}
		if key, value, _ := strings.Cut(line, "="); inside && strings.EqualFold(strings.TrimSpace(key), "url") {
			found++
			address = strings.TrimSpace(value)
		}
	}
	return address, found <= 1 && !strings.ContainsAny(address, "\\\"#;") && !strings.Contains(string(text), "\\\n")
}

// gitDir finds the repository of a directory that must be its root.
func gitDir(dir string) (string, error) {
	dot := filepath.Join(dir, ".git")
	if isRepository(dot) {
		return dot, nil
	}
	if text, err := os.ReadFile(dot); err == nil {
		if to, ok := strings.CutPrefix(strings.TrimRight(string(text), "\r\n"), "gitdir: "); ok {
			if !filepath.IsAbs(to) {
				to = filepath.Join(dir, to)
			}
			if isRepository(to) {
				return filepath.Clean(to), nil
			}
		}
	}
	if isRepository(dir) {
		return dir, nil
	}
	return "", fmt.Errorf("%s is not the root of a git repository: %w", dir, fs.ErrNotExist)
}

// isRepository applies git's own test: HEAD, and the objects and references,
// its own or those of the repository that a work tree belongs to.
func isRepository(dir string) bool {
	if _, err := os.Lstat(filepath.Join(dir, "HEAD")); err != nil {
		return false
	}
	common, err := commonDir(dir)
	if err != nil {
		return false
	}
	for _, name := range []string{"objects", "refs"} {
		if info, err := os.Stat(filepath.Join(common, name)); err != nil || !info.IsDir() {
			return false
		}
	}
	return true
}

// commonDir is where the objects of a git directory are: the directory
// itself, except in an added work tree.
func commonDir(dir string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, "commondir"))
	if errors.Is(err, fs.ErrNotExist) {
		return dir, nil
	}
	if err != nil {
		return "", err
	}
	to := strings.TrimSpace(string(text))
	if !filepath.IsAbs(to) {
		to = filepath.Join(dir, to)
	}
	return filepath.Clean(to), nil
}

// LocalURL is the file:// address of a directory.
func LocalURL(dir string) string {
	return (&url.URL{Scheme: "file", Path: dir}).String()
}
