// Package run runs the git program, and bounds what that may take.
//
//	run.go      one run: no shell, no prompt, no configuration but ours, a deadline, limits
//	memory.go   the memory of a run, by the objects that it works on
//	pool.go     processes that answer questions about single objects, shared by all mirrors
//	objects.go  the same answers out of the packs, without a process
//	flight.go   one answer for all who ask the same at the same time
//	network.go  the proxy and the authorities that stand between git and a host
//
// When the context of a run ends, its whole process group is killed. Arguments that come
// from outside stand only after --end-of-options or --. What the answers mean is package
// git's.
package run
