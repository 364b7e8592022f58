// Package call has what all parts of a node need to talk to callers and to other nodes: the kinds
// of errors, and calls from node to node.
//
//	part ── Method.Ask ── encode ── cluster.Call ══▶ decode ── Method.Serve's function
//	     ◀── Kinds gives the error its kind again ══ name of the kind ◀── [Error]
//
// A failure is an [Error] of one of the kinds in [Kinds]. A kind is one row: its name between
// nodes, its status and code over HTTP, the hint for a model, and whether another node may do
// better. Nothing else maps errors.
//
// A call is a [Method]: a name, and the types of its question and answer. Both are encoded in the
// same way, after a version byte.
//
// If several nodes can answer, a [Race] asks them in turn. [Peers] records how fast and how busy
// they are, and which gave no answer.
//
// The package knows nothing about searches, repositories or accounts.
package call
