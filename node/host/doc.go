// Package host finds the repositories of a connection.
//
//	Open(connection) ──▶ Host.List ──▶ Sink: repositories, issues, what is left out
//
// A listing is what a code host says now: names, links, where to clone from.
// It says whether it is complete; one that is not (a host that answered in
// part, a directory that could not be read) must never lead to a deletion.
//
// How a repository is fetched is shard/git's business, and what is done with
// a listing is node/job's.
package host
