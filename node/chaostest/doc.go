// Package chaostest breaks a cluster of real processes and checks what it
// answers meanwhile.
//
// Each node is a `shoal serve` of its own: in a network namespace joined to
// the others by a bridge when the test runs as root, on 127.0.0.x otherwise.
// Writers push commits to local bare repositories and make API keys,
// searchers ask any node, and a seeded nemesis kills, pauses, cuts links and
// flips bits.
//
//	go test ./node/chaostest -chaos 2m -seed 7 -nodes 3 -v
//
// What must hold, whatever happens:
//
//	an exhaustive answer names every repository, each at one commit that was
//	pushed, with each of its files exactly once
//	a node's answers never go back to an older commit
//	an acknowledged key is there after the cluster has healed, on every node
//	after the cluster has healed every node finds the last commit of every
//	repository, and all nodes name one leader
//
// A run with too little traffic is not a pass. The package holds tests only.
package chaostest
