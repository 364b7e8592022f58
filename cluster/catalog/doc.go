// Package catalog is the state that all nodes agree on: configuration, connections, repositories
// and their generations of shards, jobs, keys, members, and which node holds what. It is a plain
// value and a pure function:
//
//	(State, Entry{Index, At, Commands}) --Apply--> (State, []Result)
//
// Apply reads no clock, no disk, and no map in random order. So every node that applies the same
// entries has the same state and the same [State.Hash]. The time comes from the entry, and never
// runs backwards.
//
// A [View] is the state at one index. It is immutable, needs no locks, and lives as long as the
// reader likes. Tables are ordered trees that share unchanged parts (copy on write). So a view of
// 100,000 repositories costs nothing, and a snapshot can be written while new entries are applied.
//
//	apply thread:  s.Apply(e) ; publish s.View()     any reader: v.Repo(7)
//
// Two versions of the program may serve one cluster, and must apply one log alike. So the effect of
// an entry depends on the level of the catalog. The leader raises the level once every member can
// apply it. A changed rule waits for its level:
//
//	if t.level() >= 2 { the new rule } else { the old one }
//
// See level.go. testdata/logs holds logs of each level with the states that they lead to.
// TestLogsOfEveryLevel_applyWithTheSameResults fails if a rule changes without a new level.
//
// Each kind of record is a table with a row in tables.go. Jobs are one state machine, drawn in
// job.go. The table of commands is in entry.go, snapshots are in snapshot.go. Package codec encodes
// records and commands, package tree stores them.
//
// The package leaves to others: raft, addresses in use, liveness, planning of jobs (package job),
// and secrets in clear.
package catalog
