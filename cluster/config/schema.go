package config

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

//go:embed schema.json
var schemaText string

// Schema returns the JSON Schema (draft-07) of the file. Parse checks also what a schema cannot
// express.
func Schema() []byte { return []byte(schemaText) }

// compiled compiles the schema at its first use, which takes some milliseconds.
var compiled = sync.OnceValues(func() (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(schemaText))
	if err != nil {
		return nil, err
	}

	const name = "schema.json"
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft7)
	if err := c.AddResource(name, doc); err != nil {
		return nil, err
	}
	return c.Compile(name)
})

// schemaTree is the schema as a tree, from which messages list allowed values.
var schemaTree = sync.OnceValue(func() map[string]any {
	var tree map[string]any
	d := json.NewDecoder(bytes.NewReader([]byte(schemaText)))
	if d.Decode(&tree) != nil {
		return nil
	}
	return tree
})

// validate returns everything in a tree that does not fit the schema.
func validate(tree any) Errors {
	schema, err := compiled()
	if err != nil {
		return Errors{{Message: fmt.Sprintf("The schema is broken: %v.", err)}}
	}

	err = schema.Validate(tree)
	if err == nil {
		return nil
	}

	// The validator returns a tree of the branches that it tried. The leaves tell what is wrong.
	var ve *jsonschema.ValidationError
	if !errors.As(err, &ve) {
		return Errors{{Message: fmt.Sprintf("The file cannot be validated: %v.", err)}}
	}

	errs := checkNames(tree)
	addSentences(tree, ve, &errs)
	return errs
}

// checkNames checks keys that the file chooses itself, such as names of connections. The schema
// checks them too, but the validator would report a wrong path.
func checkNames(tree any) Errors {
	var errs Errors
	root, _ := tree.(map[string]any)
	for _, group := range [...]string{"connections", "contexts", "environmentOverrides", "identityProviders"} {
		members, _ := root[group].(map[string]any)

		for name := range members {
			if !nameRE.MatchString(name) {
				errs = append(errs, Error{childPath(group, name), "A name may have letters, digits, _ and - only; rename it."})
			}

			if group == "environmentOverrides" && name == "CONFIG_PATH" {
				errs = append(errs, Error{childPath(group, name), "It cannot be overridden, because it says where this file is; remove it."})
			}
		}
	}
	return errs
}

var nameRE = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

// addSentences converts the leaves of the validator's error tree to sentences.
func addSentences(tree any, ve *jsonschema.ValidationError, errs *Errors) {
	// Sentences name the path in the file, not in the schema.
	path, value := followLocation(tree, ve.InstanceLocation)
	add := func(path, format string, args ...any) {
		*errs = append(*errs, Error{path, fmt.Sprintf(format, args...)})
	}

	switch k := ve.ErrorKind.(type) {
	case *kind.AdditionalProperties:
		known := knownProperties(ve.SchemaURL)
		for _, name := range k.Properties {
			add(childPath(path, name), "%s", unknownProperty(name, known, ve.SchemaURL))
		}
		return

	case *kind.Required:
		for _, name := range k.Missing {
			add(childPath(path, name), "It is required; add it.")
		}
		return
	case *kind.PropertyNames: // reported by names: the location here may be that of a sibling
		return

	case *kind.Type:
		// The value itself is never shown: it may be the secret.
		if strings.HasSuffix(ve.SchemaURL, "/definitions/token") {
			add(path, `It must name where the secret is, as {"env": "NAME"}, not be %s.`, typeName(k.Got))
			break
		}
		add(path, "It must be %s, not %s.", typeNames(k.Want), typeName(k.Got))
	case *kind.Enum:
		add(path, "It must be one of %s, not %s.", joinValues(k.Want), formatValue(value))
	case *kind.Const:
		add(path, "It must be %s, not %s.", formatValue(k.Want), formatValue(value))
	case *kind.Pattern:
		add(path, "%s, not %s.", patternText(k.Want), formatValue(value))

	case *kind.Minimum:
		add(path, "It must be at least %s, not %s.", ratText(k.Want), ratText(k.Got))
	case *kind.MinItems:
		add(path, "It must have at least %d item; leave the property out for none.", k.Want)
	case *kind.MinLength:
		add(path, "It must not be empty.")
	case *kind.MinProperties, *kind.MaxProperties:
		add(path, `It must have exactly one of "env" and "googleCloudSecret".`)

	// An inner node of the error tree: its causes tell what is wrong.
	default:
		for _, cause := range ve.Causes {
			addSentences(tree, cause, errs)
		}
		if len(ve.Causes) == 0 {
			add(path, "It does not fit the schema (%s).", strings.Join(ve.ErrorKind.KeywordPath(), "/"))
		}
	}
}

// followLocation follows a location of the validator from the root. It returns the JSON path and
// the value there.
func followLocation(tree any, at []string) (string, any) {
	path := ""
	for _, key := range at {
		switch n := tree.(type) {
		case map[string]any:
			path, tree = childPath(path, key), n[key]

		// Stop if the location does not exist in this tree.
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(n) {
				return path, nil
			}
			path, tree = item(path, i), n[i]
		default:
			return path, nil
		}
	}
	return path, tree
}

// knownProperties returns the names of properties that the schema at url allows.
func knownProperties(url string) []string {
	_, pointer, _ := strings.Cut(url, "#")

	// The part of the URL after # is a JSON pointer into the schema.
	var node any = schemaTree()
	for key := range strings.SplitSeq(strings.Trim(pointer, "/"), "/") {
		if key == "" {
			continue
		}
		m, _ := node.(map[string]any)
		node = m[key]
	}

	m, _ := node.(map[string]any)
	props, _ := m["properties"].(map[string]any)
	return slices.Sorted(maps.Keys(props))
}

// unknownProperty returns the message for an unknown property. It suggests a property that is at most two
// edits away, or lists all properties.
func unknownProperty(name string, known []string, url string) string {
	if len(known) == 0 && strings.HasSuffix(url, "/keyed") {
		return "This is not a name that a header may have; rename it."
	}

	if best := Nearest(name, known); best != "" {
		return fmt.Sprintf("There is no such property; did you mean %s?", best)
	}
	return fmt.Sprintf("There is no such property; there are %s.", strings.Join(known, ", "))
}

// Nearest returns the known name that is at most two edits away, or "".
func Nearest(name string, known []string) (best string) {
	// Never suggest a word in which all letters differ, as for a short name.
	distance := 3
	for _, k := range known {
		if d := editDistance(strings.ToLower(name), strings.ToLower(k)); d < distance && d < len(k) {
			best, distance = k, d
		}
	}
	return best
}

// editDistance returns the Levenshtein distance of two short words. Before the step (i, j)
//
//	row[k] = edits(a[:i+1], b[:k])   for k <= j
//	row[k] = edits(a[:i],   b[:k])   for k >  j
//	last   = edits(a[:i],   b[:j])
func editDistance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}

	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}

	for i := range len(a) {
		last := row[0]
		row[0] = i + 1

		for j := range len(b) {
			cost := last
			if a[i] != b[j] {
				cost++
			}
			last = row[j+1]
			row[j+1] = min(cost, last+1, row[j]+1)
		}
	}
	return row[len(b)]
}

// patterns describes the patterns of the schema in words.
var patterns = map[string]string{
	`^https?:\/\/[^\s/$.?#].[^\s]*$`:                     "It must be a URL that begins with http:// or https://",
	`^(https?:\/\/[^\s/$.?#].[^\s]*|file:\/\/\/[^\s]+)$`: "It must be a URL that begins with http:// or https://, or file:// and an absolute path",
	`^[\w.-]+$`:                     "It must be a name of letters, digits, _, . and -",
	`^[\w.-]+\/[\w.-]+$`:            "It must have the form owner/name",
	`^[\w.-]+\/[\w. -]+$`:           "It must have the form organization/project",
	`^[\w.-]+\/[\w. -]+\/[\w. -]+$`: "It must have the form organization/project/repository",
	`^projects/[^/\s]+/secrets/[^/\s]+/versions/[^/\s]+$`: "It must have the form projects/<project>/secrets/<secret>/versions/<version>",
}

// patternText describes a pattern of the schema in words.
func patternText(pattern string) string {
	if text, ok := patterns[pattern]; ok {
		return text
	}
	return "It must match " + pattern
}

// typeName returns a JSON type with its article.
func typeName(t string) string {
	switch t {
	case "null":
		return "null"
	case "array":
		return "a list"
	case "object", "integer":
		return "an " + t
	}
	return "a " + t
}

func typeNames(types []string) string {
	var names []string
	for _, t := range types {
		if t == "integer" {
			names = append(names, "a whole number")
			continue
		}
		names = append(names, typeName(t))
	}
	return strings.Join(names, " or ")
}

// joinValues formats values, separated by commas.
func joinValues(values []any) string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = formatValue(v)
	}
	return strings.Join(out, ", ")
}

// formatValue formats a value of the file, shortened.
func formatValue(v any) string {
	switch n := v.(type) {
	case string:
		return strconv.Quote(clipText(n))
	case json.Number:
		return clipText(n.String())
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	}
	return fmt.Sprint(v)
}

// ratText formats a bound of the schema.
func ratText(r *big.Rat) string {
	if r.IsInt() {
		return r.Num().String()
	}
	f, _ := r.Float64()
	return strconv.FormatFloat(f, 'g', -1, 64)
}
