package settings

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/operate"
)

var jobsTemplate = parse("jobs.html")

// jobsPerPage is the number of jobs on a page.
const jobsPerPage = 100

// jobMarks has the mark of each state of a job.
var jobMarks = map[string]mark{
	"running": busy("running"), "waiting": busy("waiting"), "retrying": warn("tried again"), "failed": bad("failed"), "done": good("done"),
}

// jobRow is a job in the list.
type jobRow struct {
	*operate.JobInfo
	Mark                       mark
	Queued, Began, Ended, Next layout.When
	Part                       string // percent done; "" if the total is unknown
	Read                       string
	RetryURL, CancelURL        string
}

// jobs shows the list of jobs.
func (p *Pages) jobs(ctx context.Context, v *layout.Visit) error {
	if _, err := account.AsOwner(v.Viewer); err != nil {
		return err
	}

	q := v.Query
	number, _ := strconv.Atoi(q.Get("page"))
	req := operate.JobsRequest{
		State:   q.Get("state"),
		Kind:    q.Get("kind"),
		Query:   q.Get("query"),
		Page:    max(1, number),
		PerPage: jobsPerPage,
	}

	// Ignore an unknown state or kind, as in an old link.
	if !slices.Contains(operate.JobStates(), req.State) {
		req.State = ""
	}
	if !slices.Contains(operate.JobKinds(), req.Kind) {
		req.Kind = ""
	}

	r, err := p.Operate.Jobs(ctx, v.Viewer, req)
	if err != nil {
		return err
	}

	data := struct {
		Request       operate.JobsRequest
		States, Kinds []string
		Total         string
		Rows          []jobRow
		Turns         turns
	}{Request: req, States: operate.JobStates(), Kinds: operate.JobKinds(), Total: layout.Counted(r.Total, "job", "jobs")}

	for i := range r.Jobs {
		data.Rows = append(data.Rows, p.jobRow(&r.Jobs[i]))
	}

	data.Turns = turnsOf("/settings/jobs", q, req.Page, jobsPerPage, r.Total)
	return p.show(v, "jobs", "Jobs", jobsTemplate, data)
}

func (p *Pages) jobRow(j *operate.JobInfo) jobRow {
	row := jobRow{
		JobInfo:  j,
		Mark:     jobMarks[j.State],
		Queued:   p.when(j.Queued),
		Ended:    p.when(j.Finished),
		Next:     p.when(j.NextTry),
		RetryURL: askURL("retry", j.ID),
	}

	// Show the start of running jobs only: that of a waiting job is of its failed attempt. A running
	// job cannot be started again.
	if j.State == "running" {
		row.Began = p.when(j.Started)
		row.RetryURL = ""
	}

	// A finished job cannot be cancelled.
	if j.State != "done" && j.State != "failed" {
		row.CancelURL = askURL("cancel", j.ID)
	}

	// Without a total, a percentage would be a guess.
	if j.Total > 0 {
		row.Part = fmt.Sprint(100 * j.Done / j.Total)
	}
	if j.Bytes > 0 {
		row.Read = layout.Size(j.Bytes)
	}

	return row
}
