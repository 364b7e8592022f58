// Package config is the configuration file: its schema, its defaults and
// bounds, and what it means.
//
//	bytes ──▶ without comments ──▶ JSON Schema ──▶ checks that a schema cannot ──▶ File
//	          and trailing commas                  express
//
// The package is pure. It looks up no environment variable and no secret: a
// token stays a reference ([Token]), an override stays a value or a reference
// ([Override]), and the node that needs the value resolves it. The same bytes
// give the same [File] on every node, so the cluster can replicate the bytes.
package config

import (
	"encoding/hex"
	"strings"
)

// File is a valid configuration file. It is immutable once parsed and safe
// for concurrent use.
type File struct {
	Settings          Settings
	Connections       []Connection       // sorted by name
	Contexts          []Context          // sorted by name
	Overrides         []Override         // sorted by name
	Models            []Model            // in the order of the file; the first is the default
	Apps              []App              // in the order of the file
	IdentityProviders []IdentityProvider // sorted by id

	// Warnings says what is accepted but should be changed: deprecated
	// settings, references to names that do not exist, globs that match all.
	Warnings []Error

	hash [32]byte
}

// Hash is the SHA-256 of the bytes that were parsed, in hexadecimal. Two
// files with the same hash mean the same.
func (f *File) Hash() string { return hex.EncodeToString(f.hash[:]) }

// Connection returns the connection called name, or nil.
func (f *File) Connection(name string) Connection {
	for _, c := range f.Connections {
		if c.Shared().Name == name {
			return c
		}
	}
	return nil
}

// Context returns the search context called name, or nil. Where none is called just so,
// letters match in either case.
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
