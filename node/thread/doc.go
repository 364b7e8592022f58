// Package thread keeps what was said in conversations: sealed, on several nodes.
//
//	a question is being answered                 it has an answer
//	────────────────────────────                 ────────────────
//	events in the memory of the node that        one file, named by the hash of its sealed bytes
//	answers; a file with the question alone      on the nodes that the thread's id chooses (keep.go
//	the catalog: "running at N since T"          copies it after joins and losses, and deletes what
//	                                             no thread names any more)
//
// If the node is lost, the file with the question stands for the turn.
//
// What the files mean is the business of package ask.
package thread
