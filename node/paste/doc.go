// Package paste parses pasted text. It finds files with lines, commits, names, globs and
// addresses. It also makes search patterns for the parts of a message that the source
// likely has.
//
//	panic at store/store.go:412 +0x1d   ->  Place store/store.go, line 412
//	https://host/a/b/blob/main/x.c#L5   ->  Address of host/a/b, main/x.c, line 5
//	open "/tmp/x" (attempt 3): denied   ->  open .{0,120} \(attempt .{0,120}\): denied
//
// All functions are pure. They look nothing up, so what they return may not exist; package
// suggest looks it up.
package paste
