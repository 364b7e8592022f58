// Package chronicle tells owners what happened, of three sources:
//
//	Events     what nodes saw happen to the cluster   each node's own memory, lost when it stops; all are asked
//	Changes    what people changed                    events of the catalog, the same on every node, kept for days
//	Accesses   what people read, who was refused      files of the node that answered, kept for days; all are asked
//
// The first has no author and needs no leader: that there is none is one of the
// things it tells. The second is written by the leader together with the change
// itself, so that neither is without the other; [Rule] says whether, and for how
// long. The third is written beside the answer, which never waits for it, and
// without the leader: strangers must not be able to write to the catalog.
package chronicle
