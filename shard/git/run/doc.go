// Package run runs the git program, and limits what a run may use.
//
//	run.go      one run: no shell, no prompt, no configuration but ours, a deadline, limits
//	memory.go   the memory of a run, by the size of its objects
//	pool.go     processes that answer questions about single objects, shared by all mirrors
//	objects.go  the same answers from the packs, without a process
//	flight.go   one answer for all callers with the same question at the same time
//	network.go  the proxy and the certificate authorities between git and a host
//
// When the context of a run ends, the package kills its whole process group. Callers pass arguments
// from outside only after --end-of-options or --. Package git interprets the answers.
package run
