package catalog

import "fmt"

// JobKind is what a job does. Its number is in the log and never changes.
type JobKind uint8

// The kinds of jobs and their subjects.
const (
	JobSync        JobKind = 1 // lists a connection; subject: its name
	JobIndex       JobKind = 2 // fetches and indexes a repository; subject: RepoSubject
	JobCollect     JobKind = 3 // removes an orphaned repository; subject: RepoSubject
	JobAccountSync JobKind = 4 // what somebody may read at a code host; subject: ReaderKey
	JobRepoSync    JobKind = 5 // who may read a repository; subject: RepoSubject
	JobPack        JobKind = 6 // joins small files of repositories that are held by the same members; subject: PackSubject
)

// JobRow is what the catalog knows of a kind of jobs. How one is planned and
// run is the other half, in package node/job.
type JobRow struct {
	Kind   JobKind
	Name   string // in status, logs and metrics
	OfRepo bool   // the subject is a RepoSubject: the job leaves with the repository

	// Own is set where a good end changes more than the job, so that a command
	// of the kind's own says it (FinishIndex, ...). The others end well by
	// FinishJob.
	Own bool

	exists func(t *txn, subject string) bool // there is such a subject; nil: any that is not empty
	failed func(t *txn, c *FinishJob)        // notes a failure outside the job; nil: nothing to note
}

// jobRows is the table of kinds. To add one: a number above, a row here, and
// a row in package node/job.
var jobRows = []JobRow{
	{Kind: JobSync, Name: "sync", Own: true, exists: hasConnection, failed: connectionFailed},
	{Kind: JobIndex, Name: "index", Own: true, OfRepo: true, exists: hasRepo},
	{Kind: JobCollect, Name: "collect", Own: true, OfRepo: true, exists: hasRepo},
	{Kind: JobAccountSync, Name: "account_permissions", Own: true, exists: hasReader},
	{Kind: JobRepoSync, Name: "repo_permissions", Own: true, OfRepo: true, exists: hasRepo},
	{Kind: JobPack, Name: "pack", Own: true, exists: hasMembers},
}

// JobKinds lists the kinds.
func JobKinds() []JobKind {
	var kinds []JobKind
	for _, row := range jobRows {
		kinds = append(kinds, row.Kind)
	}
	return kinds
}

// String is the name of a kind in status, logs and metrics.
func (k JobKind) String() string {
	if row := rowOf(jobRows, k); row != nil {
		return row.Name
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// OfRepo reports whether jobs of a kind are about a repository.
func (k JobKind) OfRepo() bool {
	row := rowOf(jobRows, k)
	return row != nil && row.OfRepo
}

// rowOf returns nil for a kind that this version does not know.
func rowOf(rows []JobRow, kind JobKind) *JobRow {
	for i := range rows {
		if rows[i].Kind == kind {
			return &rows[i]
		}
	}
	return nil
}

func hasConnection(t *txn, subject string) bool { return t.connections.Get(subject) != nil }

func hasRepo(t *txn, subject string) bool {
	id := SubjectRepo(subject)
	return t.repos.Get(id) != nil && RepoSubject(id) == subject
}

func hasMembers(_ *txn, subject string) bool {
	_, ok := SubjectMembers(subject)
	return ok
}

// connectionFailed shows the failure of a sync at its connection.
func connectionFailed(t *txn, c *FinishJob) {
	conn := t.connections.Get(c.Subject)
	if conn == nil {
		return
	}

	n := *conn
	n.Error = clip(c.Error)
	if c.TokenRefused {
		n.takeRefusal(t.now)
	}
	t.putConnection(conn, &n)
}
