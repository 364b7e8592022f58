// Package pack reads the directory of a git repository without running git: objects from packs, the
// commit graph, and references.
//
//	Open(dir) ──▶ Store ──Info, Read, Get──▶ objects      pack-*.pack, pack-*.idx
//	                │
//	                └──────Graph──────────▶ commits      info/commit-graph, info/commit-graphs/
//	Refs(root) ─────────────────────────▶ references   refs/, packed-refs
//
// It reads only the common formats. If something is missing, unknown, too large or damaged, it
// returns ErrAskGit. The caller then runs git, which reads every format and says what is wrong.
//
// All input may be hostile. The package checks a size before it allocates memory for it. No text in
// a chain of deltas is larger than 16 MiB. The result of a read has the checksum in the index or the
// id of the object. The package opens only ordinary files.
//
// The package reads these parts of a pack of git:
//
//	"PACK" version=2 number of objects
//	an object:  kind and size of its text, 7 bits a byte, the lowest first
//	            [of a delta: how many bytes before it its base begins, or the base's id]
//	            its text or its delta, in a stream of zlib
//	...
//	checksum of all bytes before it
//
// For example, the blob "hello\n" as an object of its own:
//
//	36                            kind 3 (blob), size 6, no further byte
//	78 9c cb 48 cd c9 c9 e7 02 00 08 4b 02 1f
package pack
