package node_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/nodetest"
)

// The reported configuration has names of properties but no values. Search contexts only count
// repositories that the viewer may see; with permissions, a context of hidden repositories does
// not exist. A list of repositories is filtered by state before it is counted.
func TestConfigurationReport_hasPropertyNamesButNoValues(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"app", "lib"} {
		nodetest.NewRepo(t, filepath.Join(dir, name), map[string]string{"a.go": "package a"})
	}
	n := nodetest.Start(t, nodetest.Config{File: fmt.Sprintf(`{
		"connections": {"local": {"type": "git", "url": "file://%s/*", "enforcePermissions": true}},
		"contexts": {"all": {"include": ["**"], "description": "everything"}, "nothing": {"include": ["no/such"]}},
		"environmentOverrides": {"ANTHROPIC_API_KEY": {"type": "string", "value": "hush-hush"}},
		"settings": {"userDrivenPermissionSyncIntervalMs": 3600000}
	}`, dir)})
	n.WaitIndexed(2)

	r, err := n.Config.Configuration(t.Context(), account.Operator())
	if err != nil {
		t.Fatal(err)
	}
	has := func(list []config.Error, path string) bool {
		return slices.ContainsFunc(list, func(e config.Error) bool { return e.Path == path })
	}
	if !has(r.Effects.Works, "settings.userDrivenPermissionSyncIntervalMs") || !has(r.Effects.Works, "contexts.all.description") || !has(r.Effects.Unsafe, "environmentOverrides.ANTHROPIC_API_KEY") {
		t.Errorf("the lists are %+v", r.Effects)
	}
	if text := fmt.Sprintf("%+v", r); strings.Contains(text, "hush-hush") {
		t.Errorf("a secret is told: %s", text)
	}
	if len(r.Files) != 1 || r.Files[0].Path != n.File || r.Files[0].Differs || r.Contexts != 2 {
		t.Errorf("files %+v, %d contexts", r.Files, r.Contexts)
	}

	contexts := func(v catalog.Viewer) string {
		all, err := n.Config.Contexts(t.Context(), v)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(all)
	}
	member := catalog.Viewer{Role: catalog.RoleMember, Name: "m"}
	if got, want := contexts(catalog.Operator()), "[{all everything 2} {nothing  0}]"; got != want {
		t.Errorf("an owner is shown %s, want %s", got, want)
	}
	if got := contexts(member); got != "[]" {
		t.Errorf("a member who sees no repository is shown %s", got)
	}

	count := func(v catalog.Viewer, state string) int {
		r, err := n.Browse.Repos(t.Context(), v, browse.ReposRequest{State: state, Sort: "size"})
		if err != nil {
			t.Fatal(err)
		}
		return r.Total
	}
	if indexed, failed, hidden := count(catalog.Operator(), browse.StateIndexed), count(catalog.Operator(), browse.StateFailed), count(member, browse.StateIndexed); indexed != 2 || failed != 0 || hidden != 0 {
		t.Errorf("%d indexed, %d failed, %d for a member who sees none", indexed, failed, hidden)
	}
	if _, err := n.Browse.Repos(t.Context(), member, browse.ReposRequest{State: "odd"}); err == nil {
		t.Error("an unknown state is taken")
	}
}
