// Package pack reads what git keeps in the directory of a repository, without
// running git: objects out of packs, the commit graph, and references.
//
//	Open(dir) ──▶ Store ──Info, Read, Get──▶ objects      pack-*.pack, pack-*.idx
//	                │
//	                └──────Graph──────────▶ commits      info/commit-graph, info/commit-graphs/
//	Refs(root) ─────────────────────────▶ references   refs/, packed-refs
//
// It knows the common forms only. Whatever is not there, not known, too large
// or not sound is answered with ErrAskGit: whoever asked runs git then, which
// knows every form and says what is wrong. That is the only error that a
// reader has to tell apart.
//
// All input is taken for hostile. A size is checked before anything is
// allocated for it, no text of a chain of deltas is larger than 16 MiB, what a
// read returns has the checksum or the id that was asked for, and a file is
// opened only when it is an ordinary one.
//
// A pack of git, as far as it is read here:
//
//	"PACK" version=2 number of objects
//	an object:  kind and size of its text, 7 bits a byte, the lowest first
//	            [where its base is: so many bytes before it, or the base's id]
//	            its text, or what makes it of its base's, in a stream of zlib
//	...
//	checksum of all before
//
// For example, the blob "hello\n" as an object of its own:
//
//	36                            kind 3 (blob), size 6, no further byte
//	78 9c cb 48 cd c9 c9 e7 02 00 08 4b 02 1f
package pack
