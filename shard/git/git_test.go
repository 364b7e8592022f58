package git

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/glob"
)

// repo is a repository for tests. Its helpers fail the test on an error.
type repo struct {
	t   testing.TB
	dir string
}

// newRepo makes a bare repository; extra are arguments of git init.
func newRepo(t testing.TB, extra ...string) *repo {
	t.Helper()
	return newRepoAt(t, filepath.Join(t.TempDir(), "source.git"), extra...)
}

func newRepoAt(t testing.TB, dir string, extra ...string) *repo {
	t.Helper()
	r := &repo{t: t, dir: dir}
	args := append([]string{"init", "--quiet", "--bare", "--initial-branch=main"}, extra...)
	runGit(t, "", nil, append(args, dir)...)
	return r
}

// runGit runs git with a fixed identity and without configuration.
func runGit(t testing.TB, dir string, stdin []byte, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Stdin = bytes.NewReader(stdin)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "HOME=/nonexistent", "LC_ALL=C", "TZ=UTC",
		"GIT_AUTHOR_NAME=Ann", "GIT_AUTHOR_EMAIL=ann@example.org", "GIT_AUTHOR_DATE=1700000000 +0000",
		"GIT_COMMITTER_NAME=Ann", "GIT_COMMITTER_EMAIL=ann@example.org", "GIT_COMMITTER_DATE=1700000000 +0000")
	if dir != "" {
		cmd.Env = append(cmd.Env, "GIT_DIR="+dir)
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimRight(string(out), "\n")
}

func (r *repo) git(args ...string) string {
	r.t.Helper()
	return runGit(r.t, r.dir, nil, args...)
}

// at returns the time so many minutes after a fixed time.
func at(minute int) int64 { return 1_700_000_000 + int64(minute)*60 }

// stream collects commits for git fast-import.
type stream struct {
	bytes.Buffer
}

// commit adds a commit to the end of a branch. files are pairs of path and content; the content "D"
// deletes the file.
func (h *stream) commit(ref string, minute int, author, message string, files ...string) {
	fmt.Fprintf(h, "commit %s\nauthor %s <%s@example.org> %d +0000\ncommitter %s <%s@example.org> %d +0000\ndata %d\n%s\n",
		ref, author, strings.ToLower(author), at(minute), author, strings.ToLower(author), at(minute), len(message), message)
	for i := 0; i+1 < len(files); i += 2 {
		h.file(files[i], files[i+1])
	}
	h.WriteByte('\n')
}

func (h *stream) file(path, content string) {
	mode := "100644"
	if rest, ok := strings.CutPrefix(path, "mode "); ok {
		mode, path, _ = strings.Cut(rest, " ")
	}
	if content == "D" {
		fmt.Fprintf(h, "D %s\n", quote(path))
		return
	}
	if mode == "160000" {
		fmt.Fprintf(h, "M 160000 %s %s\n", content, quote(path))
		return
	}
	fmt.Fprintf(h, "M %s inline %s\ndata %d\n%s\n", mode, quote(path), len(content), content)
}

// quote quotes a path for fast-import.
func quote(path string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(path) {
		switch c := path[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c >= 0x7f:
			fmt.Fprintf(&b, "\\%03o", c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// load imports a history and replaces the branches.
func (r *repo) load(h *stream) {
	r.t.Helper()
	runGit(r.t, r.dir, h.Bytes(), "fast-import", "--quiet", "--force", "--date-format=raw")
}

// serve serves a directory of repositories over smart HTTP; wrap may be nil.
func serve(t *testing.T, root string, wrap func(http.Handler) http.Handler) string {
	t.Helper()
	var h http.Handler = &cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(runGit(t, "", nil, "--exec-path")), "git-http-backend"),
		Env: []string{
			"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "HOME=/nonexistent",
			"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*",
		},
		Stderr: testWriter{t},
	}
	if wrap != nil {
		h = wrap(h)
	}
	s := httptest.NewServer(h)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(p []byte) (int, error) { return len(p), nil }

// newMirror makes an empty mirror.
func newMirror(t *testing.T) *Mirror {
	t.Helper()
	m := Open(filepath.Join(t.TempDir(), "mirror.git"))
	t.Cleanup(func() { m.Close() })
	return m
}

// within returns a context with a generous time limit.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// fetched returns a mirror of the repository at an address.
func fetched(t *testing.T, address string) *Mirror {
	t.Helper()
	m := newMirror(t)
	if _, err := m.Fetch(within(t), Remote{URL: address}, FetchOptions{}); err != nil {
		t.Fatal(err)
	}
	return m
}

func (r *repo) url() string { return "file://" + r.dir }

// names prints revisions in short form.
func names(revs []Revision) string {
	var out []string
	for _, r := range revs {
		out = append(out, r.Name)
	}
	return strings.Join(out, " ")
}

// globs is a matcher of patterns.
type globs []string

func (g globs) Match(name string) bool {
	compiled, err := glob.Compile(glob.Exact, g...)
	return err == nil && compiled.Match(name)
}
