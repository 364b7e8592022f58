// Package browse reads repositories at any of their commits: files, trees,
// history, differences, blame. What the index has not is read from mirrors.
//
//	Browser.Source ─ Gate: may the viewer see it ─ Peers: who has the mirror ─┐
//	    ┌──────────── here: readHere ◀── this node first ─────────────────────┤
//	    └──────────── there: read.source ══▶ readHere on the other node ◀─────┘
//	                                            └─ operation.run(site, request)
//
// Each kind of read is an operation: a name, and a function of a mirror and a
// request and of nothing else, so that every holder answers alike. The links of
// an answer are joined by the node that was asked.
//
// Search results are package search's; it asks this package to look at a
// commit that is not indexed (scan.go).
package browse
