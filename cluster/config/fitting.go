package config

import (
	"slices"
	"strings"
)

// fitting is the part of a tree that fits the schema: without what errors are
// about, so that the rest can be checked too and all that is wrong with a file
// is told at once. It is nil where nothing is left.
func fitting(tree any, errs Errors) any {
	// What is left may lack something that is required: then that goes too. A
	// file nests no deeper than this many required properties.
	for range 8 {
		if len(errs) == 0 {
			return tree
		}

		bad := map[string]bool{}
		for _, e := range errs {
			bad[e.Path] = true
		}

		tree = without(tree, "", bad)
		if tree == nil {
			return nil
		}

		errs = validate(tree)
	}
	return nil
}

// without is a copy of the value at a path without what is bad: a property that
// is, an object that lacks one, a list one of whose elements is. It is nil for
// a value that goes altogether.
func without(v any, path string, bad map[string]bool) any {
	// A list goes as a whole with one of its elements, and an object with what it must have.
	if bad[path] {
		return nil
	}

	switch n := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(n))
		for name, value := range n {
			if kept := without(value, child(path, name), bad); kept != nil {
				out[name] = kept
			}
		}

		// It lacks what it must have: then it goes too.
		for missing := range bad {
			if name, ok := property(missing, path); ok && n[name] == nil {
				return nil
			}
		}
		return out

	case []any:
		out := make([]any, len(n))
		for i, value := range n {
			if out[i] = without(value, item(path, i), bad); out[i] == nil {
				return nil // the numbers of the others would change
			}
		}
		return out
	}
	return v
}

// property is the name of a plain property by its path and that of its object.
func property(path, object string) (name string, ok bool) {
	if object != "" {
		if path, ok = strings.CutPrefix(path, object+"."); !ok {
			return "", false
		}
	}
	return path, plainKey(path)
}

// unsaid are the errors whose paths have none yet.
func unsaid(errs, said Errors) Errors {
	paths := map[string]bool{}
	for _, e := range said {
		paths[e.Path] = true
	}
	return slices.DeleteFunc(slices.Clone(errs), func(e Error) bool { return paths[e.Path] })
}
