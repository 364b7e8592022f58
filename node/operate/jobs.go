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

// Queue lists and changes the cluster's jobs, within what viewers may see.
type Queue struct {
	cluster Cluster
	gate    *account.Gate
	running func() []job.Progress // attempts on this node
	log     *slog.Logger
}

// JobStatus is the state of one job.
type JobStatus struct {
	Kind     string    `json:"kind"`    // sync, index, gc, ...
	Subject  string    `json:"subject"` // connection or repository
	Node     string    `json:"node"`
	Attempt  int       `json:"attempt"`
	Started  time.Time `json:"startedAt,omitzero"`
	Deadline time.Time `json:"deadline,omitzero"`
	Step     string    `json:"step"`  // fetching, reading, building, ...
	Done     int64     `json:"done"`  // documents
	Total    int64     `json:"total"` // 0: unknown
	Bytes    int64     `json:"bytes"`
	Error    string    `json:"error"`
	NextTry  time.Time `json:"nextTry,omitzero"`
}

// JobStatusOf returns the state of a job in the catalog, without progress, and with the catalog's
// own subject.
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

// SetProgress adds the progress of an attempt.
func (s *JobStatus) SetProgress(p job.Progress) {
	s.Step, s.Done, s.Total, s.Bytes = p.Step, p.Done, p.Total, p.Bytes
}

// JobsRequest asks for a page of jobs. Owners get all; others get the index jobs of repositories
// that they may see.
type JobsRequest struct {
	State   string // one of JobStates; "": all but done
	Kind    string // sync, index, ...; "": all
	Query   string // part of the subject, in any case
	Page    int    // from 1; 0: 1
	PerPage int    // 1..100; 0: 30
}

// JobsResponse is a page, with the count over all pages.
type JobsResponse struct {
	Jobs  []JobInfo
	Total int
	Page  int
	Per   int
}

// JobInfo is one job in a list.
type JobInfo struct {
	ID    string `json:"id"`    // for RetryJob and CancelJob
	State string `json:"state"` // one of JobStates
	JobStatus
	Urgent   bool      `json:"urgent"` // a person or a push asked for it; it goes first
	Rerun    bool      `json:"rerun"`  // queued again while it runs
	Queued   time.Time `json:"queuedAt,omitzero"`
	Finished time.Time `json:"finishedAt,omitzero"` // end of the last attempt
	Good     time.Time `json:"goodAt,omitzero"`     // end of the last good attempt
}

// jobStates are the states of jobs, in the order of lists.
var jobStates = []struct {
	name  string
	state catalog.JobState
}{
	{"running", catalog.JobRunning}, {"failed", catalog.JobFailed}, {"retrying", catalog.JobBackoff},
	{"waiting", catalog.JobWaiting}, {"done", catalog.JobDone},
}

// JobStates returns the names of job states.
func JobStates() []string {
	var names []string
	for _, s := range jobStates {
		names = append(names, s.name)
	}
	return names
}

// JobKinds returns the names of job kinds.
func JobKinds() []string {
	var names []string
	for _, k := range catalog.JobKinds() {
		names = append(names, k.String())
	}
	return names
}

// Jobs returns a page of the jobs that the viewer may see. The total counts only those.
func (q *Queue) Jobs(ctx context.Context, v catalog.Viewer, req JobsRequest) (*JobsResponse, error) {
	if err := req.check(); err != nil {
		return nil, err
	}
	see, err := q.viewJobs(v)
	if err != nil {
		return nil, err
	}

	var all []JobInfo
	// Running and failed jobs come first, because readers look for them.
	for _, s := range jobStates {
		if s.name == req.State || req.State == "" && s.state != catalog.JobDone {
			all = append(all, see.listJobs(s.state, s.name, &req)...)
		}
	}

	out := &JobsResponse{Total: len(all), Page: req.Page, Per: req.PerPage}
	if req.Page-1 <= len(all)/req.PerPage { // a page far beyond the end must not overflow
		from := (req.Page - 1) * req.PerPage
		out.Jobs = all[min(from, len(all)):min(from+req.PerPage, len(all))]
	}

	// Only running jobs have progress to ask other nodes for.
	if slices.ContainsFunc(out.Jobs, func(j JobInfo) bool { return j.State == "running" }) {
		addProgress(out.Jobs, see.view, q.Progress(ctx, see.view))
	}
	return out, nil
}

// check sets defaults and refuses invalid values.
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

// jobView is what a viewer may see of jobs.
type jobView struct {
	view   *catalog.View
	owner  bool
	canSee func(catalog.RepoID) bool
}

// viewJobs returns what a viewer may see of jobs in the latest view.
func (q *Queue) viewJobs(v catalog.Viewer) (*jobView, error) {
	seen, err := q.gate.Repos(v)
	if err != nil {
		return nil, err
	}
	return &jobView{view: seen.View, owner: v.Role == catalog.RoleOwner, canSee: seen.Set.Contains}, nil
}

// listJobs returns the visible jobs in a state that match the request, sorted for readers.
func (s *jobView) listJobs(state catalog.JobState, name string, req *JobsRequest) (out []JobInfo) {
	want := strings.ToLower(req.Query)
	for j := range s.view.JobsOf(state) {
		// Check the kind before rights, which cost a look-up.
		if req.Kind != "" && j.Kind.String() != req.Kind {
			continue
		}

		// Match the visible name, so that a search reveals no hidden one.
		if info, ok := s.jobInfo(j, name); ok && strings.Contains(strings.ToLower(info.Subject), want) {
			out = append(out, info)
		}
	}

	// Sort by subject last, so that pages are stable.
	slices.SortStableFunc(out, func(a, b JobInfo) int {
		return cmp.Or(compareJobs(state, &a, &b), cmp.Compare(a.Subject, b.Subject))
	})
	return out
}

// compareJobs compares two jobs in a state. First come those that run longest, ended last, retry
// soonest, or wait longest.
func compareJobs(state catalog.JobState, a, b *JobInfo) int {
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

// jobInfo returns a job for the viewer, or false if they may not see it.
func (s *jobView) jobInfo(j *catalog.Job, state string) (JobInfo, bool) {
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

	// Jobs of hidden repositories are not shown. Owners see jobs of repositories that no connection
	// lists anymore, unless permissions are enforced.
	if j.Kind.OfRepo() {
		repo := s.view.Repo(catalog.SubjectRepo(j.Subject))
		if repo == nil {
			return out, false
		}
		left := s.owner && repo.Orphaned() && !s.view.Enforces()
		if !s.canSee(repo.ID) && !left {
			return out, false
		}
		out.Subject = repo.Name
	}

	if !s.owner {
		out.Error = "" // it may contain the name of a connection or an address
		return out, j.Kind == catalog.JobIndex
	}
	return out, true
}

// addProgress adds the progress of running jobs.
func addProgress(jobs []JobInfo, view *catalog.View, progress map[uint64]job.Progress) {
	for i := range jobs {
		key, ok := jobKeyOf(jobs[i].ID)
		if !ok || jobs[i].State != "running" {
			continue
		}

		// Compare the fence, which identifies this attempt of the job.
		j := view.Job(key.Kind, key.Subject)
		if p, ok := progress[j.Fence]; ok {
			jobs[i].SetProgress(p)
		}
	}
}

// jobID returns the id of a job, such as index:7 or sync:work.
func jobID(k catalog.JobKey) string { return k.Kind.String() + ":" + plainSubject(k.Subject) }

// plainSubject returns a subject for people. For a person at a code host, it is the site and the
// host's id of the person.
func plainSubject(subject string) string { return strings.ReplaceAll(subject, "\x00", " ") }

// jobKeyOf parses the result of jobID; false for any other text.
func jobKeyOf(id string) (catalog.JobKey, bool) {
	name, subject, ok := strings.Cut(id, ":")
	for _, k := range catalog.JobKinds() {
		if ok && k.String() == name {
			// The host's id of a person has no blank. So the last blank separates it from the site.
			if at := strings.LastIndexByte(subject, ' '); k == catalog.JobAccountSync && at > 0 {
				subject = catalog.ReaderKey(subject[:at], subject[at+1:])
			}
			return catalog.JobKey{Kind: k, Subject: subject}, true
		}
	}
	return catalog.JobKey{}, false
}

// Job returns one job that the viewer may see.
func (q *Queue) Job(ctx context.Context, v catalog.Viewer, id string) (*JobInfo, error) {
	see, err := q.viewJobs(v)
	if err != nil {
		return nil, err
	}

	info, err := see.findJob(id)
	if err != nil {
		return nil, err
	}

	// Ask other nodes only for a visible job.
	single := []JobInfo{*info}
	if info.State == "running" {
		addProgress(single, see.view, q.Progress(ctx, see.view))
	}
	return &single[0], nil
}

// findJob returns a job by its id. A job that the viewer may not see is not found.
func (s *jobView) findJob(id string) (*JobInfo, error) {
	if key, ok := jobKeyOf(id); ok {
		if j := s.view.Job(key.Kind, key.Subject); j != nil {
			for _, st := range jobStates {
				if info, ok := s.jobInfo(j, st.name); ok && st.state == j.State {
					return &info, nil
				}
			}
		}
	}
	return nil, call.Fail(call.ErrNotFound, "There is no job %q.", id)
}

// RetryJob queues a job again, before others. It returns the job's state before.
func (q *Queue) RetryJob(ctx context.Context, by account.Owner, id string) (*JobInfo, error) {
	return q.proposeForJob(ctx, by, id, func(k catalog.JobKey) catalog.Command {
		return &catalog.EnqueueJob{Kind: k.Kind, Subject: k.Subject, Urgent: true}
	})
}

// CancelJob ends a waiting or running job. The job returns after its interval, or when it is asked
// for. CancelJob returns the job's state before.
func (q *Queue) CancelJob(ctx context.Context, by account.Owner, id string) (*JobInfo, error) {
	return q.proposeForJob(ctx, by, id, func(k catalog.JobKey) catalog.Command {
		return &catalog.CancelJob{Kind: k.Kind, Subject: k.Subject, Reason: "cancelled by " + by.Name()}
	})
}

// proposeForJob proposes a command about a job, and returns the job's state before.
func (q *Queue) proposeForJob(ctx context.Context, by account.Owner, id string, cmd func(catalog.JobKey) catalog.Command) (*JobInfo, error) {
	see, err := q.viewJobs(by.Viewer())
	if err != nil {
		return nil, err
	}
	before, err := see.findJob(id)
	if err != nil {
		return nil, err
	}

	key, _ := jobKeyOf(id) // valid, because find parsed it
	// A conflict means that the job's state does not allow it, such as cancelling a job that has
	// ended.
	if _, err := q.cluster.Propose(ctx, cmd(key)); err != nil {
		if refused, ok := catalog.Refused(err); ok && refused.Code == catalog.Conflict {
			return nil, call.Fail(call.ErrUnable, "Job %s: %s.", id, refused.Reason)
		}
		return nil, call.WriteError(err)
	}

	q.log.Info("job changed", "by", by.Name(), "job", id)
	return before, nil
}
