package host

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/shoalsearch/shoal/cluster/config"
)

// Empty pages end a listing even if each announces another. Then a numbered list is complete. A
// list with cursors may not be, and has an issue.
func TestPagedListing_endsAtEmptyPages(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		conn     func(url string) config.Connection
		page     func(s *httptest.Server, n int) string // of page n
		problems string
		most     int64 // calls
	}{
		"gitea":  {func(u string) config.Connection { return &config.Gitea{URL: u, Orgs: []string{"acme"}} }, listOf("[]"), "TARGET_EMPTY@orgs/acme", 3},
		"github": {func(u string) config.Connection { return &config.GitHub{URL: u, Orgs: []string{"acme"}} }, listOf("[]"), "TARGET_EMPTY@orgs/acme", 3},
		"gitlab": {func(u string) config.Connection { return &config.GitLab{URL: u, Groups: []string{"acme"}} }, listOf("[]"), "TARGET_EMPTY@groups/acme", 4},
		"bitbucket cloud": {func(u string) config.Connection {
			return &config.Bitbucket{URL: u, Deployment: config.Cloud, Workspaces: []string{"acme"}}
		}, func(s *httptest.Server, n int) string {
			return fmt.Sprintf(`{"values":[],"next":"%s/x?page=%d"}`, s.URL, n+1)
		}, "INVALID_PROVIDER_RESPONSE@workspaces/acme!", 101},
		"bitbucket server": {func(u string) config.Connection {
			return &config.Bitbucket{URL: u, Deployment: config.Server, Projects: []string{"ACME"}}
		}, func(_ *httptest.Server, n int) string {
			return fmt.Sprintf(`{"values":[],"isLastPage":false,"nextPageStart":%d}`, n*100)
		}, "INVALID_PROVIDER_RESPONSE@projects/ACME!", 101},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int64
			var s *httptest.Server
			s = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				n := int(calls.Add(1))
				w.Header().Set("Content-Type", "application/json")
				w.Header().Set("Link", fmt.Sprintf(`<%s%s?page=%d>; rel="next"`, s.URL, r.URL.Path, n+1))
				fmt.Fprint(w, c.page(s, n))
			}))
			t.Cleanup(s.Close)

			rec := &recorder{}
			h := openTest(t, c.conn(s.URL))
			_ = h.List(t.Context(), rec) // with only one target, the listing fails with it
			if rec.problems() != c.problems || calls.Load() > c.most {
				t.Errorf("issues %s after %d calls, want %s after at most %d", rec.problems(), calls.Load(), c.problems, c.most)
			}
		})
	}
}

func listOf(page string) func(*httptest.Server, int) string {
	return func(*httptest.Server, int) string { return page }
}

// If a proxy removes the Link header, a full page of a numbered list is not the last.
func TestPagedListing_continuesAfterAFullPageWithoutALinkHeader(t *testing.T) {
	t.Parallel()
	for name, conn := range map[string]func(url string) config.Connection{
		"github": func(u string) config.Connection { return &config.GitHub{URL: u, Orgs: []string{"acme"}} },
		"gitlab": func(u string) config.Connection { return &config.GitLab{URL: u, Groups: []string{"acme"}} },
	} {
		for _, repos := range []int{0, 1, 99, 100, 101, 250} {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				n, _ := strconv.Atoi(r.URL.Query().Get("page"))
				page := []map[string]any{}
				for i := (n - 1) * 100; i < min(n*100, repos); i++ {
					path := fmt.Sprintf("acme/r%d", i)
					page = append(page, map[string]any{"id": i + 1, "full_name": path, "path_with_namespace": path, "http_url_to_repo": "https://h/" + path, "web_url": "https://h/" + path})
				}
				w.Header().Set("Content-Type", "application/json")
				json.NewEncoder(w).Encode(page)
			}))
			t.Cleanup(s.Close)
			rec := &recorder{}
			if err := openTest(t, conn(s.URL)).List(t.Context(), rec); err != nil || len(rec.repos) != repos {
				t.Errorf("%s: %d of %d repositories, %v", name, len(rec.repos), repos, err)
			}
		}
	}
}

// If a proxy removes the Link header, all pages of a Gitea are still read, for any limit of the
// server, and even if it counts more than the token may see.
func TestGitea_readsAllPagesWithoutALinkHeader(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		repos, page int
		counts      string // X-Total-Count
		calls       int64
	}{
		{120, 50, "120", 4}, {120, 30, "120", 4}, {100, 50, "100", 2}, {7, 50, "7", 1}, {0, 50, "0", 1},
		{120, 50, "", 4}, {120, 50, "500", 4}, {51, 50, "51", 3},
	} {
		var calls atomic.Int64
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			calls.Add(1)
			n, _ := strconv.Atoi(r.URL.Query().Get("page"))
			page := []map[string]any{}
			for i := (n - 1) * c.page; i < min(n*c.page, c.repos); i++ {
				page = append(page, map[string]any{"id": i + 1, "full_name": fmt.Sprintf("acme/r%d", i)})
			}
			w.Header().Set("Content-Type", "application/json")
			if c.counts != "" {
				w.Header().Set("X-Total-Count", c.counts)
			}
			json.NewEncoder(w).Encode(page)
		}))
		t.Cleanup(s.Close)
		rec := &recorder{}
		if err := openTest(t, &config.Gitea{URL: s.URL, Orgs: []string{"acme"}}).List(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
		if len(rec.repos) != c.repos || calls.Load() != c.calls {
			t.Errorf("%+v: %d repositories after %d calls", c, len(rec.repos), calls.Load())
		}
	}
}
