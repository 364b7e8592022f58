// Package catalog is what all nodes agree on: configuration, connections,
// repositories and their generations of shards, jobs, keys, members and who
// holds what. It is a plain value and a pure function:
//
//	(State, Entry{Index, At, Commands}) --Apply--> (State, []Result)
//
// Apply reads no clock, no disk and no map in its own order, so every node
// that applies the same entries has the same state and the same [State.Hash].
// Time is what the entry says, and never runs backwards.
//
// A [View] is the state at one index: immutable, read without locks, kept as
// long as the reader likes. Tables are ordered trees that share what did not
// change (copy on write), so taking a view of 100,000 repositories costs
// nothing and a snapshot can be written while new entries are applied.
//
//	apply thread:  s.Apply(e) ; publish s.View()     any reader: v.Repo(7)
//
// Two versions of the program may serve one cluster, so they must apply one log
// alike. What an entry does therefore depends on the level of the catalog, which
// the leader raises once every member can apply it. A changed rule waits:
//
//	if t.level() >= 2 { the new rule } else { the old one }
//
// See level.go. Logs of each level, and the states that they came to, are in
// testdata/logs: a change of a rule that waits for no level fails TestKeptLogs.
//
// What there is of each kind is a table, with a row in tables.go. Jobs are one
// state machine, drawn in job.go. The table of commands is in entry.go, snapshots are
// in snapshot.go. Package codec writes records and commands, package tree keeps them.
//
// What the package leaves to others: raft, addresses in use, who is alive,
// what is due (package job plans), secrets in clear.
package catalog
