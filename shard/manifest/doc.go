// Package manifest reads which libraries a project uses, from the files that say so: manifests,
// as package.json, and lock files, as Cargo.lock.
//
//	path, content ─ Read ─ row of formats ─┬─ expr: an expression that finds each use in a text
//	                                       └─ at: places in a tree, whichever syntax it is written in
//
// A format is a row of the table in formats.go. trees.go parses JSON, YAML, TOML and XML by
// libraries into one form, in which each value knows its line. Files are read alone: what
// another file says, as a catalog of versions, stands there.
package manifest
