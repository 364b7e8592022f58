package config

import (
	"slices"
	"strings"
)

// fittingPart returns the part of a tree that fits the schema, without the values that errs are
// about. So the rest can be checked too, and a user sees all errors at once. It returns nil if
// nothing is left.
func fittingPart(tree any, errs Errors) any {
	// Removing a value may leave its object without a required property, which then is removed too.
	// Files do not nest more than eight such properties.
	for range 8 {
		if len(errs) == 0 {
			return tree
		}

		bad := map[string]bool{}
		for _, e := range errs {
			bad[e.Path] = true
		}

		tree = withoutBad(tree, "", bad)
		if tree == nil {
			return nil
		}

		errs = validate(tree)
	}
	return nil
}

// withoutBad returns a copy of the value at a path, without bad values. A list with a bad element and
// an object that lacks a required property are removed as a whole. It returns nil for a value that
// is removed.
func withoutBad(v any, path string, bad map[string]bool) any {
	if bad[path] {
		return nil
	}

	switch n := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(n))
		for name, value := range n {
			if kept := withoutBad(value, childPath(path, name), bad); kept != nil {
				out[name] = kept
			}
		}

		// Remove the object if it lacks a required property.
		for missing := range bad {
			if name, ok := propertyName(missing, path); ok && n[name] == nil {
				return nil
			}
		}
		return out

	case []any:
		out := make([]any, len(n))
		for i, value := range n {
			if out[i] = withoutBad(value, item(path, i), bad); out[i] == nil {
				return nil // a shorter list would change the indexes of the others
			}
		}
		return out
	}
	return v
}

// propertyName returns the name of an object's property from its path. ok is false if the path is not
// that of a plain property of the object.
func propertyName(path, object string) (name string, ok bool) {
	if object != "" {
		if path, ok = strings.CutPrefix(path, object+"."); !ok {
			return "", false
		}
	}
	return path, plainKey(path)
}

// withNewPaths returns the errors with paths that no error in said has.
func withNewPaths(errs, said Errors) Errors {
	paths := map[string]bool{}
	for _, e := range said {
		paths[e.Path] = true
	}
	return slices.DeleteFunc(slices.Clone(errs), func(e Error) bool { return paths[e.Path] })
}
