package host

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/host/hosttest"
	"github.com/shoalsearch/shoal/shard/git"
)

// conformance are the cases to run for each deployment. skip reports whether a deployment cannot
// run the case.
var conformance = []struct {
	group, name string
	skip        func(st *deploymentTest) bool
	try         func(t *testing.T, st *deploymentTest)
}{
	{"selection", "an owner, a user and a repository, alone and together", nil, tryTargets},
	{"selection", "everything", lacks("all"), tryAll},
	{"selection", "each property, alone and with each set of others", nil, tryProperties},
	{"selection", "what is not there stops nothing else", alone, tryMissing},
	{"paging", "no entry to three pages and one", nil, tryPages},
	{"paging", "an empty page in the middle", hollow, tryHollow},
	{"paging", "a next page at another host", pagedBy("", "offset", "start"), tryElsewhere},
	{"paging", "pages in a circle", pagedBy(""), tryCircle},
	{"paging", "one removed and one made between two pages", pagedBy(""), tryMoved},
	{"facts", "every fact", nil, tryFacts},
	{"facts", "a visibility that is not known", nil, tryVisibility},
	{"facts", "names that have to be escaped", nil, tryNames},
	{"partial", "each failure, on the first page and behind it", alone, tryFailures},
	{"limits", "each form of a limit", nil, tryLimits},
	{"limits", "a limit that lasts", nil, tryLastingLimit},
	{"limits", "a pause that is asked for beside an answer", nil, tryPause},
	{"limits", "two connections with one token", nil, tryShared},
	{"credentials", "wrong, then changed", nil, tryCredentials},
	{"credentials", "changed while an old one is kept", nil, tryKept},
	{"look-up", "there, gone, and of another host", nil, tryLookup},
	{"pushes", "what was pushed to since", nil, tryPushes},
	{"git", "fetched with the credential, and not without", nil, tryGit},
}

// TestEveryHostKind_passesTheConformanceCases runs all cases. With -v it reports which ones ran.
func TestEveryHostKind_passesTheConformanceCases(t *testing.T) {
	t.Parallel()
	for _, st := range deploymentTests() {
		t.Run(st.host.Name, func(t *testing.T) {
			t.Parallel()
			conform(t, &st)
		})
	}
}

// conform runs the cases for one deployment. For a real server they run one after another, because
// there is only one.
func conform(t *testing.T, st *deploymentTest) {
	var mu sync.Mutex
	tried, passed := 0, 0
	for _, c := range conformance {
		if c.skip != nil && c.skip(st) {
			continue
		}

		tried++
		t.Run(c.group+"/"+c.name, func(t *testing.T) {
			if st.real == nil {
				t.Parallel()
			}
			c.try(t, st)
			if !t.Failed() {
				mu.Lock()
				defer mu.Unlock()
				passed++
			}
		})
	}
	t.Cleanup(func() { t.Logf("%d of %d cases passed", passed, tried) })
}

func lacks(property string) func(*deploymentTest) bool {
	return func(st *deploymentTest) bool { return !slices.Contains(st.has, property) }
}

func alone(st *deploymentTest) bool { return st.lone }

func pagedBy(ways ...string) func(*deploymentTest) bool {
	return func(st *deploymentTest) bool { return slices.Contains(ways, st.pages()) }
}

// hollow reports whether a deployment cannot have an empty page before others: it pages
// differently, or is a real server.
func hollow(st *deploymentTest) bool { return st.real != nil || pagedBy("", "offset")(st) }

// sound fails the test if a listing failed or has issues.
func sound(tr *hostTest, what string, rec *recorder, err error) {
	tr.Helper()
	if err != nil || rec.problems() != "" {
		tr.Errorf("%s: %v, issues %s %+v", what, err, rec.problems(), rec.issues)
	}
}

func tryTargets(t *testing.T, st *deploymentTest) {
	owned := func(owner string) func(hosttest.Repo) bool {
		return func(r hosttest.Repo) bool { return strings.Trim(strings.ToLower(r.Owner), "~") == owner }
	}
	tool := func(r hosttest.Repo) bool { return r.Name == "tool" || r.Name == "app" }
	for bits := 1; bits < 8; bits++ {
		tr := st.start(t, world()...)
		var w wanted
		var want []func(hosttest.Repo) bool
		if bits&1 != 0 {
			w.owners, want = []string{"acme"}, append(want, owned("acme"))
		}
		if bits&2 != 0 {
			w.users, want = []string{"ann"}, append(want, owned("ann"))
		}
		if bits&4 != 0 {
			w.repos, want = []string{"other/tool", "acme/app"}, append(want, tool)
		}

		rec, err := tr.list(w)
		sound(tr, fmt.Sprintf("%+v", w), rec, err)
		all := tr.idsOf(func(r hosttest.Repo) bool {
			return slices.ContainsFunc(want, func(is func(hosttest.Repo) bool) bool { return is(r) })
		})
		if got := ids(rec); got != all {
			t.Errorf("%+v: listed %s, want %s", w, got, all)
		}
	}
}

func tryAll(t *testing.T, st *deploymentTest) {
	tr := st.start(t, world()...)
	rec, err := tr.list(wanted{all: true})
	sound(tr, "all", rec, err)
	if got, want := ids(rec), tr.idsOf(func(hosttest.Repo) bool { return true }); got != want {
		t.Errorf("listed %s, want %s", got, want)
	}
}

func tryProperties(t *testing.T, st *deploymentTest) {
	var mine []property
	for _, p := range properties() {
		if slices.Contains(st.has, p.name) {
			mine = append(mine, p)
		}
	}
	tr := st.start(t, world()...)
	for set := range 1 << len(mine) {
		w := wanted{owners: []string{"acme", "other"}, users: []string{"ann"}}
		var names []string
		var on []property
		for i, p := range mine {
			if set&(1<<i) != 0 {
				p.set(&w)
				on, names = append(on, p), append(names, p.name)
			}
		}

		rec, err := tr.list(w)
		sound(tr, strings.Join(names, ", "), rec, err)
		want := tr.idsOf(func(r hosttest.Repo) bool {
			return !slices.ContainsFunc(on, func(p property) bool { return p.drops(r) })
		})
		if got := ids(rec); got != want {
			t.Errorf("%s: listed %s, want %s", strings.Join(names, ", "), got, want)
		}
	}
}

func tryMissing(t *testing.T, st *deploymentTest) {
	tr := st.start(t, world()...)
	rec, err := tr.list(wanted{owners: []string{"nobody", "other"}, repos: []string{"acme/nothing"}})
	if err != nil || ids(rec) != tr.idsOf(func(r hosttest.Repo) bool { return r.Name == "tool" }) {
		t.Errorf("%v, listed %s", err, ids(rec))
	}
	if got := rec.problems(); strings.Count(got, "TARGET_NOT_FOUND@") != 2 || strings.Count(got, "!") != 2 {
		t.Errorf("issues %s", got)
	}
}

// many returns n repositories of an owner.
func many(owner string, n int) (out []hosttest.Repo) {
	for i := range n {
		out = append(out, hosttest.Repo{
			ID: int64(i + 1), Owner: owner, Project: "Big Project", Name: fmt.Sprintf("r%03d", i), Branch: "main",
			Pushed: time.Date(2026, 2, 1, 0, i, 0, 0, time.UTC),
		})
	}
	return out
}

func tryPages(t *testing.T, st *deploymentTest) {
	for n := range 8 {
		owner := "acme"
		if n == 0 {
			owner = "empty"
		}
		tr := st.start(t, many(owner, n)...)
		rec, err := tr.list(wanted{owners: []string{owner}})
		if n == 0 {
			// An empty target is an issue but not an error.
			if got := rec.problems(); err != nil || !strings.HasPrefix(got, "TARGET_EMPTY@") || strings.Contains(got, " ") {
				t.Errorf("no entries: %v, issues %s", err, got)
			}
			continue
		}
		sound(tr, fmt.Sprintf("%d entries", n), rec, err)
		if got, want := ids(rec), tr.idsOf(func(hosttest.Repo) bool { return true }); got != want || len(rec.repos) != n {
			t.Errorf("of %d: listed %s, want %s", n, got, want)
		}
	}
}

func tryHollow(t *testing.T, st *deploymentTest) {
	tr := st.start(t, many("acme", 7)...)
	tr.s.Do(func(s *hosttest.State) { *s.Hollow = 2 })
	rec, err := tr.list(wanted{owners: []string{"acme"}})
	sound(tr, "a page without entries", rec, err)
	if len(rec.repos) != 7 {
		t.Errorf("listed %s", ids(rec))
	}
}

// pointing returns a Fault that answers with a page whose next page has another address.
func pointing(st *deploymentTest, to func(r *http.Request) string) hosttest.Fault {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(strings.ToLower(r.URL.RequestURI()), "acme") {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		switch st.pages() {
		case "body":
			fmt.Fprintf(w, `{"values":[],"next":%q}`, to(r))
		case "start":
			fmt.Fprint(w, `{"values":[],"isLastPage":false,"nextPageStart":7}`)
		case "offset":
			fmt.Fprint(w, `{"acme/app":{"id":"acme%2Fapp","state":"ACTIVE"}}`)
		default:
			w.Header().Set("Link", "<"+to(r)+`>; rel="next"`)
			fmt.Fprint(w, "[]")
		}
		return true
	}
}

func tryElsewhere(t *testing.T, st *deploymentTest) {
	if st.host.Name == "gitea" {
		t.Skip("it names itself by an address of its own: the address is never followed, only its page")
	}
	tr := st.start(t, world()...)
	tr.s.Do(func(s *hosttest.State) {
		*s.Fault = pointing(st, func(*http.Request) string { return "https://elsewhere.invalid/page/2" })
	})
	rec, err := tr.list(wanted{owners: []string{"acme", "other"}})
	if err != nil || rec.problems() != "INVALID_PROVIDER_RESPONSE@"+st.target+"acme!" {
		t.Errorf("%v, issues %s", err, rec.problems())
	}
}

func tryCircle(t *testing.T, st *deploymentTest) {
	tr := st.start(t, world()...)
	tr.s.Do(func(s *hosttest.State) {
		*s.Fault = pointing(st, func(r *http.Request) string {
			q := r.URL.Query()
			q.Set("page", "1")
			if st.host.Name == "bitbucket cloud" {
				return "https://api.bitbucket.org" + r.URL.Path + "?" + q.Encode()
			}
			return r.URL.Path + "?" + q.Encode()
		})
	})
	rec, err := tr.list(wanted{owners: []string{"acme"}})
	if err == nil || !strings.Contains(err.Error(), "circle") || !strings.Contains(rec.problems(), "INVALID_PROVIDER_RESPONSE@") {
		t.Errorf("%v, issues %s", err, rec.problems())
	}
	if calls := tr.s.Calls(); calls > 6 {
		t.Errorf("%d calls", calls)
	}
}

// tryMoved removes the first repository and adds one after the first page is read. The listing may
// miss one, but a look-up finds it.
func tryMoved(t *testing.T, st *deploymentTest) {
	tr := st.start(t, many("acme", 6)...)
	calls := 0
	tr.s.Do(func(s *hosttest.State) {
		*s.Fault = func(http.ResponseWriter, *http.Request) bool {
			if calls++; calls == 2 {
				tr.s.Do(func(s *hosttest.State) {
					made := (*s.Repos)[5]
					made.ID, made.Name = 50, "r999"
					*s.Repos = append((*s.Repos)[1:], made)
				})
			}
			return false
		}
	})

	h := tr.open(wanted{owners: []string{"acme"}})
	rec, err := tr.listAgain(h)
	sound(tr, "while it changes", rec, err)
	seen := map[string]bool{}
	for _, r := range rec.repos {
		if seen[r.ExternalID] {
			t.Errorf("%s came twice", r.Name)
		}
		seen[r.ExternalID] = true
	}

	prefix := rec.repos[0].ExternalID[:strings.LastIndex(rec.repos[0].ExternalID, ":")+1]
	for _, id := range strings.Fields(tr.idsOf(func(r hosttest.Repo) bool { return r.ID < 50 })) {
		if seen[prefix+id] {
			continue
		}
		if _, chosen, err := h.(Finder).Lookup(t.Context(), prefix+id); err != nil || !chosen {
			t.Errorf("%s was missed by the listing, and the look-up says %v, %v", id, chosen, err)
		}
	}
}

// tryFacts compares the record of each repository with a golden file.
func tryFacts(t *testing.T, st *deploymentTest) {
	tr := st.start(t, world()...)
	rec, err := tr.list(wanted{owners: []string{"acme", "other"}, users: []string{"ann"}})
	sound(tr, "the world", rec, err)
	slices.SortFunc(rec.repos, func(a, b Repo) int { return strings.Compare(a.Name, b.Name) })
	var text strings.Builder
	for _, r := range rec.repos {
		if st.real != nil {
			st.real.plain(t, &r)
		}
		fmt.Fprintf(&text, "%s\n  id %s\n  shown %s, type %s, from %s\n  git %s\n  web %s\n", r.Name, r.ExternalID, r.DisplayName, r.HostType, r.Target, r.Remote.URL, r.WebURL)
		fmt.Fprintf(&text, "  %s branch=%s topics=%v stars=%d size=%d pushed=%s%s\n", []string{"unknown", "public", "internal", "private"}[r.Visibility],
			r.DefaultBranch, r.Topics, r.Stars, r.SizeBytes, r.PushedAt.UTC().Format(time.RFC3339), flags(&r))
	}

	host := "127.0.0.1"
	if u := strings.TrimPrefix(tr.s.URL, "http://"); u != "" {
		host, _, _ = strings.Cut(u, "/")
	}
	name := strings.ReplaceAll(st.host.Name, " ", "-")
	if st.real != nil {
		name += "-real"
	}
	golden(t, "conform/"+name+".txt", strings.ReplaceAll(text.String(), host, "HOST"))
}

func flags(r *Repo) (out string) {
	for _, f := range []struct {
		is   bool
		word string
	}{{r.Fork, "fork"}, {r.Archived, "archived"}, {r.Empty, "empty"}, {r.Unfetchable != "", "unfetchable"}, {r.Description != "", "described"}} {
		if f.is {
			out += " " + f.word
		}
	}
	return out
}

// tryNames lists names that need escaping, and asks for each by name and by id.
func tryNames(t *testing.T, st *deploymentTest) {
	names := []string{"a b", "100%25", "c#", "c++", "größe", "dots.git", "a&b=c", "it's", strings.Repeat("x", 1024)}
	if st.real != nil {
		// names that the real server accepts
		names = []string{".a.b-c_d", "-dash-", "_under_", "100", "CamelCase", ".github", strings.Repeat("x", 100)}
	}
	if st.host.Name == "gitlab" || st.host.Name == "gerrit" {
		names = append(names, strings.Repeat("deeper/", 20)+"end")
	}

	for i, name := range names {
		owner, last := "acme", name
		if at := strings.LastIndex(name, "/"); at > 0 {
			owner, last = "acme/"+name[:at], name[at+1:]
		}
		repo := hosttest.Repo{ID: int64(i + 1), Owner: owner, Project: "Big Project", Name: last, Branch: "main", Pushed: time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)}
		tr := st.start(t, repo)
		rec, err := tr.list(wanted{owners: []string{"acme"}})
		sound(tr, name, rec, err)
		if len(rec.repos) != 1 || !strings.HasSuffix(rec.repos[0].Name, "/"+last) {
			t.Errorf("%q by its owner: %+v", name, rec.repos)
			continue
		}
		found := rec.repos[0]
		if web := strings.TrimSuffix(found.Remote.URL, ".git"); strings.ContainsAny(web, " #") {
			t.Errorf("%q is cloned from %s", name, found.Remote.URL)
		}

		if !strings.ContainsAny(name, "*?[{") {
			one, err := tr.list(wanted{repos: []string{"acme/" + name}})
			sound(tr, name+" by its name", one, err)
			if ids(one) != ids(rec) {
				t.Errorf("%q by its name: %+v", name, one.repos)
			}
		}
		if r, chosen, err := tr.open(wanted{owners: []string{"acme"}}).(Finder).Lookup(t.Context(), found.ExternalID); err != nil || !chosen || r.Name != found.Name {
			t.Errorf("%q by its id: %+v, %v, %v", name, r, chosen, err)
		}
	}
}

// failures are answers in place of a page, with the resulting code.
var failures = []struct {
	name   string
	status int
	head   string
	body   string
	code   Code
}{
	{"forbidden", 403, "", `{"message":"no"}`, Forbidden},
	{"not there", 404, "", `{}`, TargetNotFound},
	{"gone", 410, "", `{}`, TargetNotFound},
	{"always 500", 500, "", ``, Unreachable},
	{"a bad gateway", 502, "", "<html>bad gateway</html>", Unreachable},
	{"a timeout of a proxy", 504, "", "", Unreachable},
	{"a limit for a day", 429, "Retry-After: 80000", "slow down", RateLimited},
	{"a body cut in the middle", 200, "", `[{"id": 1,`, InvalidResponse},
	{"JSON of another shape", 200, "", `"hello"`, InvalidResponse},
	{"nothing at all", 200, "", ``, InvalidResponse},
	{"a page for people", 200, "Content-Type: text/html", "<html>checking your browser</html>", InvalidResponse},
	{"a page to sign in, with 203", 203, "Content-Type: text/html", "<html>sign in</html>", InvalidResponse},
	{"a way to another host", 302, "Location: https://login.invalid/", "", InvalidResponse},
	{"an address of the law", 451, "", `{"message":"Repository access blocked"}`, ""},
}

func tryFailures(t *testing.T, st *deploymentTest) {
	for _, f := range failures {
		for _, at := range []int{1, 2} {
			if at == 2 && st.pages() == "" {
				continue
			}
			tr := st.start(t, append(many("acme", 5), hosttest.Repo{ID: 90, Owner: "other", Project: "P", Name: "tool"}, hosttest.Repo{ID: 91, Owner: "ann", Project: "P", Name: "own"})...)
			tr.s.Do(func(s *hosttest.State) { *s.Fault = failing(st, at, f.status, f.head, f.body) })

			rec, err := tr.list(wanted{owners: []string{"acme", "other"}, users: []string{"ann"}})
			want := f.code
			if st.host.Name[:5] == "azure" && (f.status == 203 || f.status == 302) {
				want = TokenRefused
			}
			if want == TokenRefused {
				if r := (*Refusal)(nil); !errors.As(err, &r) || r.Code != want {
					t.Errorf("%s on page %d: %v", f.name, at, err)
				}
				continue
			}
			got := rec.problems()

			// A limit is for the whole credential, so concurrent calls fail too.
			if want == RateLimited {
				if !strings.Contains(got, "RATE_LIMITED@") {
					t.Errorf("%s on page %d: %v, issues %s", f.name, at, err, got)
				}
				continue
			}
			if err != nil || !strings.HasSuffix(strings.ToLower(got), "@"+st.target+"acme!") || strings.Contains(got, " ") || want != "" && !strings.HasPrefix(got, string(want)+"@") {
				t.Errorf("%s on page %d: %v, issues %s, want %s", f.name, at, err, got, want)
			}
			if names := rec.names(); !strings.Contains(names, "tool") || !strings.Contains(names, "own") || at == 2 && !strings.Contains(names, "r000") {
				t.Errorf("%s on page %d: listed only %s", f.name, at, names)
			}
		}
	}
}

// failing returns a Fault for page n of acme and all later pages.
func failing(st *deploymentTest, n, status int, head, body string) hosttest.Fault {
	var mu sync.Mutex
	pages := 0
	return func(w http.ResponseWriter, r *http.Request) bool {
		at := strings.ToLower(r.URL.RequestURI())
		if !strings.Contains(at, "acme") {
			return false
		}
		mu.Lock()
		defer mu.Unlock()
		if pages++; pages < n {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		if name, value, ok := strings.Cut(head, ": "); ok {
			w.Header().Set(name, value)
		}
		w.WriteHeader(status)
		fmt.Fprint(w, body)
		return true
	}
}

// tryLimits refuses the first calls with each form of a limit. The listing still completes.
func tryLimits(t *testing.T, st *deploymentTest) {
	for name, c := range map[string]struct {
		status int
		after  string
		least  time.Duration // time to wait
	}{
		"seconds":                   {429, "7", 7 * time.Second},
		"a date":                    {429, "Sun, 01 Mar 2026 12:01:00 GMT", time.Minute},
		"nothing":                   {429, "", 0},
		"a negative number":         {429, "-5", 0},
		"words":                     {429, "soon", 0},
		"a year":                    {429, "31536000", 0},
		"seconds, by a busy server": {503, "9", 9 * time.Second},
	} {
		tr := st.start(t, world()...)
		var mu sync.Mutex
		left := 2
		tr.s.Do(func(s *hosttest.State) {
			*s.Fault = func(w http.ResponseWriter, r *http.Request) bool {
				mu.Lock()
				defer mu.Unlock()
				if left == 0 {
					return false
				}
				left--
				if c.after != "" {
					w.Header().Set("Retry-After", c.after)
				}
				w.WriteHeader(c.status)
				fmt.Fprint(w, "slow down")
				return true
			}
		})

		before := tr.tools.Now()
		rec, err := tr.list(wanted{owners: []string{"acme"}})
		sound(tr, name, rec, err)
		if waited := tr.tools.Now().Sub(before); waited < c.least || waited > 10*time.Minute {
			t.Errorf("%s: waited for %v, want %v at least", name, waited, c.least)
		}
		if want := tr.idsOf(func(r hosttest.Repo) bool { return strings.EqualFold(r.Owner, "acme") }); ids(rec) != want {
			t.Errorf("%s: listed %s, want %s", name, ids(rec), want)
		}
	}
}

// tryLastingLimit refuses all calls for hours. The listing returns when it may continue, instead of
// waiting.
func tryLastingLimit(t *testing.T, st *deploymentTest) {
	tr := st.start(t, world()...)
	tr.s.Do(func(s *hosttest.State) {
		*s.Fault = func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Retry-After", "7200")
			w.WriteHeader(http.StatusTooManyRequests)
			return true
		}
	})
	before := tr.tools.Now()
	_, err := tr.list(wanted{owners: []string{"acme"}})
	r := (*Refusal)(nil)
	if !errors.As(err, &r) || r.Code != RateLimited || r.Until.Sub(before).Round(time.Minute) != 2*time.Hour || tr.tools.Now().Sub(before) > maxWait {
		t.Errorf("%v, waited for %v", err, tr.tools.Now().Sub(before))
	}
}

// tryPause answers and asks for a pause. The next call waits for it.
func tryPause(t *testing.T, st *deploymentTest) {
	tr := st.start(t, world()...)
	tr.s.Do(func(s *hosttest.State) {
		*s.Fault = func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Retry-After", "30")
			return false
		}
	})
	h := tr.open(wanted{repos: []string{"acme/app"}})
	before := tr.tools.Now()
	for range 2 {
		rec, err := tr.listAgain(h)
		sound(tr, "with a pause", rec, err)
	}
	if waited := tr.tools.Now().Sub(before); waited < 30*time.Second {
		t.Errorf("waited for %v", waited)
	}
}

// tryShared lists with two connections of one token. Together they keep the pace of one.
func tryShared(t *testing.T, st *deploymentTest) {
	tr := st.start(t, many("acme", 40)...)
	before := tr.tools.Now()
	first, second := tr.open(wanted{owners: []string{"acme"}}), tr.open(wanted{owners: []string{"acme"}})
	for range 3 {
		for _, h := range []Host{first, second} {
			rec, err := tr.listAgain(h)
			sound(tr, "one of two", rec, err)
		}
	}
	calls := tr.s.Calls()
	if took := tr.tools.Now().Sub(before).Seconds(); float64(calls-pace) > pace*took+1 {
		t.Errorf("%d calls in %.1f s, want %d a second at most", calls, took, pace)
	}
}

// tryVisibility sends an unknown visibility, which must count as private.
func tryVisibility(t *testing.T, st *deploymentTest) {
	tr := st.start(t, world()...)
	tr.tools.Transport = rewriting{tr.tools.Transport, strings.NewReplacer(`"visibility":"public"`, `"visibility":"circle"`)}
	rec, err := tr.list(wanted{repos: []string{"acme/app"}})
	sound(tr, "another word", rec, err)
	switch st.host.Name {
	case "github", "github enterprise server", "gitlab", "azure devops services", "azure devops server":
		if len(rec.repos) != 1 || rec.repos[0].Visibility != Private {
			t.Errorf("%+v", rec.repos)
		}
	}
}

// rewriting is a transport that replaces parts of answers.
type rewriting struct {
	http.RoundTripper
	words *strings.Replacer
}

func (r rewriting) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := r.RoundTripper.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	res.Body = io.NopCloser(strings.NewReader(r.words.Replace(string(text))))
	return res, err
}

func tryCredentials(t *testing.T, st *deploymentTest) {
	tr := st.start(t, world()...)
	tr.s.Do(func(s *hosttest.State) { *s.Token = "another" })
	h := tr.open(wanted{owners: []string{"acme", "other"}, users: []string{"ann"}, repos: []string{"acme/app"}})
	rec, err := tr.listAgain(h)
	if r := (*Refusal)(nil); !errors.As(err, &r) || r.Code != TokenRefused || !strings.Contains(r.Text, "connection work") || len(rec.repos) > 0 {
		t.Errorf("a wrong token: %v, %s", err, rec.problems())
	}
	if calls := tr.s.Calls(); calls > parallelTargets+1 {
		t.Errorf("%d calls with a token that was refused", calls)
	}

	// The host accepts the token again. No restart or new connection is needed.
	tr.s.Do(func(s *hosttest.State) { *s.Token = hosttest.Token })
	rec, err = tr.listAgain(h)
	sound(tr, "after the token was changed", rec, err)
	if len(rec.repos) == 0 {
		t.Error("nothing is listed")
	}
}

// tryKept changes a token at the host and in the secrets manager, while the node has cached the old
// one. The node reads it again, and the listing succeeds.
func tryKept(t *testing.T, st *deploymentTest) {
	tr := st.start(t, world()...)
	w := wanted{owners: []string{"acme", "other"}, users: []string{"ann"}, repos: []string{"acme/app"}}
	before, err := tr.list(w)
	sound(tr, "with the first token", before, err)
	calls := tr.s.Calls()

	var mu sync.Mutex
	kept, manager := hosttest.Token, "rotated"
	tr.tools.Secret = func(context.Context, config.Token) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		return kept, nil
	}
	tr.tools.Forget = func() {
		mu.Lock()
		defer mu.Unlock()
		kept = manager
	}
	tr.s.Do(func(s *hosttest.State) { *s.Token = manager })

	after, err := tr.list(w)
	sound(tr, "with a token that was changed", after, err)
	if got, want := after.names(), before.names(); got != want {
		t.Errorf("listed %s, want %s", got, want)
	}
	if more := tr.s.Calls() - 2*calls; more > parallelTargets+1 {
		t.Errorf("%d calls more than with a token that was right from the start", more)
	}
}

func tryLookup(t *testing.T, st *deploymentTest) {
	tr := st.start(t, world()...)
	h := tr.open(wanted{owners: []string{"acme"}, noRepos: []string{"**/*-old"}})
	rec, err := tr.listAgain(h)
	sound(tr, "listed", rec, err)
	for _, r := range rec.repos {
		again, chosen, err := h.(Finder).Lookup(t.Context(), r.ExternalID)
		again.Target = r.Target
		if r.SizeBytes == 0 {
			again.SizeBytes = 0 // GitLab omits it in a group's list
		}
		if err != nil || !chosen || fmt.Sprintf("%+v", again) != fmt.Sprintf("%+v", r) {
			t.Errorf("%+v by its id: %+v, %v, %v", r, again, chosen, err)
		}
	}

	everything, err := tr.list(wanted{owners: []string{"acme", "other"}})
	sound(tr, "listed", everything, err)
	for _, r := range everything.repos {
		outside := strings.HasSuffix(r.Name, "/tool") || strings.HasSuffix(r.Name, "-old")
		if _, chosen, err := h.(Finder).Lookup(t.Context(), r.ExternalID); outside && (err != nil || chosen) {
			t.Errorf("%s is not chosen, and the look-up says %v, %v", r.Name, chosen, err)
		}
	}

	gone := rec.repos[0].ExternalID
	tr.s.Do(func(s *hosttest.State) {
		*s.Repos = slices.DeleteFunc(*s.Repos, func(r hosttest.Repo) bool {
			return r.Name == rec.repos[0].Name[strings.LastIndex(rec.repos[0].Name, "/")+1:]
		})
	})
	if _, _, err := tr.open(wanted{owners: []string{"acme"}}).(Finder).Lookup(t.Context(), gone); !errors.Is(err, ErrGone) {
		t.Errorf("gone: %v", err)
	}
	if _, _, err := h.(Finder).Lookup(t.Context(), "github:elsewhere.example:1"); err == nil || errors.Is(err, ErrGone) {
		t.Errorf("of another host: %v", err)
	}
	tr.s.Do(func(s *hosttest.State) {
		*s.Fault = func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(http.StatusBadGateway); return true }
	})
	if _, _, err := tr.open(wanted{owners: []string{"acme"}}).(Finder).Lookup(t.Context(), gone); err == nil || errors.Is(err, ErrGone) {
		t.Errorf("a server that fails: %v", err)
	}
}

// tryPushes asks for pushes since a time, if the host reports them.
func tryPushes(t *testing.T, st *deploymentTest) {
	tr := st.start(t, many("acme", 7)...)
	tr.s.Do(func(s *hosttest.State) {
		for i := range *s.Repos {
			(*s.Repos)[i].Commit = strings.Repeat("a", 40)
		}
	})
	conn := st.conn(tr.s.URL, wanted{owners: []string{"acme"}})
	h := tr.open(wanted{owners: []string{"acme"}})
	c, ok := h.(Changer)
	if _, told := SignalOf(conn); told != ok && st.host.Name != "bitbucket data center" {
		t.Fatalf("the row says %v, and the host is a Changer: %v", told, ok)
	}
	if !ok {
		return
	}

	since := time.Date(2026, 2, 1, 0, 4, 30, 0, time.UTC)
	if st.real != nil {
		since = st.real.push("acme/r005", "acme/r006")
	}

	var marks []string
	targets, err := c.Changed(t.Context(), since, func(m Mark) { marks = append(marks, m.ExternalID[strings.LastIndex(m.ExternalID, ":")+1:]) })
	if err != nil || len(targets) != 1 {
		t.Fatalf("%v, %v", targets, err)
	}
	slices.Sort(marks)
	want := tr.idsOf(func(r hosttest.Repo) bool { return r.ID >= 6 })
	if st.host.Name == "gerrit" {
		want = tr.idsOf(func(hosttest.Repo) bool { return true })
	}
	if got := strings.Join(marks, " "); got != want {
		t.Errorf("told of %s, want %s", got, want)
	}
}

// tryGit fetches a repository from a real git server, with the right token and with a wrong one.
func tryGit(t *testing.T, st *deploymentTest) {
	dir := bareRepository(t)
	repo := hosttest.Repo{ID: 1, Owner: "acme", Project: "Big Project", Name: "app", Branch: "main", Private: true, Git: dir}
	tr := st.start(t, repo)
	w := wanted{owners: []string{"acme"}}
	rec, err := tr.list(w)
	sound(tr, "listed", rec, err)
	if len(rec.repos) != 1 {
		t.Fatal("nothing is listed")
	}

	conn := st.conn(tr.s.URL, w)
	if st.owner != nil {
		conn = st.conn(tr.s.URL, wanted{owners: []string{"ACME"}})
	}
	mirror := git.Open(filepath.Join(t.TempDir(), "mirror.git"))
	for _, token := range []string{"another", hosttest.Token} {
		tr.s.Do(func(s *hosttest.State) { *s.Token = token })
		remote := rec.repos[0].Remote
		cred, err := Credential(t.Context(), conn, remote.URL, tr.tools)
		if err != nil {
			t.Fatal(err)
		}
		remote.URL, remote.Credential = tr.s.Local(remote.URL), cred
		_, err = mirror.Fetch(t.Context(), remote, git.FetchOptions{})
		if good := token == hosttest.Token; (err == nil) != good || err != nil && strings.Contains(err.Error(), hosttest.Token) {
			t.Errorf("with a token that the host takes, %v: %v", good, err)
		}
	}
}

// bareRepository creates a repository with one commit.
func bareRepository(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "bare.git")
	script := "commit refs/heads/main\ncommitter a <a@example.com> 1772366400 +0000\ndata 3\none\nM 644 inline a.txt\ndata 6\nhello\n\n"
	for _, args := range [][]string{{"init", "-q", "--bare", "-b", "main", dir}, {"-C", dir, "fast-import", "--quiet"}} {
		cmd := exec.Command("git", args...)
		cmd.Stdin = strings.NewReader(script)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	return dir
}

var rewrite = flag.Bool("rewrite", false, "write the golden files of testdata; then read the diff")

// golden compares a text with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *rewrite {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(got), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || got != string(want) {
		t.Errorf("%s: %v\n%s", path, err, got)
	}
}
