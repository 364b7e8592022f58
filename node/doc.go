// Package node is one node of a shoal: it joins the cluster's agreement
// (package cluster) with the index of this machine (package shard) and makes
// the parts that answer. Each part is a field of Node and has the operations of
// its subject, as methods with plain structs:
//
//	Keys       account.Keyring      who asks                    Authenticate, Caller, CreateKey, Keys, RevokeKey, WebhookSecret
//	Sessions   account.Sessions     who signed in               Begin, SessionViewer, SessionsOf, EndSessions
//	Passwords  account.Passwords    how they sign in            BeginWithPassword, SetPassword, NewLink, BeginWithLink
//	People     account.People       who may sign in             CreateUser, Users, ChangeUser, Grant, Why
//	Search     symbols.Finder       all repositories at once    Search, StreamSearch, Definitions, References, Grep, Glob, Ranked
//	Browse     browse.Browser       one repository, any commit  Repos, Source, Tree, Commits, Diff, Blame, Trace, Outline, ...
//	Ask        ask.Asker            language models             Ask, Chat, Chats, WatchChat, StopChat, ForkChat, ..., Models, CheckModels
//	Operate    operate.Operations   the cluster, for owners     Drain, Remove, Jobs, Reindex, Connections, Webhook, Snapshot
//	Config     configure.Configurer the configuration           ApplyConfig, Configuration, Contexts
//	Chronicle  chronicle.Chronicle  what happened               Events, Audit, NoteAccess
//
// Node itself answers about the node and the cluster: Status, Placement, Raft, Ready.
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
