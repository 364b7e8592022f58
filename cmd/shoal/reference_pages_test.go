package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/tool"
	"github.com/shoalsearch/shoal/shard/query"
)

// cell makes a text fit into a table cell.
func cell(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", "\\|")
}

// property is a part of the configuration's schema.
type property struct {
	Ref         string               `json:"$ref"`
	Type        any                  `json:"type"`
	Description string               `json:"description"`
	Default     any                  `json:"default"`
	Enum        []any                `json:"enum"`
	Const       any                  `json:"const"`
	Minimum     *float64             `json:"minimum"`
	Maximum     *float64             `json:"maximum"`
	Items       *property            `json:"items"`
	Properties  map[string]*property `json:"properties"`
	Required    []string             `json:"required"`
	Definitions map[string]*property `json:"definitions"`

	AdditionalProperties json.RawMessage `json:"additionalProperties"`
}

// configurationReference prints the schema of the configuration.
func configurationReference(t *testing.T) string {
	t.Helper()
	var root property
	if err := json.Unmarshal(config.Schema(), &root); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("# Configuration\n\nThis page is printed from the schema (`shoal config schema`). A file is JSON; comments and trailing commas are allowed.\n\n" +
		"`shoal config check FILE` prints every error of a file with its path.\n")
	writeProperties(&b, "The file", &root)
	for _, name := range slices.Sorted(maps.Keys(root.Definitions)) {
		if p := root.Definitions[name]; len(p.Properties) > 0 {
			writeProperties(&b, name, p)
		}
	}
	return b.String()
}

func writeProperties(b *strings.Builder, title string, p *property) {
	fmt.Fprintf(b, "\n## %s\n\n| property | takes | means |\n|---|---|---|\n", title)
	for _, name := range slices.Sorted(maps.Keys(p.Properties)) {
		of := p.Properties[name]
		means := cell(of.Description)
		if of.Default != nil {
			means = strings.TrimSpace(fmt.Sprintf("%s Default: `%v`.", means, of.Default))
		}
		if slices.Contains(p.Required, name) {
			name += "` (required)"
		} else {
			name += "`"
		}
		fmt.Fprintf(b, "| `%s | %s | %s |\n", name, cell(takes(of)), means)
	}
}

// takes returns the allowed values of a property.
func takes(p *property) string {
	var more struct {
		Ref string `json:"$ref"`
	}
	_ = json.Unmarshal(p.AdditionalProperties, &more) // true and false are no reference
	switch {
	case p.Ref != "":
		name := strings.TrimPrefix(p.Ref, "#/definitions/")
		return "[" + name + "](#" + strings.ToLower(name) + ")"
	case p.Const != nil:
		return fmt.Sprintf("`%v`", p.Const)
	case len(p.Enum) > 0:
		var values []string
		for _, v := range p.Enum {
			values = append(values, fmt.Sprintf("`%v`", v))
		}
		return strings.Join(values, ", ")
	case more.Ref != "":
		return "by name: " + takes(&property{Ref: more.Ref})
	case p.Items != nil:
		return "list of " + takes(p.Items)
	}
	text := strings.Trim(fmt.Sprint(p.Type), "[]")
	if p.Type == nil {
		text = "any"
	}
	if p.Minimum != nil {
		text += fmt.Sprintf(" from %v", strconv.FormatFloat(*p.Minimum, 'f', -1, 64))
	}
	if p.Maximum != nil {
		text += fmt.Sprintf(" to %v", strconv.FormatFloat(*p.Maximum, 'f', -1, 64))
	}
	return text
}

// variableReference prints the flags of a node with their variables, and all other variables.
func variableReference(*testing.T) string {
	var b strings.Builder
	b.WriteString("# Flags and variables\n\nThis page is printed from the program. A flag wins over its variable.\n\n## Flags of `shoal serve`\n\n| flag | variable | default | means |\n|---|---|---|---|\n")
	newServe(func(string) string { return "" }).Flags().VisitAll(func(f *pflag.Flag) {
		kind, usage := pflag.UnquoteUsage(f)
		variables := ""
		if m := variablesInUsage.FindStringSubmatch(usage); m != nil {
			usage, variables = strings.TrimSuffix(usage, " "+m[0]), "`"+strings.ReplaceAll(m[1], ", ", "`, `")+"`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", strings.TrimSpace("--"+f.Name+" "+kind), variables, f.DefValue, cell(usage))
	})
	b.WriteString("\n## Variables that a node reads while it runs\n\nThey may also stand in `environmentOverrides` of the configuration, which wins, but for those of mail and of OpenTelemetry.\n\n| variable | means |\n|---|---|\n")
	for _, v := range config.Variables() {
		fmt.Fprintf(&b, "| `%s` | %s |\n", v.Name, cell(v.Means))
	}
	b.WriteString("\n## Variables of Sourcebot without effect\n\nA node that has one logs a warning. `shoal config check FILE --env FILE` reports on a whole file.\n\n| variable | why, and what takes its place |\n|---|---|\n")
	for _, name := range config.Unread() {
		fmt.Fprintf(&b, "| `%s` | %s |\n", name, cell(config.WhyUnread(name)))
	}
	return b.String()
}

// apiReference prints the routes of the API.
func apiReference(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "api", "openapi.json"))
	if err != nil {
		t.Fatal(err)
	}
	var api struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(text, &api); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("# API\n\nThis page is printed from `api/openapi.json`, which each node serves at `/api/openapi.json` with all parameters and answers.\n\n" +
		"Send a key as `Authorization: Bearer shoal_...`. Errors are JSON with `statusCode`, `errorCode` and `message`.\n\n| request | does |\n|---|---|\n")
	for _, path := range slices.Sorted(maps.Keys(api.Paths)) {
		for _, method := range []string{"get", "post", "put", "patch", "delete"} {
			raw, ok := api.Paths[path][method]
			if !ok {
				continue
			}
			var op struct{ Summary string }
			if err := json.Unmarshal(raw, &op); err != nil || op.Summary == "" {
				t.Errorf("%s %s: no summary, %v", method, path, err)
			}
			fmt.Fprintf(&b, "| `%s %s` | %s |\n", strings.ToUpper(method), path, cell(op.Summary))
		}
	}
	return b.String()
}

// toolReference prints the tools of agents except ask_codebase, which depends on a model.
func toolReference(*testing.T) string {
	var b strings.Builder
	b.WriteString("# Tools\n\nThis page is printed from the tools that agents see at `/api/mcp`. `ask_codebase` is there too where a [model](../how-to/models.md) is configured.\n")
	for _, t := range tool.New(tool.Parts{}).Tools() {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| parameter | kind | means |\n|---|---|---|\n", t.Name, strings.TrimSpace(t.About))
		for _, p := range t.Params {
			about, kind := cell(p.About), string(p.Kind)
			if p.Required {
				kind += ", required"
			}
			if p.Default != nil {
				kind += fmt.Sprintf(", default `%v`", p.Default)
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", p.Name, kind, about)
		}
	}
	return b.String()
}

// metricReference prints the metrics that the code makes, with their help.
func metricReference(t *testing.T) string {
	t.Helper()
	help := map[string]string{}
	for _, s := range sources(t) {
		if s.isTest() || strings.HasPrefix(s.path, "packaging") || strings.HasPrefix(s.path, "bench") {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if len(n.Args) > 1 {
					noteMetric(help, n.Args[0], n.Args[1])
				}
			case *ast.CompositeLit:
				fields := map[string]ast.Expr{}
				for _, e := range n.Elts {
					if kv, ok := e.(*ast.KeyValueExpr); ok {
						if id, ok := kv.Key.(*ast.Ident); ok {
							fields[id.Name] = kv.Value
						}
					}
				}
				noteMetric(help, fields["Name"], fields["Help"])
			}
			return true
		})
	}
	if len(help) < 70 {
		t.Errorf("only %d metrics are found", len(help))
	}
	var b strings.Builder
	b.WriteString("# Metrics\n\nThis page is printed from the code. `GET /metrics` has them with those of Go and of the process. [Watch a cluster](../how-to/monitor.md) has a scrape configuration.\n\n| metric | means |\n|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(help)) {
		fmt.Fprintf(&b, "| `%s` | %s |\n", name, cell(help[name]))
	}
	return b.String()
}

// noteMetric records the help of a metric, if both are literals and the name belongs to the
// product.
func noteMetric(help map[string]string, name, text ast.Expr) {
	if n := literal(name); regexp.MustCompile(`^shoal_[a-z_]+$`).MatchString(n) && literal(text) != "" {
		help[n] = literal(text)
	}
}

// literal returns the value of a string literal, or of several joined by plus; "" for anything
// else.
func literal(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			text, _ := strconv.Unquote(e.Value) // it compiles
			return text
		}
	case *ast.BinaryExpr:
		return literal(e.X) + literal(e.Y)
	}
	return ""
}

// alertReference prints the alert rules of ops/.
func alertReference(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "ops", "alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("# Alerts\n\nThis page is printed from `ops/alerts.yaml`. [Watch a cluster](../how-to/monitor.md) says how to load them.\n")
	field := func(rule, name string) string {
		m := regexp.MustCompile(`(?m)\b` + name + `: (?:"(.*)"|([^" }]+))`).FindStringSubmatch(rule)
		if m == nil {
			t.Errorf("an alert has no %s:\n%s", name, rule)
			return ""
		}
		return cell(m[1] + m[2])
	}
	rest := func(rule, name string) string {
		_, value, _ := strings.Cut(rule, " "+name+": ")
		value, _, _ = strings.Cut(value, "\n")
		return cell(value)
	}
	rules := strings.Split(string(text), "- alert: ")[1:]
	for _, rule := range rules {
		name, _, _ := strings.Cut(rule, "\n")
		if url := "https://code.example.com/docs/reference/alerts.md#md-" + strings.ToLower(name); field(rule, "runbook_url") != url {
			t.Errorf("%s: the runbook is %s, want the section of this page: %s", name, field(rule, "runbook_url"), url)
		}
		fmt.Fprintf(&b, "\n## %s\n\n| | |\n|---|---|\n| says | %s |\n| severity | %s |\n| do | %s |\n| fires when | `%s` |\n",
			name, field(rule, "summary"), field(rule, "severity"), field(rule, "action"), rest(rule, "expr"))
	}
	return b.String()
}

// queryReference puts the filters of the code into the page, whose other lines are written by hand.
func queryReference(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "queries.md"))
	if err != nil {
		t.Fatal(err)
	}
	text := string(page)
	for _, filters := range [][]query.Filter{query.Filters(), query.ChangeFilters()} {
		var rows strings.Builder
		for _, f := range filters {
			fmt.Fprintf(&rows, "| `%s` | %s |\n", strings.Join(f.Names, ":` `")+":", strings.ReplaceAll(f.Sentence(), "*", "`*`"))
		}
		old := regexp.MustCompile("(?m)^\\| `" + filters[0].Names[0] + ":`(.*\n\\|)*.*\n").FindString(text)
		if old == "" {
			t.Fatalf("docs/reference/queries.md has no row for %s:", filters[0].Names[0])
		}
		text = strings.Replace(text, old, rows.String(), 1)
	}
	return text
}
