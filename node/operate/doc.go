// Package operate implements what owners do with a running cluster. Each type has the operations on
// one subject, and only the dependencies for them:
//
//	Drainer  nodes         Drain, Undrain, Remove
//	Queue    jobs          Jobs, Job, RetryJob, CancelJob, Reindex
//	Syncer   connections   Connections, SyncConnection, AcceptListing
//	Hooks    webhooks      WebhookKeys, RotateWebhook, Webhook, Hook
//	Archive  the catalog   Snapshot
//
// Each change is a command of the catalog. This package proposes it, and package cluster commits
// it. Moving data and running jobs follow from the catalog, in packages hold and job. So an
// operation succeeds as soon as its command is committed. Call it again to see the progress.
//
// Callers have an account.Owner, the proof that a person may administer. Only the lists of jobs are
// for other viewers too, limited to repositories that they may see.
package operate
