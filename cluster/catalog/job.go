package catalog

import "time"

// A kind and a subject identify a job; there is at most one.
//	              Enqueue (again while running: Rerun)
//	                  |
//	               Waiting <-------------------------+
//	                  | Grant: Fence = index of the  | NotBefore
//	                  |        entry, Node, Deadline | reached
//	               Running -- Release, Revoke --> Waiting
//	                  |    \-- Finish, failed --> Backoff --+
//	   Finish, good   |     \- Finish, failed for good --> Failed
//	                 Done      revoked MaxResets times --> Failed
//	Done, Failed -- Enqueue --> Waiting        any -- subject leaves --> gone
// Finish, Release, Revoke and every change by a job carry its fence. A command with another fence
// is refused and changes nothing. So effects happen once, even if several nodes believe that they
// run the job.

// JobState is the state of a job.
type JobState uint8

// The states of a job.
const (
	JobWaiting JobState = 1
	JobRunning JobState = 2
	JobBackoff JobState = 3 // failed; runs again from NotBefore on
	JobDone    JobState = 4
	JobFailed  JobState = 5 // failed for good, until it is enqueued again
)

// Job is one job. Records are immutable.
type Job struct {
	Kind    JobKind
	Subject string
	State   JobState
	Urgent  bool // a person or a push requested it: it goes first
	Rerun   bool // it was enqueued again while it ran
	Attempt uint32
	Resets  uint32 // how often in a row it lost its node

	Fence    uint64 // index of the entry that last granted it; 0: never granted
	Node     string // the node that runs it, or ran it last
	Epoch    uint64 // of Node at the grant
	Deadline time.Time

	EnqueuedAt time.Time
	GrantedAt  time.Time
	FinishedAt time.Time // end of the last attempt
	GoodAt     time.Time // end of the last successful attempt
	NotBefore  time.Time // earliest time of the next grant

	Error string // of the last attempt; "" after success
	Seen  uint32 // JobSync: repositories listed so far under Fence
}

// MaxResets is how often in a row a job may lose its node. After that it fails for good, since it
// may be what crashes the nodes.
const MaxResets = 5

// JobKey identifies a job.
type JobKey struct {
	Kind    JobKind
	Subject string
}

// Key returns the key of the job.
func (j *Job) Key() JobKey { return JobKey{j.Kind, j.Subject} }

// Failing reports whether the last attempt failed, whether or not it will be retried. A nil job is
// not failing.
func (j *Job) Failing() bool {
	return j != nil && j.Error != "" && (j.State == JobFailed || j.State == JobBackoff)
}
