package host

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/node/host/giteatest"
	"github.com/shoalsearch/shoal/node/host/hosttest"
)

// realGitea is a real Gitea with the repositories of the tests. Its pages have two entries, as
// those of hosttest.
type realGitea struct {
	*testing.T
	server *giteatest.Server
	owners map[string]bool          // owners that exist
	has    map[string]hosttest.Repo // repositories that exist, by owner and name
	ids    map[string]int64         // the server's ids
}

// TestRealGitea_passesTheConformanceCases runs the conformance tests against a real Gitea.
func TestRealGitea_passesTheConformanceCases(t *testing.T) {
	t.Parallel()
	g := &realGitea{T: t, server: giteatest.Start(t, "[api]", "MAX_RESPONSE_ITEMS = 2"),
		owners: map[string]bool{}, has: map[string]hosttest.Repo{}, ids: map[string]int64{}}
	g.owner("ann")
	g.owner("empty")
	for _, fan := range []string{"fan1", "fan2", "fan3"} {
		g.server.User(fan)
	}

	st := giteaDeployment()
	st.real = g
	st.id = func(r hosttest.Repo) string { return strconv.FormatInt(g.ids[r.Path()], 10) }
	conform(t, &st)
}

// behind returns the server for hosttest.Before.
func (g *realGitea) behind() hosttest.Real {
	return hosttest.Real{URL: g.server.URL, Token: g.server.Token, Have: g.have}
}

// have creates these repositories and deletes all others. Existing ones stay, because most cases
// begin with the same.
func (g *realGitea) have(repos []hosttest.Repo) {
	g.Helper()
	want := map[string]hosttest.Repo{}
	for _, r := range repos {
		want[r.Path()] = r
	}
	for path, r := range g.has {
		if w, ok := want[path]; !ok || made(w) != made(r) {
			g.server.Delete(path)
			delete(g.has, path)
		}
	}

	// Create in the order of ids, so that the server's ids have the same order.
	for _, path := range slices.SortedFunc(maps.Keys(want), func(a, b string) int { return int(want[a].ID - want[b].ID) }) {
		if _, ok := g.has[path]; !ok {
			g.make(want[path])
			g.has[path] = want[path]
		}
	}
}

// made returns the properties that the server is told, as text.
func made(r hosttest.Repo) string {
	return fmt.Sprint(r.Description, r.Topics, r.Private, r.Fork, r.Archived, r.Stars, r.Git, r.Branch == "")
}

// owner creates an organisation, or a user, if the tests have a user of that name.
func (g *realGitea) owner(name string) {
	if g.owners[name] {
		return
	}
	g.owners[name] = true
	if name == "ann" {
		g.server.User(name)
	} else {
		g.server.Org(name)
	}
}

// make creates a repository.
func (g *realGitea) make(r hosttest.Repo) {
	g.Helper()
	g.owner(r.Owner)
	if r.Fork {
		g.fork(r)
	} else {
		empty := r.Branch == "" || r.Git != ""
		g.ids[r.Path()] = g.server.Repo(r.Owner, r.Name, giteatest.Options{Private: r.Private, Empty: empty, Description: r.Description})
	}

	if r.Git != "" {
		g.fill(r)
	}
	if len(r.Topics) > 0 {
		g.server.Do("PUT", "/repos/"+r.Path()+"/topics", map[string]any{"topics": r.Topics}, nil)
	}
	for i := range r.Stars {
		g.server.Do("PUT", fmt.Sprintf("/user/starred/%s?sudo=fan%d", r.Path(), i+1), nil, nil)
	}
	if r.Archived {
		g.server.Edit(r.Path(), map[string]any{"archived": true})
	}
}

// fork forks a repository of the same name that no test selects.
func (g *realGitea) fork(r hosttest.Repo) {
	g.Helper()
	g.owner("upstream")
	origin := "upstream/" + r.Name
	if !g.owners[origin] {
		g.owners[origin] = true
		g.server.Repo("upstream", r.Name, giteatest.Options{})
	}

	var made struct{ ID int64 }
	g.server.Do("POST", "/repos/"+origin+"/forks", map[string]any{"organization": r.Owner, "name": r.Name}, &made)
	g.ids[r.Path()] = made.ID
}

// fill pushes the content of a bare repository.
func (g *realGitea) fill(r hosttest.Repo) {
	g.Helper()
	cmd := exec.CommandContext(g.Context(), "git", "-C", r.Git, "push", "--quiet", g.server.URL+"/"+r.Path()+".git", "main")
	cmd.Env = append(os.Environ(), "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=http.extraHeader", "GIT_CONFIG_VALUE_0=Authorization: token "+g.server.Token)
	if out, err := cmd.CombinedOutput(); err != nil {
		g.Fatalf("%s: %v: %s", r.Path(), err, out)
	}
}

// plain removes from a listed repository what the server chooses itself: the id, times and the
// size.
func (g *realGitea) plain(t *testing.T, r *Repo) {
	t.Helper()
	number := r.ExternalID[strings.LastIndex(r.ExternalID, ":")+1:]
	if id := g.ids[r.DisplayName]; strconv.FormatInt(id, 10) != number {
		t.Errorf("%s has the number %s, want %d", r.DisplayName, number, id)
	}
	if age := time.Since(r.PushedAt); age < 0 || age > time.Hour {
		t.Errorf("%s was pushed to at %v", r.DisplayName, r.PushedAt)
	}
	r.ExternalID = strings.TrimSuffix(r.ExternalID, number) + "NUMBER"
	r.PushedAt, r.SizeBytes = time.Time{}, 0
}

// push pushes to repositories, in a later second than all earlier pushes, and returns the time.
func (g *realGitea) push(repos ...string) time.Time {
	g.Helper()
	updated := func(path string) time.Time {
		var r struct {
			Updated time.Time `json:"updated_at"`
		}
		g.server.Do("GET", "/repos/"+path, nil, &r)
		return r.Updated
	}

	var last time.Time
	for path := range g.has {
		if at := updated(path); at.After(last) {
			last = at
		}
	}
	since := last.Add(time.Second)
	g.server.Until(func() bool { return !time.Now().Before(since) }, func() string { return "a repository was pushed to at " + last.String() })

	// The server records a push a moment later.
	for _, path := range repos {
		g.server.Push(path, map[string]string{"later.txt": "later"})
		g.server.Until(func() bool { return !updated(path).Before(since) }, func() string { return "the push to " + path + " was not noted" })
	}
	return since
}
