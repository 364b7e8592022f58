// Package chaostest breaks a cluster of real processes and checks what it
// answers meanwhile.
//
// Each node is a `shoal serve` of its own: in a network namespace joined to
// the others by a bridge when the test runs as root, else on 127.x.y.z with a
// proxy between any two. Writers push commits, make and revoke API keys, add
// and take away repositories and connections and change a context; searchers
// ask any node, as behind a load balancer; and a seeded nemesis (nemesis_test.go)
// kills and stops processes, damages links, turns bits, fills disks, puts old
// data directories and configuration files back, copies those of running
// nodes, takes their connections, empties the same machine again and again, lets
// a fourth node come and go, and makes one of three a cluster of its own, into
// which a node of the old one walks.
//
//	go test ./node/chaostest -chaos 2m -seed 7 -v
//	go test ./node/chaostest -chaos 2m -runs 60 -parallel 3 -results runs.jsonl
//	go test ./node/chaostest -chaos 1m -faults kill,isolate -rootless
//	make chaos-pairs: half of the nodes run the last release, and change to the other one
//
// What must hold, whatever happens:
//
//	an answer shows each repository at one commit that was pushed, with each
//	of its files exactly once, or not at all; what it lacks it names
//	an exhaustive answer has every repository; any two at the same index of
//	the catalog are equal, and with the index versions never go back
//	the answers to making, revoking and listing keys are linearizable
//	an acknowledged key is there in the end, on every node
//	no two nodes lead in a term; a new leader takes at most 10 s, serving
//	after the loss of all nodes at most 30 s
//	after the cluster has healed all nodes see each other within 60 s, find
//	the last commit of every repository, have equal catalogs, have the bytes
//	that they confirmed, twice each, and keep no file that nothing names
//	a node ends by itself only where its disk or log is broken, and then it
//	says so
//
// A run with too little traffic is not a pass. The package holds tests only.
package chaostest
