package config

import (
	"slices"
	"strings"
	"testing"
)

// Explain puts each property into one list, and names those that weaken security.
func TestExplain_saysWhichPropertiesWorkAndWhichWeakenSecurity(t *testing.T) {
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
			"connections.c.type", "connections.c.url", "contexts.c.description", "contexts.c.include", "environmentOverrides.AUTH_URL", "environmentOverrides.FALLBACK_GITHUB_CLOUD_TOKEN",
			"environmentOverrides.FORCE_ENABLE_ANONYMOUS_ACCESS", "identityProviders.code", "identityProviders.corp", "settings.enablePublicAccess", "settings.maxAccountPermissionSyncJobConcurrency", "settings.maxFileSize", "settings.maxRepoPermissionSyncJobConcurrency",
		}},
		{"no effect", e.None, []string{
			"$schema",
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
	if !slices.ContainsFunc(f.Warnings, func(w Error) bool {
		return w.Path == "connections.a.enforcePermissions" && strings.Contains(w.Message, "Not set: only those") && strings.Contains(w.Message, "false on every node: nothing is hidden")
	}) {
		t.Error("permissions that are not taken from the host are no warning")
	}
}

// A property without effect is neither in Works nor in the result of Selection.
func TestExplain_listsIgnoredProperties(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, ignored, works, told string }{
		{`{"connections": {"c": {"type": "bitbucket", "workspaces": ["w"], "all": true, "exclude": {"archived": true, "forks": true}}}}`,
			"connections.c.all connections.c.exclude.archived", "connections.c.exclude.forks connections.c.type connections.c.workspaces", "workspaces w, forks"},
		{`{"connections": {"c": {"type": "bitbucket", "repos": ["w/r"], "exclude": {"archived": true}}}}`,
			"connections.c.exclude.archived", "connections.c.repos connections.c.type", "repositories w/r"},
		{`{"connections": {"a-b": {"type": "bitbucket", "url": "https://b.example.com", "deploymentType": "server", "token": {"env": "T"}, "user": "u", "projects": ["K"], "workspaces": ["w"], "exclude": {"archived": true}}}}`,
			`connections.a-b.workspaces`, `connections.a-b.deploymentType connections.a-b.exclude.archived connections.a-b.projects connections.a-b.token connections.a-b.type connections.a-b.url connections.a-b.user`, "projects K, archived"},
		{`{"connections": {"c": {"type": "gitlab", "all": true, "groups": ["g"]}}}`, "connections.c.all", "connections.c.groups connections.c.type", "groups with their subgroups g"},
		{`{"connections": {"c": {"type": "gitlab", "url": "https://g.example.com", "token": {"env": "T"}, "all": true}}}`, "", "connections.c.all connections.c.token connections.c.type connections.c.url", "everything there"},
		{`{"models": [{"provider": "azure", "model": "m", "baseUrl": "https://h.example.com", "resourceName": "r"}]}`, "models[0].resourceName", "models", ""},
	} {
		f, err := Parse([]byte(c.text))
		if err != nil {
			t.Fatal(err)
		}
		paths := func(list []Error) string {
			var out []string
			for _, e := range list {
				out = append(out, e.Path)
			}
			slices.Sort(out)
			return strings.Join(out, " ")
		}
		e := Explain([]byte(c.text), f)
		if paths(e.None) != c.ignored || paths(e.Works) != c.works {
			t.Errorf("%s\nignored %s\nworks %s", c.text, paths(e.None), paths(e.Works))
		}
		for _, conn := range f.Connections {
			lists, leavesOut := Selection(conn)
			if got := strings.Join(append(lists, leavesOut...), ", "); got != c.told {
				t.Errorf("%s is told as %s", c.text, got)
			}
		}
		for _, x := range e.None {
			if !slices.Contains(f.Warnings, x) {
				t.Errorf("%s is no warning", x.Path)
			}
		}
	}
}

// A node reads the variable of an override and checks its value, or there is a warning with advice.
func TestOverrides_takeEffectOrGiveAWarning(t *testing.T) {
	t.Parallel()
	file := func(name, value string) ([]byte, *File, error) {
		text := []byte(`{"environmentOverrides": {"` + name + `": {"type": "string", "value": "` + value + `"}}}`)
		f, err := Parse(text)
		return text, f, err
	}
	for name, value := range map[string]string{
		"SHOAL_ASK_RETENTION_DAYS": "30", "SOURCEBOT_CHAT_MAX_STEP_COUNT": "5", "GOOGLE_VERTEX_PROJECT": "p", "AZURE_RESOURCE_NAME": "r",
		"OAUTH_ACCESS_TOKEN_TTL_SECONDS": "86400", "OAUTH_AUTHORIZATION_CODE_TTL_SECONDS": "10", "OAUTH_REFRESH_TOKEN_TTL_SECONDS": "3600", "OPENAI_API_KEY": "k", "SHOAL_AUDIT_QUERIES": "FULL", "SHOAL_AUDIT_DISK_MB": "0", "SHOAL_MAX_PERMISSION_AGE": "1m", "SHOAL_OAUTH_CIMD": "off", "PERMISSION_SYNC_ENABLED": "1", "AUTH_URL": "https://code.example.com/",
	} {
		text, f, err := file(name, value)
		if err != nil || len(f.Warnings) > 0 || len(Explain(text, f).Works) != 1 {
			t.Errorf("%s=%s: %v, %v", name, value, err, f)
		}
	}
	for name, value := range map[string]string{
		"SHOAL_ASK_RETENTION_DAYS": "0", "SHOAL_MAX_PERMISSION_AGE": "10", "SHOAL_OAUTH_REFRESH_GRACE": "31m", "SOURCEBOT_EE_AUDIT_RETENTION_DAYS": "ten", "SHOAL_AUDIT_QUERIES": "some", "SHOAL_AUDIT_DISK_MB": "4g",
		"AUTH_EMAIL_CODE_LOGIN_ENABLED": "true", "OAUTH_ACCESS_TOKEN_TTL_SECONDS": "86401", "OAUTH_AUTHORIZATION_CODE_TTL_SECONDS": "9", "OAUTH_REFRESH_TOKEN_TTL_SECONDS": "90d",
		"FORCE_ENABLE_ANONYMOUS_ACCESS": "ja", "PERMISSION_SYNC_ENABLED": "on", "SHOAL_OAUTH_CIMD": "no", "DEFAULT_MAX_MATCH_COUNT": "0", "AUTH_URL": "code.example.com",
	} {
		if _, _, err := file(name, value); err == nil {
			t.Errorf("%s=%s is taken", name, value)
		}
	}
	for name, says := range map[string]string{
		"SHOAL_BASE_URL": "AUTH_URL", "SHOAL_EMBED_ANCESTORS": "--embed-ancestors", "SHOAL_HOST_RECORD": "--online", "SHOAL_REPLICAS": "shoal serve", "NO_PROXY": "shoal serve", "CTAGS_COMMAND": "--ctags", "HTTPS_PROXY": "shoal serve", "DATABASE_URL": "no database", "AUTH_SECRET": "cluster key", "SMTP_HOST": "shoal serve",
		"SOURCEBOT_LOG_LEVEL": "--log-level", "NOBODYS_VARIABLE": "no node reads",
	} {
		text, f, err := file(name, "x")
		if err != nil || len(f.Warnings) != 1 || !strings.Contains(f.Warnings[0].Message, says) || len(Explain(text, f).None) != 1 {
			t.Errorf("%s: %v, %v; want a warning of %q", name, err, f, says)
		}
	}
}

// Each variable of Sourcebot without effect here has an explanation, in a file and at the start,
// and no node reads it.
func TestUnreadVariables_eachHasAnExplanation(t *testing.T) {
	t.Parallel()
	for _, name := range Unread() {
		if why := WhyUnread(name); !strings.HasPrefix(why, "It has no effect: ") || whyNoEffect(name) != why {
			t.Errorf("%s: %q, %q", name, why, whyNoEffect(name))
		}
	}
	if why := WhyUnread("PERMISSION_SYNC_ENABLED"); why != "" {
		t.Error(why)
	}

	// A value that requests a missing feature is an error; other values only give a warning.
	for value, good := range map[string]bool{"true": false, "yes": false, "false": true, "False": true, "": true} {
		f, err := Parse([]byte(`{"environmentOverrides": {"AUTH_EMAIL_CODE_LOGIN_ENABLED": {"type": "string", "value": "` + value + `"}}}`))
		if (err == nil) != good || good && len(f.Warnings) != 1 || !good && !strings.Contains(err.Error(), "no sign-in by a code") {
			t.Errorf("%q: %v, %v", value, f, err)
		}
	}
}

// The URL of an organisation may be copied from a browser. A public host has owners in lists of the
// connection, not in its URL.
func TestWarnings_reportAPathInAPublicHostsURL(t *testing.T) {
	t.Parallel()
	for conn, says := range map[string]string{
		`{"type": "github", "url": "https://github.com/acme", "orgs": ["acme"]}`:                                                           "name owners in orgs or users",
		`{"type": "gitlab", "url": "https://gitlab.com/acme/platform", "groups": ["acme"]}`:                                                "name owners in groups or users",
		`{"type": "azuredevops", "deploymentType": "cloud", "url": "https://dev.azure.com/acme", "token": {"env": "T"}, "orgs": ["acme"]}`: "name owners in orgs",

		`{"type": "github", "url": "https://github.com/", "orgs": ["acme"]}`:                              "",
		`{"type": "gitlab", "url": "https://gitlab.com/api/v4/", "groups": ["acme"]}`:                     "",
		`{"type": "gitlab", "url": "https://example.com/gitlab", "groups": ["acme"]}`:                     "",
		`{"type": "git", "url": "https://github.com/acme/app"}`:                                           "",
		`{"type": "gitea", "url": "https://git.example.com/gitea/", "orgs": ["acme"]}`:                    "",
		`{"type": "bitbucket", "user": "u", "url": "https://api.bitbucket.org/2.0", "workspaces": ["w"]}`: "",
	} {
		f, err := Parse([]byte(`{"connections": {"work": ` + conn + `}}`))
		if err != nil {
			t.Errorf("%s: %v", conn, err)
			continue
		}
		var warned []string
		for _, w := range f.Warnings {
			if w.Path == "connections.work.url" {
				warned = append(warned, w.Message)
			}
		}
		if says == "" && len(warned) > 0 || says != "" && (len(warned) != 1 || !strings.Contains(warned[0], says)) {
			t.Errorf("%s: warnings %q, want %q", conn, warned, says)
		}
	}
}
