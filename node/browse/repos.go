package browse

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/call"
)

// ReposRequest asks for a page of the repositories that the viewer may see.
type ReposRequest struct {
	Query        string // case-insensitive part of the name
	Connection   string // name of a connection; "" for all
	ConnectionID uint32 // as catalog.ConnectionID returns it; 0 for all
	Page         int    // from 1; 0 means 1
	PerPage      int    // 1..100; 0 means 30
	State        string // one of RepoStates; "" for all
	Sort         string // one of RepoSorts; "" means by name
	Desc         bool
}

// ReposResponse is one page; Total counts all pages.
type ReposResponse struct {
	Repos []RepoInfo
	Total int
	Page  int
	Per   int
}

// RepoInfo describes a repository. Search results fill in the first part only, lists of
// repositories all of it.
type RepoInfo struct {
	HostKind       string `json:"codeHostType"` // genericGitHost, github, ...
	ID             uint32 `json:"repoId"`
	Name           string `json:"repoName"`
	WebURL         string `json:"webUrl"` // page of this service
	DisplayName    string `json:"repoDisplayName,omitzero"`
	ExternalWebURL string `json:"externalWebUrl,omitzero"` // page of the code host; "" if unknown

	IndexedAt     time.Time      `json:"indexedAt,omitzero"`     // zero: not indexed yet
	PushedAt      time.Time      `json:"pushedAt,omitzero"`      // zero: unknown
	DefaultBranch string         `json:"defaultBranch,omitzero"` // short name; "" when unknown
	Fork          bool           `json:"isFork"`
	Archived      bool           `json:"isArchived"`
	Public        bool           `json:"isPublic"`
	Empty         bool           `json:"isEmpty"`             // the repository has no commit
	Visibility    string         `json:"visibility,omitzero"` // public, internal, private; "" if the host does not say
	Description   string         `json:"description,omitzero"`
	Stars         uint32         `json:"stars"`
	SizeBytes     uint64         `json:"sizeBytes,omitzero"`    // as the host reports it; 0 if unknown
	Unfetchable   string         `json:"unfetchable,omitzero"`  // why the host refuses to serve it now; "" if it does not
	FormerNames   []string       `json:"formerNames,omitempty"` // former names that still lead to it
	Connections   []string       `json:"connections"`
	Topics        []string       `json:"topics"`
	Revisions     []RevisionInfo `json:"revisions"`
	LeftOut       int            `json:"revisionsLeftOut,omitzero"` // revisions that connections want but that exceed the limit
	Documents     int64          `json:"documents"`
	TextBytes     int64          `json:"textBytes"`
	ShardBytes    int64          `json:"indexBytes"`
	Error         string         `json:"error,omitzero"` // of the last index job; "" if it succeeded
	State         string         `json:"state"`          // one of RepoStates
}

// States of a repository. The first that applies is shown.
const (
	StateUnfetchable = "unfetchable" // not indexed, and its host refuses to serve it now
	StateFailed      = "failed"      // the last attempt to index it failed; an older index may exist
	StateIndexing    = "indexing"    // the first index is being built
	StateIndexed     = "indexed"
	StateWaiting     = "waiting" // for the first index
)

// RepoStates lists the states of a repository.
func RepoStates() []string {
	return []string{StateIndexed, StateIndexing, StateWaiting, StateFailed, StateUnfetchable}
}

// stateOf returns the state of a repository.
func stateOf(view *catalog.View, repo *catalog.Repo) string {
	// A failure counts even if an older index exists: searches work, but somebody should look.
	j := view.Job(catalog.JobIndex, catalog.RepoSubject(repo.ID))
	switch {
	case repo.Unfetchable != "" && !repo.Indexed():
		return StateUnfetchable
	case j.Failing():
		return StateFailed
	case repo.Indexed():
		return StateIndexed
	case j != nil && j.State == catalog.JobRunning:
		return StateIndexing
	}

	return StateWaiting
}

// indexedTextBytes returns the bytes of text in a repository's index.
func indexedTextBytes(repo *catalog.Repo) (n int64) {
	for _, s := range repo.Shards {
		n += s.Text
	}
	return n
}

// RevisionInfo is an indexed revision.
type RevisionInfo struct {
	Name   string `json:"name"`   // full ref name, or HEAD
	Commit string `json:"commit"` // hex
}

// Repos lists repositories.
func (b *Browser) Repos(ctx context.Context, v catalog.Viewer, req ReposRequest) (*ReposResponse, error) {
	if err := req.check(); err != nil {
		return nil, err
	}
	visible, err := b.d.Gate.Repos(v)
	if err != nil {
		return nil, err
	}

	page, total := req.page(visible, b.orders.sorted(visible.View, &req))
	out := &ReposResponse{Total: total, Page: req.Page, Per: req.PerPage, Repos: []RepoInfo{}}
	for _, repo := range page {
		out.Repos = append(out.Repos, b.repoState(visible, repo))
	}
	return out, nil
}

// Repo returns the repository of a name, or of a recent former name. It returns ErrRepoNotFound
// if the viewer may not see it, as if it did not exist.
func (b *Browser) Repo(_ context.Context, v catalog.Viewer, name string) (*RepoInfo, error) {
	visible, err := b.d.Gate.Repos(v)
	if err != nil {
		return nil, err
	}
	repo, err := visible.ByName(name)
	if err != nil {
		return nil, err
	}
	info := b.repoState(visible, repo)
	return &info, nil
}

// RepoSorts returns the sort orders, the default first. Size means bytes of text; stars are the
// code host's.
func RepoSorts() []string { return []string{"name", "pushed", "size", "stars"} }

// check fills in defaults and refuses invalid values.
func (req *ReposRequest) check() error {
	if err := call.CheckPage(&req.Page, &req.PerPage, 30); err != nil {
		return err
	}

	// Refuse an unknown word: ignoring it would look like a correct answer.
	switch {
	case req.Sort != "" && !slices.Contains(RepoSorts(), req.Sort):
		return call.Fail(call.ErrInvalid, "sort must be one of %s", strings.Join(RepoSorts(), ", "))
	case req.State != "" && !slices.Contains(RepoStates(), req.State):
		return call.Fail(call.ErrInvalid, "state must be one of %s", strings.Join(RepoStates(), ", "))
	}

	return nil
}

// matches reports whether a repository passes the filters. Query must be lower case.
func (req *ReposRequest) matches(view *catalog.View, repo *catalog.Repo) bool {
	if !strings.Contains(strings.ToLower(repo.Name), req.Query) {
		return false
	}
	if req.State != "" && stateOf(view, repo) != req.State {
		return false
	}
	isRequested := func(c catalog.RepoConnection) bool {
		return (req.Connection == "" || c.Name == req.Connection) && (req.ConnectionID == 0 || catalog.ConnectionID(c.Name) == req.ConnectionID)
	}
	return req.Connection == "" && req.ConnectionID == 0 || slices.ContainsFunc(repo.Connections, isRequested)
}

// ConnectionInfo names a connection.
type ConnectionInfo struct {
	ID   uint32 `json:"id"`
	Name string `json:"name"`
	Kind string `json:"connectionType"` // such as "github"
}

// VisibleConnections returns the connections that list a repository which the viewer may see, by
// name.
func (b *Browser) VisibleConnections(_ context.Context, v catalog.Viewer) ([]ConnectionInfo, error) {
	visible, err := b.d.Gate.Repos(v)
	if err != nil {
		return nil, err
	}

	var out []ConnectionInfo
	for c := range visible.View.Connections() {
		listed := visible.View.CachedSet("listed by "+c.Name, func() func(*catalog.Repo) bool {
			return func(r *catalog.Repo) bool {
				return slices.ContainsFunc(r.Connections, func(by catalog.RepoConnection) bool { return by.Name == c.Name })
			}
		})
		if listed.Intersects(visible.Set) {
			out = append(out, ConnectionInfo{catalog.ConnectionID(c.Name), c.Name, c.Kind})
		}
	}
	return out, nil
}

// compareRepos compares two repositories in the requested order.
func (req *ReposRequest) compareRepos(a, b *catalog.Repo) int {
	c := strings.Compare(a.Name, b.Name)
	switch req.Sort {
	case "pushed":
		c = a.PushedAt.Compare(b.PushedAt)
	case "size":
		c = cmp.Compare(indexedTextBytes(a), indexedTextBytes(b))
	case "stars":
		c = cmp.Compare(a.Stars, b.Stars)
	}

	// Sort equal ones by name, ascending in either direction, so that pages are stable.
	if req.Desc {
		c = -c
	}
	return cmp.Or(c, strings.Compare(a.Name, b.Name))
}

// page returns the requested page of a list, and how many repositories match. Without a filter it
// stops at the end of the page.
func (req *ReposRequest) page(visible *account.Repos, list []*catalog.Repo) (page []*catalog.Repo, total int) {
	filter := *req
	filter.Query = strings.ToLower(req.Query)
	filtered := req.Query != "" || req.Connection != "" || req.ConnectionID != 0 || req.State != ""
	for _, repo := range list {
		if !filtered && len(page) == req.PerPage {
			break
		}
		if !visible.Set.Contains(repo.ID) || filtered && !filter.matches(visible.View, repo) {
			continue
		}
		// Divide: multiplying a very large page number could overflow.
		if total/req.PerPage == req.Page-1 {
			page = append(page, repo)
		}
		total++
	}
	if !filtered {
		total = int(visible.Set.GetCardinality())
	}
	return page, total
}

// InfoOf returns the first part of RepoInfo; base is the prefix of links.
func InfoOf(repo *catalog.Repo, base string) RepoInfo {
	return RepoInfo{
		ID:             repo.ID,
		Name:           repo.Name,
		DisplayName:    cmp.Or(repo.DisplayName, repo.Name),
		HostKind:       repo.HostKind,
		WebURL:         WebURL(base, repo.Name, "", "tree", ""),
		ExternalWebURL: repo.WebURL,
		DefaultBranch:  repo.DefaultBranch,
	}
}

// isEmpty reports whether a repository has no commit. After the first fetch the mirror decides,
// before that the host. Gitea reports a repository as empty for minutes after its first push.
func isEmpty(repo *catalog.Repo) bool {
	return repo.NoCommit() || repo.Empty && len(repo.Revisions) == 0
}

// repoState returns the complete RepoInfo.
func (b *Browser) repoState(visible *account.Repos, repo *catalog.Repo) RepoInfo {
	view := visible.View
	info := InfoOf(repo, b.d.BaseURL())
	info.Topics = repo.Topics
	info.Fork, info.Archived, info.Public = repo.Fork, repo.Archived, repo.Public
	info.Visibility, info.Description, info.Stars = repo.Visibility.String(), repo.Description, repo.Stars

	info.SizeBytes, info.Empty, info.Unfetchable = repo.SizeBytes, isEmpty(repo), repo.Unfetchable
	info.LeftOut = int(repo.LeftOut)
	info.FormerNames = view.FormerNames(repo)
	info.PushedAt, info.IndexedAt = repo.PushedAt, repo.IndexedAt

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

	if visible.Blind() { // its share of a file depends on other repositories in the file
		info.ShardBytes = 0 // what it takes in a file depends on who else is in it
	}

	if j := view.Job(catalog.JobIndex, catalog.RepoSubject(repo.ID)); j != nil {
		info.Error = j.Error
	}
	info.State = stateOf(view, repo)
	return info
}
