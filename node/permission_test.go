package node_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/host"
	"github.com/shoalsearch/shoal/node/nodetest"
	"github.com/shoalsearch/shoal/node/operate"
	"github.com/shoalsearch/shoal/node/search"
)

// guarded starts a node with some local repositories and permissions.
func guarded(t *testing.T, names ...string) *nodetest.Node {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		nodetest.NewRepo(t, filepath.Join(dir, name), map[string]string{"a.go": lines("shark", 3), name + ".txt": "shark of " + name[:1]})
	}
	n := nodetest.Start(t, nodetest.Config{Edit: func(o *node.Options) { o.StreamBatch = 1 }, File: fmt.Sprintf(`{"connections": {"local": {"type": "git", "url": "file://%s/*", "enforcePermissions": true}}}`, dir)})
	n.WaitIndexed(len(names))
	return n
}

// asked returns what a viewer learns from searches, lists and the status, without times and the
// catalog's index.
func asked(t *testing.T, n *nodetest.Node, v catalog.Viewer) string {
	t.Helper()
	ctx := context.Background()
	var out []any
	for _, q := range []string{"shark", "shark count:all", "file:txt", "repo:zhidden shark", "type:repo shark", "-nothing", "reposet:local/zhidden shark"} {
		r, err := n.Node.Search.Search(ctx, v, search.Request{Query: q})
		if err != nil {
			out = append(out, err.Error())
			continue
		}
		r.Stats.Duration, r.Stats.Wait, r.Stats.Planning, r.Stats.Searching = 0, 0, 0, 0
		r.Cluster.CatalogIndex, r.Cluster.CatalogAge, r.Cluster.Hedged = 0, 0, 0
		out = append(out, r.Stats, r.Cluster, r.Coverage.Exhaustive(), len(r.Repositories))
		for _, f := range r.Files {
			out = append(out, f.Repository, f.Path)
		}
	}
	repos, err := n.Node.Browse.Repos(ctx, v, browse.ReposRequest{})
	if err != nil {
		t.Fatal(err)
	}
	out = append(out, repos.Total)
	for _, r := range repos.Repos {
		out = append(out, r.Name)
	}
	for _, name := range []string{"local/app", "local/zhidden"} {
		_, err := n.Browse.Source(ctx, v, browse.SourceRequest{Repo: name, Path: "a.go"})
		out = append(out, fmt.Sprint(err))
	}
	s, err := n.Node.Status(ctx, v)
	if err != nil {
		t.Fatal(err)
	}
	out = append(out, s.Repos, s.Jobs, s.Running, s.Failed, s.Storage, s.Placement, s.Tolerates.Searches)
	b, err := json.MarshalIndent(out, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A viewer without access gets the same answers as from a node that never had the repository.
func TestHiddenRepository_answersAreAsIfItDidNotExist(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	with, without := guarded(t, "app", "zhidden"), guarded(t, "app", "zother")
	// The other node has as many repositories, so that both hide something.
	ann := func(n *nodetest.Node) catalog.Viewer {
		_, key := user(t, n, "ann@example.com", catalog.RoleMember)
		if _, err := n.People.Grant(ctx, account.Operator(), account.GrantRequest{User: "ann@example.com", Add: []string{"local/app"}}); err != nil {
			t.Fatal(err)
		}
		v, err := n.Keys.Authenticate(ctx, key)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	v, w := ann(with), ann(without)
	if got, want := asked(t, with, v), asked(t, without, w); got != want {
		t.Errorf("with a hidden repository:\n%s\nwithout:\n%s", got, want)
	}
	if got := asked(t, with, catalog.Operator()); got == asked(t, with, v) {
		t.Error("the operator gets to know no more than a member: the comparison shows nothing")
	}

	// Granted access works at the next request, and ends when it is revoked.
	source := browse.SourceRequest{Repo: "local/zhidden", Path: "a.go"}
	if _, err := with.Browse.Source(ctx, v, source); !errors.Is(err, call.ErrRepoNotFound) {
		t.Errorf("a hidden repository gives %v", err)
	}
	grant := account.GrantRequest{User: "ann@example.com", Add: []string{"local/zhidden"}}
	if r, err := with.People.Grant(ctx, account.Operator(), grant); err != nil || len(r.Repos) != 2 {
		t.Fatalf("granted %+v, %v", r, err)
	}
	if _, err := with.Browse.Source(ctx, v, source); err != nil {
		t.Errorf("a granted repository gives %v", err)
	}
	if _, err := with.People.Grant(ctx, account.Operator(), account.GrantRequest{User: "ann@example.com", Remove: grant.Add}); err != nil {
		t.Fatal(err)
	}
	if _, err := with.Browse.Source(ctx, v, source); !errors.Is(err, call.ErrRepoNotFound) {
		t.Errorf("a repository that was granted gives %v", err)
	}
}

// member makes an account with a key and access to some repositories.
func member(t *testing.T, n *nodetest.Node, repos ...string) catalog.Viewer {
	t.Helper()
	_, key := user(t, n, "ann@example.com", catalog.RoleMember)
	if _, err := n.People.Grant(t.Context(), account.Operator(), account.GrantRequest{User: "ann@example.com", Add: repos}); err != nil {
		t.Fatal(err)
	}
	v, err := n.Keys.Authenticate(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// The size of a repository in an index file depends on the others in it.
func TestIndexSize_isHiddenFromLimitedViewers(t *testing.T) {
	t.Parallel()
	n := guarded(t, "app", "zhidden")
	ann := member(t, n, "local/app")
	told := func(v catalog.Viewer) int64 {
		t.Helper()
		r, err := n.Browse.Repos(t.Context(), v, browse.ReposRequest{Query: "app"})
		if err != nil || len(r.Repos) != 1 {
			t.Fatalf("%s is told %+v, %v", v.Name, r, err)
		}
		return r.Repos[0].ShardBytes
	}
	if got := told(ann); got != 0 {
		t.Errorf("a member is told of %d bytes", got)
	}
	if got := told(catalog.Operator()); got == 0 {
		t.Error("the operator is told of no bytes")
	}
}

// The parts of a stream would show how repositories are spread over shards, so a viewer with
// limited access gets one part.
func TestSearchStream_doesNotRevealShardsToLimitedViewers(t *testing.T) {
	t.Parallel()
	n := guarded(t, "app", "base", "zhidden")
	ann := member(t, n, "local/app", "local/base")
	for _, x := range []struct {
		who   catalog.Viewer
		parts int
	}{{ann, 1}, {catalog.Operator(), 3}} {
		parts := 0
		_, err := n.Search.StreamSearch(t.Context(), x.who, search.Request{Query: "shark"}, func(*search.Chunk) error { parts++; return nil })
		if err != nil || parts != x.parts {
			t.Errorf("%s gets %d parts, %v; want %d", x.who.Name, parts, err, x.parts)
		}
	}
}

// The answer to a push event only names repositories that the sender may see.
func TestPushEvent_namesOnlyVisibleRepositories(t *testing.T) {
	t.Parallel()
	n := guarded(t, "app", "zhidden")
	owner, err := account.AsOwner(catalog.Viewer{Role: catalog.RoleOwner, Account: "nobody"})
	if err != nil {
		t.Fatal(err)
	}
	push := operate.WebhookRequest{Connection: "local", Event: host.Event{Pushed: true}}
	if r, err := n.Operate.Webhook(t.Context(), owner, push); err != nil || len(r.Repos) != 0 {
		t.Errorf("an owner without grants is told of %+v, %v", r, err)
	}
	if r, err := n.Operate.Webhook(t.Context(), account.Operator(), push); err != nil || len(r.Repos) != 2 {
		t.Errorf("the operator is told of %+v, %v", r, err)
	}
}
