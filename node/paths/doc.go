// Package paths describes which files a request is about: by a directory, by globs, with or without
// tests.
//
//	Filter{Dir: "src", Include: ["*.go"]} ── Exprs ──▶ expressions of whole paths
//	     Atoms: for the index, which takes expressions
//	     Keeps: for a path that somebody has
//
// A glob means what package glob says. Only !(...) has no expression, so it is refused. A ! in
// front of a glob excludes what the glob matches. Distance returns how much two names differ.
package paths
