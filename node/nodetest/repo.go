package nodetest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Repo is a git repository of a test, in a local directory.
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

// OpenRepo returns the existing repository at dir.
func OpenRepo(t testing.TB, dir string) *Repo { return &Repo{Dir: dir, t: t} }

// Commit writes files and commits them; empty content deletes a file.
func (r *Repo) Commit(files map[string]string) {
	r.t.Helper()
	r.write(files)
	r.Git("add", "-A")
	r.Git("commit", "-q", "--allow-empty", "-m", fmt.Sprintf("change %d files", len(files)))
}

// CommitAs writes files like Commit, with a given author, time and message, so that the same
// calls always make the same commits.
func (r *Repo) CommitAs(author string, when time.Time, message string, files map[string]string) {
	r.t.Helper()
	r.write(files)
	r.Git("add", "-A")

	email := strings.ToLower(strings.Fields(author)[0]) + "@example.com"
	stamp := when.UTC().Format(time.RFC3339)
	r.run([]string{
		"GIT_AUTHOR_NAME=" + author, "GIT_AUTHOR_EMAIL=" + email, "GIT_AUTHOR_DATE=" + stamp, "GIT_COMMITTER_DATE=" + stamp,
	}, "commit", "-q", "--allow-empty", "-m", message)
}

func (r *Repo) write(files map[string]string) {
	r.t.Helper()
	for path, content := range files {
		full := filepath.Join(r.Dir, path)
		if content == "" {
			// The file may not exist.
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
}

// Git runs git in the repository and returns what it prints.
func (r *Repo) Git(args ...string) string {
	r.t.Helper()
	return r.run(nil, args...)
}

func (r *Repo) run(env []string, args ...string) string {
	r.t.Helper()
	// Ignore the developer's git configuration, which may sign commits or rename the first
	// branch.
	cmd := exec.Command("git", args...)
	cmd.Dir = r.Dir
	cmd.Env = append(os.Environ(),
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.com", "GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.com")

	cmd.Env = append(cmd.Env, env...)

	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}
