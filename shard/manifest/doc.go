// Package manifest reads which libraries a project uses, from manifests such as package.json and
// from lock files such as Cargo.lock.
//
//	path, content ─ Read ─ row of formats ─┬─ readByExpr: an expression that finds each use in a text
//	                                       └─ readPlaces: places in a tree, for several syntaxes
//
// A format is a row of the table in formats.go. trees.go parses JSON, YAML, TOML and XML
// into trees of one form, in which each value knows its line. Each file is read alone: a version that
// is only in another file, such as a catalog of versions, is unknown.
package manifest
