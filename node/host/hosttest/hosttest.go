// Package hosttest stands in for code hosts in tests: one server for each
// deployment that the product knows.
//
//	Start(t, deployment, repositories) ──▶ Server: its API, and git behind it
//
// It knows nothing of the product. What it answers is held to the description
// that the host publishes, or to a schema made from the host's own types
// (schema/README.md): an answer that does not fit fails the test, so that no
// test rests on what a host would never say. Its pages are tiny, git asks for
// the form of credential of its host, and a [Fault] may stand before every call.
// [Before] has a real server answer in its place.
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

// Repo is a repository of a host, in words that are true of all of them.
type Repo struct {
	ID          int64
	Owner       string // organisation, group with those above it, user, workspace, key of a project, collection
	Project     string // of Bitbucket Cloud its key, of Azure DevOps its name
	Name        string
	Description string
	Branch      string // the default one; empty in a repository without a commit
	Topics      []string
	Private     bool
	Internal    bool
	Fork        bool
	Archived    bool // read-only
	Disabled    bool // there, but not to be fetched
	Hidden      bool // Gerrit's
	Stars       int
	Size        int64 // bytes
	Pushed      time.Time
	Commit      string // of the default branch
	Git         string // the directory of a bare repository that is served
}

// Path is how the host spells it: owner and name.
func (r Repo) Path() string { return r.Owner + "/" + r.Name }

// Fault stands before the server: it reports whether it has answered in its place.
type Fault func(w http.ResponseWriter, r *http.Request) bool

// Server is a code host of one deployment.
type Server struct {
	URL        string // as it is written into a configuration: empty for the public host
	Deployment *Deployment

	t    testing.TB
	http *httptest.Server
	real *Real // that answers; nil where this server does

	mu     sync.Mutex // guards the fields below
	repos  []Repo
	users  []string // owners that are people
	token  string   // the only one that opens anything; empty for a server that is open to all
	page   int      // entries of a page, whatever is asked for
	hollow int      // the page that is empty though others follow; 0 for none
	fault  Fault
	calls  int
	same   int // of them, that the caller had the answer to
	trust  bool
	owned  map[string][]Repo // what of has found, until something is changed
}

// Token is the token that a new server takes.
const Token = "sekret"

// Account is whom the token belongs to, at hosts that want a name beside it.
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

// Transport leads calls of the public host to the server, and all others to
// where they are for.
func (s *Server) Transport() http.RoundTripper {
	return s.Deployment.leadTo(s.Address(), s.http.Client().Transport)
}

// Address is where the server listens: 127.0.0.1 and a port.
func (s *Server) Address() string { return s.http.Listener.Addr().String() }

// Transport leads calls of the public host of a deployment to a server of it in
// another process.
func (d *Deployment) Transport(address string) http.RoundTripper {
	return d.leadTo(address, http.DefaultTransport.(*http.Transport).Clone())
}

func (d *Deployment) leadTo(address string, by http.RoundTripper) http.RoundTripper {
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

// Local is an address of the host as one of this machine, for git.
func (s *Server) Local(address string) string {
	if s.Deployment.web == "" {
		return address
	}
	return strings.Replace(address, s.Deployment.web, s.http.URL, 1)
}

// base is what its addresses begin with.
func (s *Server) base() string {
	if s.Deployment.public != "" {
		return s.Deployment.public
	}
	return s.http.URL
}

// pages is where its pages for people are.
func (s *Server) pages() string {
	if s.Deployment.web != "" {
		return s.Deployment.web
	}
	return s.URL
}

type through func(*http.Request) (*http.Response, error)

func (t through) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// Do changes the server while no call is under way.
func (s *Server) Do(change func(s *State)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.owned = nil
	change(&State{Repos: &s.repos, Token: &s.token, Page: &s.page, Hollow: &s.hollow, Fault: &s.fault, Trust: &s.trust})
	if s.real != nil {
		s.real.Have(s.repos)
	}
}

// State is what a test may change of a server.
type State struct {
	Repos  *[]Repo
	Token  *string // empty opens the server to all
	Page   *int    // entries of a page, whatever is asked for
	Hollow *int    // the number of the page that is empty though others follow
	Fault  *Fault
	Trust  *bool // do not hold answers to the description: for measures
}

// Calls is how many calls of its API there were.
func (s *Server) Calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

// Same is how many calls of its API the caller had the answer to already.
func (s *Server) Same() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.same
}

// ServeHTTP answers as the host does. It does not say what time it is: the clock
// of a test is seldom that of the machine.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header()["Date"] = nil

	// A fault may call back into the server: it runs without the lock.
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

// route answers with the first row that knows the address.
func (s *Server) route(w http.ResponseWriter, r *http.Request) {
	// Made for each call: what a route answers depends on the call alone, and tests are small.
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

// send writes an answer that fits the description of the host.
func (s *Server) send(w http.ResponseWriter, r *http.Request, schema string, body any) {
	if !s.trust {
		file := s.Deployment.schema
		if other, part, ok := strings.Cut(schema, ":"); ok {
			file, schema = other, part
		}
		d := described(file)
		body = d.complete(schema, body)
		if err := d.check(schema, body); err != nil {
			s.t.Errorf("%s: the answer to %s is none that the host gives: %v", s.Deployment.Name, r.URL, err)
		}
	}

	text, err := json.Marshal(body)
	if err != nil {
		s.t.Errorf("%s: %v", s.Deployment.Name, err)
	}

	// The version is one of the body, as at the hosts that have any.
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

// of are the repositories of an owner, which nobody may change; nil where there
// is no such owner.
func (s *Server) of(owner string) []Repo {
	if known, ok := s.owned[owner]; ok {
		return known
	}
	if s.owned == nil {
		s.owned = map[string][]Repo{}
	}
	s.owned[owner] = s.which(func(r Repo) bool { return strings.EqualFold(r.Owner, owner) })
	return s.owned[owner]
}

// which are the repositories for which something holds, by number.
func (s *Server) which(is func(Repo) bool) []Repo {
	var out []Repo
	for _, r := range s.repos {
		if is(r) {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b Repo) int { return int(a.ID - b.ID) })
	return out
}

// one is the repository for which something holds.
func (s *Server) one(is func(Repo) bool) (Repo, bool) {
	found := s.which(is)
	if len(found) == 0 {
		return Repo{}, false
	}
	return found[0], true
}

// byPath finds a repository by owner and name.
func (s *Server) byPath(owner, name string) (Repo, bool) {
	return s.one(func(r Repo) bool { return strings.EqualFold(r.Path(), owner+"/"+name) })
}

// byNumber finds a repository by its number.
func (s *Server) byNumber(text string) (Repo, bool) {
	return s.one(func(r Repo) bool { return strconv.FormatInt(r.ID, 10) == text })
}

// person reports whether an owner is a person.
func (s *Server) person(owner string) bool {
	return slices.ContainsFunc(s.users, func(u string) bool { return strings.EqualFold(u, owner) })
}

// part is page n of a list, counted from 1, and whether more follow.
func (s *Server) part(all []Repo, n int) (page []Repo, more bool) {
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

// newest are repositories with what was pushed to last first.
func newest(repos []Repo) []Repo {
	repos = slices.Clone(repos)
	slices.SortStableFunc(repos, func(a, b Repo) int { return b.Pushed.Compare(a.Pushed) })
	return repos
}

// number reads a number of a query, at least the least.
func number(r *http.Request, name string, least int) int {
	n, _ := strconv.Atoi(r.URL.Query().Get(name))
	return max(n, least)
}

// all makes the body of a list.
func all(repos []Repo, describe func(Repo) map[string]any) []any {
	out := []any{}
	for _, r := range repos {
		out = append(out, describe(r))
	}
	return out
}

// linkTo names the next page in a header.
func (s *Server) linkTo(h http.Header, path string, r *http.Request, name, value string) {
	q := r.URL.Query()
	q.Set(name, value)
	h.Set("Link", fmt.Sprintf(`<%s%s?%s>; rel="next"`, s.base(), path, q.Encode()))
}

// instant is a time as most hosts write it.
func instant(t time.Time) string { return t.UTC().Format(time.RFC3339) }
