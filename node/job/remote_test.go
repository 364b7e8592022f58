package job

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/glob/globtest"
	"github.com/shoalsearch/shoal/node/hold"
	"github.com/shoalsearch/shoal/node/host"
	"github.com/shoalsearch/shoal/node/host/hosttest"
	"github.com/shoalsearch/shoal/shard/git"
)

// linked returns a repository of these connections.
func linked(url, connections string) *catalog.Repo {
	repo := &catalog.Repo{ID: 1, RepoFacts: catalog.RepoFacts{CloneURL: url}}
	for _, name := range strings.Fields(connections) {
		repo.Connections = append(repo.Connections, catalog.RepoConnection{Name: name})
	}
	return repo
}

// The credential is that of the first connection with one. The directory is that of the first
// connection with directories.
func TestFetchSource_usesTheFirstConnectionWithACredential(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `{"connections": {
		"open": {"type": "gitea", "url": "https://h.example", "orgs": ["x"]},
		"one": {"type": "gitea", "url": "https://h.example", "token": {"env": "ONE"}, "orgs": ["x"]},
		"two": {"type": "gitea", "url": "https://h.example", "token": {"env": "TWO"}, "orgs": ["x"]},
		"unset": {"type": "gitea", "url": "https://h.example", "token": {"env": "UNSET"}, "orgs": ["x"]},
		"local": {"type": "git", "url": "file:///srv/git/*"},
		"deep": {"type": "git", "url": "file:///srv/git/team/*"}}}`, 1)
	secrets := map[string]string{"ONE": "1", "TWO": "2"}
	rs := &remotes{view: w.View, hosts: host.Tools{Secret: func(_ context.Context, token config.Token) (string, error) {
		for name, secret := range secrets {
			if strings.Contains(fmt.Sprint(token), name) {
				return secret, nil
			}
		}
		return "", errors.New("it is not set")
	}}}

	const web, dir = "https://h.example/x/app.git", "file:///srv/git/team/app"
	for _, c := range []struct{ url, connections, password, within, fails string }{
		{web, "", "", "", ""},
		{web, "open", "", "", ""},
		{web, "one two", "1", "", ""},
		{web, "open two one", "2", "", ""},
		{web, "left two", "2", "", ""}, // the configuration has no connection left
		{web, "unset one", "1", "", ""},
		{web, "unset", "", "", "connection unset"},
		{web, "unset open", "", "", "connection unset"},
		{dir, "local", "", "/srv/git", ""},
		{dir, "deep local", "", "/srv/git/team", ""},
		{dir, "open local deep", "", "/srv/git", ""},
		{web, "local", "", "", ""},
	} {
		got, err := rs.remoteOf(t.Context(), linked(c.url, c.connections))
		if (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
			t.Errorf("%q: %v, want %q", c.connections, err, c.fails)
		}
		if got.URL != c.url || got.Credential.Password != c.password || got.Within != c.within {
			t.Errorf("%q: fetched from %s with %q within %q, want %q within %q", c.connections, got.URL, got.Credential.Password, got.Within, c.password, c.within)
		}
	}
}

// A token was changed at the host and in the secret manager, while this node has the old one. It is
// read once more, and the fetch succeeds. A token that stays refused fails the fetch.
func TestFetch_rereadsARefusedCredentialOnce(t *testing.T) {
	t.Parallel()
	origin := filepath.Join(t.TempDir(), "app.git")
	if out, err := exec.CommandContext(t.Context(), "git", "init", "-q", "--bare", origin).CombinedOutput(); err != nil {
		t.Fatalf("git init: %v\n%s", err, out)
	}
	s := hosttest.Start(t, hosttest.Gitea(), hosttest.Repo{ID: 1, Owner: "acme", Name: "app", Git: origin})
	w := newWorld(t, fmt.Sprintf(`{"connections": {"one": {"type": "gitea", "url": %q, "token": {"env": "T"}, "orgs": ["acme"]}}}`, s.URL), 1)
	mirrors, err := hold.OpenMirrors(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mirrors.Close() })

	kept, manager := "old", hosttest.Token
	rs := &remotes{view: w.View, mirrors: mirrors, hosts: host.Tools{
		Secret: func(context.Context, config.Token) (string, error) { return kept, nil },
		Forget: func() { kept = manager },
	}}
	repo := linked(s.URL+"/acme/app.git", "one")
	if _, _, err := rs.fetchMirror(t.Context(), repo, git.FetchOptions{}); err != nil {
		t.Errorf("with a token that was changed: %v", err)
	}

	kept, manager = "old", "wrong too"
	if _, _, err := rs.fetchMirror(t.Context(), repo, git.FetchOptions{}); !errors.Is(err, git.ErrAuth) {
		t.Errorf("with a token that stays refused: %v", err)
	}
}

// The wantedKey covers all connections together, in any order, and nothing else.
func TestWantedKey_coversAllConnections(t *testing.T) {
	t.Parallel()
	w := newWorld(t, `{"connections": {
		"plain": {"type": "git", "url": "file:///a"},
		"release": {"type": "git", "url": "file:///b", "revisions": {"branches": ["main", "release-*"], "tags": ["v*"]}},
		"more": {"type": "git", "url": "file:///c", "revisions": {"branches": ["main", "dev"]}},
		"swapped": {"type": "git", "url": "file:///d", "revisions": {"branches": ["v*"], "tags": ["main", "release-*"]}}}}`, 1)
	view := w.View()
	for _, c := range []struct{ connections, branches, tags string }{
		{"plain", "", ""},
		{"gone", "", ""},
		{"release", "main release-*", "v*"},
		{"more release", "dev main release-*", "v*"},
		{"release plain", "main release-*", "v*"},
	} {
		branches, tags := revisionGlobs(view, linked("", c.connections))
		if strings.Join(branches, " ") != c.branches || strings.Join(tags, " ") != c.tags {
			t.Errorf("%s: branches %v and tags %v, want %s and %s", c.connections, branches, tags, c.branches, c.tags)
		}
	}

	keys := wantedKeys{options: "o", view: view}
	key := func(connections string) string { return keys.keyOf(linked("", connections)) }
	for same, other := range map[string]string{"plain": "gone", "release more": "more release", "release": "release plain"} {
		if key(same) != key(other) {
			t.Errorf("%s and %s are wanted in different ways", same, other)
		}
	}
	var all []string
	for _, connections := range []string{"plain", "release", "more", "swapped", "release more"} {
		if all = append(all, key(connections)); key(connections) != wantedKey("o", view, linked("", connections)) {
			t.Errorf("the key of %s is another when it is remembered", connections)
		}
	}
	if slices.Sort(all); len(slices.Compact(all)) != 5 {
		t.Error("what is wanted in different ways has the same key")
	}
}

// Files that match a pattern are indexed whatever their size.
func TestBuildOptions_someFilesAreIndexedWhateverTheirSize(t *testing.T) {
	t.Parallel()
	patterns := BuildOptions{Always: func() []string { return []string{"**/*.lock", "docs/*.md"} }}
	always := patterns.With(config.DefaultSettings()).Always
	for path, want := range map[string]bool{
		"yarn.lock": true, "web/yarn.lock": true, "docs/a.md": true,
		"docs/x/a.md": false, "a.md": false, "yarn.lock.txt": false,
	} {
		if always(path) != want {
			t.Errorf("%s at any size: %v, want %v", path, !want, want)
		}
	}
	for _, row := range globtest.Rows() {
		patterns := BuildOptions{Always: func() []string { return []string{row.Pattern} }}
		if wrong := row.Wrong(patterns.With(config.DefaultSettings()).Always); wrong != nil {
			t.Errorf("%s is wrong of %q", row.Pattern, wrong)
		}
	}
	if (BuildOptions{}).With(config.DefaultSettings()).Always != nil {
		t.Error("without patterns every path is looked at")
	}
}
