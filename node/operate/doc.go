// Package operate is what owners do with a cluster that runs. Each type has the
// operations on one thing, and the few things that it needs for them:
//
//	Drainer  nodes         Drain, Undrain, Remove
//	Queue    jobs          Jobs, Job, RetryJob, CancelJob, Reindex
//	Syncer   connections   Connections, SyncConnection, AcceptListing
//	Hooks    webhooks      WebhookKeys, RotateWebhook, Webhook, Hook
//	Archive  the catalog   Snapshot
//
// What changes something is a command of the catalog, made here and agreed on
// by package cluster: that a node moves its data, or a job begins, follows from
// the catalog and happens elsewhere (packages hold and job). So an operation has
// succeeded when it is written down, and is asked for again to see how far it is.
//
// Whoever calls has an account.Owner, the proof that somebody may administer;
// only lists of jobs are for other viewers too, as far as they may see the
// repositories.
package operate
