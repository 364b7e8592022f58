// Package git keeps bare mirrors of repositories and answers questions about
// them, by running the git program.
//
//	remote ──Fetch──▶ Mirror (bare, branches and tags only)
//	                    │
//	    Revisions, Union, Blobs      what an index is built from
//	    Resolve, Source, List, Log,  what a reader browses
//	    Diff, Blame, Grep, ...
//
// Every call of git goes through one place ([run.go]): no shell, no prompt,
// no configuration but ours, arguments from outside only after
// --end-of-options or --, a deadline, a limit on output, and the whole
// process group killed when the context ends. A reference from outside is
// first made a commit id by [Mirror.Resolve]; the other methods take commit
// ids only, so that no name can become an option.
//
// A local directory that is fetched from is never written to: git reads it
// through upload-pack, as it reads a remote.
//
// Nothing here knows of catalogs, shards or jobs.
package git
