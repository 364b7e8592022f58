package catalog

import "time"

// A job is found by its kind and subject; there is at most one.
//
//	              Enqueue (again while running: Rerun)
//	                  |
//	               Waiting <-------------------------+
//	                  | Grant: Fence = index of the  | NotBefore
//	                  |        entry, Node, Deadline | reached
//	               Running -- Release, Revoke --> Waiting
//	                  |    \-- Finish, failed --> Backoff --+
//	   Finish, good   |     \- Finish, failed for good --> Failed
//	                 Done      revoked MaxResets times --> Failed
//
//	Done, Failed -- Enqueue --> Waiting        any -- subject leaves --> gone
//
// Finish, Release, Revoke and everything that a job changes carry the fence;
// with another fence than the running one they are refused and change
// nothing. So effects happen once, however many nodes believe that they hold a
// job.

// JobState is where a job is.
type JobState uint8

// The states of a job.
const (
	JobWaiting JobState = 1
	JobRunning JobState = 2
	JobBackoff JobState = 3 // failed, waits for NotBefore and then runs again
	JobDone    JobState = 4
	JobFailed  JobState = 5 // failed for good: until it is enqueued again
)

// Job is one job. Records are immutable.
type Job struct {
	Kind    JobKind
	Subject string
	State   JobState
	Urgent  bool // asked for by a person or a push: before the others
	Rerun   bool // enqueued again while running
	Attempt uint32
	Resets  uint32 // how often in a row its node was lost

	Fence    uint64 // index of the entry that granted it last; 0 before the first grant
	Node     string // who runs it, or ran it last
	Epoch    uint64 // boot epoch of Node at the grant
	Deadline time.Time

	EnqueuedAt time.Time
	GrantedAt  time.Time
	FinishedAt time.Time // end of the last attempt
	GoodAt     time.Time // end of the last good one
	NotBefore  time.Time // not to be granted earlier

	Error string // of the last attempt; empty when it was good
	Seen  uint32 // JobSync: repositories listed so far under Fence
}

// MaxResets is how often a job may lose its node in a row before it is
// believed to kill nodes and fails for good.
const MaxResets = 5

// JobKey finds a job.
type JobKey struct {
	Kind    JobKind
	Subject string
}

// Key returns the key of the job.
func (j *Job) Key() JobKey { return JobKey{j.Kind, j.Subject} }

// Failing reports whether the last attempt failed, whether it is repeated or not. A job
// that is nil has none.
func (j *Job) Failing() bool {
	return j != nil && j.Error != "" && (j.State == JobFailed || j.State == JobBackoff)
}
