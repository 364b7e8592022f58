package hosttest

import (
	"fmt"
	"net/http"
	"strings"
)

// Deployment is a variant of a code host.
type Deployment struct {
	Name string
	Most int // page size of the real host

	public     string // API's URL on the internet; "" for self-hosted servers
	web        string // URL of its pages
	prefix     string // path of a self-hosted server
	schema     string // name of its schema file
	before     string // prefix of each answer
	versions   bool   // answers have versions, and 304 answers a known one
	authorized func(r *http.Request, token string) bool
	refuse     func(w http.ResponseWriter) // answers a wrong credential
	missing    func(w http.ResponseWriter) // answers an unknown path
	routes     []route
	clone      func(r Repo) string // git path of a repository
	opens      func(r *http.Request, token string) bool
}

// route is a path of an API. A part of the schema describes its answers. A nil answer means not
// found.
type route struct {
	pattern string
	schema  string // for another schema, file:part
	answer  func(s *Server, h http.Header, r *http.Request) any
}

// Deployments returns all deployments.
func Deployments() []*Deployment {
	return []*Deployment{
		GitHub(), GitHubServer(), GitLab(), Gitea(), Gerrit(), BitbucketCloud(), BitbucketServer(), AzureServices(), AzureServer(),
	}
}

// refused returns a handler that answers 401 with a body.
func refused(body string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) { writeAnswer(w, http.StatusUnauthorized, body) }
}

// notFound returns a handler that answers 404 with a body.
func notFound(body string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) { writeAnswer(w, http.StatusNotFound, body) }
}

func writeAnswer(w http.ResponseWriter, status int, body string) {
	kind := "application/json; charset=utf-8"
	switch {
	case strings.HasPrefix(body, "<"):
		kind = "text/html; charset=utf-8"
	case !strings.HasPrefix(body, "{"):
		kind = "text/plain; charset=utf-8"
	}
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	fmt.Fprint(w, body)
}

// headerCheck returns a check for an Authorization header: a prefix and the token.
func headerCheck(prefix string) func(r *http.Request, token string) bool {
	return func(r *http.Request, token string) bool { return r.Header.Get("Authorization") == prefix+token }
}

// passwordCheck returns a check for basic authentication by a user with the token as password. The user
// "" means any.
func passwordCheck(user string) func(r *http.Request, token string) bool {
	return func(r *http.Request, token string) bool {
		u, p, ok := r.BasicAuth()
		return ok && p == token && (user == "" || u == user)
	}
}

// anyCheck returns a check that passes if one of the checks does.
func anyCheck(forms ...func(*http.Request, string) bool) func(*http.Request, string) bool {
	return func(r *http.Request, token string) bool {
		for _, f := range forms {
			if f(r, token) {
				return true
			}
		}
		return false
	}
}
