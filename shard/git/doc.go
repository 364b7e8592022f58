// Package git keeps bare mirrors of repositories and answers questions about
// them: by reading the packs, the commit graph and the references itself where
// that does (package [github.com/shoalsearch/shoal/shard/git/pack]), and by
// running the git program for everything else.
//
//	a server      ──Fetch──▶ Mirror (bare, branches and tags only)
//	a directory   ──────────┘  │
//	another node  ──Import──┘  │
//	                           │
//	    Revisions, Union, Blobs, Scan       what an index is built from
//	    Resolve, Source, List, Files, Stat  what a reader browses
//	    Log, Last, Trace, Authors, Show, Blame
//	    Diff, Changes, Nearest
//
// How git runs is package [github.com/shoalsearch/shoal/shard/git/run]'s. A reference from
// outside is first made a commit id by [Mirror.Resolve]; the other methods take commit
// ids only, so that no name can become an option.
//
// A repository in a directory of this machine belongs to whoever may write
// there. It is never written to, git is not run in it, and nothing of it is
// followed out of the directory of its connection (foreign.go, view.go).
//
// Nothing here knows of catalogs, shards or jobs.
package git
