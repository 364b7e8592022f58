package node_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/host/hosttest"
	"github.com/shoalsearch/shoal/node/nodetest"
	"github.com/shoalsearch/shoal/node/operate"
	"github.com/shoalsearch/shoal/node/search"
)

// A host refuses the token of a connection. Its repositories can be searched for 30 more days at
// every node, with a warning until when. Then they are hidden but kept: with a good token they
// come back, and no repository is fetched from scratch.
func TestRefusedToken_hidesRepositoriesAfterThirtyDays(t *testing.T) {
	t.Parallel()
	app := nodetest.NewRepo(t, filepath.Join(t.TempDir(), "app"), map[string]string{"a.txt": "narwhal\n"})
	s := hosttest.Start(t, hosttest.Gitea(), hosttest.Repo{ID: 1, Owner: "acme", Name: "app", Branch: "main", Git: filepath.Join(app.Dir, ".git")})
	other := t.TempDir()
	nodetest.NewRepo(t, filepath.Join(other, "own"), map[string]string{"b.txt": "beluga\n"})

	// All nodes use this clock.
	var passed atomic.Int64
	f := nodetest.StartFleet(t, 2, nodetest.Config{
		Env: map[string]string{"T": hosttest.Token},
		Edit: func(o *node.Options) {
			o.Now = func() time.Time { return time.Now().Add(time.Duration(passed.Load())) }
		},
		File: fmt.Sprintf(`{"settings": {"resyncConnectionPollingIntervalMs": 20}, "connections": {
			"host": {"type": "gitea", "url": %q, "token": {"env": "T"}, "orgs": ["acme"]},
			"own": {"type": "git", "url": "file://%s/*"}}}`, s.URL, other),
	})
	for _, n := range f.Nodes {
		n.WaitIndexed(2)
	}
	name := repoOf(t, f.Nodes[0], "app")
	number, mirrors := repoNumber(t, f.Nodes[0], name), mirrorsOf(t, f)

	// ask lists the connection now, and waits until each node has the result.
	ask := func(want string, holds func(c operate.ConnectionStatus) bool) {
		t.Helper()
		if _, err := f.Nodes[0].Operate.SyncConnection(t.Context(), account.Operator(), "host"); err != nil {
			t.Fatal(err)
		}
		for _, n := range f.Nodes {
			n.Wait(want, func() error {
				if c := n.Status().Connections[0]; !holds(c) {
					return fmt.Errorf("%+v", c)
				}
				return nil
			})
		}
	}

	// tells checks each node: repositories found and counted, and the warning.
	tells := func(repos int, warning string) {
		t.Helper()
		for _, n := range f.Nodes {
			want := []string{name + ":a.txt"}
			if repos == 1 {
				want = nil
			}
			if got := n.Find("narwhal"); !slices.Equal(got, want) {
				t.Errorf("narwhal is found in %v, want %v", got, want)
			}
			if got := n.Find("beluga"); len(got) != 1 {
				t.Errorf("what another connection lists is found in %v", got)
			}

			_, err := n.Browse.Source(t.Context(), catalog.Operator(), browse.SourceRequest{Repo: name, Path: "a.txt"})
			list, other := n.Browse.Repos(t.Context(), catalog.Operator(), browse.ReposRequest{})
			if other != nil || len(list.Repos) != repos || (err == nil) != (repos == 2) {
				t.Errorf("listed are %+v, %v; the file is read with %v", list, other, err)
			}

			// Index files that hold both count for nobody who may not see everything.
			blind, err := n.Search.Search(t.Context(), catalog.Guest(), search.Request{Query: "beluga"})
			if err != nil || len(blind.Files) != 1 || (blind.Stats.ShardsRequired == 0) != (repos == 1) {
				t.Errorf("a guest finds %+v, %v", blind, err)
			}

			st := n.Status()
			if st.Repos.Total != repos || st.Repos.Indexed != repos {
				t.Errorf("counted are %+v, want %d", st.Repos, repos)
			}
			if text := strings.Join(st.Warnings, "\n"); strings.Contains(text, "connection host: ") != (warning != "") || !strings.Contains(text, warning) {
				t.Errorf("the warnings are %q, want %q", text, warning)
			}
		}
	}
	tells(2, "")

	// From now on the host answers 401.
	s.Do(func(s *hosttest.State) { *s.Token = "another" })
	ask("the refusal", func(c operate.ConnectionStatus) bool { return !c.RefusedAt.IsZero() })
	tells(2, "is searched until ")
	c := f.Nodes[1].Status().Connections[0]
	if c.HidesAt.Sub(c.RefusedAt) != catalog.ServeRefused || !c.HiddenAt.IsZero() || len(c.Issues) != 1 || c.Issues[0].Code != "TOKEN_REFUSED" || c.Issues[0].Hint == "" || c.Issues[0].Since != c.RefusedAt {
		t.Errorf("before it is hidden: %+v", c)
	}

	// A month later the listing lacks the repositories, which hides nothing and is no success.
	passed.Store(int64(catalog.ServeRefused))
	gone := func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(http.StatusNotFound); return true }
	s.Do(func(s *hosttest.State) { *s.Fault = gone })
	ended := c.EndedAt
	ask("an attempt", func(c operate.ConnectionStatus) bool { return c.EndedAt.After(ended) })
	s.Do(func(s *hosttest.State) { *s.Fault = nil })

	ask("the end", func(c operate.ConnectionStatus) bool { return !c.HiddenAt.IsZero() })
	tells(1, "is hidden from everybody since ")

	// With a good token everything is back.
	s.Do(func(s *hosttest.State) { *s.Token = hosttest.Token })
	ask("the listing", func(c operate.ConnectionStatus) bool { return c.State == "synced" && c.RefusedAt.IsZero() })
	tells(2, "")
	if got := repoNumber(t, f.Nodes[0], name); got != number {
		t.Errorf("the repository has number %d now, %d before", got, number)
	}
	for path, before := range mirrors {
		if now, err := os.Stat(path); err != nil || !os.SameFile(now, before) {
			t.Errorf("%s was made anew: %v", path, err)
		}
	}
}

// repoOf returns the name of the repository with this end.
func repoOf(t *testing.T, n *nodetest.Node, end string) string {
	t.Helper()
	r, err := n.Browse.Repos(t.Context(), catalog.Operator(), browse.ReposRequest{Query: end})
	if err != nil || len(r.Repos) != 1 {
		t.Fatalf("repository %s: %+v, %v", end, r, err)
	}
	return r.Repos[0].Name
}

// mirrorsOf returns the mirrors of all nodes.
func mirrorsOf(t *testing.T, f *nodetest.Fleet) map[string]os.FileInfo {
	t.Helper()
	all := map[string]os.FileInfo{}
	for _, n := range f.Nodes {
		found, err := filepath.Glob(filepath.Join(n.Dir, "mirrors", "*", "HEAD"))
		more, other := filepath.Glob(filepath.Join(n.Dir, "mirrors", "*", "*", "HEAD"))
		if err != nil || other != nil {
			t.Fatal(err, other)
		}
		for _, head := range append(found, more...) {
			info, err := os.Stat(filepath.Dir(head))
			if err != nil {
				t.Fatal(err)
			}
			all[filepath.Dir(head)] = info
		}
	}
	if len(all) == 0 {
		t.Fatal("no mirror is there")
	}
	return all
}
