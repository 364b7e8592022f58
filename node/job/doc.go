// Package job decides what work is due, and does it.
//
//	leader      plan(kinds, view, now) -> grants, enqueues, revokes   a pure function; Leader proposes the result
//	any node    Runner: jobs in the view that are granted to it       start, progress, finish with the fence
//	any node    Poller: mirrors on this node, every reindexInterval   fetch; only a change enters the log
//
// A kind of job is a row of a table: how many run at once, how long one may take, when it is due,
// where it runs best, and what it does ([Kind]). The rows are in index.go, sync.go, collect.go,
// pack.go, readers.go and owns.go. catalog.JobRow is what the catalog knows of a kind. Package hold
// manages the files that jobs make.
//
// Package catalog has a drawing of the state machine of a job. A job runs under a fence, the raft
// index of its grant. Its proposals carry the fence and are refused once another attempt was
// granted. So a late attempt changes nothing. If an attempt dies, no view names its files, and
// package hold removes them.
//
// An index job:
//
//	fetch the mirror -> revisions -> the same input as the live generation? then only record the time
//	-> list blobs -> build shards (a delta if possible) -> open them -> FinishIndex: searchable
//	-> symbols from ctags -> FinishIndex again, with the symbols
package job
