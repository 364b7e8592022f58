// Package hosttest implements code hosts for tests: one server for each deployment that Shoal
// supports.
//
//	Start(t, deployment, repositories) ──▶ Server: its API, and git behind it
//
// It uses no other package of Shoal. Its answers are checked against the schema that the host
// publishes, or one made from the host's own types (schema/README.md). An answer that does not
// match fails the test, so that no test depends on impossible answers. Pages are small. Git needs
// the credential form of its host. A [Fault] may answer in place of the server. With [Before], a
// real server answers.
package hosttest

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Repo is a repository, in terms common to all hosts.
type Repo struct {
	ID          int64
	Owner       string // organisation, group with its parents, user, workspace, project key or collection
	Project     string // key at Bitbucket Cloud; name at Azure DevOps
	Name        string
	Description string
	Branch      string // default branch; "" without a commit
	Topics      []string
	Private     bool
	Internal    bool
	Fork        bool
	Archived    bool // read-only
	Disabled    bool // exists but cannot be fetched
	Hidden      bool // Gerrit only
	Stars       int
	Size        int64 // bytes
	Pushed      time.Time
	Commit      string // of the default branch
	Git         string // bare repository to serve
}

// Path returns owner/name.
func (r Repo) Path() string { return r.Owner + "/" + r.Name }

// Fault may answer a call in place of the server. It reports whether it did.
type Fault func(w http.ResponseWriter, r *http.Request) bool

// Server is a code host of one deployment.
type Server struct {
	URL        string // URL for a configuration; "" for the public host
	Deployment *Deployment

	t    testing.TB
	http *httptest.Server
	real *Real // answers the calls; nil: this server does

	mu     sync.Mutex // guards the fields below
	repos  []Repo
	users  []string // owners that are people
	token  string   // the only valid token; "": none needed
	page   int      // entries per page, whatever is asked for
	hollow int      // number of an empty page before others; 0: none
	fault  Fault
	calls  int
	same   int // calls whose answer the caller knew
	trust  bool
	owned  map[string][]Repo // cache of the method of; nil after changes
}

// Token is the valid token of a new server.
const Token = "sekret"

// Account is the token's owner, for hosts that need a name.
const Account = "ann@example.com"

// Start runs a server until the test ends.
func Start(t testing.TB, d *Deployment, repos ...Repo) *Server {
	t.Helper()
	s := &Server{t: t, Deployment: d, repos: slices.Clone(repos), users: []string{"ann"}, token: Token, page: 2}
	s.http = httptest.NewServer(s)
	t.Cleanup(s.http.Close)
	if d.public == "" {
		s.URL = s.http.URL + d.prefix
	}
	return s
}

// Transport returns a transport that sends calls to the public host to this server.
func (s *Server) Transport() http.RoundTripper {
	return s.Deployment.redirectTo(s.Address(), s.http.Client().Transport)
}

// Address returns the server's address: 127.0.0.1 and a port.
func (s *Server) Address() string { return s.http.Listener.Addr().String() }

// Transport returns a transport that sends calls to the public host to a server in another process.
func (d *Deployment) Transport(address string) http.RoundTripper {
	return d.redirectTo(address, http.DefaultTransport.(*http.Transport).Clone())
}

// redirectTo sends requests for the deployment's public URLs to address instead.
func (d *Deployment) redirectTo(address string, by http.RoundTripper) http.RoundTripper {
	return through(func(r *http.Request) (*http.Response, error) {
		r = r.Clone(r.Context())
		for _, public := range []string{d.public, d.web} {
			if public != "" && public == r.URL.Scheme+"://"+r.URL.Host {
				r.URL.Scheme, r.URL.Host = "http", address
			}
		}
		return by.RoundTrip(r)
	})
}

// Local converts a URL of the public host to this server, for git.
func (s *Server) Local(address string) string {
	if s.Deployment.web == "" {
		return address
	}
	return strings.Replace(address, s.Deployment.web, s.http.URL, 1)
}

// apiPrefix returns the prefix of the server's API URLs.
func (s *Server) apiPrefix() string {
	if s.Deployment.public != "" {
		return s.Deployment.public
	}
	return s.http.URL
}

// pagePrefix returns the prefix of the URLs of pages for people.
func (s *Server) pagePrefix() string {
	if s.Deployment.web != "" {
		return s.Deployment.web
	}
	return s.URL
}

type through func(*http.Request) (*http.Response, error)

func (t through) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// Do changes the server's state between calls.
func (s *Server) Do(change func(s *State)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.owned = nil
	change(&State{Repos: &s.repos, Token: &s.token, Page: &s.page, Hollow: &s.hollow, Fault: &s.fault, Trust: &s.trust})
	if s.real != nil {
		s.real.Have(s.repos)
	}
}

// State is what a test may change.
type State struct {
	Repos  *[]Repo
	Token  *string // "": none needed
	Page   *int    // entries per page, whatever is asked for
	Hollow *int    // number of an empty page before others
	Fault  *Fault
	Trust  *bool // answers are not checked against the schema, for benchmarks
}

// Calls returns the number of API calls.
func (s *Server) Calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

// Same returns the number of API calls whose answer the caller knew.
func (s *Server) Same() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.same
}

// ServeHTTP answers as the host does, in this order: calls of git, the fault that the test has set,
// the real server if there is one, a missing credential, the API. There is no Date header, because
// tests have their own clock.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header()["Date"] = nil

	// Copy the fault, to call it without the lock: it may call the server.
	s.mu.Lock()
	fault := s.fault
	s.mu.Unlock()

	if s.real != nil && ofGit(r) {
		s.real.pass.ServeHTTP(w, r)
		return
	}
	if s.serveGit(w, r) {
		return
	}

	s.mu.Lock()
	s.calls++
	s.mu.Unlock()
	if fault != nil && fault(w, r) {
		return
	}
	if s.real != nil {
		s.real.pass.ServeHTTP(w, r)
		return
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	if s.token != "" && !s.Deployment.authorized(r, s.token) {
		s.Deployment.refuse(w)
		return
	}
	s.route(w, r)
}

// route answers with the first matching route.
func (s *Server) route(w http.ResponseWriter, r *http.Request) {
	// Tests are small, so build the routes for each call.
	mux := http.NewServeMux()
	for _, row := range s.Deployment.routes {
		mux.HandleFunc(row.pattern, func(w http.ResponseWriter, r *http.Request) {
			body := row.answer(s, w.Header(), r)
			if body == nil {
				s.Deployment.missing(w)
				return
			}
			s.send(w, r, row.schema, body)
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { s.Deployment.missing(w) })
	mux.ServeHTTP(w, r)
}

// send writes an answer after checking it against the schema.
func (s *Server) send(w http.ResponseWriter, r *http.Request, schema string, body any) {
	if !s.trust {
		file := s.Deployment.schema
		if other, part, ok := strings.Cut(schema, ":"); ok {
			file, schema = other, part
		}
		d := descriptionOf(file)
		body = d.complete(schema, body)
		if err := d.check(schema, body); err != nil {
			s.t.Errorf("%s: the answer to %s is none that the host gives: %v", s.Deployment.Name, r.URL, err)
		}
	}

	text, err := json.Marshal(body)
	if err != nil {
		s.t.Errorf("%s: %v", s.Deployment.Name, err)
	}

	// The version is a hash of the body.
	if s.Deployment.versions {
		tag := fmt.Sprintf(`W/"%x"`, sha256.Sum256(text))
		w.Header().Set("ETag", tag)
		if r.Header.Get("If-None-Match") == tag {
			s.same++
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}

	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	if s.Deployment.before != "" {
		text = append([]byte(s.Deployment.before), text...)
	}
	w.Write(bytes.TrimSpace(text))
}

// reposOf returns the repositories of an owner, or nil if there is none. Callers must not change them.
func (s *Server) reposOf(owner string) []Repo {
	if known, ok := s.owned[owner]; ok {
		return known
	}
	if s.owned == nil {
		s.owned = map[string][]Repo{}
	}
	s.owned[owner] = s.reposWhere(func(r Repo) bool { return strings.EqualFold(r.Owner, owner) })
	return s.owned[owner]
}

// reposWhere returns the matching repositories, by id.
func (s *Server) reposWhere(match func(Repo) bool) []Repo {
	var out []Repo
	for _, r := range s.repos {
		if match(r) {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b Repo) int { return int(a.ID - b.ID) })
	return out
}

// firstRepo returns the first matching repository.
func (s *Server) firstRepo(match func(Repo) bool) (Repo, bool) {
	found := s.reposWhere(match)
	if len(found) == 0 {
		return Repo{}, false
	}
	return found[0], true
}

// byPath returns a repository by owner and name.
func (s *Server) byPath(owner, name string) (Repo, bool) {
	return s.firstRepo(func(r Repo) bool { return strings.EqualFold(r.Path(), owner+"/"+name) })
}

// byNumber returns a repository by its id.
func (s *Server) byNumber(text string) (Repo, bool) {
	return s.firstRepo(func(r Repo) bool { return strconv.FormatInt(r.ID, 10) == text })
}

// person reports whether an owner is a person.
func (s *Server) person(owner string) bool {
	return slices.ContainsFunc(s.users, func(u string) bool { return strings.EqualFold(u, owner) })
}

// pageOf returns page n of a list, counted from 1, and whether more follow.
func (s *Server) pageOf(all []Repo, n int) (page []Repo, more bool) {
	if s.hollow > 0 && n >= s.hollow {
		if n == s.hollow {
			return nil, len(all) > (n-1)*s.page
		}
		n--
	}
	from := min((n-1)*s.page, len(all))
	to := min(from+s.page, len(all))
	return all[from:to], to < len(all)
}

// newest returns the repositories sorted by their last push, newest first.
func newest(repos []Repo) []Repo {
	repos = slices.Clone(repos)
	slices.SortStableFunc(repos, func(a, b Repo) int { return b.Pushed.Compare(a.Pushed) })
	return repos
}

// number returns a number in a query, or a minimum.
func number(r *http.Request, name string, least int) int {
	n, _ := strconv.Atoi(r.URL.Query().Get(name))
	return max(n, least)
}

// describeAll returns the body of a list.
func describeAll(repos []Repo, describe func(Repo) map[string]any) []any {
	out := []any{}
	for _, r := range repos {
		out = append(out, describe(r))
	}
	return out
}

// linkTo sets the Link header to the next page.
func (s *Server) linkTo(h http.Header, path string, r *http.Request, name, value string) {
	q := r.URL.Query()
	q.Set(name, value)
	h.Set("Link", fmt.Sprintf(`<%s%s?%s>; rel="next"`, s.apiPrefix(), path, q.Encode()))
}

// instant returns a time in the form that most hosts use.
func instant(t time.Time) string { return t.UTC().Format(time.RFC3339) }
