package config

import (
	"slices"
	"strings"
)

// Error is one thing wrong with a configuration file.
type Error struct {
	Path    string `json:"path"` // JSON path, as connections.main.exclude.size.min; empty for the whole file
	Message string `json:"text"` // a sentence that says what to do
}

func (e Error) Error() string {
	if e.Path == "" {
		return e.Message
	}
	return e.Path + ": " + e.Message
}

// Errors is everything wrong with a configuration file, sorted by path. It
// is what Parse returns.
type Errors []Error

func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, one := range e {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

// sorted puts the errors in the order of their paths, each once.
func (e Errors) sorted() Errors {
	slices.SortFunc(e, func(a, b Error) int {
		if c := strings.Compare(a.Path, b.Path); c != 0 {
			return c
		}
		return strings.Compare(a.Message, b.Message)
	})
	return slices.Compact(e)
}
