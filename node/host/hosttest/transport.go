package hosttest

import (
	"net/http"
	"net/http/cgi"
	"os/exec"
	"strings"
)

// serveGit serves calls of git with git's own server, and requires the host's form of credential.
// It reports whether the call was one of git.
func (s *Server) serveGit(w http.ResponseWriter, r *http.Request) bool {
	s.mu.Lock()
	token := s.token
	dir, rest := "", ""
	for _, repo := range s.repos {
		at, ok := strings.CutPrefix(r.URL.Path, s.Deployment.clone(repo)+"/")
		if ok && repo.Git != "" && (at == "info/refs" || at == "git-upload-pack") {
			dir, rest = repo.Git, at
		}
	}
	s.mu.Unlock()
	if dir == "" {
		return false
	}

	if !s.Deployment.opens(r, token) {
		w.Header().Set("WWW-Authenticate", `Basic realm="hosttest"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}

	// Use git's own server, so that fetches are realistic.
	git, err := exec.LookPath("git")
	if err != nil {
		s.t.Errorf("git: %v", err)
		return true
	}
	(&cgi.Handler{
		Path: git, Args: []string{"http-backend"}, Root: strings.TrimSuffix(r.URL.Path, "/"+rest),
		Env: []string{"GIT_PROJECT_ROOT=" + dir, "GIT_HTTP_EXPORT_ALL=1"},
	}).ServeHTTP(w, r)
	return true
}
