// Package symbol finds the definitions in source files with
// universal-ctags.
//
// A [Pool] keeps a few of its processes running. Each is handed files on its
// standard input, as many as the pipe holds, and answers one after the other:
// a line of fields for each symbol, and a JSON object at the end.
//
//	> {"command":"generate-tags","filename":"main.go","size":57}
//	> package main ...                                (57 bytes)
//	< 3	func	package	main	main
//	< {"_type": "completed", "command": "generate-tags"}
//
// Of some languages ctags does not tell where definitions end: ends.go reads that off the text.
//
// Ctags reads whatever people push, so nothing it does may hurt: it
// runs in its sandbox without an environment, sees made-up file names only,
// and one that dies, hangs or talks nonsense is ended and costs the one file
// it was working on: those after it are sent to the next. The answers for a file depend on its bytes, its name and
// ctags alone, so they are kept by content and version.
package symbol
