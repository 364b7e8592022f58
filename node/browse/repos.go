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
	ConnectionID uint32 // as catalog.ConnectionID makes it; 0 for all
	Page         int    // from 1; 0 means 1
	PerPage      int    // 1..100; 0 means 30
	State        string // one of RepoStates; "" for all
	Sort         string // one of RepoSorts; "" is by name
	Desc         bool
}

// ReposResponse is a page, with the count of all.
type ReposResponse struct {
	Repos []RepoInfo
	Total int
	Page  int
	Per   int
}

// RepoInfo describes a repository. An answer to a search has the first part
// only, a list of repositories has all of it.
type RepoInfo struct {
	HostKind       string `json:"codeHostType"` // genericGitHost, github, ...
	ID             uint32 `json:"repoId"`
	Name           string `json:"repoName"`
	WebURL         string `json:"webUrl"` // page of this service
	DisplayName    string `json:"repoDisplayName,omitzero"`
	ExternalWebURL string `json:"externalWebUrl,omitzero"` // page of the code host; "" when unknown

	IndexedAt     time.Time      `json:"indexedAt,omitzero"`     // zero: not yet
	PushedAt      time.Time      `json:"pushedAt,omitzero"`      // zero: unknown
	DefaultBranch string         `json:"defaultBranch,omitzero"` // short name; "" when unknown
	Fork          bool           `json:"isFork"`
	Archived      bool           `json:"isArchived"`
	Public        bool           `json:"isPublic"`
	Empty         bool           `json:"isEmpty"`             // the host says that it has no commit
	Visibility    string         `json:"visibility,omitzero"` // public, internal, private; "" when the host does not say
	Description   string         `json:"description,omitzero"`
	Stars         uint32         `json:"stars"`
	SizeBytes     uint64         `json:"sizeBytes,omitzero"`    // as the host computes it; 0 when unknown
	Unfetchable   string         `json:"unfetchable,omitzero"`  // why the host does not let it be fetched now; "" when it does
	FormerNames   []string       `json:"formerNames,omitempty"` // that still lead to it
	Connections   []string       `json:"connections"`
	Topics        []string       `json:"topics"`
	Revisions     []RevisionInfo `json:"revisions"`
	LeftOut       int            `json:"revisionsLeftOut,omitzero"` // revisions that connections ask for beyond the most that are indexed
	Documents     int64          `json:"documents"`
	TextBytes     int64          `json:"textBytes"`
	ShardBytes    int64          `json:"indexBytes"`
	Error         string         `json:"error,omitzero"` // of the last index job; "" when it was good
	State         string         `json:"state"`          // one of RepoStates
}

// The states of a repository, the first that holds.
const (
	StateUnfetchable = "unfetchable" // its host does not let it be fetched now, and it has no index
	StateFailed      = "failed"      // the last attempt to index it failed; it may have an older index
	StateIndexing    = "indexing"    // its first index is being made
	StateIndexed     = "indexed"
	StateWaiting     = "waiting" // for its first index
)

// RepoStates lists the states of a repository.
func RepoStates() []string {
	return []string{StateIndexed, StateIndexing, StateWaiting, StateFailed, StateUnfetchable}
}

// stateOf finds the state of a repository.
func stateOf(view *catalog.View, repo *catalog.Repo) string {
	// A failure before an index that is there: the older index is searched, and still somebody
	// should look.
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

// textOf is the bytes of text in the index of a repository.
func textOf(repo *catalog.Repo) (n int64) {
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
	seen, err := b.d.Gate.Repos(v)
	if err != nil {
		return nil, err
	}

	page, total := req.page(seen, b.orders.of(seen.View, &req))
	out := &ReposResponse{Total: total, Page: req.Page, Per: req.PerPage, Repos: []RepoInfo{}}
	for _, repo := range page {
		out.Repos = append(out.Repos, b.repoState(seen, repo))
	}
	return out, nil
}

// Repo is the repository of a name, or of one that its host gave up not long ago.
// One that the viewer may not see is ErrRepoNotFound like one that is not there.
func (b *Browser) Repo(_ context.Context, v catalog.Viewer, name string) (*RepoInfo, error) {
	seen, err := b.d.Gate.Repos(v)
	if err != nil {
		return nil, err
	}
	repo, err := seen.ByName(name)
	if err != nil {
		return nil, err
	}
	info := b.repoState(seen, repo)
	return &info, nil
}

// RepoSorts returns the orders of a list, the usual one first. Size is the bytes of
// the text, stars are those of the code host.
func RepoSorts() []string { return []string{"name", "pushed", "size", "stars"} }

// check fills in what was left out, and refuses what cannot be.
func (req *ReposRequest) check() error {
	if err := call.CheckPage(&req.Page, &req.PerPage, 30); err != nil {
		return err
	}

	// A word that is not known is a mistake: taken for the usual one it would look like an answer.
	switch {
	case req.Sort != "" && !slices.Contains(RepoSorts(), req.Sort):
		return call.Fail(call.ErrInvalid, "sort must be one of %s", strings.Join(RepoSorts(), ", "))
	case req.State != "" && !slices.Contains(RepoStates(), req.State):
		return call.Fail(call.ErrInvalid, "state must be one of %s", strings.Join(RepoStates(), ", "))
	}

	return nil
}

// asksFor reports whether a repository is asked for. The query is in small letters.
func (req *ReposRequest) asksFor(view *catalog.View, repo *catalog.Repo) bool {
	if !strings.Contains(strings.ToLower(repo.Name), req.Query) {
		return false
	}
	if req.State != "" && stateOf(view, repo) != req.State {
		return false
	}
	of := func(c catalog.RepoConnection) bool {
		return (req.Connection == "" || c.Name == req.Connection) && (req.ConnectionID == 0 || catalog.ConnectionID(c.Name) == req.ConnectionID)
	}
	return req.Connection == "" && req.ConnectionID == 0 || slices.ContainsFunc(repo.Connections, of)
}

// ConnectionInfo names a connection.
type ConnectionInfo struct {
	ID   uint32 `json:"id"`
	Name string `json:"name"`
	Kind string `json:"connectionType"` // as "github"
}

// VisibleConnections lists the connections, by name, that list a repository which the
// viewer may see.
func (b *Browser) VisibleConnections(_ context.Context, v catalog.Viewer) ([]ConnectionInfo, error) {
	seen, err := b.d.Gate.Repos(v)
	if err != nil {
		return nil, err
	}

	var out []ConnectionInfo
	for c := range seen.View.Connections() {
		listed := seen.View.CachedSet("listed by "+c.Name, func() func(*catalog.Repo) bool {
			return func(r *catalog.Repo) bool {
				return slices.ContainsFunc(r.Connections, func(by catalog.RepoConnection) bool { return by.Name == c.Name })
			}
		})
		if listed.Intersects(seen.Set) {
			out = append(out, ConnectionInfo{catalog.ConnectionID(c.Name), c.Name, c.Kind})
		}
	}
	return out, nil
}

// order compares two repositories as they are to be listed.
func (req *ReposRequest) order(a, b *catalog.Repo) int {
	c := strings.Compare(a.Name, b.Name)
	switch req.Sort {
	case "pushed":
		c = a.PushedAt.Compare(b.PushedAt)
	case "size":
		c = cmp.Compare(textOf(a), textOf(b))
	case "stars":
		c = cmp.Compare(a.Stars, b.Stars)
	}

	// By name where they are alike, always forwards, so that pages do not change.
	if req.Desc {
		c = -c
	}
	return cmp.Or(c, strings.Compare(a.Name, b.Name))
}

// page is the part of a list that is asked for, and how many are in all of it. Only to
// count those that a filter chooses are all of them looked at.
func (req *ReposRequest) page(seen *account.Repos, list []*catalog.Repo) (page []*catalog.Repo, total int) {
	filter := *req
	filter.Query = strings.ToLower(req.Query)
	filtered := req.Query != "" || req.Connection != "" || req.ConnectionID != 0 || req.State != ""
	for _, repo := range list {
		if !filtered && len(page) == req.PerPage {
			break
		}
		if !seen.Set.Contains(repo.ID) || filtered && !filter.asksFor(seen.View, repo) {
			continue
		}
		// Divided, since the number of a page far beyond the end would overflow.
		if total/req.PerPage == req.Page-1 {
			page = append(page, repo)
		}
		total++
	}
	if !filtered {
		total = int(seen.Set.GetCardinality())
	}
	return page, total
}

// InfoOf names a repository and says where it is; base is the prefix of links.
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

// isEmpty reports whether a repository has no commit: by what was found when it was
// fetched, and before that by what its host says. Gitea calls one empty for minutes
// after its first push.
func isEmpty(repo *catalog.Repo) bool {
	return repo.NoCommit() || repo.Empty && len(repo.Revisions) == 0
}

// repoState is InfoOf with all that a list shows.
func (b *Browser) repoState(seen *account.Repos, repo *catalog.Repo) RepoInfo {
	view := seen.View
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

	if seen.Blind() {
		info.ShardBytes = 0 // what it takes in a file depends on who else is in it
	}

	if j := view.Job(catalog.JobIndex, catalog.RepoSubject(repo.ID)); j != nil {
		info.Error = j.Error
	}
	info.State = stateOf(view, repo)
	return info
}
