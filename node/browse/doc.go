// Package browse reads repositories at any of their commits: files, trees, history, differences,
// blame. It reads mirrors for everything that the index lacks.
//
//	Browser.Source ─ Gate: may the viewer see it ─ Peers: who has the mirror ─┐
//	    ┌──────────── here: readHere ◀── this node first ─────────────────────┤
//	    └──────────── there: read.source ══▶ readHere on the other node ◀─────┘
//	                                            └─ operation.run(site, request)
//
// Each kind of read is an operation: a name, and a function of only a mirror and a request, so that
// every holder gives the same answer. The node that got the request adds the links.
//
// Package search has the search results. It calls this package to search an unindexed commit
// (scan.go).
package browse
