// Package symbol finds the definitions in source files with
// universal-ctags.
//
// A [Pool] keeps a few ctags processes running. Each gets files on its standard input, as many as
// the pipe holds, and answers one after the other: a line of fields for each symbol, and a JSON
// object at the end.
//
//	> {"command":"generate-tags","filename":"main.go","size":57}
//	> package main ...                                (57 bytes)
//	< 3	func	package	main	main
//	< {"_type": "completed", "command": "generate-tags"}
//
// For some languages ctags does not tell where definitions end: ends.go finds their ends in the text.
//
// Ctags reads whatever people push, so nothing that it does may cause harm. It runs in its sandbox
// without an environment, and sees only made-up file names. The pool kills a process that hangs or
// writes nonsense. Only the file it was working on loses its symbols: the files after it go to the
// next process. The answer for a file depends only on its bytes, its name and the version of ctags.
package symbol
