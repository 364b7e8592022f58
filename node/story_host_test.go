package node_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// gitHost is a code host that can hang in the middle of a fetch.
type gitHost struct {
	server *httptest.Server
	root   string

	mu    sync.Mutex // guards the fields below
	repos []string
	held  map[string]chan struct{} // closed when the repository is released
	asked map[string]int           // number of fetches
}

func newGitHost(t *testing.T, root string) *gitHost {
	t.Helper()
	path, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		t.Fatal(err)
	}
	h := &gitHost{root: root, held: map[string]chan struct{}{}, asked: map[string]int{}}
	backend := &cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(string(path)), "git-http-backend"),
		Env:  []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1"},
	}
	h.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if bytes.Contains(body, []byte("command=fetch")) && !h.pass(r) {
			return
		}
		backend.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		h.release("")
		h.server.Close()
	})
	return h
}

// pass waits while the repository of a fetch is held.
func (h *gitHost) pass(r *http.Request) bool {
	name, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	h.mu.Lock()
	h.asked[name]++
	held := h.held[name]
	h.mu.Unlock()
	if held == nil {
		return true
	}
	select {
	case <-held:
		return true
	case <-r.Context().Done():
		return false
	}
}

func (h *gitHost) name() string { return strings.TrimPrefix(h.server.URL, "http://") }

func (h *gitHost) add(repo string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.repos = append(h.repos, repo)
}

func (h *gitHost) list() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.repos)
}

// hold makes every fetch of a repository hang.
func (h *gitHost) hold(repo string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.held[repo] == nil {
		h.held[repo] = make(chan struct{})
	}
}

// release releases a repository; "" means all.
func (h *gitHost) release(repo string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, c := range h.held {
		if repo == "" || name == repo {
			close(c)
			delete(h.held, name)
		}
	}
}

// fetches returns how many fetches of a repository have begun.
func (h *gitHost) fetches(repo string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.asked[repo]
}
