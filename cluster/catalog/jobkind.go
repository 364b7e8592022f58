package catalog

import "fmt"

// JobKind is a kind of job. Its number is in the log and never changes.
type JobKind uint8

// The kinds of jobs and their subjects.
const (
	JobSync        JobKind = 1 // lists a connection; subject: its name
	JobIndex       JobKind = 2 // fetches and indexes a repository; subject: RepoSubject
	JobCollect     JobKind = 3 // removes an orphaned repository; subject: RepoSubject
	JobAccountSync JobKind = 4 // asks a code host what a person may read; subject: ReaderKey
	JobRepoSync    JobKind = 5 // asks a code host who may read a repository; subject: RepoSubject
	JobPack        JobKind = 6 // joins small index files of repositories with the same members; subject: PackSubject
)

// JobRow is what the catalog knows of a kind of job. Package node/job plans and runs it.
type JobRow struct {
	Kind   JobKind
	Name   string // in status, logs and metrics
	OfRepo bool   // the subject is a RepoSubject; the job is deleted with the repository

	// Own means that success changes more than the job, so the kind has its own command for it, as
	// FinishIndex. Other kinds succeed by FinishJob.
	Own bool

	exists func(t *txn, subject string) bool // whether the subject exists; nil: any but ""
	failed func(t *txn, c *FinishJob)        // also records a failure elsewhere; may be nil
}

// jobRows is the table of kinds. To add one, add a number above, a row here, and a row in package
// node/job.
var jobRows = []JobRow{
	{Kind: JobSync, Name: "sync", Own: true, exists: hasConnection, failed: connectionFailed},
	{Kind: JobIndex, Name: "index", Own: true, OfRepo: true, exists: hasRepo},
	{Kind: JobCollect, Name: "collect", Own: true, OfRepo: true, exists: hasRepo},
	{Kind: JobAccountSync, Name: "account_permissions", Own: true, exists: hasReader},
	{Kind: JobRepoSync, Name: "repo_permissions", Own: true, OfRepo: true, exists: hasRepo},
	{Kind: JobPack, Name: "pack", Own: true, exists: hasMembers},
}

// JobKinds returns all kinds.
func JobKinds() []JobKind {
	var kinds []JobKind
	for _, row := range jobRows {
		kinds = append(kinds, row.Kind)
	}
	return kinds
}

// String returns the name of a kind for status, logs and metrics.
func (k JobKind) String() string {
	if row := rowOf(jobRows, k); row != nil {
		return row.Name
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// OfRepo reports whether the subject of jobs of this kind is a repository.
func (k JobKind) OfRepo() bool {
	row := rowOf(jobRows, k)
	return row != nil && row.OfRepo
}

// rowOf returns the row of a kind, or nil if this version does not know it.
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

// connectionFailed records the failure of a sync at its connection.
func connectionFailed(t *txn, c *FinishJob) {
	conn := t.connections.Get(c.Subject)
	if conn == nil {
		return
	}

	n := *conn
	n.Error = clipText(c.Error)
	if c.TokenRefused {
		n.takeRefusal(t.now)
	}
	t.putConnection(conn, &n)
}
