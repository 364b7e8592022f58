// Package host lists the repositories of a connection.
//
//	Open(connection) ──▶ Host.List ──▶ Sink: repositories, issues, and what is left out
//
// A listing has what a code host reports now: names, links and clone URLs. It says whether it is
// complete. A partial listing must never remove repositories.
//
// Package shard/git fetches repositories, and package node/job uses the listings.
package host
