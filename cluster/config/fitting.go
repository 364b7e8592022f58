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

		badPaths := map[string]bool{}
		for _, e := range errs {
			badPaths[e.Path] = true
		}

		tree = withoutBadValues(tree, "", badPaths)
		if tree == nil {
			return nil
		}

		errs = validate(tree)
	}
	return nil
}

// withoutBadValues returns a copy of the value at a path, without bad values. A list with a bad element and
// an object that lacks a required property are removed as a whole. It returns nil for a value that
// is removed.
func withoutBadValues(v any, path string, badPaths map[string]bool) any {
	if badPaths[path] {
		return nil
	}

	switch n := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(n))
		for name, value := range n {
			if kept := withoutBadValues(value, childPath(path, name), badPaths); kept != nil {
				out[name] = kept
			}
		}

		// Remove the object if it lacks a required property.
		for missing := range badPaths {
			if name, ok := propertyName(missing, path); ok && n[name] == nil {
				return nil
			}
		}
		return out

	case []any:
		out := make([]any, len(n))
		for i, value := range n {
			if out[i] = withoutBadValues(value, item(path, i), badPaths); out[i] == nil {
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
