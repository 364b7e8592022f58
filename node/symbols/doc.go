// Package symbols finds where a name is defined and where it is used, in all
// repositories at once.
//
//	name ─ symbols.go: definitions by the index of symbols, references by whole words
//	     ─ similar.go: where nothing bears the name, names that are like it
//	     ─ uses.go: the order of definitions, by place, kind and number of uses
//	     ─ outside_code.go: which references stand in comments and string literals
//	     ─ hierarchy.go: which types extend one: heads.go reads heads, methods.go compares methods of Go
//	     ─ near.go: what is near the place of a reader comes first
//	     ─ signature.go: the source by which a symbol is defined
//
// What a viewer may see, the search itself and what an answer lacks are package
// search's: it is asked by a [search.Lookup]. How symbols are taken from a file and
// kept is package shard/symbols'.
package symbols
