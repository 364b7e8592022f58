package operate

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/job"
)

// Queue is the jobs of the cluster, as far as viewers may know of them.
type Queue struct {
	cluster Cluster
	gate    *account.Gate
	running func() []job.Progress // on this node
	log     *slog.Logger
}

// JobStatus is one job.
type JobStatus struct {
	Kind     string    `json:"kind"`    // sync, index, gc, ...
	Subject  string    `json:"subject"` // connection or repository
	Node     string    `json:"node"`
	Attempt  int       `json:"attempt"`
	Started  time.Time `json:"startedAt,omitzero"`
	Deadline time.Time `json:"deadline,omitzero"`
	Step     string    `json:"step"`  // fetching, reading, building, ...
	Done     int64     `json:"done"`  // documents
	Total    int64     `json:"total"` // 0 when unknown
	Bytes    int64     `json:"bytes"`
	Error    string    `json:"error"`
	NextTry  time.Time `json:"nextTry,omitzero"`
}

// JobStatusOf is a job as the catalog has it: without its steps, and under the
// catalog's own subject.
func JobStatusOf(j *catalog.Job) JobStatus {
	return JobStatus{
		Kind:     j.Kind.String(),
		Subject:  plainSubject(j.Subject),
		Node:     j.Node,
		Attempt:  int(j.Attempt),
		Started:  j.GrantedAt,
		Deadline: j.Deadline,
		Error:    j.Error,
		NextTry:  j.NotBefore,
	}
}

// At fills in how far an attempt is.
func (s *JobStatus) At(p job.Progress) {
	s.Step, s.Done, s.Total, s.Bytes = p.Step, p.Done, p.Total, p.Bytes
}

// JobsRequest asks for a page of the jobs that a viewer may know of: an owner
// of all, anybody else of the indexing of repositories that they may see.
type JobsRequest struct {
	State   string // one of JobStates; "" for all but done
	Kind    string // sync, index, ...; "" for all
	Query   string // case-insensitive part of the subject
	Page    int    // from 1; 0 means 1
	PerPage int    // 1..100; 0 means 30
}

// JobsResponse is a page, with the count of all.
type JobsResponse struct {
	Jobs  []JobInfo
	Total int
	Page  int
	Per   int
}

// JobInfo is one job.
type JobInfo struct {
	ID    string `json:"id"`    // that RetryJob and CancelJob take
	State string `json:"state"` // one of JobStates
	JobStatus
	Urgent   bool      `json:"urgent"` // a person or a push asked for it: before the others
	Rerun    bool      `json:"rerun"`  // asked for again while it runs
	Queued   time.Time `json:"queuedAt,omitzero"`
	Finished time.Time `json:"finishedAt,omitzero"` // end of the last attempt
	Good     time.Time `json:"goodAt,omitzero"`     // end of the last good one
}

// jobStates are the states of jobs in the order in which they are listed.
var jobStates = []struct {
	name  string
	state catalog.JobState
}{
	{"running", catalog.JobRunning}, {"failed", catalog.JobFailed}, {"retrying", catalog.JobBackoff},
	{"waiting", catalog.JobWaiting}, {"done", catalog.JobDone},
}

// JobStates lists the names of the states of jobs.
func JobStates() []string {
	var names []string
	for _, s := range jobStates {
		names = append(names, s.name)
	}
	return names
}

// JobKinds lists the names of the kinds of jobs.
func JobKinds() []string {
	var names []string
	for _, k := range catalog.JobKinds() {
		names = append(names, k.String())
	}
	return names
}

// Jobs lists jobs, filtered by the viewer before they are counted.
func (q *Queue) Jobs(ctx context.Context, v catalog.Viewer, req JobsRequest) (*JobsResponse, error) {
	if err := req.check(); err != nil {
		return nil, err
	}
	see, err := q.jobsOf(v)
	if err != nil {
		return nil, err
	}

	var all []JobInfo
	// In this order, whatever is asked for: what runs and what has failed is what somebody looks for.
	for _, s := range jobStates {
		if s.name == req.State || req.State == "" && s.state != catalog.JobDone {
			all = append(all, see.list(s.state, s.name, &req)...)
		}
	}

	out := &JobsResponse{Total: len(all), Page: req.Page, Per: req.PerPage}
	if req.Page-1 <= len(all)/req.PerPage { // a page far beyond the end must not overflow
		from := (req.Page - 1) * req.PerPage
		out.Jobs = all[min(from, len(all)):min(from+req.PerPage, len(all))]
	}

	// Only those that run here or at others have steps to ask for.
	if slices.ContainsFunc(out.Jobs, func(j JobInfo) bool { return j.State == "running" }) {
		addProgress(out.Jobs, see.view, q.Progress(ctx, see.view))
	}
	return out, nil
}

// check fills in what the request leaves open, and refuses what no list is of.
func (req *JobsRequest) check() error {
	if err := call.CheckPage(&req.Page, &req.PerPage, 30); err != nil {
		return err
	}

	switch {
	case req.State != "" && !slices.Contains(JobStates(), req.State):
		return call.Fail(call.ErrInvalid, "state must be one of %s", strings.Join(JobStates(), ", "))
	case req.Kind != "" && !slices.Contains(JobKinds(), req.Kind):
		return call.Fail(call.ErrInvalid, "kind must be one of %s", strings.Join(JobKinds(), ", "))
	}
	return nil
}

// jobSight is what a viewer may know of jobs.
type jobSight struct {
	view  *catalog.View
	owner bool
	seen  func(catalog.RepoID) bool
}

// jobsOf is what a viewer may know of the jobs in the newest view.
func (q *Queue) jobsOf(v catalog.Viewer) (*jobSight, error) {
	seen, err := q.gate.Repos(v)
	if err != nil {
		return nil, err
	}
	return &jobSight{view: seen.View, owner: v.Role == catalog.RoleOwner, seen: seen.Set.Contains}, nil
}

// list is the jobs in a state that the viewer may know of, in the order in
// which somebody would look at them.
func (s *jobSight) list(state catalog.JobState, name string, req *JobsRequest) (out []JobInfo) {
	// In lower letters, as both sides are compared.
	want := strings.ToLower(req.Query)
	for j := range s.view.JobsOf(state) {
		// Before the rights, which cost a look-up for each.
		if req.Kind != "" && j.Kind.String() != req.Kind {
			continue
		}

		// By the name that the viewer may know, so that nothing is found by one that is hidden.
		if info, ok := s.info(j, name); ok && strings.Contains(strings.ToLower(info.Subject), want) {
			out = append(out, info)
		}
	}

	// By subject at last, so that a page does not change while nothing happens.
	slices.SortStableFunc(out, func(a, b JobInfo) int {
		return cmp.Or(inOrder(state, &a, &b), cmp.Compare(a.Subject, b.Subject))
	})
	return out
}

// inOrder compares two jobs in a state: what runs longest, ended last, is tried
// next, or waits longest comes first.
func inOrder(state catalog.JobState, a, b *JobInfo) int {
	switch state {
	case catalog.JobRunning:
		return a.Started.Compare(b.Started)
	case catalog.JobFailed, catalog.JobDone:
		return b.Finished.Compare(a.Finished)
	case catalog.JobBackoff:
		return a.NextTry.Compare(b.NextTry)
	}
	return a.Queued.Compare(b.Queued)
}

// info is a job as the viewer may know it; false where they may not.
func (s *jobSight) info(j *catalog.Job, state string) (JobInfo, bool) {
	out := JobInfo{
		JobStatus: JobStatusOf(j),
		ID:        jobID(j.Key()),
		State:     state,
		Urgent:    j.Urgent,
		Rerun:     j.Rerun,
		Queued:    j.EnqueuedAt,
		Finished:  j.FinishedAt,
		Good:      j.GoodAt,
	}

	// A job of a hidden repository is no job. Owners see those of repositories that
	// no connection lists any more, where nobody hides anything.
	if j.Kind.OfRepo() {
		repo := s.view.Repo(catalog.SubjectRepo(j.Subject))
		if repo == nil {
			return out, false
		}
		left := s.owner && repo.Orphaned() && !s.view.Enforces()
		if !s.seen(repo.ID) && !left {
			return out, false
		}
		out.Subject = repo.Name
	}

	if !s.owner {
		out.Error = "" // it may hold the name of a connection or an address
		return out, j.Kind == catalog.JobIndex
	}
	return out, true
}

// addProgress fills in how far the running jobs are.
func addProgress(jobs []JobInfo, view *catalog.View, progress map[uint64]job.Progress) {
	for i := range jobs {
		// An id that nothing was made of, or that does not run, has no progress.
		key, ok := jobKeyOf(jobs[i].ID)
		if !ok || jobs[i].State != "running" {
			continue
		}

		// By the fence of the attempt: an attempt of before says nothing of this one.
		j := view.Job(key.Kind, key.Subject)
		if p, ok := progress[j.Fence]; ok {
			jobs[i].At(p)
		}
	}
}

// jobID names a job: index:7, sync:work.
func jobID(k catalog.JobKey) string { return k.Kind.String() + ":" + plainSubject(k.Subject) }

// plainSubject is the subject of a job for people: of somebody at a code host,
// the site and the host's id of them.
func plainSubject(subject string) string { return strings.ReplaceAll(subject, "\x00", " ") }

// jobKeyOf reads what jobID wrote.
func jobKeyOf(id string) (catalog.JobKey, bool) {
	name, subject, ok := strings.Cut(id, ":")
	for _, k := range catalog.JobKinds() {
		if ok && k.String() == name {
			// The host's id of a person has no blank: the last one parts it from the site.
			if at := strings.LastIndexByte(subject, ' '); k == catalog.JobAccountSync && at > 0 {
				subject = catalog.ReaderKey(subject[:at], subject[at+1:])
			}
			return catalog.JobKey{Kind: k, Subject: subject}, true
		}
	}
	return catalog.JobKey{}, false
}

// Job finds one job that the viewer may know of.
func (q *Queue) Job(ctx context.Context, v catalog.Viewer, id string) (*JobInfo, error) {
	see, err := q.jobsOf(v)
	if err != nil {
		return nil, err
	}

	// As the viewer may know of it: a hidden one is missing.
	info, err := see.find(id)
	if err != nil {
		return nil, err
	}

	// Only then another node is asked.
	one := []JobInfo{*info}
	if info.State == "running" {
		addProgress(one, see.view, q.Progress(ctx, see.view))
	}
	return &one[0], nil
}

// find is a job by its id. One that the viewer may not know of is missing.
func (s *jobSight) find(id string) (*JobInfo, error) {
	if key, ok := jobKeyOf(id); ok {
		if j := s.view.Job(key.Kind, key.Subject); j != nil {
			for _, st := range jobStates {
				if info, ok := s.info(j, st.name); ok && st.state == j.State {
					return &info, nil
				}
			}
		}
	}
	return nil, call.Fail(call.ErrNotFound, "There is no job %q.", id)
}

// RetryJob asks for a job again, before the others. It returns how the job stood
// before.
func (q *Queue) RetryJob(ctx context.Context, by account.Owner, id string) (*JobInfo, error) {
	return q.onJob(ctx, by, id, func(k catalog.JobKey) catalog.Command {
		return &catalog.EnqueueJob{Kind: k.Kind, Subject: k.Subject, Urgent: true}
	})
}

// CancelJob ends a job that waits or runs. It comes again when its interval is
// over, or when somebody asks. It returns how the job stood before.
func (q *Queue) CancelJob(ctx context.Context, by account.Owner, id string) (*JobInfo, error) {
	return q.onJob(ctx, by, id, func(k catalog.JobKey) catalog.Command {
		return &catalog.CancelJob{Kind: k.Kind, Subject: k.Subject, Reason: "cancelled by " + by.Name()}
	})
}

// onJob proposes a command about a job.
func (q *Queue) onJob(ctx context.Context, by account.Owner, id string, cmd func(catalog.JobKey) catalog.Command) (*JobInfo, error) {
	see, err := q.jobsOf(by.Viewer())
	if err != nil {
		return nil, err
	}
	before, err := see.find(id)
	if err != nil {
		return nil, err
	}

	key, _ := jobKeyOf(id) // find has understood it
	// Refused with a conflict where the state allows no such thing, as to cancel what has ended.
	if _, err := q.cluster.Propose(ctx, cmd(key)); err != nil {
		if no, ok := catalog.Refused(err); ok && no.Code == catalog.Conflict {
			return nil, call.Fail(call.ErrUnable, "Job %s: %s.", id, no.Reason)
		}
		return nil, call.WriteError(err)
	}

	q.log.Info("job changed", "by", by.Name(), "job", id)
	return before, nil
}
