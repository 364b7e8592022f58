package api

import (
	"context"

	"github.com/shoalsearch/shoal/node/operate"
)

// jobRoutes handles jobs.
type jobRoutes struct {
	operate operate.Operator
	base    func() string
}

func (a *jobRoutes) routes() []route {
	return []route{
		newRoute("GET", "/api/jobs", accessRead, quickTimeout, a.list),
		newRoute("GET", "/api/jobs/{id}", accessRead, quickTimeout, a.get),
		newRoute("POST", "/api/jobs/{id}/retry", accessOwner, adminTimeout, queuedAction(a.operate.RetryJob)),
		newRoute("POST", "/api/jobs/{id}/cancel", accessOwner, adminTimeout, queuedAction(a.operate.CancelJob)),
	}
}

// list handles GET /api/jobs.
func (a *jobRoutes) list(ctx context.Context, c *call) error {
	p := c.params()

	// filter returns "" for a missing parameter and for "any". An unknown word is an error, because
	// the empty list for a misspelled state would look like an answer.
	filter := func(name string, words []string) string {
		if word := p.choice(name, append([]string{"any"}, words...)...); word != "any" {
			return word
		}
		return ""
	}

	req := operate.JobsRequest{
		State: filter("state", operate.JobStates()), Kind: filter("kind", operate.JobKinds()), Query: p.text("query"),
		Page: p.integer("page", 1, 1, 1<<30), PerPage: p.integer("perPage", 30, 1, 100),
	}
	if err := p.err(); err != nil {
		return err
	}

	r, err := a.operate.Jobs(ctx, c.viewer, req)
	if err != nil {
		return err
	}

	c.setPageHeaders(a.base(), paged{req.Page, req.PerPage, len(r.Jobs), r.Total, false})
	return c.json(r.Jobs)
}

// get handles GET /api/jobs/{id}.
func (a *jobRoutes) get(ctx context.Context, c *call) error {
	return c.answer(a.operate.Job(ctx, c.viewer, c.pathValues[0]))
}
