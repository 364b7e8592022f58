package symbol

import (
	"fmt"
	"strings"
	"testing"
)

// keysIn lists the keys of a file, each as "first-last kind parent.name".
func keysIn(file, language, text string) string {
	var out []string
	findKeys(&File{Path: file, Language: language, Content: []byte(text)}, func(s Symbol) {
		lines := fmt.Sprint(s.Line)
		if s.End > 0 {
			lines += fmt.Sprintf("-%d", s.End)
		}
		out = append(out, fmt.Sprintf("%s %s %s", lines, s.Kind, strings.TrimPrefix(string(s.ParentName)+"."+string(s.Name), ".")))
	})
	return strings.Join(out, "\n")
}

func TestConfigurationKeys_areSymbolsOfEachFormat(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ file, language, text, want string }{
		{"ci.yml", "YAML", `# CI
on:
  push:
    branches: [main]
jobs:
  build:
    runs-on: x
    steps:
      - uses: a
        with:
          key: 1
    env: {A: 1}
  "last job":
    run: |
      not: key
text: >-
  also: none
url: http://x
'quoted': 1
`, `2-4 key on
3-4 key on.push
4 key on.push.branches
5-15 key jobs
6-12 key jobs.build
7 key jobs.build.runs-on
8-11 key jobs.build.steps
12 key jobs.build.env
14-15 key jobs.run
16-17 key text
18 key url
19 key quoted`},
		{"values.yaml", "YAML", "image:\n  tag: {{ .Values.x }}\n{{- if .a }}\n  pull: b\n{{- end }}\nlist:\n- name: c\n  value: d\nafter: 1\n", `1-4 key image
2 key image.tag
4 key image.pull
6-8 key list
9 key after`},
		{"k8s.yaml", "YAML", "own: 1\n---\napiVersion: v1\nkind: Pod\nmetadata:\n  name: x # y\nspec:\n  z: 1\n---\nown2: 1\n---\napiVersion: v1\nkind: Secret\nmetadata:\n  name: {{ .x }}\n", "1 key own\n6-8 pod x\n10 key own2"},
		{"package.json", "JSON", `{
  "name": "x",
  "scripts": {
    "build": "tsc"
  },
  "files": [{"no": 1}],
  "devDependencies": {
    "zod": "1"
  }
}
`, `2 key name
3-5 key scripts
4 key scripts.build
6 key files
7-9 key devDependencies`},
		{"tsconfig.json", "JSON with Comments", "{\n  // why\n  \"a\": {\"b\": true,},\n}\n", "3 key a\n3 key a.b"},
		{"de.json", "JSON", `{"Hello world": "Hallo"}`, ""},
		{"package-lock.json", "JSON", `{"a": 1}`, ""},
		{"x.toml", "TOML", "top = 1\n[tool.poetry]\nname = 'x'\ntext = \"\"\"\nno = 1\n\"\"\"\nlist = [\n  \"no = 2\",\n]\n[dependencies]\nserde = 1\n[[bin]]\nname = 'b'\n", `1 key top
2-9 key tool.poetry
3 key tool.poetry.name
4-6 key tool.poetry.text
7-9 key tool.poetry.list
10-11 key dependencies`},
		{"main.tf", "HCL", "variable \"region\" {\n  default = \"x\"\n}\nresource \"aws_vpc\" \"main\" {\n  tags = {\n    Name = \"y\"\n  }\n  list = [\n    \"a\",\n  ]\n}\nlocals {\n  doc = <<-EOT\n    no = 1\n  EOT\n  z = 2\n}\n", `1-3 variable region
2 key region.default
4-11 resource main
5-7 key main.tags
6 key main.tags.Name
8-10 key main.list
12-17 key locals
13-15 key locals.doc
16 key locals.z`},
		{"Dockerfile", "Dockerfile", "ARG V=1\nFROM go:1 AS build\nENV A=1\nRUN x\nFROM scratch\n", "1 key V\n2-4 stage build\n3 key build.A"},
		{"app.properties", "Java Properties", "# x\nserver.port=80\nname: y\n", "2 key server.port\n3 key name"},
	} {
		if got := keysIn(c.file, c.language, c.text); got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", c.file, got, c.want)
		}
	}
}

// Data must not flood the symbols of code.
func TestConfigurationKeys_omitLargeDataFiles(t *testing.T) {
	t.Parallel()
	var many strings.Builder
	for i := range maxKeys + 1 {
		fmt.Fprintf(&many, "key%d: 1\n", i)
	}
	for name, text := range map[string]string{"many keys": many.String(), "many bytes": "a: " + strings.Repeat("x", maxKeyBytes)} {
		if got := keysIn("data.yaml", "YAML", text); got != "" {
			t.Errorf("%s: %.100s", name, got)
		}
	}
}

func FuzzConfigurationKeys_areOnLinesOfTheFile(f *testing.F) {
	f.Add("a.yaml", "YAML", "a:\n  b: 1\n")
	f.Add("a.json", "JSON", `{"a": [{"b": 1}]}`)
	f.Add("a.tf", "HCL", "a \"b\" {\n c = [\n ]\n}\n")
	f.Fuzz(func(t *testing.T, file, language, text string) {
		if !hasKeys(file, language) {
			return
		}
		lines := uint32(strings.Count(text, "\n") + 1)
		findKeys(&File{Path: file, Language: language, Content: []byte(text)}, func(s Symbol) {
			if s.Line < 1 || s.Line > lines || s.End > lines || len(s.Name) == 0 {
				t.Errorf("%d-%d %q of %d lines", s.Line, s.End, s.Name, lines)
			}
		})
	})
}
