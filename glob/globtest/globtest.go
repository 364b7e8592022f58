// Package globtest has patterns with names that they match and names that they do not match. Every
// part of the product that takes globs must agree with it.
package globtest

import (
	_ "embed"
	"strings"
)

// micromatch 4.0.8 with its option "dot" gives the same answers, except for [!a], {a}, ranges of
// numbers, and ** in braces.
//
//go:embed table.txt
var table string

// Row is a pattern with the names that it matches and others.
type Row struct {
	Pattern         string
	Matches, Others []string
}

// Rows returns the rows of the table.
func Rows() (rows []Row) {
	for line := range strings.Lines(table) {
		columns := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		rows = append(rows, Row{columns[0], strings.Fields(columns[1]), strings.Fields(columns[2])})
	}
	return rows
}

// Wrong returns the names of a row for which match gives another answer.
func (r Row) Wrong(match func(name string) bool) (wrong []string) {
	for i, names := range [][]string{r.Matches, r.Others} {
		for _, name := range names {
			if match(name) != (i == 0) {
				wrong = append(wrong, name)
			}
		}
	}
	return wrong
}
