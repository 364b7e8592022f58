// Package hold keeps the data on this node that belongs here: index files and mirrors, as many
// copies of each as are wanted, and none that nobody needs.
//
//	leader      Place(members, units) -> who should hold what      pure; Placer runs it
//	any node    Copier: what should be here and is not             copies it, confirms it, gives up what others have
//	any node    Collector: what is here and nobody names           deletes it; what is missing it reports as lost
//	any node    Scrubber: every file once a week                   reads it; a damaged one is put aside
//	any node    Transfers: files and mirrors between nodes         by hash, a few streams at a time
//
// Three words describe a node and a file. A target should have the file, by the placement. A holder
// has confirmed that it has the file. A live holder can be reached now. Only live holders are
// searched. A node gives up a copy only while every target is a live holder. So a move, a join or
// the replacement of a machine never leaves fewer live copies than are wanted:
//
//	targets A B    holders A B      A is replaced by C: targets B C
//	targets B C    holders A B      C copies from A or B and confirms
//	targets B C    holders A B C    A gives its copy up, if B and C can both be reached
//
// The parts share a [Files]: the directory of index files, the mirrors, and the guards of files
// that no catalog names yet.
package hold
