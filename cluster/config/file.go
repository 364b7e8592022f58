// Package config defines the configuration file: its schema, defaults, limits and meaning.
//
//	bytes ──▶ without comments ──▶ JSON Schema ──▶ checks that a schema cannot ──▶ File
//	          and trailing commas                  express
//
// The package is pure: it looks up no environment variable and no secret. A token stays a reference
// ([Token]), an override stays a value or a reference ([Override]), and the node that needs the
// value resolves it. The same bytes give the same [File] on every node, so the cluster can
// replicate the bytes.
package config

import (
	"encoding/hex"
	"strings"
)

// File is a valid configuration file. It is immutable and safe for concurrent use.
type File struct {
	Settings          Settings
	Connections       []Connection       // sorted by name
	Contexts          []Context          // sorted by name
	Overrides         []Override         // sorted by name
	Models            []Model            // in file order; the first is the default
	Apps              []App              // in file order
	IdentityProviders []IdentityProvider // sorted by id

	// Warnings lists what is valid but should be changed: deprecated settings, references to
	// unknown names, globs that match everything.
	Warnings []Error

	hash [32]byte
}

// Hash returns the SHA-256 of the parsed bytes, in hexadecimal.
func (f *File) Hash() string { return hex.EncodeToString(f.hash[:]) }

// Connection returns the connection with this name, or nil.
func (f *File) Connection(name string) Connection {
	for _, c := range f.Connections {
		if c.Shared().Name == name {
			return c
		}
	}
	return nil
}

// Context returns the search context with this name, or nil. Without an exact match it ignores
// letter case.
func (f *File) Context(name string) *Context {
	var near *Context
	for i := range f.Contexts {
		switch c := &f.Contexts[i]; {
		case c.Name == name:
			return c
		case near == nil && strings.EqualFold(c.Name, name):
			near = c
		}
	}
	return near
}

// MaxSize is the largest configuration file accepted, in bytes.
const MaxSize = 8 << 20
