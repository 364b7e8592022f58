package api

import (
	"context"
	"strconv"

	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/operate"
)

// repoRoutes handles repositories.
type repoRoutes struct {
	browse  browse.Reader
	operate operate.Operator
	base    func() string
}

func (a *repoRoutes) routes() []route {
	return []route{
		newRoute("GET", "/api/repos", accessRead, quickTimeout, a.list),
		newRoute("POST", "/api/repos/{id}/reindex", accessOwner, adminTimeout, ownerHandler(a.reindex)),
	}
}

// list handles GET /api/repos.
func (a *repoRoutes) list(ctx context.Context, c *call) error {
	p := c.params()
	req := browse.ReposRequest{
		Query: p.text("query"), Connection: p.text("connection"), ConnectionID: uint32(p.integer("connectionId", 0, 0, 1<<31)),
		Page: p.integer("page", 1, 1, 1<<30), PerPage: p.integer("perPage", 30, 1, 100),
		Sort: p.choice("sort", browse.RepoSorts()...), Desc: p.choice("direction", "asc", "desc") == "desc",
	}

	// "any" means no filter, so that clients can always send the parameter.
	if state := p.choice("state", append([]string{"any"}, browse.RepoStates()...)...); state != "any" {
		req.State = state
	}
	if err := p.err(); err != nil {
		return err
	}

	r, err := a.browse.Repos(ctx, c.viewer, req)
	if err != nil {
		return err
	}

	c.setPageHeaders(a.base(), paged{req.Page, req.PerPage, len(r.Repos), r.Total, false})
	return c.json(r.Repos)
}

// reindex handles POST /api/repos/{id}/reindex.
func (a *repoRoutes) reindex(ctx context.Context, c *call, by account.Owner) error {
	// The path has the repository's id, because names contain slashes and can change.
	id, err := strconv.ParseUint(c.pathValues[0], 10, 32)
	if err != nil {
		return invalidParams("id: expected the number of a repository")
	}

	c.status = 202
	return c.answer(a.operate.Reindex(ctx, by, uint32(id)))
}
