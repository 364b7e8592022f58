// Package job decides what work is due and does it.
//
//	leader      plan(kinds, view, now) -> grants, enqueues, revokes   a pure function; Leader proposes what it says
//	any node    Runner: jobs of the view that are granted here        start, progress, finish with the fence
//	any node    Poller: mirrors held here, every reindexInterval      fetch; only a change enters the log
//
// A kind of jobs is a row of a table: how many run at once, how long one may
// take, when it is due, where it runs best, what it does ([Kind]). The rows are
// in index.go, sync.go, collect.go and pack.go; the other half, what the
// catalog knows of a kind, is catalog.JobRow. What keeps the data that jobs
// make is package hold.
//
// The state machine of a job is drawn in package catalog. A job runs under a
// fence, the raft index of its grant: whatever it proposes carries the fence
// and is refused once another attempt was granted, so an attempt that comes
// late changes nothing. An attempt that dies leaves files that no view names,
// and the collector of package hold removes them.
//
// An index job:
//
//	fetch the mirror -> revisions -> the same input as the live generation? then only note the time
//	-> list blobs -> write shards (a delta where possible) -> open them -> FinishIndex: searchable
//	-> symbols from ctags -> FinishIndex again, with the symbols
package job
