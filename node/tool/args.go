package tool

import (
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Args are the checked arguments of a call, with the defaults filled in.
type Args struct {
	tool   *Tool
	values map[string]any // string, int, bool, []string or map[string]string by name
	given  []string       // names that the caller gave, in the order of the row
	asked  string         // repo as the caller wrote it

	unmatched []string // globs of which no file is; the answer has to tell of them

	// The arguments of the caller, as advised calls may leave them out; nil if some had other names.
	made    map[string]any
	renamed bool // some arguments had names of other tools

	told map[string]bool // of one of several symbols: what the answers before it say; nil elsewhere
}

func newArgs(t *Tool) *Args { return &Args{tool: t, values: map[string]any{}} }

// Text returns a string argument, or "" if it has neither a value nor a default.
func (a *Args) Text(name string) string { s, _ := a.values[name].(string); return s }

// Number returns an integer argument, or 0 if it has neither a value nor a default.
func (a *Args) Number(name string) int { n, _ := a.values[name].(int); return n }

// Flag returns a boolean argument, or false if it has neither a value nor a default.
func (a *Args) Flag(name string) bool { b, _ := a.values[name].(bool); return b }

// List returns an argument that is a list of strings, or nil if it was not given.
func (a *Args) List(name string) []string { l, _ := a.values[name].([]string); return l }

// Named returns an argument that is an object of strings, or nil if it was not given.
func (a *Args) Named(name string) map[string]string {
	m, _ := a.values[name].(map[string]string)
	return m
}

// Has reports whether the caller gave an argument.
func (a *Args) Has(name string) bool { return contains(a.given, name) }

// set changes an argument as if the caller had given it.
func (a *Args) set(name string, value any) {
	if !a.Has(name) {
		a.given = append(a.given, name)
	}
	a.values[name] = value
}

// with returns the text of the same call with other values for some arguments, given as name,
// value, ... A nil value removes the argument. Answers advise such calls to models.
func (a *Args) with(changes ...any) string { return a.as(a.tool.Name, changes...) }

// as returns the text of a call of another tool with the same arguments, except for changes.
func (a *Args) as(tool string, changes ...any) string {
	next := newArgs(a.tool)
	// Defaults are not repeated: the advised call is as short as the original.
	for _, name := range a.given {
		next.set(name, a.values[name])
	}

	// A call for several files gives each of them less than the smallest allowed maxTokens.
	if n := next.Number(maxTokens.Name); next.Has(maxTokens.Name) && n < maxTokens.Min {
		next.values[maxTokens.Name] = maxTokens.Min
	}

	for i := 0; i+1 < len(changes); i += 2 {
		next.set(changes[i].(string), changes[i+1])
	}
	whole := next.render(tool)
	if tool == a.tool.Name && a.made != nil {
		if brief := next.beside(a.made); brief != "" && len(brief) < len(whole) {
			return brief
		}
	}
	return whole
}

// beside writes a call as what differs from the call that was made: the same and {"offset":30}. An
// argument that is left out is null. It is "" if nothing differs.
func (a *Args) beside(made map[string]any) string {
	next := newArgs(a.tool)
	for _, name := range a.given {
		old, had := made[name]
		switch value := a.values[name]; {
		case value == nil && !had, name == maxTokens.Name, had && reflect.DeepEqual(old, value):
		default:
			next.set(name, value)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(made)) {
		if !a.Has(name) && name != maxTokens.Name {
			next.set(name, nil)
		}
	}
	if next.given == nil {
		return ""
	}
	parts := make([]string, len(next.given))
	for i, name := range next.given {
		parts[i] = quote(name) + ":" + quote(plainest(next.values[name]))
	}
	return "the same and {" + strings.Join(parts, ",") + "}"
}

// remember keeps the arguments as the caller gave them.
func (a *Args) remember() {
	if a.made != nil || a.renamed {
		return
	}
	a.made = map[string]any{}
	for _, name := range a.given {
		a.made[name] = a.values[name]
	}
}

// callOf returns the text of a call of another tool, with arguments given as name, value, ... It
// leaves out values that are "" or nil.
func callOf(tool string, pairs ...any) string {
	a := newArgs(nil)
	for i := 0; i+1 < len(pairs); i += 2 {
		value := pairs[i+1]
		if value != "" && value != nil {
			a.set(pairs[i].(string), value)
		}
	}
	return a.render(tool)
}

// render writes the call as text: the tool's name and the arguments as JSON.
func (a *Args) render(tool string) string {
	var parts []string
	// Keep the order of the parameters, so that the same call is always the same text.
	for _, name := range a.given {
		value := a.values[name]
		// with(name, nil) removed it.
		if value == nil {
			continue
		}
		parts = append(parts, quote(name)+":"+quote(plainest(value)))
	}
	return tool + " {" + strings.Join(parts, ",") + "}"
}

// plainest returns a list of one string as that string, as a caller would write it.
func plainest(value any) any {
	if list, ok := value.([]string); ok && len(list) == 1 {
		return list[0]
	}
	return value
}

func contains(list []string, s string) bool {
	for _, one := range list {
		if one == s {
			return true
		}
	}
	return false
}
