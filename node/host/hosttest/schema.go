package hosttest

import (
	"embed"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

//go:embed schema/*.json
var schemas embed.FS

// description is a host's schema of its answers.
type description struct {
	name     string
	document map[string]any

	mu       sync.Mutex // guards the fields below
	compiler *jsonschema.Compiler
	compiled map[string]*jsonschema.Schema
}

var descriptions sync.Map

// descriptionOf reads the schema of a host, once.
func descriptionOf(name string) *description {
	once, _ := descriptions.LoadOrStore(name, sync.OnceValue(func() *description {
		// Schemas are large, so all tests of a process share them.
		text, err := schemas.ReadFile("schema/" + name + ".json")
		if err != nil {
			panic("BUG: " + err.Error())
		}
		document, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
		if err != nil {
			panic("BUG: " + name + ": " + err.Error())
		}

		d := &description{name: name, document: document.(map[string]any), compiler: jsonschema.NewCompiler(), compiled: map[string]*jsonschema.Schema{}}
		d.compiler.AssertFormat()
		if err := d.compiler.AddResource(name+".json", document); err != nil {
			panic("BUG: " + name + ": " + err.Error())
		}
		return d
	}))
	return once.(func() *description)()
}

// check checks an answer against a part of the schema. Nulls count as absent. Unknown fields are
// allowed, because hosts add some at any time.
func (d *description) check(part string, body any) error {
	schema, err := d.part(part)
	if err != nil {
		return err
	}

	// The checker needs numbers as decoded from JSON.
	text, err := json.Marshal(withoutNulls(body))
	if err != nil {
		return err
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
	if err != nil {
		return err
	}
	return schema.Validate(value)
}

func (d *description) part(name string) (*jsonschema.Schema, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.compiled[name] == nil {
		schema, err := d.compiler.Compile(d.name + ".json#/$defs/" + strings.ReplaceAll(name, " ", "%20"))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		d.compiled[name] = schema
	}
	return d.compiled[name], nil
}

func withoutNulls(v any) any {
	// Copy, because the answer itself keeps its nulls.
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, x := range v {
			if x != nil {
				out[k] = withoutNulls(x)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = withoutNulls(x)
		}
		return out
	}
	return v
}

// complete adds to an answer the required fields that tests do not need, such as the many URLs of a
// GitHub repository.
func (d *description) complete(part string, body any) any {
	return d.addRequired(map[string]any{"$ref": "#/$defs/" + part}, body)
}

// addRequired adds to body what schema requires and body lacks, with blank values.
func (d *description) addRequired(schema map[string]any, body any) any {
	if ref, ok := schema["$ref"].(string); ok {
		part, _ := d.document["$defs"].(map[string]any)[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
		return d.addRequired(part, body)
	}
	for _, of := range []string{"allOf", "anyOf", "oneOf"} {
		for _, s := range list(schema[of]) {
			body = d.addRequired(s.(map[string]any), body)
			if of != "allOf" {
				break
			}
		}
	}

	// Complete the present fields, and add the required ones.
	properties, _ := schema["properties"].(map[string]any)
	switch v := body.(type) {
	case map[string]any:
		for name, s := range properties {
			if x, ok := v[name]; ok && x != nil {
				v[name] = d.addRequired(s.(map[string]any), x)
			}
		}
		for _, name := range list(schema["required"]) {
			if s, ok := properties[name.(string)].(map[string]any); ok && v[name.(string)] == nil {
				v[name.(string)] = d.blankValue(s)
			}
		}
	case []any:
		if items, ok := schema["items"].(map[string]any); ok {
			for i := range v {
				v[i] = d.addRequired(items, v[i])
			}
		}
	}
	return body
}

// blankValue returns a plain value that matches a schema.
func (d *description) blankValue(schema map[string]any) any {
	if ref, ok := schema["$ref"].(string); ok {
		part, _ := d.document["$defs"].(map[string]any)[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
		return d.blankValue(part)
	}
	if alternatives := append(list(schema["anyOf"]), list(schema["oneOf"])...); len(alternatives) > 0 {
		return d.blankValue(alternatives[0].(map[string]any))
	}
	if values := list(schema["enum"]); len(values) > 0 {
		return values[0]
	}

	switch schemaType(schema["type"]) {
	case "integer", "number":
		return 0
	case "boolean":
		return false
	case "array":
		return []any{}
	case "object":
		return d.addRequired(schema, map[string]any{})
	}

	// Some strings need a format.
	switch schema["format"] {
	case "uri":
		return "https://host.example/x"
	case "date-time":
		return "2020-01-01T00:00:00Z"
	}
	return "x"
}

// schemaType returns the type in a schema, or the first of several.
func schemaType(t any) string {
	if several := list(t); len(several) > 0 {
		t = several[0]
	}
	name, _ := t.(string)
	return name
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}
