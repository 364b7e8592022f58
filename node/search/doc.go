// Package search finds things in all repositories at once: it plans a search
// from one view of the catalog, asks one live holder of each shard, and merges
// what comes back into one answer.
//
//	request ─ question.go: what is asked, what the viewer may see, sets of repositories
//	        ─ past.go: what only git has of it
//	        ─ layout.go: the exact list of shards, and who has each
//	        ─ scatter.go: a round: one call for each node; the next holder on failure, two at once on silence
//	              │                         ═══ between nodes ═══
//	              └─ leaf.go: a verdict for each shard, and what it has
//	        ─ merge.go: the answer so far, in total order, within limits
//	        ─ answer.go: the response with its proof;  stream.go: the same in parts
//	        ─ pages.go: where it ends, and where the next answer goes on
//
// A root (root.go) joins the question, which does not change, the rounds and the answer.
// A shape (shape.go) is what an answer is made of: files with their matches,
// files alone, repositories. Searches for lines and paths (grep.go, glob.go) and those
// of other packages (a Lookup, files.go) are searches with another form; a commit that
// is not indexed is read from a mirror, beside the index (unindexed.go).
//
// How a shard is searched is package shard's; what a viewer may see package
// account's; definitions and references package symbols'.
package search
