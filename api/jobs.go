package api

import (
	"context"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/operate"
)

// jobs is what the routes and pages of jobs need.
type jobs interface {
	Jobs(context.Context, catalog.Viewer, operate.JobsRequest) (*operate.JobsResponse, error)
	Job(context.Context, catalog.Viewer, operate.JobRequest) (*operate.JobInfo, error)
	RetryJob(context.Context, account.Owner, operate.JobRequest) (*operate.JobInfo, error)
	CancelJob(context.Context, account.Owner, operate.JobRequest) (*operate.JobInfo, error)
}

// jobRoutes are the routes of jobs.
type jobRoutes struct {
	jobs jobs
	base func() string
}

func (a *jobRoutes) rows() []route {
	return []route{
		row("GET", "/api/jobs", accessRead, quickTimeout, a.list),
		row("GET", "/api/jobs/{id}", accessRead, quickTimeout, a.get),
		row("POST", "/api/jobs/{id}/retry", accessOwner, adminTimeout, owners(a.retry)),
		row("POST", "/api/jobs/{id}/cancel", accessOwner, adminTimeout, owners(a.cancel)),
	}
}

// list is GET /api/jobs.
func (a *jobRoutes) list(ctx context.Context, c *call) error {
	p := c.params()

	// Words, not a free text: a state with a mistake in it would look like no jobs.
	any := func(name string, words []string) string {
		if word := p.choice(name, append([]string{"any"}, words...)...); word != "any" {
			return word
		}
		return ""
	}

	req := operate.JobsRequest{
		State: any("state", operate.JobStates()), Kind: any("kind", operate.JobKinds()), Query: p.text("query"),
		Page: p.integer("page", 1, 1, 1<<30), PerPage: p.integer("perPage", 30, 1, 100),
	}
	if err := p.err(); err != nil {
		return err
	}

	r, err := a.jobs.Jobs(ctx, c.viewer, req)
	if err != nil {
		return err
	}

	c.page(a.base(), paged{req.Page, req.PerPage, len(r.Jobs), r.Total, false})
	return c.json(r.Jobs)
}

// get is GET /api/jobs/{id}.
func (a *jobRoutes) get(ctx context.Context, c *call) error {
	j, err := a.jobs.Job(ctx, c.viewer, operate.JobRequest{ID: c.wild[0]})
	if err != nil {
		return err
	}
	return c.json(j)
}

// retry is POST /api/jobs/{id}/retry. The answer is how the job stood before.
func (a *jobRoutes) retry(ctx context.Context, c *call, by account.Owner) error {
	before, err := a.jobs.RetryJob(ctx, by, operate.JobRequest{ID: c.wild[0]})
	return jobChanged(c, before, err)
}

// cancel is POST /api/jobs/{id}/cancel. The answer is how the job stood before.
func (a *jobRoutes) cancel(ctx context.Context, c *call, by account.Owner) error {
	before, err := a.jobs.CancelJob(ctx, by, operate.JobRequest{ID: c.wild[0]})
	return jobChanged(c, before, err)
}

func jobChanged(c *call, before *operate.JobInfo, err error) error {
	if err != nil {
		return err
	}

	c.status = 202
	return c.json(before)
}
