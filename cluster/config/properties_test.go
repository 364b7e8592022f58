package config

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write testdata/properties.txt anew; then read the diff")

// exampleValues has values of each property that is neither a token nor a boolean: by its form and
// path, or by its path. The first value is the one that other rows use where the property is required.
var exampleValues = map[string][]string{
	"apiVersion":                   {`"2026-01-01"`},
	"baseUrl":                      {`"https://models.example.com/v1"`, `"http://127.0.0.1:8000/v1"`, `"YOUR_BASE_URL"`},
	"branches":                     {`["main", "release/*"]`, `["**"]`, `[]`, `["[a"]`},
	"deploymentHostname":           {`"github.example.com"`, `"https://github.example.com"`},
	"deploymentType":               {`"cloud"`, `"server"`},
	"description":                  {`"What the web team owns"`},
	"displayName":                  {`"Fast"`, `""`},
	"exclude":                      {`["github.com/acme/old-*"]`},
	"exclude.projects":             {`["acme/attic/**"]`, `["[a"]`},
	"exclude.repos":                {`["acme/old-*", "*/attic"]`, `["**"]`, `["[a"]`},
	"exclude.topics":               {`["attic", "old-*"]`},
	"excludeConnections":           {`["c"]`, `["gone"]`},
	"excludeTopics":                {`["attic"]`},
	"gitUser":                      {`"x-token-auth"`},
	"groups":                       {`["acme", "acme/tools"]`},
	"id":                           {`"12345"`, `""`},
	"include":                      {`["github.com/acme/*", "gitlab.com/**"]`},
	"includeConnections":           {`["c"]`, `["gone"]`},
	"includeTopics":                {`["web-*"]`},
	"model":                        {`"a-model"`, `""`},
	"orgs":                         {`["acme"]`, `["acme", "acme-labs"]`, `["not valid"]`},
	"project":                      {`"a-project"`, `"A_PROJECT"`},
	"projects":                     {`["acme/app"]`, `["acme/tools/**"]`, `[]`},
	"bitbucket projects":           {`["acme/APP"]`, `["APP"]`},
	"bitbucket server projects":    {`["APP"]`, `["acme/APP"]`},
	"azuredevops projects":         {`["acme/Big App"]`, `["acme"]`},
	"azuredevops exclude.projects": {`["Attic"]`, `["acme/*"]`},
	"gerrit projects":              {`["app"]`, `["tools/**"]`, `["[a"]`},
	"purpose":                      {`"sso"`, `"account_linking"`},
	"reasoningEffort":              {`"high"`, `"any"`},
	"reasoningSummary":             {`"none"`, `"auto"`},
	"reasoningTag":                 {`"thought"`, `""`},
	"region":                       {`"eu-central-1"`, `"YOUR_REGION"`},
	"repos":                        {`["acme/app"]`, `["acme/app.git", "acme/app_2"]`, `["app"]`},
	"azuredevops repos":            {`["acme/Big App/core"]`, `["acme/core"]`},
	"resourceName":                 {`"our-models"`, `"OUR_MODELS"`},
	"max":                          {`1000000`, `-1`, `1.5`},
	"min":                          {`100`},
	"tags":                         {`["v*", "release-{1,2}.*"]`, `["**"]`},
	"temperature":                  {`0.2`, `-1`},
	"thinkingBudget":               {`1024`, `-1`, `0.5`},
	"thinkingLevel":                {`"minimal"`, `"low"`, `"medium"`, `"high"`},
	"topics":                       {`["web", "team-*"]`, `[]`},
	"url":                          {`"https://code.example.com"`, `"https://code.example.com:8443/base"`, `"http://code.example.com"`, `"code.example.com"`, `"https://me:secret@code.example.com"`},
	"git url":                      {`"https://code.example.com/app.git"`, `"file:///srv/repos/*"`, `"file:///srv/repos/app"`, `"ssh://git@code.example.com/app.git"`},
	"user":                         {`"ann@example.com"`},
	"users":                        {`["ann"]`, `["ann", "ben-2"]`},
	"webUrl":                       {`"https://code.example.com"`},
	"workspaces":                   {`["acme"]`},
}

// form is a kind of object of a configuration, with what a file with one has around it.
type form struct {
	name, definition string
	around           string   // %s is the object
	path             string   // of the object
	has              []string // members of each example, besides what is required
}

// forms lists a form for each variant of the schema, and for each deployment that changes what works.
func forms(definitions map[string]any) (all []form) {
	add := func(name, definition, around, path string, has ...string) {
		all = append(all, form{name, definition, around, path, has})
	}
	for _, name := range slices.Sorted(maps.Keys(definitions)) {
		_, variant, _ := strings.Cut(name, "-")
		switch {
		case strings.HasPrefix(name, "model-"):
			add("model "+variant, name, `{"models": [%s]}`, "models[0].", `"provider": "`+variant+`"`)
		case strings.HasPrefix(name, "identity-"):
			add("provider "+variant, name, `{"identityProviders": {"p": %s}}`, "identityProviders.p.", `"provider": "`+variant+`"`)
		case strings.HasPrefix(name, "app-"):
			add("app "+variant, name, `{"apps": [%s]}`, "apps[0].", `"type": "`+variant+`"`)
		}
	}
	const around, path = `{"connections": {"c": %s}}`, "connections.c."
	for _, kind := range []string{"azuredevops", "bitbucket", "gerrit", "git", "gitea", "github", "gitlab"} {
		add(kind, kind, around, path, `"type": "`+kind+`"`)
	}
	const server = `"url": "https://code.example.com"`
	add("azuredevops server", "azuredevops", around, path, `"type": "azuredevops"`, `"deploymentType": "server"`, server)
	add("bitbucket server", "bitbucket", around, path, `"type": "bitbucket"`, `"deploymentType": "server"`, server)
	add("gitlab of their own", "gitlab", around, path, `"type": "gitlab"`, server)
	add("context", "context", `{"connections": {"c": {"type": "git", "url": "file:///srv/app"}}, "contexts": {"x": %s}}`, "contexts.x.")
	add("settings", "settings", `{"settings": %s}`, "settings.")
	return all
}

// values returns right and wrong values of a property.
func values(t *testing.T, f form, path string, schema map[string]any) (all []string) {
	t.Helper()
	wrong := map[string]string{"boolean": `"yes"`, "number": `"many"`, "integer": `"many"`, "array": `"one"`}[fmt.Sprint(schema["type"])]
	for _, name := range []string{f.name + " " + path, f.definition + " " + path, path, path[strings.LastIndex(path, ".")+1:]} {
		if list := exampleValues[name]; list != nil {
			all = list
			break
		}
	}
	switch _, named := schema["enum"]; {
	case schema["$ref"] == "#/definitions/token":
		return []string{`{"env": "A_SECRET"}`, `{"googleCloudSecret": "projects/p/secrets/s/versions/latest"}`, `"the-secret-itself"`, `{"env": ""}`}
	case schema["$ref"] == "#/definitions/keyed":
		return []string{`{"X-Team": "code", "X-Key": {"env": "A_SECRET"}}`, `{"X-Team": 1}`}
	case schema["type"] == "boolean":
		all = []string{"true", "false"}
	case all == nil && schema["type"] == "number":
		all = []string{"5", "0"}
	case all == nil:
		t.Errorf("%s: %s has no example", f.name, path)
	case named:
		wrong = `"other"`
	case wrong == "":
		wrong = "7"
	}
	return append(slices.Clone(all), wrong)
}

// example returns a configuration file with one object: its required members, and more.
func (f form) example(t *testing.T, definition map[string]any, without string, more ...string) string {
	t.Helper()
	members := slices.Concat(f.has, more)
	required, _ := definition["required"].([]any)
	for _, name := range required {
		key := fmt.Sprintf("%q: ", name)
		if name == without || slices.ContainsFunc(members, func(m string) bool { return strings.HasPrefix(m, key) }) {
			continue
		}
		list := values(t, f, name.(string), definition["properties"].(map[string]any)[name.(string)].(map[string]any))
		if enum, ok := definition["properties"].(map[string]any)[name.(string)].(map[string]any)["enum"].([]any); ok {
			list = []string{fmt.Sprintf("%q", enum[0])}
		}
		members = append(members, key+list[0])
	}
	return fmt.Sprintf(f.around, "{"+strings.Join(members, ", ")+"}")
}

// fate says what becomes of a property in a file: it works, it has no effect, or the file is refused.
func fate(text, path string) string {
	f, err := Parse([]byte(text))
	if err != nil {
		return "refused: " + strings.ReplaceAll(err.Error(), "\n", " / ")
	}
	below := func(list []Error) (out []string) {
		for _, e := range list {
			if path != "" && (e.Path == path || strings.HasPrefix(e.Path, path+".") || strings.HasPrefix(e.Path, path+"[")) && !slices.Contains(out, e.Message) {
				out = append(out, e.Message)
			}
		}
		return out
	}
	effects := Explain([]byte(text), f)
	what, without := "works", below(effects.None)
	if len(without) > 0 {
		what = "no effect: " + strings.Join(without, " ")
	}
	for _, said := range append(below(f.Warnings), below(effects.Unsafe)...) {
		if !strings.Contains(what, said) {
			what += "; warning: " + said
		}
	}
	return what
}

// Each property of each form of a connection, context, model, provider, app and setting has its outcome in
// testdata/properties.txt. So does each kind of mistake: nothing is ignored without a word.
func TestConfigProperties_haveTheOutcomesInPropertiesTxt(t *testing.T) {
	t.Parallel()
	definitions := schemaTree()["definitions"].(map[string]any)
	var rows []string
	row := func(name, value, outcome string) { rows = append(rows, name+" = "+value+"\n    "+outcome+"\n") }

	for _, f := range forms(definitions) {
		definition := definitions[f.definition].(map[string]any)
		row(f.name, "only what is required", fate(f.example(t, definition, ""), ""))
		required, _ := definition["required"].([]any)
		for _, name := range required {
			if name != "type" && name != "provider" {
				row(f.name+" "+name.(string), "left out", fate(f.example(t, definition, name.(string)), ""))
			}
		}
		row(f.name+" colour", "1", fate(f.example(t, definition, "", `"colour": 1`), f.path+"colour"))

		var walk func(path string, object map[string]any, wrap string)
		walk = func(path string, object map[string]any, wrap string) {
			properties := object["properties"].(map[string]any)
			for _, name := range slices.Sorted(maps.Keys(properties)) {
				schema := properties[name].(map[string]any)
				if _, fixed := schema["const"]; fixed {
					continue
				}
				if ref, ok := schema["$ref"].(string); ok && definitions[strings.TrimPrefix(ref, "#/definitions/")].(map[string]any)["properties"] != nil && ref != "#/definitions/token" {
					schema = definitions[strings.TrimPrefix(ref, "#/definitions/")].(map[string]any)
				}
				if _, group := schema["properties"]; group && schema["$ref"] == nil {
					walk(path+name+".", schema, fmt.Sprintf(wrap, fmt.Sprintf("%q: {%%s}", name)))
					continue
				}
				for _, value := range values(t, f, path+name, schema) {
					has := f
					has.has = slices.DeleteFunc(slices.Clone(f.has), func(m string) bool { return strings.HasPrefix(m, fmt.Sprintf("%q: ", name)) })
					member := fmt.Sprintf(wrap, fmt.Sprintf("%q: ", name)+strings.ReplaceAll(value, "%", "%%"))
					row(f.name+" "+path+name, value, fate(has.example(t, definition, "", member), f.path+path+name))
				}
			}
		}
		walk("", definition, "%s")
	}

	// Values of overrides, and files as a whole.
	for _, value := range []string{
		`{"type": "token", "value": {"env": "A_SECRET"}}`, `{"type": "string", "value": "text"}`, `{"type": "number", "value": 5}`, `{"type": "boolean", "value": true}`,
		`{"type": "number", "value": "5"}`, `{"type": "list", "value": []}`, `{"value": "text"}`, `"text"`,
	} {
		row("override", value, fate(`{"environmentOverrides": {"A_NAME": `+value+`}}`, "environmentOverrides.A_NAME"))
	}
	for _, text := range []string{
		`{}`, `{"$schema": "./schema.json"}`, `{"connections": {}}`, `{"connections": {"a": {"type": "github", "orgs": ["acme"]} "b": {}}}`, `{"connections": {"a": {"type": "github", "url": "https://x}}}`,
		`{"connections": [{"type": "github"}]}`, `{"connections": {"a": {"type": "svn"}}}`, `{"connections": {"a": {}}}`, `{"repos": [{"type": "github"}]}`, `{"models": [{"model": "m"}]}`,
		`{"models": [{"provider": "other", "model": "m"}]}`, `{"identityProviders": {"a": {"provider": "other"}}}`, `{"identityProviders": [{"provider": "github", "purpose": "sso", "clientId": {"env": "A"}, "clientSecret": {"env": "B"}}]}`,
		`{"apps": [{"type": "gitlab"}]}`, "// A comment, and a comma at the end.\n{\"settings\": {},}",
	} {
		row("file", strings.ReplaceAll(text, "\n", `\n`), fate(text, ""))
	}

	got, golden := strings.Join(rows, ""), "testdata/properties.txt"
	if *rewrite {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil || got != string(want) {
		t.Errorf("%s differs, %v: rewrite it by -rewrite, and read the diff", golden, err)
	}
	if !json.Valid(Schema()) || len(rows) < 800 {
		t.Errorf("%d rows", len(rows))
	}
}
