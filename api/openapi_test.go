package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	nodecall "github.com/shoalsearch/shoal/node/call"
)

// document is the part of openapi.json that tests read.
type document struct {
	Paths map[string]map[string]struct {
		OperationID string `json:"operationId"`
		Security    []map[string][]string
		Parameters  []struct {
			Name, In string
			Required bool
		}
		RequestBody *struct {
			Content map[string]struct{ Schema any }
		}
		Responses map[string]struct {
			Description string
			Content     map[string]struct{ Schema json.RawMessage }
		}
	}
	Components struct{ Schemas map[string]any }
}

func openAPI(t *testing.T) document {
	t.Helper()
	var doc document
	if err := json.Unmarshal(openAPIDocument, &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestOpenAPI_hasEveryRoute(t *testing.T) {
	t.Parallel()
	doc := openAPI(t)
	s := start(t, (&fake{}).parts())
	var served, described []string
	access := map[string]access{}
	note := func(x *route) {
		if strings.HasPrefix(x.name, "/api/") && !x.page { // providers send people back to an address below it
			served = append(served, x.method+" "+x.name)
			access[x.method+" "+x.name] = x.access
		}
	}
	for _, list := range s.routes.exact {
		for _, x := range list {
			note(x)
		}
	}
	for _, x := range s.routes.patterns {
		note(x)
	}
	for path, methods := range doc.Paths {
		for method, op := range methods {
			name := strings.ToUpper(method) + " " + path
			described = append(described, name)
			open := len(op.Security) == 0
			if got, ok := access[name]; ok && open != (got == accessOpen) && !strings.Contains(path, "webhook") {
				t.Errorf("%s: described as open: %t, served with access %d", name, open, got)
			}
		}
	}
	sort.Strings(served)
	sort.Strings(described)
	if a, b := strings.Join(served, "\n"), strings.Join(described, "\n"); a != b {
		t.Errorf("served:\n%s\ndescribed:\n%s", a, b)
	}
}

// It compares each answer, with every field filled, with its schema, in both directions: no field
// is missing in the schema or in the answer.
func TestOpenAPI_hasEveryField(t *testing.T) {
	t.Parallel()
	doc := openAPI(t)
	s := start(t, (&fake{}).parts())
	compiler := jsonschema.NewCompiler()
	var whole any
	whole, err := jsonschema.UnmarshalJSON(bytes.NewReader(openAPIDocument))
	if err != nil {
		t.Fatal(err)
	}
	if err := compiler.AddResource("openapi.json", whole); err != nil {
		t.Fatal(err)
	}
	answers, missing, of := map[string]int{}, map[string]int{}, map[string][]string{} // the last by route
	check := func(what, path, method, status, mime string, body []byte) {
		pointer := fmt.Sprintf("openapi.json#/paths/%s/%s/responses/%s/content/%s/schema", escape(path), method, status, escape(mime))
		schema, err := compiler.Compile(pointer)
		if err != nil {
			t.Errorf("%s: %v", what, err)
			return
		}
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
		if err != nil {
			t.Errorf("%s: %v", what, err)
			return
		}
		if err := schema.Validate(value); err != nil {
			t.Errorf("%s does not fit its schema: %v\n%s", what, err, body)
		}

		// Some fields are only sent on request: one of a route's answers must have them.
		route := method + " " + path + " " + status
		answers[route]++
		for _, m := range unused(whole, resolve(whole, schemaAt(whole, path, method, status, mime)), value, route) {
			missing[m]++
			if missing[m] == 1 {
				of[route] = append(of[route], m)
			}
		}
	}
	for _, op := range operations {
		path, _, _ := strings.Cut(op.path, "?")
		found, _ := s.routes.find(path)
		template := found[0].name
		if _, ok := doc.Paths[template]; !ok {
			t.Errorf("%s: no path %s", op.name, template)
			continue
		}
		_, body := ask(t, s, op.method, op.path, op.body)
		check(op.name, template, strings.ToLower(op.method), fmt.Sprint(op.status), "application/json", body)
	}
	for route, n := range answers {
		for _, m := range of[route] {
			if missing[m] == n {
				t.Errorf("no answer has the field %s of the schema", m)
			}
		}
	}
	_, body := ask(t, s, "GET", "/api/nothing", "")
	check("an error", "/api/repos", "get", "default", "application/json", body)
	checkEvents := func(schema, stream string) {
		compiled, err := compiler.Compile("openapi.json#/components/schemas/" + schema)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(stream) {
			data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: ")
			if !ok || data == "[DONE]" {
				continue
			}
			value, err := jsonschema.UnmarshalJSON(strings.NewReader(data))
			if err != nil {
				t.Fatal(err)
			}
			if err := compiled.Validate(value); err != nil {
				t.Errorf("event does not fit: %v\n%s", err, data)
			}
		}
	}
	_, stream := ask(t, s, "POST", "/api/stream_search", `{"query":"a"}`)
	checkEvents("SearchEvent", string(stream))
	_, stream = ask(t, s, "POST", "/api/stream_search_commits", `{"query":"type:diff a"}`)
	checkEvents("CommitSearchEvent", string(stream))
	_, stream = ask(t, s, "GET", "/api/status?watch=true", "")
	checkEvents("StatusEvent", string(stream))
}

func escape(s string) string {
	s = strings.ReplaceAll(strings.ReplaceAll(s, "~", "~0"), "/", "~1")
	return strings.NewReplacer("{", "%7B", "}", "%7D").Replace(s)
}

func schemaAt(doc any, path, method, status, mime string) any {
	at := doc
	for _, key := range []string{"paths", path, method, "responses", status, "content", mime, "schema"} {
		at = at.(map[string]any)[key]
	}
	return at
}

func resolve(doc, schema any) map[string]any {
	m, _ := schema.(map[string]any)
	if ref, ok := m["$ref"].(string); ok {
		return resolve(doc, doc.(map[string]any)["components"].(map[string]any)["schemas"].(map[string]any)[ref[strings.LastIndexByte(ref, '/')+1:]])
	}
	return m
}

// unused returns the properties of a schema that no part of a value has.
func unused(doc any, schema map[string]any, value any, at string) []string {
	// Of several forms, compare with the best match.
	for _, kind := range []string{"oneOf", "anyOf"} {
		forms, _ := schema[kind].([]any)
		var least []string
		for i, form := range forms {
			if m := unused(doc, resolve(doc, form), value, at); i == 0 || len(m) < len(least) {
				least = m
			}
		}
		if forms != nil {
			return least
		}
	}

	var missing []string
	switch v := value.(type) {
	case map[string]any:
		props, _ := schema["properties"].(map[string]any)
		for name, sub := range props {
			if inner, ok := v[name]; ok {
				missing = append(missing, unused(doc, resolve(doc, sub), inner, at+"."+name)...)
			} else if !below(v, props, name) {
				missing = append(missing, at+"."+name)
			}
		}
	case []any:
		items := resolve(doc, schema["items"])
		// A field counts if one of the elements has it.
		counts := map[string]int{}
		for _, element := range v {
			for _, m := range unused(doc, items, element, at+"[]") {
				counts[m]++
			}
		}
		for m, n := range counts {
			if n == len(v) {
				missing = append(missing, m)
			}
		}
	}
	return missing
}

// below reports whether a field exists somewhere below in a recursive schema: for example, a
// directory has no symlink target.
func below(v, props map[string]any, name string) bool {
	children, _ := props["children"].(map[string]any)
	items, _ := children["items"].(map[string]any)
	if items["$ref"] != "#/components/schemas/TreeNode" {
		return false
	}

	all, _ := v["children"].([]any)
	return slices.ContainsFunc(all, func(child any) bool {
		node, _ := child.(map[string]any)
		return node[name] != nil || below(node, props, name)
	})
}

// It sends each request body with a wrong type in each member of its schema. A handler that
// ignores the member would not complain.
func TestOpenAPI_everyRequestMemberIsRead(t *testing.T) {
	t.Parallel()
	s := start(t, (&fake{}).parts())
	doc := openAPI(t)
	for path, methods := range doc.Paths {
		for method, op := range methods {
			if op.RequestBody == nil || path == "/api/mcp" {
				continue
			}
			content, ok := op.RequestBody.Content["application/json"]
			if !ok {
				continue
			}
			schema := resolve(anyOf(t), content.Schema)
			properties, _ := schema["properties"].(map[string]any) // a host's event documents none
			for name := range properties {
				_, body := ask(t, s, strings.ToUpper(method), path, `{"`+name+`":{"wrong":1}}`)
				if !strings.Contains(string(body), name+": expected") {
					t.Errorf("%s %s: a wrong %s is not noticed: %s", method, path, name, body)
				}
			}
		}
	}
}

func anyOf(t *testing.T) any {
	t.Helper()
	var whole any
	if err := json.Unmarshal(openAPIDocument, &whole); err != nil {
		t.Fatal(err)
	}
	return whole
}

// It checks that parameters with limits are checked.
func TestOpenAPI_parameterLimitsAreChecked(t *testing.T) {
	t.Parallel()
	s := start(t, (&fake{}).parts())
	doc := openAPI(t)
	for path, methods := range doc.Paths {
		for method, op := range methods {
			for _, p := range op.Parameters {
				if p.In != "query" {
					continue
				}
				// A NUL is wrong in every parameter.
				url := strings.NewReplacer("{id}", "1", "{node}", "n", "{connection}", "c", "{key}", "k").Replace(path) + "?" + p.Name + "=%00"
				body := ""
				if op.RequestBody != nil {
					body = `{"query":"a"}`
				}
				_, text := ask(t, s, strings.ToUpper(method), url, body)
				if !strings.Contains(string(text), p.Name+": ") {
					t.Errorf("%s %s: a wrong %s is not noticed: %.200s", method, path, p.Name, text)
				}
			}
		}
	}
}

// statusOfCodes returns the status of each code that a route may document.
func statusOfCodes() map[string]string {
	all := map[string]string{codeInvalidParams: "400", codeMissingParam: "400", codeTooLarge: "413", codeRange: "416", codeShuttingDown: "503"}
	for _, k := range nodecall.Kinds {
		all[k.Code] = fmt.Sprint(k.Status)
	}
	return all
}

// errorCodes matches the codes in a description.
var errorCodes = regexp.MustCompile(`\b(?:[A-Z]+(?:_[A-Z]+)+|TIMEOUT|UNAVAILABLE)\b`)

// It compares a route's documented failures with those that its access, parameters and body can
// cause, and each code with its status.
func TestOpenAPI_documentsExactlyThePossibleFailures(t *testing.T) {
	t.Parallel()
	s := start(t, (&fake{}).parts())
	status := statusOfCodes()
	for path, methods := range openAPI(t).Paths {
		for method, op := range methods {
			name := strings.ToUpper(method) + " " + path
			told := map[string]bool{} // codes
			for number, r := range op.Responses {
				// The MCP server behind its route has its own errors.
				schema := string(r.Content["application/json"].Schema)
				ours := strings.Contains(schema, "schemas/Error") || strings.Contains(schema, "schemas/MissingPath")
				if number < "400" || number == "default" || !ours {
					continue
				}

				codes := errorCodes.FindAllString(r.Description, -1)
				if len(codes) == 0 {
					t.Errorf("%s: %s has no code: %s", name, number, r.Description)
				}
				for _, code := range codes {
					told[code] = true
					if status[code] != number {
						t.Errorf("%s: %s is told of with %s, and sent with %q", name, code, number, status[code])
					}
				}
			}

			found, _ := s.routes.find(strings.NewReplacer("{", "", "}", "").Replace(path))
			at := slices.IndexFunc(found, func(x *route) bool { return x.name == path && x.method == strings.ToUpper(method) })
			if at < 0 {
				t.Errorf("%s: not served", name)
				continue
			}

			need, query, required := found[at].access, false, false
			for _, p := range op.Parameters {
				query = query || p.In == "query"
				required = required || p.In == "query" && p.Required
			}
			guarded := need != accessOpen || found[at].timeout > 0 // a webhook has its own authentication
			body := op.RequestBody != nil

			// Signing out needs no authentication.
			asks := guarded && name != "DELETE "+sessionPath
			for code, want := range map[string]bool{
				codeNotAuthenticated: asks, codeRateLimited: guarded, codeNoLeader: guarded, codeShuttingDown: guarded, codeTimeout: guarded,
				codeMissingParam: required, codeInvalidBody: body && path != toolPath, codeTooLarge: body,
			} {
				if told[code] != want {
					t.Errorf("%s: %s is documented: %t, can happen: %t", name, code, told[code], want)
				}
			}
			if need >= accessOwner && !told[codeForbidden] || query && !told[codeInvalidParams] {
				t.Errorf("%s: documents %v", name, told)
			}
		}
	}
}
