// Package node is one node of a shoal: it joins the cluster's agreement
// (package cluster) with the index of this machine (package shard) and offers
// every public operation as one method with plain structs.
//
// Every operation has exactly one of four shapes:
//
//	local    answered from this node's copy of the catalog     Repos, Status, Keys, Authenticate, ListRepos
//	route    sent to the first live holder of one mirror       Source, Tree, Commits, Commit, Authors, Diff, Blame,
//	                                                           Branches, Tags, ReadFile, ListTree, ListCommits, GetDiff
//	scatter  sent to one live holder of each needed shard      Search, StreamSearch, Definitions, References, Grep, Glob
//	propose  a change of the catalog, through the leader       CreateKey, RevokeKey, Reindex, Webhook, Drain, Remove
//
// A method takes a context with a deadline, the [Viewer] and a request, and
// returns a response or an [Error]. What a viewer may not see does not exist
// for it: a hidden repository answers like a missing one.
//
// The package knows nothing of HTTP, of JSON names, of flags: package api and
// cmd do. It leaves how a shard is searched to package shard, and how nodes
// agree to package cluster.
package node
