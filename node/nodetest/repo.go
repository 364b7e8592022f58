package nodetest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Repo is a git repository of a test, in a directory of this machine.
type Repo struct {
	Dir string
	t   testing.TB
}

// NewRepo makes a repository at dir with one commit of files (path to
// content) on branch main.
func NewRepo(t testing.TB, dir string, files map[string]string) *Repo {
	t.Helper()
	r := &Repo{Dir: dir, t: t}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	r.Git("init", "-q", "-b", "main")
	r.Commit(files)
	return r
}

// OpenRepo is the repository that is at dir already.
func OpenRepo(t testing.TB, dir string) *Repo { return &Repo{Dir: dir, t: t} }

// Commit writes files and commits them; an empty content deletes the file.
func (r *Repo) Commit(files map[string]string) {
	r.t.Helper()
	for path, content := range files {
		full := filepath.Join(r.Dir, path)
		if content == "" {
			os.Remove(full)
			continue
		}
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			r.t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
			r.t.Fatal(err)
		}
	}
	r.Git("add", "-A")
	r.Git("commit", "-q", "--allow-empty", "-m", fmt.Sprintf("change %d files", len(files)))
}

// Git runs git in the repository and returns what it prints.
func (r *Repo) Git(args ...string) string {
	r.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = r.Dir
	cmd.Env = append(os.Environ(),
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.com", "GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.com")
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}
