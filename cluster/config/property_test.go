package config

import (
	"errors"
	"flag"
	"maps"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestMain fixes the seed, so that every run checks the same files.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("rapid.seed", "20260501"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// drawFile returns a random valid file as a tree.
func drawFile(t *rapid.T) map[string]any {
	root := map[string]any{}
	maybe := func(m map[string]any, key string, draw func() any) {
		if rapid.Bool().Draw(t, key) {
			m[key] = draw()
		}
	}
	pick := func(from ...string) func() any {
		return func() any { return rapid.SampledFrom(from).Draw(t, "of") }
	}
	some := func(from ...string) func() any {
		return func() any {
			var out []any
			for range rapid.IntRange(1, 3).Draw(t, "n") {
				out = append(out, pick(from...)())
			}
			return out
		}
	}
	flagOf := func() any { return rapid.Bool().Draw(t, "flag") }
	token := func() any {
		return map[string]any{
			"env":               map[string]any{"env": "TOKEN"},
			"googleCloudSecret": map[string]any{"googleCloudSecret": "projects/p/secrets/s/versions/1"},
			"cloudSecret":       map[string]any{"cloudSecret": "projects/p/secrets/s/versions/1"},
		}[pick("env", "googleCloudSecret", "cloudSecret")().(string)]
	}
	object := func(fields map[string]func() any) map[string]any {
		m := map[string]any{}
		for _, key := range slices.Sorted(maps.Keys(fields)) {
			maybe(m, key, fields[key])
		}
		return m
	}
	globs := some("a", "a/*", "**", "v[0-9]", "{x,y}")
	url := pick("https://example.com", "http://example.com:80/x")
	exclude := func(fields map[string]func() any) func() any {
		return func() any { return object(fields) }
	}
	size := func() any {
		return map[string]any{"min": rapid.IntRange(0, 5).Draw(t, "min"), "max": rapid.IntRange(5, 9).Draw(t, "max")}
	}
	kinds := map[string]map[string]func() any{
		"github":      {"token": token, "url": url, "users": some("u.1"), "orgs": some("o-1"), "repos": some("o/r"), "topics": globs, "exclude": exclude(map[string]func() any{"forks": flagOf, "archived": flagOf, "repos": globs, "topics": globs, "size": size})},
		"gitlab":      {"token": token, "url": url, "webUrl": url, "all": flagOf, "users": some("u"), "groups": some("g/s"), "projects": some("g/p"), "topics": globs, "exclude": exclude(map[string]func() any{"userOwnedProjects": flagOf, "projects": globs})},
		"gitea":       {"token": token, "url": url, "orgs": some("o"), "repos": some("o/r"), "users": some("u"), "exclude": exclude(map[string]func() any{"archived": flagOf, "repos": globs})},
		"gerrit":      {"projects": globs, "exclude": exclude(map[string]func() any{"projects": globs, "readOnly": flagOf, "hidden": flagOf})},
		"bitbucket":   {"user": pick("u"), "gitUser": pick("g"), "token": token, "all": flagOf, "deploymentType": pick("cloud"), "workspaces": some("w"), "projects": some("w/K"), "repos": some("w/r"), "exclude": exclude(map[string]func() any{"forks": flagOf, "repos": globs})},
		"azuredevops": {"url": url, "useTfsPath": flagOf, "orgs": some("o"), "projects": some("o/a b"), "repos": some("o/a b/c d"), "exclude": exclude(map[string]func() any{"disabled": flagOf, "projects": globs, "size": size})},
		"git":         {},
	}
	required := map[string]map[string]func() any{
		"gerrit":      {"url": url},
		"azuredevops": {"token": token, "deploymentType": pick("cloud", "server")},
		"git":         {"url": pick("https://example.com/a.git", "file:///srv/*")},
	}
	connections := map[string]any{}
	for i := range rapid.IntRange(0, 4).Draw(t, "connections") {
		kind := rapid.SampledFrom(slices.Sorted(maps.Keys(kinds))).Draw(t, "kind")
		c := object(kinds[kind])
		c["type"] = kind
		for _, key := range slices.Sorted(maps.Keys(required[kind])) {
			c[key] = required[kind][key]()
		}
		maybe(c, "revisions", func() any { return object(map[string]func() any{"branches": globs, "tags": globs}) })
		maybe(c, "enforcePermissions", flagOf)
		maybe(c, "enforcePermissionsForPublicRepos", flagOf)
		connections["c"+strconv.Itoa(i)] = c
	}
	maybe(root, "connections", func() any { return connections })
	maybe(root, "settings", func() any {
		return object(map[string]func() any{
			"maxFileSize":        func() any { return rapid.IntRange(1, 1<<30).Draw(t, "bytes") },
			"reindexIntervalMs":  func() any { return rapid.IntRange(1, 1<<30).Draw(t, "ms") },
			"enablePublicAccess": flagOf,
		})
	})
	maybe(root, "contexts", func() any {
		return map[string]any{"x": object(map[string]func() any{"include": globs, "excludeConnections": some("c0"), "description": pick("d")})}
	})
	maybe(root, "environmentOverrides", func() any {
		return map[string]any{"A": map[string]any{"type": "token", "value": token()}, "B": map[string]any{"type": "number", "value": 1}}
	})
	maybe(root, "models", func() any {
		return []any{
			map[string]any{"provider": "openai", "model": "m", "token": token(), "headers": map[string]any{"x-a": "1", "x-b": token()}},
			map[string]any{"provider": "openai-compatible", "model": "m", "baseUrl": url()},
		}
	})
	maybe(root, "identityProviders", func() any {
		return map[string]any{"k": map[string]any{"provider": "keycloak", "purpose": "sso", "clientId": token(), "clientSecret": token(), "issuer": token()}}
	})
	return root
}

// write prints a tree like a person would: with comments, trailing commas, and any order of keys.
func write(t *rapid.T, b *strings.Builder, v any) {
	extra := func() {
		b.WriteString(rapid.SampledFrom([]string{"", " ", "\n", " // {\n", "/* \" */", "\r\n\t"}).Draw(t, "extra"))
	}
	comma := func(last bool) {
		if !last || rapid.Bool().Draw(t, "comma") {
			b.WriteByte(',')
		}
	}
	extra()
	switch n := v.(type) {
	case map[string]any:
		b.WriteByte('{')
		keys := rapid.Permutation(slices.Sorted(maps.Keys(n))).Draw(t, "keys")
		for i, key := range keys {
			extra()
			b.WriteString(strconv.Quote(key) + ":")
			write(t, b, n[key])
			comma(i == len(keys)-1)
		}
		extra()
		b.WriteByte('}')
	case []any:
		b.WriteByte('[')
		for i, e := range n {
			write(t, b, e)
			comma(i == len(n)-1)
		}
		b.WriteByte(']')
	case string:
		b.WriteString(strconv.Quote(n))
	case bool:
		b.WriteString(strconv.FormatBool(n))
	case int:
		b.WriteString(strconv.Itoa(n))
	default:
		b.WriteString("null")
	}
	extra()
}

func TestParse_acceptsRandomValidFiles(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tree := drawFile(t)
		var one, two strings.Builder
		write(t, &one, tree)
		write(t, &two, tree)
		f, err := Parse([]byte(one.String()))
		if err != nil {
			t.Fatalf("%s\n%v", one.String(), err)
		}
		g, err := Parse([]byte(two.String()))
		if err != nil {
			t.Fatalf("%s\n%v", two.String(), err)
		}
		f.hash, g.hash = [32]byte{}, [32]byte{}
		if !reflect.DeepEqual(f, g) {
			t.Fatalf("the same file, written twice, differs:\n%+v\n%+v", f, g)
		}
	})
}

// spots lists every place of a tree where a value can be broken: a function that breaks it, and the
// path that the error must name.
func spots(v any, path string, set func(any), out *[]spot) {
	if path != "" {
		*out = append(*out, spot{path, func() { set(nil) }})
	}
	switch n := v.(type) {
	case map[string]any:
		*out = append(*out, spot{childPath(path, "zzz"), func() { n["zzz"] = 1 }})
		for _, key := range slices.Sorted(maps.Keys(n)) {
			spots(n[key], childPath(path, key), func(v any) { n[key] = v }, out)
		}
	case []any:
		for i := range n {
			spots(n[i], item(path, i), func(v any) { n[i] = v }, out)
		}
	}
}

type spot struct {
	path     string
	breakOff func()
}

func TestParse_errorsOfRandomBrokenFilesNameThePath(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tree := drawFile(t)
		var all []spot
		spots(tree, "", nil, &all)
		s := rapid.SampledFrom(all).Draw(t, "spot")
		s.breakOff()
		var b strings.Builder
		write(t, &b, tree)
		_, err := Parse([]byte(b.String()))
		var errs Errors
		if !errors.As(err, &errs) {
			t.Fatalf("%s is broken, but:\n%s\n%v", s.path, b.String(), err)
		}
		if !slices.ContainsFunc(errs, func(e Error) bool { return e.Path == s.path && e.Message != "" }) {
			t.Fatalf("%s is broken in\n%s\nbut the errors are\n%v", s.path, b.String(), err)
		}
	})
}

func FuzzParse_neverPanicsAndReturnsItsErrorType(f *testing.F) {
	full, err := os.ReadFile("testdata/full.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(full)
	f.Add([]byte(`{"connections": {"a": {"type": "git", "url": "file:///x"}}}`))
	f.Add([]byte(`{"settings": {"maxFileSize": 1e9}, /* */ }`))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Parse(data)
		var errs Errors
		if err != nil && (!errors.As(err, &errs) || len(errs) == 0) {
			t.Fatalf("error of another type: %v", err)
		}
		if err == nil && file.Settings.ReindexInterval < 1 {
			t.Fatalf("settings %+v", file.Settings)
		}
	})
}
