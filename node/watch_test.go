package node_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/nodetest"
	watches "github.com/shoalsearch/shoal/node/watch"
	"github.com/shoalsearch/shoal/shard/change"
)

// withHistory starts a node with local repositories, enforced permissions, and a history of commits.
func withHistory(t testing.TB, dir string) *nodetest.Node {
	t.Helper()
	return nodetest.Start(t, nodetest.Config{
		Edit: func(o *node.Options) { o.History = change.Bound{All: true} },
		File: fmt.Sprintf(`{"connections": {"local": {"type": "git", "url": "file://%s/*", "enforcePermissions": true}}}`, dir),
	})
}

// person makes an account that may see some repositories.
func person(t *testing.T, n *nodetest.Node, email string, repos ...string) catalog.Viewer {
	t.Helper()
	_, key := user(t, n, email, catalog.RoleMember)
	if _, err := n.People.Grant(t.Context(), account.Operator(), account.GrantRequest{User: email, Add: repos}); err != nil {
		t.Fatal(err)
	}
	v, err := n.Keys.Authenticate(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// pushed indexes repositories after a push.
func pushed(t testing.TB, n *nodetest.Node, names ...string) {
	t.Helper()
	for _, name := range names {
		repo, err := n.Browse.Repo(t.Context(), catalog.Operator(), name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := n.Operate.Reindex(t.Context(), account.Operator(), repo.ID); err != nil {
			t.Fatal(err)
		}
	}
}

// told lists what a watch shows to a viewer, the newest first.
func told(n *nodetest.Node, v catalog.Viewer, id string) string {
	d, err := n.Watches.Watch(context.Background(), v, id)
	if err != nil {
		return err.Error()
	}
	return foundText(d)
}

func foundText(d *watches.Detail) string {
	var out []string
	for _, f := range d.Found {
		text := f.Repo
		for _, h := range f.Hits {
			text += " " + h.Path + ":" + h.Title
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

// A watch tells its owner of what a push brings, in repositories that the owner may see at that
// moment, also if the node stops between the push and the check.
func TestWatch_tellsOfNewCommitsThatTheOwnerMaySee(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	app := nodetest.NewRepo(t, filepath.Join(dir, "app"), map[string]string{"a.go": "package a\n\nvar octopus = 1\n"})
	secret := nodetest.NewRepo(t, filepath.Join(dir, "secret"), map[string]string{"b.go": "package b\n"})
	n := withHistory(t, dir)
	n.WaitIndexed(2)
	ann, bob := person(t, n, "ann@example.com", "local/app"), person(t, n, "bob@example.com", "local/app", "local/secret")
	make := func(v catalog.Viewer, query string, shared bool) string {
		t.Helper()
		info, err := n.Watches.CreateWatch(t.Context(), v, watches.Change{Query: &query, Shared: &shared})
		if err != nil {
			t.Fatal(err)
		}
		return info.ID
	}
	own, commits, other := make(ann, "type:diff added:octopus", false), make(ann, "type:commit message:tentacle", false), make(ann, "type:diff added:kraken", false)
	shared := make(bob, "type:diff added:octopus", true)

	app.Commit(map[string]string{"c.go": "package a\n\nvar Octopus = 2\n"})
	secret.Commit(map[string]string{"d.go": "package b\n\nvar octopus = 3\n"})
	pushed(t, n, "local/app", "local/secret")
	n.Wait("both pushes", func() error {
		if got := told(n, bob, shared); strings.Count(got, "local/") != 2 {
			return errors.New(got)
		}
		return nil
	})
	for id, want := range map[string]string{own: "local/app c.go:", shared: "local/app c.go:", commits: "", other: ""} {
		if got := told(n, ann, id); (got == "") != (want == "") || !strings.HasPrefix(got, want) || strings.Contains(got, ";") {
			t.Errorf("ann is told of %q, not %q", got, want)
		}
	}
	if got := told(n, bob, own); !strings.Contains(got, "no watch") {
		t.Errorf("bob reads a watch that is not shared: %q", got)
	}

	// A feed shows what the owner may see, until its token ends.
	feed, err := n.Watches.NewFeed(t.Context(), ann, own)
	if err != nil {
		t.Fatal(err)
	}
	read := func() string {
		d, err := n.Watches.Feed(context.Background(), feed.Token)
		if err != nil {
			return err.Error()
		}
		return foundText(d)
	}
	if got := read(); !strings.HasPrefix(got, "local/app c.go:") {
		t.Errorf("the feed has %q", got)
	}
	grant := func(req account.GrantRequest) {
		t.Helper()
		req.User = "ann@example.com"
		if _, err := n.People.Grant(t.Context(), account.Operator(), req); err != nil {
			t.Fatal(err)
		}
	}
	grant(account.GrantRequest{Remove: []string{"local/app"}})
	if a, b := told(n, ann, own), read(); a != "" || b != "" {
		t.Errorf("without the right, the page has %q and the feed %q", a, b)
	}
	app.Commit(map[string]string{"e.go": "package a\n\nvar octopus = 4\n"})
	pushed(t, n, "local/app")
	n.Wait("the push without the right", func() error {
		if got := told(n, bob, shared); strings.Count(got, "local/") != 3 {
			return errors.New(got)
		}
		return nil
	})

	// The node stops after it has indexed the push.
	grant(account.GrantRequest{Add: []string{"local/app"}})
	app.Commit(map[string]string{"f.go": "package a\n\nvar octopus = 5\n"})
	pushed(t, n, "local/app")
	n.Wait("the index", func() error {
		if _, err := n.Browse.Source(context.Background(), catalog.Operator(), browse.SourceRequest{Repo: "local/app", Path: "f.go"}); err != nil {
			return err
		}
		return nil
	})
	n.Stop()
	n.Start()
	n.Wait("the push before the stop", func() error {
		if got := told(n, ann, own); strings.Count(got, "local/") != 2 || !strings.HasPrefix(got, "local/app f.go:") {
			return errors.New(got)
		}
		return nil
	})

	if _, err := n.Watches.EndFeed(t.Context(), ann, own); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Watches.Feed(t.Context(), feed.Token); !errors.Is(err, call.ErrNotFound) {
		t.Errorf("a feed that was ended gives %v", err)
	}
	if _, err := n.Watches.DeleteWatch(t.Context(), ann, shared); !errors.Is(err, call.ErrForbidden) {
		t.Errorf("ann deletes bob's watch: %v", err)
	}
}

// A watch that could never find anything is refused.
func TestWatch_refusesAQueryThatFindsNothingNew(t *testing.T) {
	t.Parallel()
	n := withHistory(t, t.TempDir())
	ann := person(t, n, "ann@example.com")
	isRegexp := true
	for _, query := range []string{"", "type:repo x", "type:commit at:2020 x", "type:diff sym:x", "type:diff ("} {
		if _, err := n.Watches.CreateWatch(t.Context(), ann, watches.Change{Query: &query, Regexp: &isRegexp}); err == nil {
			t.Errorf("%q is watched", query)
		}
	}
	query := "type:diff x"
	if _, err := n.Watches.CreateWatch(t.Context(), catalog.Operator(), watches.Change{Query: &query}); !errors.Is(err, call.ErrForbidden) {
		t.Errorf("without an account: %v", err)
	}
}
