// Package thread keeps what was said in conversations: sealed, on several
// nodes, and so that another node can go on where one was killed.
//
//	a question is being answered                it has an answer
//	────────────────────────────                ────────────────
//	Run: a log of entries, in order             one file, named by the hash of its sealed bytes
//	  written here, then on the other copy,     on the nodes that the thread's id chooses (keep.go
//	  and only then told to be safe             copies it after joins and losses, and deletes what
//	the catalog says who the copies are         no thread names any more)
//
// What is told to be safe is on all copies that the catalog names, so whichever
// of them goes on has it. A copy that cannot be reached is taken out of the
// catalog's list first; a runner whose fence is no longer that of the catalog
// is refused by the copy that goes on. So no two nodes number events of one
// thread differently.
//
// What the entries and files mean is the business of package ask.
package thread
