// Package symbol finds the definitions in source files with the program
// universal-ctags.
//
// A [Pool] keeps a few of its processes running. Each is handed one file at
// a time on its standard input and answers with one JSON object a line:
//
//	> {"command":"generate-tags","filename":"main.go","size":57}
//	> package main ...                                (57 bytes)
//	< {"_type": "tag", "name": "main", "line": 3, "kind": "func"}
//	< {"_type": "completed", "command": "generate-tags"}
//
// The program reads whatever people push, so nothing it does may hurt: it
// runs in its sandbox without an environment, sees made-up file names only,
// and one that dies, hangs or talks nonsense is ended and costs the one file
// it was working on. The answers for a file depend on its bytes, its name and
// the program alone, so they are kept by content and version.
package symbol
