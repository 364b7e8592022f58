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
// All input may be hostile. A size is checked before memory is allocated for it. No text in a chain
// of deltas is larger than 16 MiB. The result of a read has the checksum or the id that was asked
// for. Only ordinary files are opened.
//
// The parts of a pack of git that are read here:
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
