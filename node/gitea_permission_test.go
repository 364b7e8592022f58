package node_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/host"
	"github.com/shoalsearch/shoal/node/host/giteatest"
	"github.com/shoalsearch/shoal/node/nodetest"
	"github.com/shoalsearch/shoal/node/operate"
	"github.com/shoalsearch/shoal/node/search"
)

// permitted returns what a viewer finds at a node.
func permitted(t *testing.T, n *nodetest.Node, v catalog.Viewer, query string) []string {
	t.Helper()
	r, err := n.Node.Search.Search(t.Context(), v, search.Request{Query: query})
	if err != nil {
		return []string{err.Error()}
	}
	var files []string
	for _, f := range r.Files {
		files = append(files, f.Repository+":"+f.Path)
	}
	slices.Sort(files)
	return files
}

// linkedTo makes an account that is linked to an account of a Gitea.
func linkedTo(t *testing.T, n *nodetest.Node, s *giteatest.Server, login string) catalog.Viewer {
	t.Helper()
	var person struct{ ID int64 }
	s.Do("GET", "/users/"+login, nil, &person)
	u, _ := user(t, n, login+"@example.com", catalog.RoleMember)
	_, err := n.Propose(t.Context(), &catalog.LinkIdentity{Identity: catalog.Identity{Provider: s.URL, Subject: strconv.FormatInt(person.ID, 10), Account: u.ID}})
	if err != nil {
		t.Fatal(err)
	}
	return catalog.Viewer{Role: catalog.RoleMember, Account: u.ID}
}

// A user with read access at a real Gitea finds a private repository at each of three nodes,
// whatever the kind of access. A user who loses access finds it no more: after the interval, or
// at once if an owner or a webhook asks.
func TestRealGitea_accessBeginsAndEndsWithThatAtTheHost(t *testing.T) {
	t.Parallel()
	s := giteatest.Start(t)
	for _, name := range []string{"ann", "ben", "cleo", "dan"} {
		s.User(name)
	}
	s.Org("acme")
	s.Repo("acme", "vault", giteatest.Options{Private: true})
	s.Repo("acme", "open", giteatest.Options{})
	s.Repo("dan", "own", giteatest.Options{Private: true})
	s.Push("acme/vault", map[string]string{"main.go": "package vault // pangolin"})
	s.Push("acme/open", map[string]string{"main.go": "package open // pangolin"})
	s.Push("dan/own", map[string]string{"main.go": "package own // pangolin"})
	s.Do("PUT", "/repos/acme/vault/collaborators/ann", map[string]any{"permission": "read"}, nil)

	// Ben is in a team that reads the code, Cleo in a team that only reads issues.
	team := func(name, unit, member string) {
		var made struct{ ID int64 }
		s.Do("POST", "/orgs/acme/teams", map[string]any{"name": name, "permission": "read", "units_map": map[string]string{unit: "read"}}, &made)
		s.Do("PUT", fmt.Sprintf("/teams/%d/members/%s", made.ID, member), nil, nil)
		s.Do("PUT", fmt.Sprintf("/teams/%d/repos/acme/vault", made.ID), nil, nil)
	}
	team("readers", "repo.code", "ben")
	team("reporters", "repo.issues", "cleo")

	config := func(interval time.Duration) string {
		return fmt.Sprintf(`{"settings": {"repoDrivenPermissionSyncIntervalMs": %d, "reindexRepoPollingIntervalMs": 50},
			"connections": {"main": {"type": "gitea", "url": %q, "token": {"env": "GITEA_TOKEN"}, "orgs": ["acme"], "users": ["dan"]}},
			"identityProviders": {"gitea": {"provider": "gitea", "purpose": "account_linking", "clientId": {"env": "A"}, "clientSecret": {"env": "B"}, "baseUrl": %q}}}`,
			interval.Milliseconds(), s.URL, s.URL)
	}
	f := nodetest.StartFleet(t, 3, nodetest.Config{
		Env:  map[string]string{"GITEA_TOKEN": s.Token, "PERMISSION_SYNC_ENABLED": "true"},
		File: config(24 * time.Hour),
	})
	n := f.Nodes[0]
	n.WaitIndexed(3)
	name := func(path string) string { return strings.TrimPrefix(s.URL, "http://") + "/" + path + ":main.go" }
	ann, ben, cleo, dan := linkedTo(t, n, s, "ann"), linkedTo(t, n, s, "ben"), linkedTo(t, n, s, "cleo"), linkedTo(t, n, s, "dan")
	everywhere := func(what string, v catalog.Viewer, want ...string) time.Duration {
		t.Helper()
		began := time.Now()
		for _, n := range f.Nodes {
			n.Wait(what, func() error {
				if got := permitted(t, n, v, "pangolin"); !slices.Equal(got, want) {
					return fmt.Errorf("%s finds %v, want %v", n.ID(), got, want)
				}
				return nil
			})
		}
		return time.Since(began)
	}
	open, vault, own := name("acme/open"), name("acme/vault"), name("dan/own")
	everywhere("a collaborator", ann, open, vault)
	everywhere("a member of a team that reads code", ben, open, vault)
	everywhere("a member of a team that does not", cleo, open)
	everywhere("the owner of a repository", dan, open, own)
	everywhere("a guest", catalog.Guest(), open)

	// The interval is a day, so an owner asks, as a webhook does.
	s.Do("DELETE", "/repos/acme/vault/collaborators/ann", nil, nil)
	event := operate.WebhookRequest{Connection: "main", Event: host.Event{Members: true, Paths: []string{"acme/vault"}}}
	if _, err := n.Operate.Webhook(t.Context(), account.Operator(), event); err != nil {
		t.Fatal(err)
	}
	t.Logf("a collaborator who was removed is gone from search on three nodes %v after the event", everywhere("a removed collaborator", ann, open).Round(time.Millisecond))

	// If the host fails, nobody loses access.
	s.Stop()
	if _, err := n.Operate.Webhook(t.Context(), account.Operator(), event); err != nil {
		t.Fatal(err)
	}
	n.Wait("the failure", func() error {
		repo := n.View().RepoByName(strings.TrimSuffix(vault, ":main.go"))
		if j := n.View().Job(catalog.JobRepoSync, catalog.RepoSubject(repo.ID)); j.State != catalog.JobBackoff {
			return fmt.Errorf("the job is %+v", j)
		}
		return nil
	})
	everywhere("a reader while the host is down", ben, open, vault)
	s.Launch()

	// Now only the interval.
	n.Configure(config(500 * time.Millisecond))
	var teams []struct {
		ID   int64
		Name string
	}
	s.Do("GET", "/orgs/acme/teams", nil, &teams)
	for _, x := range teams {
		if x.Name == "readers" {
			s.Do("DELETE", fmt.Sprintf("/teams/%d/members/ben", x.ID), nil, nil)
		}
	}
	t.Logf("a member who left a team is gone %v later, where the interval is 500ms", everywhere("a member who left", ben, open).Round(time.Millisecond))

	// Blocked users read nothing, and a repository that becomes private is hidden.
	s.Do("PATCH", "/admin/users/dan", map[string]any{"login_name": "dan", "source_id": 0, "prohibit_login": true}, nil)
	everywhere("somebody who is blocked", dan, open)
}
