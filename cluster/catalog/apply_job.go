package catalog

import (
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog/tree"
)

// jobKey returns the key of a job in the table of jobs.
func jobKey(kind JobKind, subject string) string { return string([]byte{byte(kind)}) + subject }

// stateKey returns the key of a job in the index by state.
func stateKey(j *Job) string { return string([]byte{byte(j.State)}) + jobKey(j.Kind, j.Subject) }

// runningKey returns the key of a job in the index by node.
func runningKey(j *Job) string { return j.Node + "\x00" + jobKey(j.Kind, j.Subject) }

// setJob stores a job and updates the indexes of jobs.
func (s *State) setJob(j *Job) {
	// Remove the old job from the indexes first: their keys contain the old state.
	s.unindexJob(s.jobs.Get(jobKey(j.Kind, j.Subject)))
	s.jobs.Set(jobKey(j.Kind, j.Subject), j)
	s.indexJob(j)
}

// indexJob adds a job to the indexes by state, by grant order and by node.
func (s *State) indexJob(j *Job) {
	s.jobStates.Set(stateKey(j), struct{}{})
	if j.isWaiting() {
		s.turns.Set(turnKey(j), struct{}{})
	}
	if j.State == JobRunning {
		s.running.Set(runningKey(j), struct{}{})
	}
}

// unindexJob removes a job from the indexes; nil: does nothing.
func (s *State) unindexJob(j *Job) {
	if j == nil {
		return
	}
	s.jobStates.Delete(stateKey(j))
	if j.isWaiting() {
		s.turns.Delete(turnKey(j))
	}
	if j.State == JobRunning {
		s.running.Delete(runningKey(j))
	}
}

func (s *State) dropJob(kind JobKind, subject string) {
	s.unindexJob(s.jobs.Get(jobKey(kind, subject)))
	s.jobs.Delete(jobKey(kind, subject))
}

// runningOn returns the jobs that a node runs.
func (s *State) runningOn(node string) (jobs []*Job) {
	for key := range tree.Under(s.running.From, node+"\x00") {
		jobs = append(jobs, s.jobs.Get(key))
	}
	return jobs
}

// runningJob returns the job if it runs under that fence. Otherwise it returns nil and a refusal.
func (t *txn) runningJob(kind JobKind, subject string, fence uint64) (*Job, Result) {
	j := t.jobs.Get(jobKey(kind, subject))
	if j == nil {
		return nil, refuse(NotFound, "there is no such job")
	}
	if j.State != JobRunning || j.Fence != fence {
		return nil, refuse(Stale, "the job is not held under this fence any more")
	}
	return j, Result{}
}

// hasSubject reports whether the subject of the job exists.
func (t *txn) hasSubject(kind JobKind, subject string) bool {
	row := rowOf(t.kinds, kind)
	if row == nil || subject == "" {
		return false
	}
	return row.exists == nil || row.exists(t, subject)
}

func (c *EnqueueJob) apply(t *txn) Result {
	if !t.hasSubject(c.Kind, c.Subject) {
		return refuse(NotFound, "there is nothing that the job could be about")
	}
	t.enqueue(c.Kind, c.Subject, c.Urgent, c.NotBefore)
	return Result{}
}

// enqueue makes a job wait. See EnqueueJob for what happens if it exists already.
func (t *txn) enqueue(kind JobKind, subject string, urgent bool, notBefore time.Time) {
	// There is one job per subject: a second request changes when and how it runs.
	old := t.jobs.Get(jobKey(kind, subject))
	if old == nil {
		t.setJob(&Job{
			Kind:       kind,
			Subject:    subject,
			State:      JobWaiting,
			Urgent:     urgent,
			EnqueuedAt: t.now,
			NotBefore:  notBefore,
		})
		return
	}

	j := *old
	switch j.State {
	case JobRunning:
		j.Rerun = true
		j.Urgent = j.Urgent || urgent

	// The first urgent request sets the time. Otherwise the earlier time wins.
	case JobWaiting:
		if urgent && !j.Urgent {
			j.Urgent, j.NotBefore = true, notBefore
		} else if notBefore.Before(j.NotBefore) {
			j.NotBefore = notBefore
		}

	// A failed job waits for its retry time, unless the request is urgent.
	case JobBackoff:
		if !urgent {
			return
		}
		j.requeue(t.now, urgent, notBefore)
	case JobDone, JobFailed:
		j.requeue(t.now, urgent, notBefore)
	}
	t.setJob(&j)
}

// requeue queues the job again, and resets its attempts.
func (j *Job) requeue(now time.Time, urgent bool, notBefore time.Time) {
	j.State, j.Urgent, j.Rerun = JobWaiting, urgent, false
	j.Attempt, j.Resets = 0, 0
	j.EnqueuedAt, j.NotBefore = now, notBefore
}

func (c *GrantJob) apply(t *txn) Result {
	old := t.jobs.Get(jobKey(c.Kind, c.Subject))
	if old == nil {
		return refuse(NotFound, "there is no such job")
	}
	if old.State != JobWaiting && old.State != JobBackoff {
		return refuse(Conflict, "the job does not wait")
	}

	if old.NotBefore.After(t.now) {
		return refuse(Conflict, "the job is not due")
	}

	// One entry grants a job only once, because the entry's index is the fence.
	if old.Fence == t.index {
		return refuse(Conflict, "the job was already granted by this entry")
	}

	m := t.members.Get(c.Node)
	if m == nil || m.State != MemberAlive {
		return refuse(Conflict, "the node takes no jobs")
	}
	if m.Epoch != c.Epoch {
		return refuse(Stale, "the node was started again since")
	}

	// The entry's index is the fence, so it grows with each attempt.
	j := *old
	j.State, j.Rerun, j.Seen = JobRunning, false, 0
	j.Attempt++
	j.Fence, j.Node, j.Epoch = t.index, c.Node, c.Epoch
	j.GrantedAt, j.Deadline, j.NotBefore = t.now, c.Deadline, time.Time{}

	t.setJob(&j)
	return Result{ID: t.index}
}

func (c *FinishJob) apply(t *txn) Result {
	old, refusal := t.runningJob(c.Kind, c.Subject, c.Fence)
	if old == nil {
		return refusal
	}

	row := rowOf(t.kinds, c.Kind)

	// A kind with Own succeeds by a command of its own, which also changes other tables.
	if c.Error == "" {
		if row == nil || row.Own {
			return refuse(Invalid, "jobs of this kind end with a command of their own")
		}
		t.finishJob(old)
		return Result{}
	}

	// Some kinds show their failure elsewhere too: a sync at its connection.
	t.failJob(old, c)
	if row != nil && row.failed != nil {
		row.failed(t, c)
	}
	return Result{}
}

// finishJob ends a job successfully.
func (t *txn) finishJob(old *Job) {
	j := *old
	j.State, j.Error = JobDone, ""
	j.Attempt, j.Resets = 0, 0
	j.FinishedAt, j.GoodAt = t.now, t.now

	// If the job was requested again while it ran, queue it again.
	urgent := j.Urgent
	j.Urgent = false
	if j.Rerun {
		j.requeue(t.now, urgent, time.Time{})
	}
	t.setJob(&j)
}

// failJob ends an attempt with an error. After a permanent failure the job waits again only if it
// was requested while it ran.
func (t *txn) failJob(old *Job, c *FinishJob) {
	j := *old
	j.State, j.Error = JobBackoff, clipText(c.Error)
	j.FinishedAt, j.NotBefore, j.Resets = t.now, c.NotBefore, 0
	if c.Permanent {
		j.State, j.NotBefore = JobFailed, time.Time{}
		if j.Rerun {
			j.requeue(t.now, j.Urgent, time.Time{})
		}
	}
	j.Rerun = false
	t.setJob(&j)
}

func (c *ReleaseJob) apply(t *txn) Result {
	old, refusal := t.runningJob(c.Kind, c.Subject, c.Fence)
	if old == nil {
		return refusal
	}

	// Do not count this attempt: nothing went wrong.
	j := *old
	j.State, j.Rerun = JobWaiting, false
	j.Attempt--
	t.setJob(&j)
	return Result{}
}

func (c *RevokeJob) apply(t *txn) Result {
	old, refusal := t.runningJob(c.Kind, c.Subject, c.Fence)
	if old == nil {
		return refusal
	}
	t.revokeJob(old, c.Reason, c.NotBefore)
	return Result{}
}

// revokeJob takes a job from a lost node. A job that loses node after node may be what crashes them,
// so it fails for good after MaxResets.
func (t *txn) revokeJob(old *Job, reason string, notBefore time.Time) {
	j := *old
	j.State, j.Rerun = JobWaiting, false
	j.Error, j.FinishedAt, j.NotBefore = clipText(reason), t.now, notBefore

	j.Resets++
	if j.Resets > MaxResets {
		j.State, j.NotBefore = JobFailed, time.Time{}
	}
	t.setJob(&j)
}

func (c *CancelJob) apply(t *txn) Result {
	old := t.jobs.Get(jobKey(c.Kind, c.Subject))
	if old == nil {
		return refuse(NotFound, "there is no such job")
	}
	if old.State == JobDone || old.State == JobFailed {
		return refuse(Conflict, "the job has ended already")
	}
	if c.Reason == "" {
		return refuse(Invalid, "a job is cancelled for a reason")
	}

	// The fence stays. The node that runs the job notices at its next step that it lost it.
	j := *old
	j.State, j.Rerun, j.Urgent = JobFailed, false, false
	j.Error, j.FinishedAt, j.NotBefore = clipText(c.Reason), t.now, time.Time{}
	t.setJob(&j)

	if row := rowOf(t.kinds, c.Kind); row != nil && row.failed != nil {
		row.failed(t, &FinishJob{Kind: c.Kind, Subject: c.Subject, Error: c.Reason})
	}
	return Result{}
}

// maxText bounds error messages and warnings in records, in bytes.
const maxText = 1024

// clipText cuts a text to maxText bytes, never within a character.
func clipText(s string) string {
	if len(s) <= maxText {
		return s
	}

	cut := maxText
	for cut > 0 && s[cut]&0xC0 == 0x80 {
		cut--
	}
	return s[:cut] + "…"
}
