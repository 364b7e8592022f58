// Package search searches all repositories at once. It plans a search from one view of the catalog,
// asks one live holder of each shard, and merges the results into one answer.
//
//	request ─ question.go: the parsed query, what the viewer may see, sets of repositories
//	        ─ past.go: what only git can search
//	        ─ layout.go: the exact list of shards, and who has each
//	        ─ scatter.go: a round: one call for each node; the next holder on failure, two at once on silence
//	              │                         ═══ between nodes ═══
//	              └─ leaf.go: a verdict for each shard, and its results
//	        ─ merge.go: the answer so far, in total order, within limits
//	        ─ answer.go: the response with its proof;  stream.go: the same in parts
//	        ─ pages.go: where it ends, and where the next answer continues
//
// A root (root.go) has the question, which does not change, the rounds and the answer. A shape
// (shape.go) is the form of an answer: files with their matches, files alone, or repositories.
// Searches for lines and paths (grep.go, glob.go) and those of other packages (a Lookup, files.go)
// are searches with another form. An unindexed commit is read from a mirror, in addition to the
// index (unindexed.go).
//
// Package shard searches one shard, package account knows what a viewer may see, and package
// symbols finds definitions and references.
package search
