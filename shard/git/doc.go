// Package git keeps bare mirrors of repositories and answers questions about them. It reads packs,
// the commit graph and references itself if it can (package
// [github.com/shoalsearch/shoal/shard/git/pack]), and runs the git program for everything else.
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
// Package [github.com/shoalsearch/shoal/shard/git/run] runs git. [Mirror.Resolve] turns a reference
// from outside into a commit id. The other methods accept only commit ids, so that no name can
// become an option.
//
// Anybody who may write in a directory of this machine may own a repository there. So the package
// never writes to it, never runs git in it, and follows no path out of the directory of its
// connection (foreign.go, view.go).
//
// This package does not know catalogs, shards or jobs.
package git
