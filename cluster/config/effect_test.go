package config

import (
	"slices"
	"testing"
)

// Each property of a file stands in one list that says whether it does
// anything, and what opens something is named.
func TestExplain(t *testing.T) {
	t.Parallel()
	text := []byte(`{
		"$schema": "x", "settings": {"maxFileSize": 10, "enablePublicAccess": true, "maxRepoPermissionSyncJobConcurrency": 2, "maxAccountPermissionSyncJobConcurrency": 2},
		"connections": {
			"a": {"type": "github", "url": "http://git.corp", "token": {"env": "T"}, "orgs": ["x"], "enforcePermissions": true},
			"b": {"type": "git", "url": "file:///srv/*"}, "c": {"type": "git", "url": "https://me:pw@git.corp/a"},
		},
		"contexts": {"c": {"include": ["*"], "description": "hm"}},
		"identityProviders": {
			"corp": {"provider": "okta", "purpose": "sso", "clientId": {"env": "A"}, "clientSecret": {"env": "B"}, "issuer": {"env": "C"}},
			"code": {"provider": "gitea", "purpose": "account_linking", "accountLinkingRequired": true, "baseUrl": "http://gitea.example", "clientId": {"env": "A"}, "clientSecret": {"env": "B"}},
		},
		"environmentOverrides": {
			"AUTH_URL": {"type": "string", "value": "http://x"}, "FORCE_ENABLE_ANONYMOUS_ACCESS": {"type": "boolean", "value": true},
			"FALLBACK_GITHUB_CLOUD_TOKEN": {"type": "string", "value": "ghp_1"},
		},
	}`)
	f, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	e := Explain(text, f)
	for _, c := range []struct {
		name string
		got  []Error
		want []string
	}{
		{"works", e.Works, []string{
			"connections.a.enforcePermissions", "connections.a.orgs", "connections.a.token", "connections.a.type", "connections.a.url", "connections.b.type", "connections.b.url",
			"connections.c.type", "connections.c.url", "contexts.c.description", "contexts.c.include", "environmentOverrides.FALLBACK_GITHUB_CLOUD_TOKEN",
			"environmentOverrides.FORCE_ENABLE_ANONYMOUS_ACCESS", "identityProviders.code", "identityProviders.corp", "settings.enablePublicAccess", "settings.maxAccountPermissionSyncJobConcurrency", "settings.maxFileSize", "settings.maxRepoPermissionSyncJobConcurrency",
		}},
		{"no effect", e.None, []string{
			"$schema", "environmentOverrides.AUTH_URL",
		}},
		{"unsafe", e.Unsafe, []string{
			"connections.a.token", "connections.b.url", "connections.c.url",
			"environmentOverrides.FALLBACK_GITHUB_CLOUD_TOKEN", "environmentOverrides.FORCE_ENABLE_ANONYMOUS_ACCESS", "identityProviders.code.baseUrl", "settings.enablePublicAccess",
		}},
	} {
		var paths []string
		for _, r := range c.got {
			paths = append(paths, r.Path)
		}
		if slices.Sort(paths); !slices.Equal(paths, c.want) {
			t.Errorf("%s: %q, want %q", c.name, paths, c.want)
		}
	}
	if !slices.ContainsFunc(f.Warnings, func(w Error) bool { return w.Path == "connections.a.enforcePermissions" }) {
		t.Error("permissions that are not taken from the host are no warning")
	}
}
