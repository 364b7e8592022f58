package config

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Reaches finds every property of the schema that may hold a reference to a secret, in each of its
// forms. So it also finds those of new properties.
func TestReferences_areFoundInEveryPropertyOfTheSchema(t *testing.T) {
	t.Parallel()
	definitions := asObject(schemaTree()["definitions"])
	count := 0
	for name, definition := range sortedPairs(definitions) {
		for property, shape := range sortedPairs(asObject(definition)["properties"]) {
			ref, _ := asObject(shape)["$ref"].(string)
			inside := map[string]string{"#/definitions/token": "%s", "#/definitions/keyed": `{"env": %s}`}[ref]
			if inside == "" {
				continue
			}
			count++
			for _, form := range []string{"env", "googleCloudSecret", "cloudSecret"} {
				value := fmt.Sprintf(inside, fmt.Sprintf(`{%q: "SECRET"}`, form))
				text, path := placed(t, name, property, value)
				if ref == "#/definitions/keyed" {
					path += ".env"
				}
				if uses := reachesOf(t, text); !slices.ContainsFunc(uses, func(r Reach) bool {
					return r.Path == path && r.Secret == "SECRET" && r.Target != ""
				}) {
					t.Errorf("%s: found %+v, want %s", text, uses, path)
				}
			}
		}
	}
	if count < 60 {
		t.Errorf("the schema has %d such properties", count)
	}
}

// placed returns a file with a property in an item of a definition, and the property's path.
func placed(t *testing.T, definition, property, value string) (text, path string) {
	t.Helper()
	member := fmt.Sprintf("%q: %s", property, value)
	if kind, ok := strings.CutPrefix(definition, "model-"); ok {
		return fmt.Sprintf(`{"models": [{"provider": %q, "model": "m", %s}]}`, kind, member), "models[0]." + property
	}
	if kind, ok := strings.CutPrefix(definition, "identity-"); ok {
		return fmt.Sprintf(`{"identityProviders": {"i": {"provider": %q, %s}}}`, kind, member), "identityProviders.i." + property
	}
	if kind, ok := strings.CutPrefix(definition, "app-"); ok {
		return fmt.Sprintf(`{"apps": [{"type": %q, %s}]}`, kind, member), "apps[0]." + property
	}
	return fmt.Sprintf(`{"connections": {"c": {"type": %q, "url": "https://h.example.com", %s}}}`, definition, member), "connections.c." + property
}

// reachesOf parses a file, which may lack required properties.
func reachesOf(t *testing.T, text string) []Reach {
	t.Helper()
	root, errs := parseText([]byte(text))
	if errs != nil {
		t.Fatal(errs, text)
	}
	f, errs := decode(toPlain(root))
	if errs != nil {
		t.Fatal(errs, text)
	}
	return Reaches([]byte(text), f)
}

// A configuration from the network may use what the present file uses, in the same way, and what
// the operator's lists allow.
func TestAllowance_limitsWhatAConfigurationFromTheNetworkMayReference(t *testing.T) {
	t.Parallel()
	const inForce = `{
		"connections": {
			"g": {"type": "gitea", "url": "https://git.example.com/", "token": {"env": "GITEA_TOKEN"}},
			"l": {"type": "git", "url": "file:///srv/git/*"}
		},
		"models": [{"provider": "openai", "model": "m", "token": {"env": "MODEL_KEY"}}],
		"identityProviders": {"k": {"provider": "gitea", "purpose": "sso", "baseUrl": "https://git.example.com", "clientId": {"env": "ID"}, "clientSecret": {"env": "OIDC"}}},
		"environmentOverrides": {"XAI_API_KEY": {"type": "token", "value": {"env": "XAI"}}}
	}`
	gitea := func(url, token string) string {
		return fmt.Sprintf(`{"connections": {"x": {"type": "gitea", "url": %q, "token": %s, "orgs": ["o"]}}}`, url, token)
	}
	local := func(url string) string {
		return fmt.Sprintf(`{"connections": {"x": {"type": "git", "url": %q}}}`, url)
	}
	model := func(members string) string { return `{"models": [{"model": "m", ` + members + `}]}` }

	for _, c := range []struct {
		name, env, roots, text string
		refused                string // path; "": allowed
	}{
		{"the same file", "", "", inForce, ""},
		{"another name and other repositories", "", "", gitea("https://GIT.example.com:443/sub", `{"env": "GITEA_TOKEN"}`), ""},
		{"no secret at all", "", "", `{"connections": {"x": {"type": "gitea", "url": "http://evil.example", "orgs": ["o"]}}}`, ""},
		{"another variable", "", "", gitea("https://git.example.com", `{"env": "HOME"}`), "connections.x.token"},
		{"another host", "", "", gitea("https://evil.example", `{"env": "GITEA_TOKEN"}`), "connections.x.token"},
		{"another host with the name in front", "", "", gitea("https://git.example.com.evil.example", `{"env": "GITEA_TOKEN"}`), "connections.x.token"},
		{"another host with the name as a user", "", "", gitea("https://git.example.com@evil.example", `{"env": "GITEA_TOKEN"}`), "connections.x.token"},
		{"another port", "", "", gitea("https://git.example.com:8443", `{"env": "GITEA_TOKEN"}`), "connections.x.token"},
		{"in clear", "", "", gitea("http://git.example.com", `{"env": "GITEA_TOKEN"}`), "connections.x.token"},
		{"a secret of Google", "", "", gitea("https://git.example.com", `{"googleCloudSecret": "projects/p/secrets/s/versions/1"}`), "connections.x.token"},

		{"a model at its provider", "", "", model(`"provider": "openai", "token": {"env": "MODEL_KEY"}`), ""},
		{"a model elsewhere", "", "", model(`"provider": "openai", "baseUrl": "https://evil.example/v1", "token": {"env": "MODEL_KEY"}`), "models[0].token"},
		{"a model of another provider", "", "", model(`"provider": "xai", "token": {"env": "MODEL_KEY"}`), "models[0].token"},
		{"a header", "", "", model(`"provider": "openai-compatible", "baseUrl": "https://evil.example", "headers": {"env": {"env": "OIDC"}}`), "models[0].headers.env"},
		{"a header called like a reference", "", "", model(`"provider": "openai-compatible", "baseUrl": "https://h.example", "headers": {"env": "text"}`), ""},
		{"a parameter", "", "", model(`"provider": "openai-compatible", "baseUrl": "https://evil.example", "queryParams": {"a": {"env": "OIDC"}}`), "models[0].queryParams.a"},
		{"no key, at the provider", "", "", model(`"provider": "anthropic"`), ""},
		{"no key, elsewhere", "", "", model(`"provider": "anthropic", "baseUrl": "https://evil.example"`), "models[0]"},
		{"no key, a resource of somebody", "", "", model(`"provider": "azure", "resourceName": "evil"`), "models[0]"},
		{"no key of Google, elsewhere", "", "", model(`"provider": "google-vertex", "project": "p", "baseUrl": "https://evil.example"`), "models[0]"},
		{"no key of Amazon, elsewhere", "", "", model(`"provider": "amazon-bedrock", "region": "r", "baseUrl": "https://evil.example"`), "models[0]"},
		{"half a key of Amazon, elsewhere", "", "", model(`"provider": "amazon-bedrock", "region": "r", "baseUrl": "https://evil.example", "accessKeyId": {"env": "MODEL_KEY"}`), "models[0]"},

		{"the secret of a client as its id", "", "", strings.Replace(inForce, `{"env": "ID"}`, `{"env": "OIDC"}`, 1), "identityProviders.k.clientId"},
		{"a client elsewhere", "", "", strings.Replace(inForce, `"baseUrl": "https://git.example.com"`, `"baseUrl": "https://evil.example"`, 1), "identityProviders.k.clientId"},
		{"another variable as an override", "", "", `{"environmentOverrides": {"XAI_API_KEY": {"type": "token", "value": {"env": "OIDC"}}}}`, "environmentOverrides.XAI_API_KEY.value"},
		{"a variable as another override", "", "", `{"environmentOverrides": {"OPENAI_API_KEY": {"type": "token", "value": {"env": "XAI"}}}}`, "environmentOverrides.OPENAI_API_KEY.value"},
		{"a text as an override", "", "", `{"environmentOverrides": {"OPENAI_API_KEY": {"type": "string", "value": "k"}}, "models": [{"provider": "openai", "model": "m", "baseUrl": "https://h.example"}]}`, ""},
		{"an app", "", "", `{"apps": [{"type": "github", "id": "1", "privateKey": {"env": "OIDC"}}]}`, "apps[0].privateKey"},

		{"one directory of a pattern", "", "", local("file:///srv/git/one"), ""},
		{"the same pattern", "", "", local("file:///srv/git/./*"), ""},
		{"a wider pattern", "", "", local("file:///srv/git/**"), "connections.x.url"},
		{"a directory above", "", "", local("file:///srv/git/../../etc/repo"), "connections.x.url"},
		{"an escaped directory above", "", "", local("file:///srv/git/%2e%2e/%2e%2e/etc/repo"), "connections.x.url"},
		{"a directory beside", "", "/srv/git", local("file:///srv/gitother"), "connections.x.url"},
		{"a pattern from above a root", "", "/srv/git", local("file:///srv/gi*"), "connections.x.url"},
		{"a link that leads out", "", "/srv/git", local("file:///srv/git/link/one"), "connections.x.url"},
		{"a link of a pattern that leads out", "", "", local("file:///srv/git/link"), "connections.x.url"},
		{"the root", "", "/srv/more", local("file:///srv/more"), ""},
		{"below a root", "", "/srv/more/, /data", local("file:///data/{a,b}/**"), ""},
		{"any directory", "", "/", local("file:///home/me/repo"), ""},

		{"a listed variable", "OTHER", "", gitea("https://new.example.com", `{"env": "OTHER"}`), ""},
		{"a listed variable, in the shell's own letters", "other", "", gitea("https://new.example.com", `{"env": "OTHER"}`), "connections.x.token"},
		{"listed variables of a host", "A, GITEA_*@*.example.com", "", gitea("https://new.example.com:3000", `{"env": "GITEA_B"}`), ""},
		{"listed with a port", "B@new.example.com:3000", "", gitea("https://new.example.com:3000", `{"env": "B"}`), ""},
		{"listed with another port", "B@new.example.com:3001", "", gitea("https://new.example.com:3000", `{"env": "B"}`), "connections.x.token"},
		{"listed for another host", "GITEA_*@new.example.com", "", gitea("https://evil.example", `{"env": "GITEA_TOKEN"}`), "connections.x.token"},
		{"a listed secret of Google", "projects/p/secrets/*/versions/*", "", gitea("https://new.example.com", `{"googleCloudSecret": "projects/p/secrets/s/versions/1"}`), ""},
		{"every variable is no secret of Google", "*", "", gitea("https://new.example.com", `{"googleCloudSecret": "projects/p/secrets/s/versions/1"}`), "connections.x.token"},
		{"the key of a model for a gateway", "ANTHROPIC_*@gw.example.com", "", model(`"provider": "anthropic", "baseUrl": "https://gw.example.com"`), ""},
		{"a model's provider by name", "NEW@openai", "", model(`"provider": "openai", "token": {"env": "NEW"}`), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			split := func(s string) []string {
				return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' })
			}
			a, err := ParseAllowance(split(c.env), split(c.roots))
			if err != nil {
				t.Fatal(err)
			}
			resolve := func(dir string) string { return strings.Replace(dir, "/srv/git/link", "/secret", 1) }
			errs := a.Refuse(reachesOf(t, c.text), reachesOf(t, inForce), resolve)
			flag := "--config-env"
			if strings.HasSuffix(c.refused, ".url") {
				flag = "--config-roots"
			}
			if c.refused == "" && len(errs) > 0 || c.refused != "" && (len(errs) == 0 || errs[0].Path != c.refused || !strings.Contains(errs[0].Message, flag)) {
				t.Errorf("%v, want %q refused", errs, c.refused)
			}
		})
	}
}

func TestParseAllowance_refusesAListThatAllowsNothing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ env, root string }{
		{env: "@host"}, {env: "A@"}, {env: "A=b"}, {env: "{A"}, {root: "srv/git"}, {root: "~/git"},
	} {
		if _, err := ParseAllowance(listOf(c.env), listOf(c.root)); err == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
}

func listOf(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}

// A region or resource is one label of a host name. Any other character could lead to another host.
func TestModelRegion_mustBeOneLabelOfAHostName(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"evil.example/", "a.b", "a#", "a:1", "a@b", "a b", ""} {
		v, _ := json.Marshal(value)
		for _, text := range []string{
			`{"models": [{"provider": "azure", "model": "m", "resourceName": ` + string(v) + `}]}`,
			`{"models": [{"provider": "amazon-bedrock", "model": "m", "region": ` + string(v) + `}]}`,
			`{"models": [{"provider": "google-vertex", "model": "m", "region": ` + string(v) + `}]}`,
			`{"environmentOverrides": {"AZURE_RESOURCE_NAME": {"type": "string", "value": ` + string(v) + `}}}`,
			`{"environmentOverrides": {"AWS_REGION": {"type": "string", "value": ` + string(v) + `}}}`,
			`{"environmentOverrides": {"GOOGLE_VERTEX_REGION": {"type": "string", "value": ` + string(v) + `}}}`,
		} {
			if _, err := Parse([]byte(text)); (err == nil) != (value == "") {
				t.Errorf("%s: %v", text, err)
			}
		}
	}
}
