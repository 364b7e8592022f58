// Package symbols finds where a name is defined and where it is used, in all repositories at once.
//
//	name ─ symbols.go: definitions from the symbol index, references as whole words
//	     ─ similar.go: similar names, if nothing has the name
//	     ─ uses.go: the order of definitions, by directory, kind and number of uses
//	     ─ outside_code.go: references in comments and string literals
//	     ─ hierarchy.go: types that extend a type; heads.go parses declarations, methods.go compares Go methods
//	     ─ near.go: results near the reader's position come first
//	     ─ signature.go: the source at the beginning of a definition
//
// Package search checks permissions, runs the searches, and says what an answer lacks; a
// [search.Lookup] describes a search. Package shard/symbols extracts and stores the symbols of
// files.
package symbols
