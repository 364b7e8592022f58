package config

import (
	"slices"
	"strings"
)

// Error is one problem of a configuration file.
type Error struct {
	Path    string `json:"path"` // JSON path, as connections.main.exclude.size.min; "": the whole file
	Message string `json:"text"` // a sentence that tells what to do
}

func (e Error) Error() string {
	if e.Path == "" {
		return e.Message
	}
	return e.Path + ": " + e.Message
}

// Errors lists all problems of a configuration file, sorted by path. Parse returns it.
type Errors []Error

func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, one := range e {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

// normalized sorts the errors by path and removes duplicates.
func (e Errors) normalized() Errors {
	slices.SortFunc(e, func(a, b Error) int {
		if c := strings.Compare(a.Path, b.Path); c != 0 {
			return c
		}
		return strings.Compare(a.Message, b.Message)
	})
	return slices.Compact(e)
}
