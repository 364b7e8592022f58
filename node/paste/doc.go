// Package paste reads what somebody pasted: which files and lines, commits, names,
// globs and addresses a text has in it, and which parts of it are likely the same in
// the source that it came from.
//
//	panic at store/store.go:412 +0x1d   ->  Place store/store.go, line 412
//	https://host/a/b/blob/main/x.c#L5   ->  Address of host/a/b, main/x.c, line 5
//	open "/tmp/x" (attempt 3): denied   ->  open .{0,120} \(attempt .{0,120}\): denied
//
// All functions are pure: nothing is looked up, and nothing says that what was read
// exists. Package suggest finds that out for a viewer.
package paste
