package config

import (
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func parseFull(t *testing.T) *File {
	t.Helper()
	data, err := os.ReadFile("testdata/full.json")
	if err != nil {
		t.Fatal(err)
	}
	f, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestParse_readsEveryPropertyOfAFullFile(t *testing.T) {
	t.Parallel()
	f := parseFull(t)
	if got, want := f.Settings, (Settings{
		MaxFileSize: 4 << 20, MaxTrigramCount: 30000,
		ReindexInterval: 30 * time.Minute, ResyncConnectionInterval: time.Hour,
		ResyncConnectionPollingInterval: 500 * time.Millisecond, ReindexRepoPollingInterval: 250500 * time.Microsecond,
		MaxConnectionSyncJobs: 2, MaxRepoIndexingJobs: 3, MaxRepoGarbageCollectionJobs: 4,
		RepoGarbageCollectionGrace: 20 * time.Second, RepoIndexTimeout: time.Minute,
		EnablePublicAccess: true, RepoDrivenPermissionInterval: 5 * time.Second, UserDrivenPermissionInterval: 6 * time.Second,
		MaxAccountPermissionSyncJobs: 5, MaxRepoPermissionSyncJobs: 6,
	}); got != want {
		t.Errorf("settings\n got %+v\nwant %+v", got, want)
	}
	var names []string
	for _, c := range f.Connections {
		names = append(names, c.Shared().Name+":"+string(c.Kind()))
	}
	if got := strings.Join(names, " "); got != "az:azuredevops bb:bitbucket bs:bitbucket gh:github gl:gitlab gr:gerrit gt:gitea local:git remote:git" {
		t.Errorf("connections %s", got)
	}
	gh := f.Connection("gh").(*GitHub)
	if *gh.Exclude.Size.Max != 1000 || gh.Revisions.Tags[0] != "v*.{0..3}" || *gh.EnforcePermissions || !gh.EnforcePermissionsForPublicRepos ||
		gh.Token.String() != "env:GITHUB_TOKEN" || gh.URL != "https://github.example.com:8443/base" || gh.Exclude.Topics[0] != "t1" {
		t.Errorf("github %+v", gh)
	}
	if gl := f.Connection("gl").(*GitLab); gl.Token.GoogleCloud != "projects/p/secrets/s/versions/1" || gl.WebURL != "https://code.example.com" {
		t.Errorf("gitlab %+v", gl)
	}
	if gt := f.Connection("gt").(*Gitea); gt.URL != "https://gitea.com" || gt.EnforcePermissions != nil {
		t.Errorf("gitea %+v", gt)
	}
	if bb := f.Connection("bb").(*Bitbucket); bb.GitUser != "me" || bb.Deployment != Cloud || bb.URL != "https://api.bitbucket.org/2.0" {
		t.Errorf("bitbucket %+v", bb)
	}
	if len(f.Models) != 12 || f.Models[1].Headers[1].Token.Env != "H" || *f.Models[1].Temperature != 0.5 ||
		*f.Models[4].ThinkingBudget != -1 || f.Models[8].ReasoningSummary != "auto" || f.Models[9].QueryParams[0].Value != "1" {
		t.Errorf("models %+v", f.Models)
	}
	want := []Override{{"A_TOKEN", &Token{Env: "OTHER"}, ""}, {"B_TOKEN", &Token{GoogleCloud: "projects/p/secrets/s/versions/latest"}, ""},
		{"FLAG", nil, "true"}, {"NUMBER", nil, "1000"}, {"TEXT", nil, "x=y"}}
	if !reflect.DeepEqual(f.Overrides, want) {
		t.Errorf("overrides %+v", f.Overrides)
	}
	if len(f.IdentityProviders) != 14 || f.IdentityProviders[0].ID != "au" || len(f.Apps) != 1 || f.Apps[0].DeploymentHostname != "github.com" {
		t.Errorf("identity providers %+v, apps %+v", f.IdentityProviders, f.Apps)
	}
	if c := f.Context("web"); c == nil || c.Description != "Everything on the web" || f.Context("none") != nil || f.Connection("none") != nil {
		t.Errorf("context %+v", c)
	}
	var warnings []string
	for _, w := range f.Warnings {
		warnings = append(warnings, w.Path)
	}
	if got := strings.Join(warnings, " "); got != "contexts.web.includeConnections[1] environmentOverrides.A_TOKEN environmentOverrides.B_TOKEN environmentOverrides.FLAG environmentOverrides.NUMBER environmentOverrides.TEXT models[2].resourceName settings.enablePublicAccess settings.experiment_repoDrivenPermissionSyncIntervalMs settings.experiment_userDrivenPermissionSyncIntervalMs" {
		t.Errorf("warnings %v", f.Warnings)
	}
	if len(f.Hash()) != 64 {
		t.Errorf("hash %q", f.Hash())
	}
}

func TestParse_fillsDefaults(t *testing.T) {
	t.Parallel()
	f, err := Parse([]byte("\ufeff{}"))
	if err != nil || f.Settings != DefaultSettings() || len(f.Warnings) != 0 {
		t.Fatalf("{}: %+v, %v", f, err)
	}
	f, err = Parse([]byte(`{"connections": {"g": {"type": "gitlab", "all": true, "url": "https://x.example.com"}},
		"identityProviders": [{"provider": "gcp-iap", "purpose": "sso", "audience": {"env": "A"}}],
		"settings": {"maxFileSize": 1e30, "reindexIntervalMs": 1e30, "maxTrigramCount": 1.9}}`))
	if err != nil {
		t.Fatal(err)
	}
	if gl := f.Connection("g").(*GitLab); gl.WebURL != gl.URL || gl.Raw != `{"all":true,"type":"gitlab","url":"https://x.example.com"}` {
		t.Errorf("gitlab %+v", gl)
	}
	if f.IdentityProviders[0].ID != "gcp-iap" || len(f.Warnings) != 1 || f.Warnings[0].Path != "identityProviders" {
		t.Errorf("%+v, warnings %v", f.IdentityProviders, f.Warnings)
	}
	if s := f.Settings; s.MaxFileSize != 1<<40 || s.ReindexInterval < 24*time.Hour || s.MaxTrigramCount != 1 {
		t.Errorf("settings %+v", s)
	}
}

// A minimal file for each kind. Everything else has a default.
func TestParse_acceptsAMinimalConnectionOfEachKind(t *testing.T) {
	t.Parallel()
	for _, c := range []string{
		`{"type": "github"}`, `{"type": "gitlab"}`, `{"type": "gitea"}`, `{"type": "gerrit", "url": "http://g.x"}`, `{"type": "bitbucket"}`,
		`{"type": "bitbucket", "deploymentType": "cloud"}`, `{"type": "bitbucket", "deploymentType": "server", "url": "https://b.x"}`,
		`{"type": "azuredevops", "token": {"env": "X"}, "deploymentType": "cloud"}`,
		`{"type": "git", "url": "file:///x"}`, `{"type": "git", "url": "http://a.x/b"}`,
	} {
		if _, err := Parse([]byte(`{"connections": {"c": ` + c + `}}`)); err != nil {
			t.Errorf("%s: %v", c, err)
		}
	}
}

func TestParse_errorsSayWhatIsWrong(t *testing.T) {
	t.Parallel()
	conn := func(body string) string { return `{"connections": {"main": {` + body + `}}}` }
	gh := func(body string) string { return conn(`"type": "github", ` + body) }
	for _, tt := range []struct{ in, want string }{
		// not JSON
		{``, `The file is empty; write {} for a configuration without anything.`},
		{" \n\t", `The file is empty; write {} for a configuration without anything.`},
		{`{`, `The file is not JSON: line 1, column 2: parsing value: unexpected EOF.`},
		{"{\n  \"settings\": {,}\n}", `The file is not JSON: line 2, column 16: invalid character ',' at start of value.`},
		{"{}\n\xff", `Line 2 is not UTF-8; save the file in that encoding.`},
		{strings.Repeat("[", 100000), `Line 1: values are nested more than 64 deep.`},
		{"// [[[\n" + strings.Repeat(`{"a":`, 65), `Line 2: values are nested more than 64 deep.`},
		{`[]`, `It must be an object, not a list.`},
		{`{"a": 1, "a": 2}`, "a: It is given twice; remove one of the two.\na: There is no such property; there are $schema, apps, connections, contexts, environmentOverrides, identityProviders, models, settings."},
		{gh(`"url": "https://x.y", "url": "https://x.y"`), `connections.main.url: It is given twice; remove one of the two.`},
		{`{"settings": {"maxFileSize": 1e999999999}}`, `settings.maxFileSize: The number is too large, too small or too long; write one that a setting can use.`},

		// root and settings
		{`{"setting": {}}`, `setting: There is no such property; did you mean settings?`},
		{`{"zebra": {}}`, `zebra: There is no such property; there are $schema, apps, connections, contexts, environmentOverrides, identityProviders, models, settings.`},
		{`{"a b": 1}`, `["a b"]: There is no such property; there are $schema, apps, connections, contexts, environmentOverrides, identityProviders, models, settings.`},
		{`{"settings": {"maxFileSize": 0}}`, `settings.maxFileSize: It must be at least 1, not 0.`},
		{`{"settings": {"maxFileSize": 0.5, "reindexIntervalMs": "1h", "enablePublicAccess": 1}}`,
			"settings.enablePublicAccess: It must be a boolean, not a number.\nsettings.maxFileSize: It must be at least 1, not 0.5.\nsettings.reindexIntervalMs: It must be a number, not a string."},
		{`{"settings": null}`, `settings: It must be an object, not null.`},

		// connections
		{`{"connections": {"a b": {"type": "github"}}}`, `connections["a b"]: A name may have letters, digits, _ and - only; rename it.`},
		{conn(``), `connections.main.type: It is required; add it.`},
		{conn(`"type": "svn"`), `connections.main.type: It must be one of "github", "gitlab", "gitea", "gerrit", "bitbucket", "azuredevops", "git", not "svn".`},
		{gh(`"tokn": {"env": "X"}`), `connections.main.tokn: There is no such property; did you mean token?`},
		{gh(`"token": "ghp_secret"`), `connections.main.token: It must name where the secret is, as {"env": "NAME"}, not be a string.`},
		{gh(`"token": {}`), `connections.main.token: It must have exactly one of "env" and "googleCloudSecret".`},
		{gh(`"token": {"env": "X", "googleCloudSecret": "projects/a/secrets/b/versions/c"}`), `connections.main.token: It must have exactly one of "env" and "googleCloudSecret".`},
		{gh(`"token": {"env": ""}`), `connections.main.token.env: It must not be empty.`},
		{gh(`"token": {"env": "A=B"}`), `connections.main.token.env: It must be the name of an environment variable, without = and blanks; the secret itself does not belong here.`},
		{gh(`"token": {"cloudSecret": "mine"}`), `connections.main.token.cloudSecret: It must have the form projects/<project>/secrets/<secret>/versions/<version>, not "mine".`},
		{gh(`"url": "github.com"`), `connections.main.url: It must be a URL that begins with http:// or https://, not "github.com".`},
		{gh(`"url": "https://x.y/\u0000"`), `connections.main.url: It has a control character; remove it.`},
		{gh(`"url": "https://x.y:port/"`), `connections.main.url: It must be a URL: invalid port ":port" after host.`},
		{gh(`"url": "https://x.y/%zz"`), `connections.main.url: It must be a URL: invalid URL escape "%zz".`},
		{gh(`"url": "https://:80/"`), `connections.main.url: It must be a URL with a host name.`},
		{gh(`"repos": ["a/b", "c"]`), `connections.main.repos[1]: It must have the form owner/name, not "c".`},
		{gh(`"topics": []`), `connections.main.topics: It must have at least 1 item; leave the property out for none.`},
		{gh(`"exclude": {"size": {"min": 1.5}}`), `connections.main.exclude.size.min: It must be a whole number, not a number.`},
		{gh(`"exclude": {"size": {"min": 9, "max": 8}}`), `connections.main.exclude.size.min: It is larger than max, so every repository would be left out; exchange the two.`},
		{gh(`"exclude": {"size": {"min": 99999999999999999999}}`), `connections.main.exclude.size.min: The number is too large; write one of at most 18 digits.`},
		{gh(`"exclude": {"repos": ["a/[b"]}`), `connections.main.exclude.repos[0]: The glob is malformed: a [ has no ].`},
		{gh(`"revisions": {"branches": ["a{b"], "tags": ["!(x)"]}`),
			"connections.main.revisions.branches[0]: The glob is malformed: a { has no }."},
		{conn(`"type": "gerrit"`), `connections.main.url: It is required; add it.`},
		{conn(`"type": "gerrit", "url": "https://g.x", "token": {"env": "T"}`), `connections.main.user: It is required where there is a token; add the user name of the account.`},
		{conn(`"type": "gerrit", "url": "https://g.x", "user": "ci"`), `connections.main.token: It is required where there is a user; add the HTTP password of the account.`},
		{conn(`"type": "bitbucket", "deploymentType": "server"`), `connections.main.url: It is required; add it.`},
		{conn(`"type": "azuredevops"`), "connections.main.deploymentType: It is required; add it.\nconnections.main.token: It is required; add it."},
		{conn(`"type": "azuredevops", "token": {"env": "X"}, "deploymentType": "moon"`), `connections.main.deploymentType: It must be one of "cloud", "server", not "moon".`},
		{conn(`"type": "git", "url": "ssh://x"`), `connections.main.url: It must be a URL that begins with http:// or https://, or file:// and an absolute path, not "ssh://x".`},
		{conn(`"type": "git", "url": "file:///a/[b"`), `connections.main.url: The glob is malformed: a [ has no ].`},

		// everything else
		{`{"environmentOverrides": {"CONFIG_PATH": {"type": "string", "value": "x"}}}`, `environmentOverrides.CONFIG_PATH: It cannot be overridden, because it says where this file is; remove it.`},
		{`{"environmentOverrides": {"A": {"type": "number", "value": "1"}, "B": {"type": "string"}, "C": {"type": "x", "value": 1}}}`,
			"environmentOverrides.A.value: It must be a number, not a string.\nenvironmentOverrides.B.value: It is required; add it.\n" +
				`environmentOverrides.C.type: It must be one of "token", "string", "number", "boolean", not "x".`},
		{`{"environmentOverrides": {"A": {"type": "token", "value": {"env": "X", "b": 1}}}}`,
			"environmentOverrides.A.value: It must have exactly one of \"env\" and \"googleCloudSecret\".\nenvironmentOverrides.A.value.b: There is no such property; there are cloudSecret, env, googleCloudSecret."},
		{`{"environmentOverrides": {"A": {"type": "string", "value": "\u0000"}}}`, `environmentOverrides.A.value: It has a NUL character, which no environment variable can hold; remove it.`},
		{`{"contexts": {"a": {"includes": []}}}`, `contexts.a.includes: There is no such property; did you mean include?`},
		{`{"contexts": {"a": {"include": ["a{"], "includeTopics": [1]}}}`, "contexts.a.includeTopics[0]: It must be a string, not a number.\ncontexts.a.include[0]: The glob is malformed: a { has no }."},
		{`{"models": [{"provider": "openai"}, {"provider": "me", "model": "m"}, {"provider": "xai", "model": "m", "authToken": {"env": "X"}}]}`,
			"models[0].model: It is required; add it.\n" +
				`models[1].provider: It must be one of "amazon-bedrock", "anthropic", "azure", "deepseek", "google-generative-ai", "google-vertex-anthropic", "google-vertex", "mistral", "openai", "openai-compatible", "openrouter", "xai", not "me".` + "\n" +
				`models[2].authToken: There is no such property; there are baseUrl, displayName, headers, model, provider, temperature, token.`},
		{`{"models": [{"provider": "openai-compatible", "model": " "}]}`, `models[0].baseUrl: It is required; add it.`},
		{`{"models": [{"provider": "xai", "model": " ", "headers": {"a": "1\n", "A": "2"}}]}`,
			"models[0].headers.a: It has a line break or another control character; remove it.\nmodels[0].headers.a: It is the same header as A; remove one of the two.\nmodels[0].model: It must not be empty; it is the name under which the provider knows the model."},
		{`{"models": [{"provider": "xai", "model": "m", "headers": {"a b": "1", "c": 1}}]}`,
			"models[0].headers.c: It must be a string or an object, not a number.\nmodels[0].headers[\"a b\"]: This is not a name that a header may have; rename it."},
		{`{"models": {}}`, `models: It must be a list, not an object.`},
		{`{"apps": [{"type": "github", "id": "1"}, {"type": "x"}]}`, "apps[0].privateKey: It is required; add it.\napps[1].type: It must be one of \"github\", not \"x\"."},
		{`{"apps": [{"type": "github", "id": "1", "privateKey": {"env": "X"}, "deploymentHostname": "https://x"}]}`, `apps[0].deploymentHostname: It must be a host name without a scheme or a path, as github.com.`},
		{`{"environmentOverrides": {"REQUIRE_APPROVAL_NEW_MEMBERS": {"type": "string", "value": "yes"}, "AUTH_SESSION_MAX_AGE_SECONDS": {"type": "number", "value": 1}}}`,
			"environmentOverrides.AUTH_SESSION_MAX_AGE_SECONDS.value: It must be a whole number of seconds, from a minute to a year.\n" +
				"environmentOverrides.REQUIRE_APPROVAL_NEW_MEMBERS.value: It must be true or false."},
		{`{"identityProviders": {"x": {"provider": "okta", "purpose": "account_linking"}}}`,
			"identityProviders.x.clientId: It is required; add it.\nidentityProviders.x.clientSecret: It is required; add it.\nidentityProviders.x.issuer: It is required; add it.\n" +
				`identityProviders.x.purpose: It must be one of "sso", not "account_linking".`},
		{`{"identityProviders": [{"provider": "gcp-iap", "purpose": "sso", "audience": {"env": "A"}}, {"provider": "gcp-iap", "purpose": "sso", "audience": {"env": "A"}}]}`,
			`identityProviders[1]: In a list each provider can be there once, and gcp-iap is there already; use an object with a name for each.`},
	} {
		_, err := Parse([]byte(tt.in))
		var errs Errors
		if !errors.As(err, &errs) {
			t.Errorf("%.200s: error %v, want Errors", tt.in, err)
		} else if err.Error() != tt.want {
			t.Errorf("%.200s\n got %s\nwant %s", tt.in, err, tt.want)
		}
	}
	if _, err := Parse(make([]byte, MaxSize+1)); err == nil || !strings.Contains(err.Error(), "at most 8388608 are allowed") {
		t.Errorf("a large file: %v", err)
	}
}

// Parse reports all errors of a file at once: no mistake hides another one.
func TestParse_reportsAllErrorsAtOnce(t *testing.T) {
	t.Parallel()
	_, err := Parse([]byte(`{
		"settings": {"maxFileSize": 1e400, "reindexIntervalMs": "often"},
		"connections": {
			"a": {"type": "github", "exclude": {"repos": ["[a"], "size": {"min": 5, "max": 4}}, "orgs": [3], "url": "http://exa mple"},
			"a": {"type": "github", "exclude": {"repos": ["[a"], "size": {"min": 5, "max": 4}}, "orgs": [3]},
			"b": {"type": "git"},
			"c": {"type": "gitlab", "token": {"env": "A=b"}, "nope": 1},
		},
		"contexts": {"bad name": {}, "x": {"include": ["[b"]}},
	}`))
	var got []string
	for _, e := range err.(Errors) {
		got = append(got, e.Path)
	}
	want := []string{
		"connections.a", "connections.a.exclude.repos[0]", "connections.a.exclude.size.min", "connections.a.orgs[0]", "connections.b.url", "connections.c.nope", "connections.c.token.env",
		`contexts["bad name"]`, "contexts.x.include[0]", "settings.maxFileSize", "settings.reindexIntervalMs",
	}
	for _, path := range want {
		if !slices.Contains(got, path) {
			t.Errorf("%s is not told; got %q", path, got)
		}
	}
}

func TestParse_acceptsACommentAtTheEnd(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"{} // x", "{} /* x */", "// x\n{}", "{}//"} {
		if _, err := Parse([]byte(text)); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestParse_warnsOfLikelyMistakes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ in, want string }{
		{`{"type": "github"}`, `connections.c: It takes no repository; say which ones.`},
		{`{"type": "gitlab", "all": true}`, `connections.c: It takes no repository; say which ones.|connections.c.all: It is ignored for gitlab.com; name users, groups or projects.`},
		{`{"type": "gitlab", "all": true, "url": "https://x.y"}`, ``},
		{`{"type": "git", "url": "https://a:b@x.y/z"}`, `connections.c.url: It holds a user name or a password, which everyone who may read this file sees; use token where the kind has it.`},
		{`{"type": "bitbucket", "url": "https://x.y", "repos": ["a"]}`, `connections.c.deploymentType: The URL is not that of the cloud; for a Bitbucket Data Center set deploymentType to server.|connections.c.repos[0]: It should have the form workspace/slug for cloud.`},
		{`{"type": "azuredevops", "deploymentType": "server", "token": {"env": "X"}, "orgs": ["a"]}`, `connections.c.url: A server has a URL of its own; this is the one of the cloud.`},
	} {
		f, err := Parse([]byte(`{"connections": {"c": ` + tt.in + `}}`))
		if err != nil {
			t.Errorf("%s: %v", tt.in, err)
			continue
		}
		var got []string
		for _, w := range f.Warnings {
			got = append(got, w.Error())
		}
		if strings.Join(got, "|") != tt.want {
			t.Errorf("%s\n got %s\nwant %s", tt.in, strings.Join(got, "|"), tt.want)
		}
	}
}

func TestSchema_isJSONWithTheRealDefaults(t *testing.T) {
	t.Parallel()
	var doc map[string]any
	if err := json.Unmarshal(Schema(), &doc); err != nil || doc["$schema"] != "http://json-schema.org/draft-07/schema#" {
		t.Fatalf("%v: %v", doc["$schema"], err)
	}
	if _, err := compiled(); err != nil {
		t.Fatal(err)
	}
	// The schema has the same defaults as the code.
	defaults := map[string]any{"maxFileSize": 2097152.0, "reindexIntervalMs": 3600000.0, "repoIndexTimeoutMs": 7200000.0, "maxRepoGarbageCollectionJobConcurrency": 8.0}
	props := doc["definitions"].(map[string]any)["settings"].(map[string]any)["properties"].(map[string]any)
	for name, want := range defaults {
		if got := props[name].(map[string]any)["default"]; got != want {
			t.Errorf("default of %s is %v, want %v", name, got, want)
		}
	}
}

func TestToken_printsItsReferenceInsteadOfItsValue(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal([]Token{{Env: "A"}, {GoogleCloud: "projects/p/secrets/s/versions/1"}})
	if err != nil || string(text) != `[{"env":"A"},{"googleCloudSecret":"projects/p/secrets/s/versions/1"}]` {
		t.Errorf("%s, %v", text, err)
	}
}
