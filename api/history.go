package api

import (
	"context"
	"slices"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
)

// historyRoutes handles commits, branches and tags.
type historyRoutes struct {
	history browse.History
	base    func() string
}

func (a *historyRoutes) routes() []route {
	return []route{
		newRoute("GET", "/api/commits", accessRead, browseTimeout, a.commits),
		newRoute("GET", "/api/commit", accessRead, browseTimeout, a.commit),
		newRoute("GET", "/api/commits/authors", accessRead, browseTimeout, a.authors),
		newRoute("GET", "/api/branches", accessRead, browseTimeout, a.branches),
		newRoute("GET", "/api/tags", accessRead, browseTimeout, a.tags),
		newRoute("GET", "/api/ref", accessRead, browseTimeout, a.ref),
		newRoute("GET", "/api/lastcommits", accessRead, browseTimeout, a.lastCommits),
	}
}

// commits handles GET /api/commits.
func (a *historyRoutes) commits(ctx context.Context, c *call) error {
	p := c.params()
	req := browse.CommitsRequest{
		Repo: p.required("repo"), Ref: p.text("ref"), Path: p.text("path"), Query: p.text("query"),
		Author: p.text("author"), Since: p.text("since"), Until: p.text("until"),
		Page: p.integer("page", 1, 1, 1<<30), PerPage: p.integer("perPage", 50, 1, 100),
		Follow: p.flag("follow", false), Verbatim: p.flag("verbatim", false),
	}
	if req.Follow && req.Path == "" {
		p.missing = true
		p.wrong("path", "required with follow: the file whose history it is")
	}
	if err := p.err(); err != nil {
		return err
	}

	r, err := a.history.Commits(ctx, c.viewer, req)
	if err != nil {
		return err
	}

	// Leave out the parents: clients of this route do not expect them. /api/commit has them.
	list := slices.Clone(r.Commits)
	for i := range list {
		list[i].Parents = nil
	}
	// In a shallow repository the total is a minimum.
	c.setPageHeaders(a.base(), paged{req.Page, req.PerPage, len(list), r.Total, r.AtLeast || r.Shallow})
	return c.json(list)
}

// commit handles GET /api/commit.
func (a *historyRoutes) commit(ctx context.Context, c *call) error {
	p := c.params()
	req := browse.CommitRequest{Repo: p.required("repo"), Ref: p.required("ref"), Verbatim: p.flag("verbatim", false)}
	if err := p.err(); err != nil {
		return err
	}

	r, err := a.history.Commit(ctx, c.viewer, req)
	if err != nil {
		return err
	}

	// This Parents hides that of CommitInfo, which would leave out an empty list.
	return c.json(struct {
		browse.CommitInfo
		Parents []string `json:"parents"`
	}{*r, r.Parents})
}

// authors handles GET /api/commits/authors.
func (a *historyRoutes) authors(ctx context.Context, c *call) error {
	p := c.params()
	req := browse.AuthorsRequest{
		Repo: p.required("repo"), Ref: p.text("ref"), Path: p.text("path"),
		Page: p.integer("page", 1, 1, 1<<30), PerPage: p.integer("perPage", 50, 1, 100), Verbatim: p.flag("verbatim", false),
	}
	if err := p.err(); err != nil {
		return err
	}

	r, err := a.history.Authors(ctx, c.viewer, req)
	if err != nil {
		return err
	}

	// Authors reads all commits to sort, so the total is exact unless the repository is shallow.
	c.setPageHeaders(a.base(), paged{req.Page, req.PerPage, len(r.Authors), r.Total, r.Shallow})
	return c.json(r.Authors)
}

// branches handles GET /api/branches.
func (a *historyRoutes) branches(ctx context.Context, c *call) error {
	return a.refs(ctx, c, a.history.Branches)
}

// tags handles GET /api/tags.
func (a *historyRoutes) tags(ctx context.Context, c *call) error {
	return a.refs(ctx, c, a.history.Tags)
}

// refs answers with a page of branches or of tags. list returns them.
func (a *historyRoutes) refs(ctx context.Context, c *call, list func(context.Context, catalog.Viewer, browse.RefsRequest) (*browse.RefsResponse, error)) error {
	p := c.params()
	req := browse.RefsRequest{
		Repo: p.required("repo"), Query: p.text("query"),
		Page: p.integer("page", 1, 1, 1<<30), PerPage: p.integer("perPage", 50, 1, 100),
	}
	if err := p.err(); err != nil {
		return err
	}

	r, err := list(ctx, c.viewer, req)
	if err != nil {
		return err
	}

	c.setPageHeaders(a.base(), paged{req.Page, req.PerPage, len(r.Refs), r.Total, false})
	return c.json(r.Refs)
}

// ref handles GET /api/ref: the commit of a branch, tag or other name.
func (a *historyRoutes) ref(ctx context.Context, c *call) error {
	p := c.params()
	req := browse.RefRequest{Repo: p.required("repo"), Ref: p.text("ref")}
	if err := p.err(); err != nil {
		return err
	}

	return c.answer(a.history.Ref(ctx, c.viewer, req))
}

// lastCommits handles GET /api/lastcommits.
func (a *historyRoutes) lastCommits(ctx context.Context, c *call) error {
	p := c.params()
	req := browse.LastCommitsRequest{Repo: p.required("repo"), Ref: p.text("ref"), Path: p.text("path")}
	if err := p.err(); err != nil {
		return err
	}

	return c.answer(a.history.LastCommits(ctx, c.viewer, req))
}
