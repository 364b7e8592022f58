// Package call is what every part of a node says to its callers and to other
// nodes: how an operation can fail, and how one node asks another.
//
//	part ── Method.Ask ── encode ── cluster.Call ══▶ decode ── Method.Serve's function
//	     ◀── Kinds gives the error its kind again ══ name of the kind ◀── [Error]
//
// A failure is an [Error] of one of the kinds in [Kinds]. A kind is one row:
// its name between nodes, its status and code over HTTP, what a model is told,
// and whether another node may do better. Nothing else maps errors.
//
// A call is a [Method]: a name and the shapes of its question and answer. Both
// travel in one encoding, with its version in front.
//
// Where several nodes can answer, a [Race] asks them in turn, and [Peers] is what
// is known of them: how fast they are, how busy, and which gave no answer.
//
// The package decides nothing about searches, repositories or accounts.
package call
