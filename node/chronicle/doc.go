// Package chronicle lists for owners what happened, from three sources:
//
//	Events     what happened to the cluster      in each node's memory, lost when it stops; all nodes are asked
//	Changes    what people changed               events of the catalog, the same on each node, kept for days
//	Accesses   what people read, and refusals    files of the node that answered, kept for days; all nodes are asked
//
// Events have no author and need no leader, because the loss of the leader is one of them. The
// leader writes each change's event together with the change, so that neither exists without the
// other; [Rule] says whether, and for how long. Nodes write accesses after the answer, which never
// waits for it, and without the leader, so that anonymous requests cannot fill the catalog.
package chronicle
