// Package job decides what work is due and does it.
//
//	leader      Plan(view, now) -> grants, enqueues, revokes     a pure function, in a loop of ten lines
//	any node    Runner: jobs of the view that are granted here   start, progress, finish with the fence
//	any node    Poller: mirrors held here, every reindexInterval fetch; only a change enters the log
//	any node    Keeper: files of this disk against the catalog   remove orphans, report and rebuild losses
//
// The state machine of a job is drawn in package catalog. A job runs under a
// fence, the raft index of its grant: whatever it proposes carries the fence
// and is refused once another attempt was granted, so an attempt that comes
// late changes nothing. An attempt that dies leaves files that no view names,
// and the keeper removes them.
//
// An index job:
//
//	fetch the mirror -> revisions -> the same input as the live generation? then only note the time
//	-> list blobs -> write shards (a delta where possible) -> open them -> FinishIndex: searchable
//	-> symbols from ctags -> FinishIndex again, with the symbols
package job
