package node_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/host/giteatest"
	"github.com/shoalsearch/shoal/node/nodetest"
)

// A node finds the repositories of a real server, also private ones. They stay the same through a
// rename and a restart of the server.
func TestRealGitea_isSearched(t *testing.T) {
	t.Parallel()
	s := giteatest.Start(t)
	s.Org("acme")
	s.Repo("acme", "app", giteatest.Options{})
	s.Repo("acme", "vault", giteatest.Options{Private: true})
	s.Push("acme/app", map[string]string{"main.go": "package main // marmoset"})
	s.Push("acme/vault", map[string]string{"main.go": "package vault // pangolin"})

	n := nodetest.Start(t, nodetest.Config{
		Env: map[string]string{"GITEA_TOKEN": s.Token},
		File: fmt.Sprintf(`{"settings": {"resyncConnectionIntervalMs": 300, "resyncConnectionPollingIntervalMs": 20, "repoGarbageCollectionGracePeriodMs": 50},
			"connections": {"main": {"type": "gitea", "url": %q, "token": {"env": "GITEA_TOKEN"}, "orgs": ["acme"]}}}`, s.URL),
	})
	name := func(path string) string { return strings.TrimPrefix(s.URL, "http://") + "/" + path }
	n.WaitIndexed(2)
	finds(t, n, "marmoset", name("acme/app")+":main.go")
	finds(t, n, "pangolin", name("acme/vault")+":main.go")
	number := repoNumber(t, n, name("acme/vault"))

	// While the server is down nothing is dropped; afterwards the new name arrives.
	s.Stop()
	n.Wait("the failure to be told", func() error {
		if c := n.Status().Connections[0]; c.State != "failed" {
			return fmt.Errorf("connection %+v", c)
		}
		return nil
	})
	finds(t, n, "pangolin", name("acme/vault")+":main.go")
	s.Launch()
	s.Edit("acme/vault", map[string]any{"name": "safe"})
	n.Wait("the new name", func() error {
		if got := n.Find("pangolin"); !slices.Equal(got, []string{name("acme/safe") + ":main.go"}) {
			return fmt.Errorf("found %v", got)
		}
		return nil
	})
	if got := repoNumber(t, n, name("acme/safe")); got != number {
		t.Errorf("the repository has number %d since it was renamed, %d before", got, number)
	}

	// The old name still finds it, and the answer has the new name.
	if got := n.Find("repo:^" + regexp.QuoteMeta(name("acme/vault")) + "$ pangolin"); !slices.Equal(got, []string{name("acme/safe") + ":main.go"}) {
		t.Errorf("by the former name: %v", got)
	}
	read, err := n.Browse.Source(t.Context(), catalog.Operator(), browse.SourceRequest{Repo: name("acme/vault"), Path: "main.go"})
	if err != nil || read.Repo != name("acme/safe") || !strings.Contains(string(read.Content), "pangolin") {
		t.Errorf("read by the former name: %+v, %v", read, err)
	}

	// A repository deleted on the host is dropped.
	s.Delete("acme/safe")
	n.Wait("the deleted repository to go", func() error {
		if got := n.Find("pangolin"); len(got) > 0 {
			return fmt.Errorf("found %v", got)
		}
		return nil
	})
	finds(t, n, "marmoset", name("acme/app")+":main.go")
}

func finds(t *testing.T, n *nodetest.Node, query, want string) {
	t.Helper()
	if got := n.Find(query); !slices.Equal(got, []string{want}) {
		t.Errorf("%s is found in %v, want %s", query, got, want)
	}
}

// repoNumber returns the number of a repository.
func repoNumber(t *testing.T, n *nodetest.Node, name string) uint32 {
	t.Helper()
	r, err := n.Browse.Repos(t.Context(), catalog.Operator(), browse.ReposRequest{Query: name})
	if err != nil || len(r.Repos) != 1 {
		t.Fatalf("repository %s: %+v, %v", name, r, err)
	}
	return r.Repos[0].ID
}
