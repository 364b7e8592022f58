// Package difftest compares the answers of a node with a plain scan.
//
// A zoo of repositories has each encoding, line end, kind of name and shape of history
// that people have met. Random calls go to the routes and tools of a node. A twin answers
// each call again: git lists and reads the files, and Go's regexp looks into all of them.
//
//	an answer that says it is complete equals the scan
//	an answer that does not names what is missing, and has nothing that the scan has not
//	a refusal is true: what it says does not exist, the scan does not have either
//
// A call that fails is printed with its seed, its number and its arguments, after those
// that make no difference were taken away:
//
//	go test ./api/difftest -cases 100000 -v
//	go test ./api/difftest -seed 7 -only 1234
//
// The package holds tests only.
package difftest
