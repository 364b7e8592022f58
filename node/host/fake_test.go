package host

import (
	"context"
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

	"github.com/shoalsearch/shoal/cluster/config"
)

// recorder is a sink that records everything.
type recorder struct {
	mu     sync.Mutex
	repos  []Repo
	issues []Issue
	left   map[Reason]int
}

func (r *recorder) Repo(_ context.Context, repo Repo) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.repos = append(r.repos, repo)
	return nil
}

func (r *recorder) Issue(i Issue) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.issues = append(r.issues, i)
}

func (r *recorder) Skip(_ string, why Reason) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.left == nil {
		r.left = map[Reason]int{}
	}
	r.left[why]++
}

func (r *recorder) Progress(int, int) {}

// names returns the names of the listed repositories, sorted, without the host.
func (r *recorder) names() string {
	var out []string
	for _, repo := range r.repos {
		_, path, _ := strings.Cut(repo.Name, "/")
		out = append(out, path)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// problems returns the codes of the issues with their targets, sorted.
func (r *recorder) problems() string {
	var out []string
	for _, i := range r.issues {
		text := string(i.Code)
		if i.Target != "" {
			text += "@" + i.Target
		}
		if i.Partial {
			text += "!"
		}
		out = append(out, text)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// tools returns tools with a constant token, and a clock that each wait advances instead of
// waiting.
func tools(t *testing.T) Tools {
	t.Helper()
	var mu sync.Mutex
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now
	}
	return Tools{
		Secret:    func(context.Context, config.Token) (string, error) { return "sekret", nil },
		Transport: http.DefaultTransport.(*http.Transport).Clone(),
		Now:       clock,
		Budgets:   NewBudgets(clock),
		Wait: func(ctx context.Context, d time.Duration) error {
			mu.Lock()
			defer mu.Unlock()
			now = now.Add(max(d, 0))
			return ctx.Err()
		},
		LookupEnv: func(string) (string, bool) { return "", false },
	}
}

// giteaServer implements a part of Gitea's API. TestRealGitea_listsRepositories checks that a real Gitea gives
// the same answers.
type giteaServer struct {
	*httptest.Server
	most  int // entries of a page, whatever is asked for
	calls int

	mu    sync.Mutex
	repos []giteaRepo
	fault func(w http.ResponseWriter, r *http.Request) bool // if it returns true, it has answered in place of the server
}

func newGiteaServer(t *testing.T, repos ...giteaRepo) *giteaServer {
	t.Helper()
	s := &giteaServer{most: 2, repos: repos}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

func (s *giteaServer) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if s.fault != nil && s.fault(w, r) {
		return
	}
	w.Header().Set("Content-Type", "application/json;charset=utf-8")
	if r.Header.Get("Authorization") != "token sekret" {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"message":"invalid username, password or token"}`)
		return
	}
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/git/api/v1/"), "/")
	switch {
	case len(parts) == 3 && (parts[0] == "orgs" || parts[0] == "users") && parts[2] == "repos":
		s.owner(w, r, parts[1])
	case len(parts) == 3 && parts[0] == "repos":
		s.one(w, func(g giteaRepo) bool { return strings.EqualFold(g.FullName, parts[1]+"/"+parts[2]) })
	case len(parts) == 2 && parts[0] == "repositories":
		s.one(w, func(g giteaRepo) bool { return g.ID.String() == parts[1] })
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func (s *giteaServer) owner(w http.ResponseWriter, r *http.Request, owner string) {
	var all []giteaRepo
	for _, g := range s.repos {
		if strings.EqualFold(textBefore(g.FullName, "/"), owner) {
			all = append(all, g)
		}
	}
	if len(all) == 0 {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"message":"GetOrgByName"}`)
		return
	}
	page := max(1, atoi(r.URL.Query().Get("page")))
	size := min(s.most, atoi(r.URL.Query().Get("limit")))
	from := min((page-1)*size, len(all))
	to := min(from+size, len(all))
	w.Header().Set("X-Total-Count", strconv.Itoa(len(all)))
	if to < len(all) {
		q := r.URL.Query()
		q.Set("page", strconv.Itoa(page+1))
		// The server uses its ROOT_URL, which differs behind a proxy.
		w.Header().Set("Link", fmt.Sprintf(`<http://inside.example:3000%s?%s>; rel="next",<http://inside.example:3000%s?page=9>; rel="last"`, r.URL.Path, q.Encode(), r.URL.Path))
	}
	json.NewEncoder(w).Encode(all[from:to])
}

func (s *giteaServer) one(w http.ResponseWriter, is func(giteaRepo) bool) {
	i := slices.IndexFunc(s.repos, is)
	if i < 0 {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"message":"The target couldn't be found."}`)
		return
	}
	json.NewEncoder(w).Encode(s.repos[i])
}
