package api

import (
	"context"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
)

// history is what the routes of commits and references need.
type history interface {
	Commits(context.Context, catalog.Viewer, browse.CommitsRequest) (*browse.CommitsResponse, error)
	Commit(context.Context, catalog.Viewer, browse.CommitRequest) (*browse.CommitInfo, error)
	Authors(context.Context, catalog.Viewer, browse.AuthorsRequest) (*browse.AuthorsResponse, error)
	Branches(context.Context, catalog.Viewer, browse.RefsRequest) (*browse.RefsResponse, error)
	Tags(context.Context, catalog.Viewer, browse.RefsRequest) (*browse.RefsResponse, error)
	Ref(context.Context, catalog.Viewer, browse.RefRequest) (*browse.RefResponse, error)
	LastCommits(context.Context, catalog.Viewer, browse.LastCommitsRequest) (*browse.LastCommitsResponse, error)
}

// historyRoutes are the routes of commits and references.
type historyRoutes struct {
	history history
	base    string
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

type commitJSON struct {
	Hash        string   `json:"hash"`
	Date        string   `json:"date"`
	Message     string   `json:"message"`
	Refs        string   `json:"refs"`
	Body        string   `json:"body"`
	AuthorName  string   `json:"authorName"`
	AuthorEmail string   `json:"authorEmail"`
	Parents     []string `json:"parents,omitempty"`
	Path        string   `json:"path,omitempty"` // of a file that is followed
}

type authorJSON struct {
	Name        string `json:"name"`
	Email       string `json:"email"`
	CommitCount int    `json:"commitCount"`
}

type refJSON struct {
	Name        string `json:"name"`
	Commit      string `json:"commit"`
	CommittedAt string `json:"committedAt,omitempty"`
	IsDefault   bool   `json:"isDefault"`
	IsIndexed   bool   `json:"isIndexed"`
}

type lastCommitsJSON struct {
	Commit      string                    `json:"commit"` // of the reference
	Entries     []lastEntryJSON           `json:"entries"`
	Commits     map[string]lastCommitJSON `json:"commits"`
	IsTruncated bool                      `json:"isTruncated"`
}

type lastEntryJSON struct {
	Name string `json:"name"`
	Hash string `json:"hash,omitempty"`
	From string `json:"from,omitempty"` // where it was not found in time
}

type lastCommitJSON struct {
	Hash       string `json:"hash"`
	Date       string `json:"date"`
	Message    string `json:"message"`
	AuthorName string `json:"authorName"`
}

// commits is GET /api/commits.
func (a *historyRoutes) commits(ctx context.Context, c *call) error {
	p := c.params()
	req := browse.CommitsRequest{
		Repo: p.required("repo"), Ref: p.text("ref"), Path: p.text("path"), Query: p.text("query"),
		Author: p.text("author"), Since: p.text("since"), Until: p.text("until"),
		Page: p.integer("page", 1, 1, 1<<30), PerPage: p.integer("perPage", 50, 1, 100),
		Follow: p.flag("follow", false),
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
	list := make([]commitJSON, len(r.Commits))
	for i := range r.Commits {
		list[i] = commitOf(&r.Commits[i])
		list[i].Parents = nil
	}
	// A shallow repository has more commits than anybody can count here.
	c.page(a.base, paged{req.Page, req.PerPage, len(list), r.Total, r.AtLeast || r.Shallow})
	return c.json(list)
}

func commitOf(r *browse.CommitInfo) commitJSON {
	return commitJSON{r.Hash, stamp(r.Date), r.Message, r.Refs, r.Body, r.AuthorName, r.AuthorEmail, r.Parents, r.Path}
}

// commit is GET /api/commit.
func (a *historyRoutes) commit(ctx context.Context, c *call) error {
	p := c.params()
	req := browse.CommitRequest{Repo: p.required("repo"), Ref: p.required("ref")}
	if err := p.err(); err != nil {
		return err
	}

	r, err := a.history.Commit(ctx, c.viewer, req)
	if err != nil {
		return err
	}

	// Here the list is there in any case: the first commit has none.
	out := commitOf(r)
	parents := out.Parents
	if parents == nil {
		parents = []string{}
	}
	return c.json(struct {
		commitJSON
		Parents []string `json:"parents"`
	}{out, parents})
}

// authors is GET /api/commits/authors.
func (a *historyRoutes) authors(ctx context.Context, c *call) error {
	p := c.params()
	req := browse.AuthorsRequest{
		Repo: p.required("repo"), Ref: p.text("ref"), Path: p.text("path"),
		Page: p.integer("page", 1, 1, 1<<30), PerPage: p.integer("perPage", 50, 1, 100),
	}
	if err := p.err(); err != nil {
		return err
	}

	r, err := a.history.Authors(ctx, c.viewer, req)
	if err != nil {
		return err
	}

	// Their number is exact: all commits were counted to sort them.
	list := make([]authorJSON, len(r.Authors))
	for i, x := range r.Authors {
		list[i] = authorJSON{x.Name, x.Email, x.Commits}
	}
	c.page(a.base, paged{req.Page, req.PerPage, len(list), r.Total, false})
	return c.json(list)
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
	refs := make([]refJSON, len(r.Refs))
	for i, f := range r.Refs {
		refs[i] = refJSON{f.Name, f.Commit, stamp(f.CommittedAt), f.Default, f.Indexed}
	}
	c.page(a.base, paged{req.Page, req.PerPage, len(refs), r.Total, false})
	return c.json(refs)
}

// ref is GET /api/ref.
func (a *historyRoutes) ref(ctx context.Context, c *call) error {
	p := c.params()
	req := browse.RefRequest{Repo: p.required("repo"), Ref: p.text("ref")}
	if err := p.err(); err != nil {
		return err
	}

	r, err := a.history.Ref(ctx, c.viewer, req)
	if err != nil {
		return err
	}
	return c.json(struct {
		Commit    string `json:"commit"`
		Kind      string `json:"kind"`
		Name      string `json:"name"`
		IsIndexed bool   `json:"isIndexed"`
	}{r.Commit, r.Kind, r.Name, r.Indexed})
}

// lastCommits is GET /api/lastcommits.
func (a *historyRoutes) lastCommits(ctx context.Context, c *call) error {
	p := c.params()
	req := browse.LastCommitsRequest{Repo: p.required("repo"), Ref: p.text("ref"), Path: p.text("path")}
	if err := p.err(); err != nil {
		return err
	}

	r, err := a.history.LastCommits(ctx, c.viewer, req)
	if err != nil {
		return err
	}

	// Commits stand once and entries name them, as in a blame.
	out := lastCommitsJSON{Commit: r.Commit, Entries: make([]lastEntryJSON, len(r.Entries)), Commits: map[string]lastCommitJSON{}, IsTruncated: r.Cut}
	for i, e := range r.Entries {
		out.Entries[i] = lastEntryJSON{e.Name, e.Hash, e.From}
	}
	for hash, x := range r.Commits {
		out.Commits[hash] = lastCommitJSON{x.Hash, stamp(x.Date), x.Message, x.AuthorName}
	}
	return c.json(out)
}
