// Package chronicle tells owners what happened, of two sources:
//
//	Events   what nodes saw happen to the cluster   each node's own memory, lost when it stops; all are asked
//	Audit    what people changed                    events of the catalog, the same on every node, kept for days
//
// The first has no author and needs no leader: that there is none is one of the
// things it tells. The second is written by the leader together with the change
// itself, so that neither is without the other; [Rule] says whether, and for how
// long.
package chronicle
