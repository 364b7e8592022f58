package api

import (
	"context"
	"strconv"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/operate"
)

// repositories is what the routes of repositories need.
type repositories interface {
	Repos(context.Context, catalog.Viewer, browse.ReposRequest) (*browse.ReposResponse, error)
	Repo(ctx context.Context, v catalog.Viewer, name string) (*browse.RepoInfo, error)
	Reindex(context.Context, account.Owner, operate.ReindexRequest) (*operate.ReindexResponse, error)
}

// repoRoutes are the routes of repositories.
type repoRoutes struct {
	repositories repositories
	base         string
}

func (a *repoRoutes) rows() []route {
	return []route{
		row("GET", "/api/repos", accessRead, quickTimeout, a.list),
		row("POST", "/api/repos/{id}/reindex", accessOwner, adminTimeout, owners(a.reindex)),
	}
}

type repoJSON struct {
	CodeHostType    string         `json:"codeHostType"`
	RepoID          uint32         `json:"repoId"`
	RepoName        string         `json:"repoName"`
	WebURL          string         `json:"webUrl"`
	RepoDisplayName string         `json:"repoDisplayName,omitempty"`
	ExternalWebURL  string         `json:"externalWebUrl,omitempty"`
	IndexedAt       string         `json:"indexedAt,omitempty"`
	PushedAt        string         `json:"pushedAt,omitempty"`
	DefaultBranch   string         `json:"defaultBranch,omitempty"`
	IsFork          bool           `json:"isFork"`
	IsArchived      bool           `json:"isArchived"`
	IsPublic        bool           `json:"isPublic"`
	IsEmpty         bool           `json:"isEmpty"`
	Visibility      string         `json:"visibility,omitempty"`
	Description     string         `json:"description,omitempty"`
	Stars           uint32         `json:"stars"`
	SizeBytes       uint64         `json:"sizeBytes,omitzero"`
	Unfetchable     string         `json:"unfetchable,omitempty"`
	FormerNames     []string       `json:"formerNames,omitempty"`
	Connections     []string       `json:"connections"`
	Topics          []string       `json:"topics"`
	Revisions       []revisionJSON `json:"revisions"`
	LeftOut         int            `json:"revisionsLeftOut,omitzero"`
	Documents       int64          `json:"documents"`
	TextBytes       int64          `json:"textBytes"`
	IndexBytes      int64          `json:"indexBytes"`
	Error           string         `json:"error,omitempty"`
	State           string         `json:"state"`
}

type revisionJSON struct {
	Name   string `json:"name"`
	Commit string `json:"commit"`
}

// list is GET /api/repos.
func (a *repoRoutes) list(ctx context.Context, c *call) error {
	p := c.params()
	req := browse.ReposRequest{
		Query: p.text("query"), Connection: p.text("connection"),
		Page: p.integer("page", 1, 1, 1<<30), PerPage: p.integer("perPage", 30, 1, 100),
		Sort: p.choice("sort", browse.RepoSorts()...), Desc: p.choice("direction", "asc", "desc") == "desc",
	}

	// Any is the word for no filter, so that a client can always send one.
	if state := p.choice("state", append([]string{"any"}, browse.RepoStates()...)...); state != "any" {
		req.State = state
	}
	// Other services number connections: an answer that leaves the number out would look filtered.
	if p.text("connectionId") != "" {
		p.wrong("connectionId", "connections have names here; give the name as connection")
	}
	if err := p.err(); err != nil {
		return err
	}

	r, err := a.repositories.Repos(ctx, c.viewer, req)
	if err != nil {
		return err
	}

	out := make([]repoJSON, len(r.Repos))
	for i := range r.Repos {
		out[i] = repoOf(&r.Repos[i])
	}
	c.page(a.base, paged{req.Page, req.PerPage, len(out), r.Total, false})
	return c.json(out)
}

func repoOf(r *browse.RepoInfo) repoJSON {
	out := repoJSON{
		CodeHostType: r.HostKind, RepoID: r.ID, RepoName: r.Name, WebURL: r.WebURL,
		RepoDisplayName: r.DisplayName, ExternalWebURL: r.ExternalWebURL,
		IndexedAt: stamp(r.IndexedAt), PushedAt: stamp(r.PushedAt), DefaultBranch: r.DefaultBranch,
		IsFork: r.Fork, IsArchived: r.Archived, IsPublic: r.Public, IsEmpty: r.Empty,
		Visibility: r.Visibility, Description: r.Description, Stars: r.Stars, SizeBytes: r.SizeBytes, Unfetchable: r.Unfetchable, FormerNames: r.FormerNames,
		Connections: list(r.Connections), Topics: list(r.Topics), Revisions: make([]revisionJSON, len(r.Revisions)),
		LeftOut: r.LeftOut, Documents: r.Documents, TextBytes: r.TextBytes, IndexBytes: r.ShardBytes, Error: r.Error, State: r.State,
	}

	// A list in any case.
	for i, v := range r.Revisions {
		out.Revisions[i] = revisionJSON(v)
	}
	return out
}

// reindex is POST /api/repos/{id}/reindex.
func (a *repoRoutes) reindex(ctx context.Context, c *call, by account.Owner) error {
	// By number: names have slashes in them, and change.
	id, err := strconv.ParseUint(c.wild[0], 10, 32)
	if err != nil {
		return invalidParams("id: expected the number of a repository")
	}

	r, err := a.repositories.Reindex(ctx, by, operate.ReindexRequest{ID: uint32(id)})
	if err != nil {
		return err
	}

	c.status = 202
	return c.json(struct {
		RepoID   uint32 `json:"repoId"`
		RepoName string `json:"repoName"`
		JobID    string `json:"jobId"`
	}{r.ID, r.Name, r.Job})
}
