// Package node is one node of a shoal: it joins the cluster's agreement
// (package cluster) with the index of this machine (package shard) and makes
// the parts that answer. Every public operation is one method with plain
// structs, of the part that a Node embeds:
//
//	account.Keyring      who asks                    Authenticate, Caller, CreateKey, Keys, RevokeKey, WebhookSecret
//	account.Sessions     who signed in               Begin, SessionViewer, SessionsOf, EndSessions
//	account.Passwords    how they sign in            BeginWithPassword, SetPassword, NewLink, BeginWithLink
//	search.Searcher      all repositories at once    Search, StreamSearch, Definitions, References, Grep, Glob, Ranked
//	browse.Browser       one repository, any commit  Repos, Source, Tree, Commits, Diff, Blame, Trace, Outline, ...
//	ask.Asker            language models             Ask, Chat, Chats, WatchChat, StopChat, ForkChat, ..., Models, CheckModels
//	operate.Operations   the cluster, for owners     Drain, Remove, Jobs, Reindex, Connections, Webhook, Snapshot
//	configure.Configurer the configuration           ApplyConfig, Configuration, Contexts
//	chronicle.Chronicle  what happened               Events, Audit, NoteAccess
//	Node itself          the node and the cluster    Status, Placement, Raft, Ready, AnonymousAccess
//
// Every operation has exactly one of four shapes:
//
//	local    answered from this node's copy of the catalog  Repos, Status, Keys, Models, Authenticate
//	routed   sent to one live holder of the mirror          Source, Tree, Commits, Diff, Blame, Trace, Outline, ...
//	scatter  sent to one live holder of each needed shard   what search.Searcher finds
//	propose  a change of the catalog, through the leader    CreateKey, RevokeKey, ApplyConfig, Reindex, Webhook, Drain, Remove
//
// A method that reads takes a context with a deadline, the viewer and a
// request; one that administers takes an account.Owner in place of the viewer.
// It returns a response or an error of package call. What a viewer may not see
// does not exist for it: a hidden repository answers like a missing one.
//
// The package knows nothing of HTTP, of JSON names, of flags: package api and
// cmd do. It leaves how a shard is searched to package shard, and how nodes
// agree to package cluster.
package node
