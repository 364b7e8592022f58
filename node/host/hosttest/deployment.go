package hosttest

import (
	"fmt"
	"net/http"
	"strings"
)

// Deployment is a code host as it can be had: a row of the table below.
type Deployment struct {
	Name string
	Most int // entries of a page at the real one

	public     string // the address of its API on the internet; empty for a server of one's own
	web        string // and that of its pages
	prefix     string // of the path that a server of one's own lies below
	schema     string // the file of its description
	before     string // what stands before each answer
	versions   bool   // answers have a version, and nothing is sent to who has it
	authorized func(r *http.Request, token string) bool
	refuse     func(w http.ResponseWriter) // what a wrong credential gets
	missing    func(w http.ResponseWriter) // what an address of nothing gets
	routes     []route
	clone      func(r Repo) string // the path of a repository for git
	opens      func(r *http.Request, token string) bool
}

// route is an address of an API: what it answers is described by a part of the
// schema. An answer of nil is that there is no such thing.
type route struct {
	pattern string
	schema  string // of another description as file:part
	answer  func(s *Server, h http.Header, r *http.Request) any
}

// Deployments returns the table.
func Deployments() []*Deployment {
	return []*Deployment{
		GitHub(), GitHubServer(), GitLab(), Gitea(), Gerrit(), BitbucketCloud(), BitbucketServer(), AzureServices(), AzureServer(),
	}
}

// refused is an answer to a wrong credential that says so.
func refused(body string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) { answer(w, http.StatusUnauthorized, body) }
}

// notFound is an answer to an address of nothing.
func notFound(body string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) { answer(w, http.StatusNotFound, body) }
}

func answer(w http.ResponseWriter, status int, body string) {
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

// header reports whether a call has a value of the Authorization header.
func header(prefix string) func(r *http.Request, token string) bool {
	return func(r *http.Request, token string) bool { return r.Header.Get("Authorization") == prefix+token }
}

// password reports whether a call has a user and the token as its password;
// any user where none is given.
func password(user string) func(r *http.Request, token string) bool {
	return func(r *http.Request, token string) bool {
		u, p, ok := r.BasicAuth()
		return ok && p == token && (user == "" || u == user)
	}
}

// either reports whether one of some forms fits.
func either(forms ...func(*http.Request, string) bool) func(*http.Request, string) bool {
	return func(r *http.Request, token string) bool {
		for _, f := range forms {
			if f(r, token) {
				return true
			}
		}
		return false
	}
}
