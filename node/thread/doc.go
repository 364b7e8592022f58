// Package thread stores the turns of conversations, encrypted, on several nodes.
//
//	a question is being answered                 it has an answer
//	────────────────────────────                 ────────────────
//	events in the memory of the node that        one file, named by the hash of its sealed bytes
//	answers; a file with the question alone      on the nodes that the thread's id chooses (keep.go
//	the catalog: "running at N since T"          copies it after joins and losses, and deletes what
//	                                             no thread names any more)
//
// If the node is lost, the turn is the file with only the question.
//
// Package ask defines what the files contain.
package thread
