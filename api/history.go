package api

import (
	"context"
	"slices"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
)

// historyRoutes are the routes of commits and references.
type historyRoutes struct {
	history browse.History
	base    func() string
}

func (a *historyRoutes) rows() []route {
	return []route{
		row("GET", "/api/commits", accessRead, browseTimeout, a.commits),
		row("GET", "/api/commit", accessRead, browseTimeout, a.commit),
		row("GET", "/api/commits/authors", accessRead, browseTimeout, a.authors),
		row("GET", "/api/branches", accessRead, browseTimeout, a.branches),
		row("GET", "/api/tags", accessRead, browseTimeout, a.tags),
		row("GET", "/api/ref", accessRead, browseTimeout, a.ref),
		row("GET", "/api/lastcommits", accessRead, browseTimeout, a.lastCommits),
	}
}

// commits is GET /api/commits.
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

	// Parents are told of one commit alone, as clients of this route have it.
	list := slices.Clone(r.Commits)
	for i := range list {
		list[i].Parents = nil
	}
	// A shallow repository has more commits than anybody can count here.
	c.page(a.base(), paged{req.Page, req.PerPage, len(list), r.Total, r.AtLeast || r.Shallow})
	return c.json(list)
}

// commit is GET /api/commit.
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

	// Here the list is there in any case: the first commit has none.
	return c.json(struct {
		browse.CommitInfo
		Parents []string `json:"parents"`
	}{*r, r.Parents})
}

// authors is GET /api/commits/authors.
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

	// Their number is exact, but for a shallow repository: all commits were counted to sort them.
	c.page(a.base(), paged{req.Page, req.PerPage, len(r.Authors), r.Total, r.Shallow})
	return c.json(r.Authors)
}

// branches is GET /api/branches.
func (a *historyRoutes) branches(ctx context.Context, c *call) error {
	return a.refs(ctx, c, a.history.Branches)
}

// tags is GET /api/tags.
func (a *historyRoutes) tags(ctx context.Context, c *call) error {
	return a.refs(ctx, c, a.history.Tags)
}

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

	// The page says what is indexed of them: others are read from git.
	c.page(a.base(), paged{req.Page, req.PerPage, len(r.Refs), r.Total, false})
	return c.json(r.Refs)
}

// ref is GET /api/ref.
func (a *historyRoutes) ref(ctx context.Context, c *call) error {
	p := c.params()
	req := browse.RefRequest{Repo: p.required("repo"), Ref: p.text("ref")}
	if err := p.err(); err != nil {
		return err
	}

	return c.answer(a.history.Ref(ctx, c.viewer, req))
}

// lastCommits is GET /api/lastcommits.
func (a *historyRoutes) lastCommits(ctx context.Context, c *call) error {
	p := c.params()
	req := browse.LastCommitsRequest{Repo: p.required("repo"), Ref: p.text("ref"), Path: p.text("path")}
	if err := p.err(); err != nil {
		return err
	}

	// Commits stand once and entries name them, as in a blame.
	return c.answer(a.history.LastCommits(ctx, c.viewer, req))
}
