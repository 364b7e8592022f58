// Package paths says in which files something is looked for, in the words of
// requests: a directory, globs, tests or not.
//
//	Filter{Dir: "src", Include: ["*.go"]} ── Exprs ──▶ expressions of whole paths
//	     Atoms: for the index, which takes expressions
//	     Keeps: for a path that somebody has
//
// A glob means what package glob says. Only !(...) has no expression and is refused; a ! in
// front of a glob leaves out what it matches. Distance tells how much two names differ.
package paths
