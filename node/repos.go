package node

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// ReposRequest asks for a page of the repositories that the viewer may see.
type ReposRequest struct {
	Query      string // case-insensitive part of the name
	Connection string // name of a connection; "" for all
	Page       int    // from 1; 0 means 1
	PerPage    int    // 1..100; 0 means 30
	Sort       string // "name" (default) or "pushed"
	Desc       bool
}

// ReposResponse is a page, with the count of all.
type ReposResponse struct {
	Repos []RepoInfo
	Total int
	Page  int
	Per   int
}

// RepoInfo describes a repository.
type RepoInfo struct {
	ID             uint32
	Name           string
	DisplayName    string
	CodeHostType   string // genericGitHost, github, ...
	WebURL         string // page of this service
	ExternalWebURL string // page of the code host; "" when unknown
	Connections    []string
	Topics         []string
	DefaultBranch  string // short name; "" when unknown
	Fork           bool
	Archived       bool
	Public         bool
	PushedAt       time.Time // zero: unknown
	IndexedAt      time.Time // zero: not yet
	Revisions      []RevisionInfo
	Documents      int64
	TextBytes      int64
	ShardBytes     int64
	Error          string // of the last index job; "" when it was good
}

// RevisionInfo is an indexed revision.
type RevisionInfo struct {
	Name   string // full ref name, or HEAD
	Commit string // hex
}

// ReindexRequest asks to index a repository now. Owners only.
type ReindexRequest struct{ ID uint32 }

// ReindexResponse tells what was queued.
type ReindexResponse struct {
	ID   uint32
	Name string
}

// WebhookRequest is a push event for a connection. The signature is checked
// by whoever decodes the event, with the secret from WebhookSecret.
type WebhookRequest struct {
	Connection string
	// CloneURLs and Names say which repositories of the connection changed;
	// both empty means any may have.
	CloneURLs []string
	Names     []string
}

// WebhookResponse tells which repositories were queued.
type WebhookResponse struct{ Repos []string }

// Repos lists repositories.
func (n *Node) Repos(ctx context.Context, v Viewer, req ReposRequest) (*ReposResponse, error) {
	if v.Role == RoleNone {
		return nil, fail(ErrUnauthenticated, "Not authenticated")
	}
	if req.Page == 0 {
		req.Page = 1
	}
	if req.PerPage == 0 {
		req.PerPage = 30
	}
	switch {
	case req.Page < 1:
		return nil, fail(ErrInvalid, "page must be at least 1")
	case req.PerPage < 1 || req.PerPage > 100:
		return nil, fail(ErrInvalid, "perPage must be from 1 to 100")
	case req.Sort != "" && req.Sort != "name" && req.Sort != "pushed":
		return nil, fail(ErrInvalid, "sort must be name or pushed")
	}
	view := n.cluster.View()
	visible := view.Visible(v.catalog())
	want := strings.ToLower(req.Query)
	var list []*catalog.Repo
	for repo := range view.ReposByName() {
		if !visible.Contains(repo.ID) || !strings.Contains(strings.ToLower(repo.Name), want) {
			continue
		}
		if req.Connection != "" && !slices.ContainsFunc(repo.Connections, func(c catalog.RepoConnection) bool { return c.Name == req.Connection }) {
			continue
		}
		list = append(list, repo)
	}
	slices.SortStableFunc(list, func(a, b *catalog.Repo) int {
		c := 0
		if req.Sort == "pushed" {
			c = a.PushedAt.Compare(b.PushedAt)
		} else {
			c = strings.Compare(a.Name, b.Name)
		}
		if req.Desc {
			c = -c
		}
		return cmp.Or(c, strings.Compare(a.Name, b.Name))
	})
	out := &ReposResponse{Total: len(list), Page: req.Page, Per: req.PerPage, Repos: []RepoInfo{}}
	// A page far beyond the end must not overflow.
	if from := (req.Page - 1); from <= len(list)/req.PerPage {
		from *= req.PerPage
		for _, repo := range list[min(from, len(list)):min(from+req.PerPage, len(list))] {
			out.Repos = append(out.Repos, n.repoInfo(view, repo))
		}
	}
	return out, nil
}

// repoInfo describes a repository.
func (n *Node) repoInfo(view *catalog.View, repo *catalog.Repo) RepoInfo {
	info := RepoInfo{
		ID: repo.ID, Name: repo.Name, DisplayName: repositoryInfo(repo).DisplayName, CodeHostType: repo.HostKind,
		WebURL: webURL(n.opt.BaseURL, repo.Name, "", "tree", ""), ExternalWebURL: repo.WebURL, Topics: repo.Topics,
		DefaultBranch: repo.DefaultBranch, Fork: repo.Fork, Archived: repo.Archived, Public: repo.Public,
		PushedAt: repo.PushedAt, IndexedAt: repo.IndexedAt,
	}
	for _, c := range repo.Connections {
		info.Connections = append(info.Connections, c.Name)
	}
	for _, r := range repo.Revisions {
		info.Revisions = append(info.Revisions, RevisionInfo{Name: r.Name, Commit: r.Commit})
	}
	for _, s := range repo.Shards {
		info.Documents += int64(s.Docs)
		info.TextBytes += s.Text
		info.ShardBytes += s.Bytes
	}
	if j := view.Job(catalog.JobIndex, catalog.RepoSubject(repo.ID)); j != nil {
		info.Error = j.Error
	}
	return info
}

// Reindex queues an index job for a repository.
func (n *Node) Reindex(ctx context.Context, v Viewer, req ReindexRequest) (*ReindexResponse, error) {
	if err := owner(v); err != nil {
		return nil, err
	}
	view := n.cluster.View()
	repo := view.Repo(req.ID)
	if repo == nil || !view.Visible(v.catalog()).Contains(repo.ID) {
		return nil, fail(ErrRepoNotFound, "Repository %d not found", req.ID)
	}
	if err := n.enqueueIndex(ctx, []*catalog.Repo{repo}); err != nil {
		return nil, err
	}
	return &ReindexResponse{ID: repo.ID, Name: repo.Name}, nil
}

func (n *Node) enqueueIndex(ctx context.Context, repos []*catalog.Repo) error {
	for part := range slices.Chunk(repos, catalog.MaxPage) {
		var cmds []catalog.Command
		for _, repo := range part {
			cmds = append(cmds, &catalog.EnqueueJob{Kind: catalog.JobIndex, Subject: catalog.RepoSubject(repo.ID), Urgent: true})
		}
		if _, err := n.cluster.Propose(ctx, cmds...); err != nil {
			return unavailable(err)
		}
	}
	return nil
}

// Webhook queues index jobs for the repositories of an event.
func (n *Node) Webhook(ctx context.Context, v Viewer, req WebhookRequest) (*WebhookResponse, error) {
	if err := owner(v); err != nil {
		return nil, err
	}
	view := n.cluster.View()
	if view.Connection(req.Connection) == nil {
		return nil, fail(ErrNotFound, "Connection %q not found", req.Connection)
	}
	var repos []*catalog.Repo
	out := &WebhookResponse{Repos: []string{}}
	for repo := range view.ReposByName() {
		if !slices.ContainsFunc(repo.Connections, func(c catalog.RepoConnection) bool { return c.Name == req.Connection }) {
			continue
		}
		all := len(req.Names) == 0 && len(req.CloneURLs) == 0
		if all || slices.Contains(req.Names, repo.Name) || slices.ContainsFunc(req.CloneURLs, func(u string) bool { return sameRemote(u, repo.CloneURL) }) {
			repos = append(repos, repo)
			out.Repos = append(out.Repos, repo.Name)
		}
	}
	if len(repos) == 0 {
		// Nothing known changed: the event may be of a repository that the
		// next listing has.
		_, err := n.cluster.Propose(ctx, &catalog.EnqueueJob{Kind: catalog.JobSync, Subject: req.Connection, Urgent: true})
		if err != nil {
			return nil, unavailable(err)
		}
		return out, nil
	}
	if err := n.enqueueIndex(ctx, repos); err != nil {
		return nil, err
	}
	return out, nil
}

// sameRemote compares clone URLs as hosts write them: with and without .git,
// a slash at the end, or a user.
func sameRemote(a, b string) bool {
	plain := func(s string) string {
		s = strings.TrimSuffix(strings.TrimSuffix(strings.TrimSpace(s), "/"), ".git")
		if scheme, rest, ok := strings.Cut(s, "://"); ok {
			if host, path, ok := strings.Cut(rest, "/"); ok {
				if at := strings.LastIndexByte(host, '@'); at >= 0 {
					host = host[at+1:]
				}
				return strings.ToLower(scheme+"://"+host) + "/" + path
			}
		}
		return s
	}
	return plain(a) == plain(b)
}

// Models lists the configured language models, in the order of the
// configuration.
func (n *Node) Models(ctx context.Context, v Viewer) ([]Model, error) {
	if v.Role == RoleNone {
		return nil, fail(ErrUnauthenticated, "Not authenticated")
	}
	var out []Model
	for _, m := range n.cluster.View().File().Models {
		out = append(out, Model{Provider: string(m.Provider), Model: m.Model, DisplayName: m.DisplayName})
	}
	return out, nil
}
