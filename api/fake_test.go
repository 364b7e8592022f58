package api

import (
	"cmp"
	"context"
	"io"
	"net/url"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/account"
	nodeask "github.com/shoalsearch/shoal/node/ask"
	"github.com/shoalsearch/shoal/node/browse"
	nodecall "github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/chronicle"
	"github.com/shoalsearch/shoal/node/configure"
	"github.com/shoalsearch/shoal/node/coverage"
	"github.com/shoalsearch/shoal/node/host"
	"github.com/shoalsearch/shoal/node/job"
	"github.com/shoalsearch/shoal/node/model"
	"github.com/shoalsearch/shoal/node/oauth"
	"github.com/shoalsearch/shoal/node/operate"
	"github.com/shoalsearch/shoal/node/search"
	"github.com/shoalsearch/shoal/node/signin"
	"github.com/shoalsearch/shoal/node/suggest"
	"github.com/shoalsearch/shoal/node/symbols"
	"github.com/shoalsearch/shoal/node/tool"
	"github.com/shoalsearch/shoal/shard"
	"github.com/shoalsearch/shoal/shard/change"
	"github.com/shoalsearch/shoal/shard/git"
)

// fake implements every operation with a response in which every field is filled, so that a test
// can compare the API with its specification.
type fake struct {
	guests   bool
	base     string
	notOK    bool
	search   func(context.Context, catalog.Viewer, search.Request) (*search.Response, error)
	stream   func(context.Context, catalog.Viewer, search.Request, func(*search.Chunk) error) (*search.Response, error)
	grep     func(context.Context, catalog.Viewer, search.GrepRequest) (*search.GrepResponse, error)
	err      error // returned by every operation
	lastReq  atomic.Value
	unlinked bool // the signed-in user must link the provider host
	noted    func(chronicle.Access)
	out      atomic.Bool // the user of memberToken has signed out
}

const (
	memberKey  = "shoal_1111111111111111111111111111111111111111111111111111111111111111"
	ownerKey   = "shoal_2222222222222222222222222222222222222222222222222222222222222222"
	metricsKey = "shoal_3333333333333333333333333333333333333333333333333333333333333333"
)

var day = time.Date(2026, 11, 2, 10, 20, 30, 0, time.UTC)

// parts returns the fake as every part of the routes.
func (f *fake) parts() parts {
	return parts{
		keys: f, sessions: f, passwords: f, providers: f, base: always(cmp.Or(f.base, "http://shoal.example.com")),
		search: f, browse: f, operate: f, state: f, apiKeys: f, watches: f, callers: f, chats: f, users: f, config: f, chronicle: f, suggest: f, agents: f,
		enforces: func() bool { return false },
	}
}

func (f *fake) Authenticate(_ context.Context, key string) (catalog.Viewer, error) {
	switch key {
	case memberKey:
		return catalog.Viewer{Role: catalog.RoleMember, Name: "alice", KeyID: "k1"}, nil
	case ownerKey:
		return catalog.Viewer{Role: catalog.RoleOwner, Name: "root", KeyID: "k2"}, nil
	}
	return catalog.Viewer{}, &nodecall.Error{Kind: nodecall.ErrUnauthenticated, Message: "Not authenticated: the key is unknown, revoked or expired."}
}

func (f *fake) MetricsViewer(_ context.Context, key string) (catalog.Viewer, bool) {
	return catalog.Viewer{Role: catalog.RoleMetrics, Name: "prometheus", KeyID: "k3"}, key == metricsKey
}

func (f *fake) AnonymousAccess() bool { return f.guests }

func (f *fake) Current() error         { return nil }
func (f *fake) OperatorBySocket() bool { return true }

func at(offset, line, column uint32) shard.Position {
	return shard.Position{Offset: offset, Line: line, Column: column}
}

// partCovered has every field of a gap.
var partCovered = coverage.Of(coverage.Parts, 1, 1).With(coverage.Gap{
	Kind: coverage.NameOnly, Count: 2, Of: 3, Ref: "side", Files: []coverage.File{{Repo: "example.com/a/b", Path: "large.txt"}},
})

func searchResponse() *search.Response {
	return &search.Response{
		Stats: search.Stats{
			Stats: shard.Stats{
				ActualMatches: 1, TotalMatches: 2, Files: 3, FilesSkipped: 4, FilesNotSearched: 24, ContentBytes: 5, IndexBytes: 6, ShardFiles: 7,
				FilesConsidered: 8, FilesLoaded: 9, ShardsScanned: 10, ShardsSkipped: 11, ShardsFiltered: 12, NgramMatches: 13,
				NgramLookups: 14, RegexpsConsidered: 15, Planning: 1600 * time.Millisecond, Searching: 17,
			},
			Duration: 2*time.Second + 18, Wait: 19, Crashes: 20, ShardsRequired: 21, ShardsAnswered: 22, FlushReason: search.FlushFinal, UnknownRevision: "v0",
		},
		Past:  []search.PastRepo{{Repository: "example.com/a/b", Commit: "0123456789abcdef0123456789abcdef01234567", Time: day, Beside: "main", Read: 2, Bytes: 30}},
		Hints: []string{"public:yes is searched for as text"},
		Files: []search.File{{
			RepoID: 7, Repository: "example.com/a/b", Path: "dir/m\xe9<in>.go", Language: "Go",
			NameRanges: []shard.Range{{Start: at(4, 1, 5), End: at(5, 1, 6)}},
			WebURL:     "http://shoal/browse/x", ExternalWebURL: "https://example.com/a/b/x",
			Chunks: []shard.Chunk{{
				Content: []byte("func \"main\"\t{\x01\xff}\r\n\u2028"), Start: at(10, 2, 1),
				Ranges:  []shard.Range{{Start: at(16, 2, 7), End: at(20, 2, 11)}, {Start: at(30, 3, 1), End: at(30, 3, 1)}},
				Symbols: []shard.Symbol{{Name: "main", Kind: "function", ParentName: "p", ParentKind: "package"}, {}},
			}},
			Branches: []string{"refs/heads/main"}, Content: []byte("whole\n"),
		}, {RepoID: 7, Repository: "example.com/a/b", Path: "plain", Encoding: "utf-16be"}},
		Repositories: []browse.RepoInfo{{ID: 7, Name: "example.com/a/b", DisplayName: "a/b", ExternalWebURL: "https://example.com/a/b", HostKind: "genericGitHost"}},
		Coverage:     partCovered,
		Cluster: search.ClusterInfo{CatalogIndex: 99, CatalogAge: 1500 * time.Millisecond, ShardsMissing: []string{"ab"}, ReposMissing: []string{"r"},
			NodesFailed: []string{"n2"}},
		Next: "bmV4dA",
	}
}

// noQuery is a text that the fake refuses as a query.
const noQuery = "x case:maybe"

func mistake() error {
	return &nodecall.Error{
		Kind:       nodecall.ErrQuery,
		Message:    "at byte 7: expected yes, no or auto after case:",
		Offset:     7,
		Length:     5,
		Expected:   "yes, no or auto after case:",
		Choices:    []string{"yes", "no", "auto"},
		Suggestion: `"x case:maybe"`,
	}
}

func (f *fake) Search(ctx context.Context, v catalog.Viewer, req search.Request) (*search.Response, error) {
	f.lastReq.Store(req)
	if f.search != nil {
		return f.search(ctx, v, req)
	}
	if req.Query == noQuery {
		return nil, mistake()
	}
	r := searchResponse()
	if req.Facets {
		r.Facets = &search.Facets{
			Repositories: []search.FacetValue{{Value: "example.com/a/b", Files: 3}},
			Languages:    []search.FacetValue{{Value: "Go", Files: 2}, {Value: "C", Files: 1}},
			Paths:        []search.FacetValue{{Value: "d\xe9r/", Files: 2}},
			Revisions:    []search.FacetValue{{Value: "main", Files: 3}},
			Exact:        true,
		}
	}
	return answer(f, r)
}

func (f *fake) Trend(_ context.Context, _ catalog.Viewer, _ search.Request, at []time.Time) (*search.TrendResponse, error) {
	return answer(f, &search.TrendResponse{Counts: make([]int, len(at)), Repositories: 1})
}

func (f *fake) SearchCommits(_ context.Context, _ catalog.Viewer, req search.Request) (*search.CommitsResponse, error) {
	f.lastReq.Store(req)
	when := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return answer(f, &search.CommitsResponse{
		Total: 2, Exact: true, Named: 1, Coverage: partCovered, Took: time.Millisecond, Hints: []string{"a hint"},
		Next: "next", Facets: &search.CommitFacets{Repositories: []search.FacetValue{{Value: "example.com/a/b", Files: 2}}, Authors: []search.FacetValue{{Value: "Ann", Files: 2}}, Months: []search.FacetValue{{Value: "2026-01", Files: 2}}, Exact: true},
		Uncovered: []search.Uncovered{{Repository: "example.com/a/c", Why: "older commits are not indexed", Before: when, After: when}},
		Commits: []search.FoundCommit{{
			RepoID: 7, Repository: "example.com/a/b", WebURL: "http://shoal/browse/x",
			CommitMatch: change.CommitMatch{
				ID: "c0ffee", Parents: 1, Author: "Ann <ann@example.com>", Committer: "Bob <bob@example.com>", AuthorTime: when, CommitTime: when, Message: "fix caf\xe9", Parent: "dad", MoreFiles: 3, MessageCut: true, FirstTag: "v1",
				Files: []change.FileMatch{
					{Path: "new.go", From: "old.go", Status: "renamed", Language: "Go", Added: 1, Removed: 1, MoreHunks: 2, Hunks: []change.Hunk{{Old: git.DiffRange{Start: 3, Lines: 1}, New: git.DiffRange{Start: 3, Lines: 1}, Body: "-a\n+b\n"}}},
					{Path: "x.png", Status: "added", Kept: "binary"}, {Path: "big.js", Status: "modified", Kept: "huge", Language: "JavaScript"},
				},
			},
		}},
	})
}

func (f *fake) StreamCommits(ctx context.Context, v catalog.Viewer, req search.Request, send func([]search.FoundCommit) error) (*search.CommitsResponse, error) {
	r, err := f.SearchCommits(ctx, v, req)
	if err != nil {
		return nil, err
	}
	for range 2 {
		if err := send(r.Commits); err != nil {
			return nil, err
		}
	}
	r.Commits = nil
	return r, nil
}

func (f *fake) StreamSearch(ctx context.Context, v catalog.Viewer, req search.Request, send func(*search.Chunk) error) (*search.Response, error) {
	f.lastReq.Store(req)
	if f.stream != nil {
		return f.stream(ctx, v, req, send)
	}
	if f.err != nil {
		return nil, f.err
	}
	r := searchResponse()
	for range 2 {
		if err := send(&search.Chunk{Stats: r.Stats, Files: r.Files, Repositories: r.Repositories}); err != nil {
			return nil, err
		}
	}
	r.Files = nil
	return r, nil
}

func answer[T any](f *fake, r *T) (*T, error) {
	if f.err != nil {
		return nil, f.err
	}
	return r, nil
}

func (f *fake) symbols(req symbols.SymbolRequest) (*symbols.SymbolResponse, error) {
	signature := ""
	if req.Signature {
		signature = "func main()"
	}
	return answer(f, &symbols.SymbolResponse{
		MatchCount: 1, Coverage: partCovered,
		Repositories: searchResponse().Repositories,
		Files: []symbols.SymbolFile{{
			RepoID: 7, Repository: "example.com/a/b", Path: "main.go", WebURL: "http://shoal/browse/x", Language: "Go",
			Matches: []symbols.SymbolMatch{{Line: []byte("func main() {"), Range: shard.Range{Start: at(5, 1, 6), End: at(9, 1, 10)}, Kind: "function", ParentName: "p", ParentKind: "package", Signature: signature}},
		}},
	})
}
func (f *fake) Definitions(_ context.Context, _ catalog.Viewer, req symbols.SymbolRequest) (*symbols.SymbolResponse, error) {
	return f.symbols(req)
}
func (f *fake) References(_ context.Context, _ catalog.Viewer, req symbols.SymbolRequest) (*symbols.SymbolResponse, error) {
	return f.symbols(req)
}
func (f *fake) Hierarchy(_ context.Context, _ catalog.Viewer, req symbols.HierarchyRequest) (*symbols.SymbolResponse, error) {
	return f.symbols(req.SymbolRequest)
}

func (f *fake) Repos(_ context.Context, _ catalog.Viewer, req browse.ReposRequest) (*browse.ReposResponse, error) {
	return answer(f, &browse.ReposResponse{Total: 95, Page: req.Page, Per: req.PerPage, Repos: []browse.RepoInfo{theRepo()}})
}
func (f *fake) VisibleConnections(context.Context, catalog.Viewer) ([]browse.ConnectionInfo, error) {
	return []browse.ConnectionInfo{{ID: 7, Name: "main", Kind: "git"}}, f.err
}
func (f *fake) Repo(_ context.Context, _ catalog.Viewer, name string) (*browse.RepoInfo, error) {
	repo := theRepo()
	if name != repo.Name {
		return nil, nodecall.Fail(nodecall.ErrRepoNotFound, "Repository %q not found", name)
	}
	return answer(f, &repo)
}

// theRepo returns the only repository of a fake.
func theRepo() browse.RepoInfo {
	return browse.RepoInfo{
		ID: 7, Name: "example.com/a/b", DisplayName: "a/b", HostKind: "genericGitHost", WebURL: "http://shoal/browse/x", ExternalWebURL: "https://example.com/a/b",
		Connections: []string{"main"}, Topics: []string{"search"}, DefaultBranch: "main", Fork: true, Archived: true, Public: true, Visibility: "internal", Description: "an app", Stars: 4, SizeBytes: 5, Empty: true, Unfetchable: "disabled", LeftOut: 3, FormerNames: []string{"example.com/a/old"},
		PushedAt: day, IndexedAt: day, Revisions: []browse.RevisionInfo{{Name: "HEAD", Commit: "c0ffee"}},
		Documents: 1, TextBytes: 2, ShardBytes: 3, Error: "clone failed", State: "failed",
	}
}
func (f *fake) Reindex(_ context.Context, _ account.Owner, id uint32) (*operate.ReindexResponse, error) {
	return answer(f, &operate.ReindexResponse{ID: id, Name: "example.com/a/b", Job: "index:7"})
}
func (f *fake) Webhook(_ context.Context, _ account.Owner, _ operate.WebhookRequest) (*operate.WebhookResponse, error) {
	return answer(f, &operate.WebhookResponse{Repos: []string{"example.com/a/b"}})
}
func (f *fake) Hook(string) host.Hook { return host.HookOf(&config.GitLab{}) }
func (f *fake) DeliveryKeys(ctx context.Context, name string) (operate.WebhookKeys, error) {
	return f.WebhookKeys(ctx, name)
}
func (f *fake) WebhookKeys(context.Context, string) (operate.WebhookKeys, error) {
	return operate.WebhookKeys{Secret: "c0ffee", Previous: "old", Until: day}, f.err
}
func (f *fake) RotateWebhook(ctx context.Context, _ account.Owner, name string) (operate.WebhookKeys, error) {
	return f.WebhookKeys(ctx, name)
}

// gonePath is a path that an earlier commit had.
const gonePath = "gone.go"

func (f *fake) Source(_ context.Context, _ catalog.Viewer, req browse.SourceRequest) (*browse.SourceResponse, error) {
	if req.Path == gonePath {
		return nil, nodecall.Fail(nodecall.ErrFileNotFound, "File %q not found", gonePath)
	}
	encoding := "utf-16le"
	if req.Raw {
		encoding = ""
	}
	return answer(f, &browse.SourceResponse{
		Encoding: encoding,
		Content:  []byte("a\xe9 // b\n"), Language: "Go", Path: "dir/a.go", Repo: "example.com/a/b", HostKind: "genericGitHost", DisplayName: "a/b",
		RepoWebURL: "https://example.com/a/b", WebURL: "http://shoal/browse/x", ExternalWebURL: "https://example.com/a/b/x", OID: "b10b", Commit: "c0ffee", FirstLine: 2, Total: 9,
	})
}
func (f *fake) LastSeen(_ context.Context, _ catalog.Viewer, req browse.LastSeenRequest) (*browse.LastSeenResponse, error) {
	return answer(f, &browse.LastSeenResponse{Path: req.Paths[0], Commit: "dad", Type: "blob", Removed: &aCommit, Renamed: "new.go"})
}
func (f *fake) Tree(_ context.Context, _ catalog.Viewer, req browse.TreeRequest) (*browse.TreeResponse, error) {
	if slices.Contains(req.Paths, gonePath) {
		return nil, nodecall.Fail(nodecall.ErrFileNotFound, "File %q not found", gonePath)
	}
	return answer(f, &browse.TreeResponse{Commit: "c0ffee", Cut: true, Detailed: true, Root: browse.TreeNode{Type: "tree", Mode: 0o040000, Children: []browse.TreeNode{
		{Type: "blob", Path: "a", Name: "a", Mode: 0o120000, Size: 3, Target: "b/c"}, {Type: "commit", Path: "m", Name: "m", Mode: 0o160000, OID: "dad"},
	}}})
}

var aCommit = browse.CommitInfo{Hash: "c0ffee", Date: day, Message: "subject", Body: "body", Refs: "HEAD -> main", AuthorName: "A", AuthorEmail: "a@example.com", Parents: []string{"dad"}}

func (f *fake) Commits(_ context.Context, _ catalog.Viewer, req browse.CommitsRequest) (*browse.CommitsResponse, error) {
	c := aCommit
	if req.Follow {
		c.Path = "old.go"
	}
	return answer(f, &browse.CommitsResponse{Commits: []browse.CommitInfo{c}, Total: 1, AtLeast: true, Page: req.Page, Per: req.PerPage})
}
func (f *fake) Commit(context.Context, catalog.Viewer, browse.CommitRequest) (*browse.CommitInfo, error) {
	c := aCommit
	return answer(f, &c)
}
func (f *fake) Together(context.Context, catalog.Viewer, browse.TogetherRequest) (*browse.TogetherResponse, error) {
	return answer(f, &browse.TogetherResponse{Commits: 1, Files: []git.FileCount{{Path: "a.go", Commits: 1}}, Total: 1})
}

func (f *fake) Authors(context.Context, catalog.Viewer, browse.AuthorsRequest) (*browse.AuthorsResponse, error) {
	return answer(f, &browse.AuthorsResponse{Authors: []browse.AuthorInfo{{Name: "A", Email: "a@example.com", Commits: 3}}, Total: 1})
}
func (f *fake) Diff(_ context.Context, _ catalog.Viewer, req browse.DiffRequest) (*browse.DiffResponse, error) {
	r := &browse.DiffResponse{Cut: true, BaseCommit: "c0ffee", HeadCommit: "bee", Files: []browse.DiffFile{
		{OldPath: "a", Status: 'D', OldMode: "100644", NewMode: "000000", Removed: 1, Cut: true, Hunks: []browse.DiffHunk{{OldStart: 1, OldLines: 2, NewStart: 3, NewLines: 4, Heading: "func x", Body: " a\n-b\n"}}},
		{NewPath: "b", Status: 'A', OldMode: "000000", NewMode: "100755", Binary: true},
	}}

	// With Stat, hunks are left out, as a node does.
	if req.Stat {
		r.Files = append(r.Files, browse.DiffFile{OldPath: "c", NewPath: "d", Status: 'R', OldMode: "100644", NewMode: "100644", Added: 2, Removed: 1, Similarity: 95})
		r.Files[0].Hunks = nil
	}
	if req.PerPage > 0 {
		r.Files, r.Total = r.Files[:1], 3
	}
	return answer(f, r)
}
func (f *fake) Blame(context.Context, catalog.Viewer, browse.BlameRequest) (*browse.BlameResponse, error) {
	return answer(f, &browse.BlameResponse{Past: 1, Shallow: true,
		Ranges:  []browse.BlameRange{{Hash: "c0ffee", Path: "a", StartLine: 1, LineCount: 2}},
		Commits: map[string]browse.BlameCommit{"c0ffee": {Hash: "c0ffee", Message: "subject", Date: day, AuthorName: "A", AuthorEmail: "a@example.com", PreviousHash: "dad", PreviousPath: "old"}},
	})
}
func (f *fake) Branches(_ context.Context, _ catalog.Viewer, req browse.RefsRequest) (*browse.RefsResponse, error) {
	return answer(f, &browse.RefsResponse{Repo: req.Repo, DefaultBranch: "main", Total: 1, Refs: []browse.RefInfo{{Name: "main", Commit: "c0ffee", CommittedAt: day, Default: true, Indexed: true}}})
}
func (f *fake) Tags(ctx context.Context, v catalog.Viewer, req browse.RefsRequest) (*browse.RefsResponse, error) {
	return f.Branches(ctx, v, req)
}
func (f *fake) LastCommits(context.Context, catalog.Viewer, browse.LastCommitsRequest) (*browse.LastCommitsResponse, error) {
	return answer(f, &browse.LastCommitsResponse{
		Commit: "c0ffee", Cut: true, Entries: []browse.LastEntry{{Name: "a", Hash: "dad"}, {Name: "b", From: "bee"}},
		Commits: map[string]browse.LastCommit{"dad": {Hash: "dad", Date: day, Message: "subject", AuthorName: "A"}},
	})
}
func (f *fake) Ref(context.Context, catalog.Viewer, browse.RefRequest) (*browse.RefResponse, error) {
	return answer(f, &browse.RefResponse{Commit: "c0ffee", Kind: browse.RefBranch, Name: "main", Indexed: true})
}

var aJob = operate.JobStatus{Kind: "index", Subject: "example.com/a/b", Node: "n1", Attempt: 2, Started: day, Deadline: day, Step: "reading", Done: 3, Total: 4, Bytes: 5, Error: "no", NextTry: day}

func (f *fake) job() (*operate.JobInfo, error) {
	return answer(f, &operate.JobInfo{JobStatus: aJob, ID: "index:7", State: "retrying", Urgent: true, Rerun: true, Queued: day, Finished: day, Good: day})
}
func (f *fake) Jobs(_ context.Context, _ catalog.Viewer, req operate.JobsRequest) (*operate.JobsResponse, error) {
	j, err := f.job()
	if err != nil {
		return nil, err
	}
	return &operate.JobsResponse{Jobs: []operate.JobInfo{*j}, Total: 95, Page: req.Page, Per: req.PerPage}, nil
}
func (f *fake) Job(context.Context, catalog.Viewer, string) (*operate.JobInfo, error) {
	return f.job()
}
func (f *fake) Events(context.Context, account.Owner, chronicle.EventsRequest) (*chronicle.EventsResponse, error) {
	return answer(f, &chronicle.EventsResponse{Since: day, Next: "eyJ9", Missed: true, Events: []chronicle.Event{{At: day, Kind: "unreachable", Subject: "n2", Text: "node n2 does not answer"}}})
}
func (f *fake) RetryJob(context.Context, account.Owner, string) (*operate.JobInfo, error) {
	return f.job()
}
func (f *fake) CancelJob(context.Context, account.Owner, string) (*operate.JobInfo, error) {
	return f.job()
}

func (f *fake) Status(context.Context, catalog.Viewer) (*node.StatusResponse, error) {
	return answer(f, &node.StatusResponse{
		Version: "v1", Node: "n1", Leader: "n1", CatalogIndex: 9, CatalogAge: time.Second, Level: node.LevelStatus{Number: 1, Version: "0.1.0", Next: 2, WaitsFor: []string{"n2"}},
		Members:         []node.MemberStatus{{ID: "n1", Address: "127.0.0.1:7701", API: "http://127.0.0.1:7700", Zone: "default", Role: "leader", Health: "alive", Draining: true, Drained: true, Weight: 1, Version: "v1", Level: 2, Groups: 2, Bytes: 3, Applied: 4, Lag: 5, ConfigHash: "cd", ConfigDiffers: true, DiskUsed: 41, Searches: 6, StartedAt: day}},
		Tolerates:       node.Tolerance{Searches: 1, Writes: 1},
		CertificateEnds: day,
		Verdict:         node.Verdict{State: node.VerdictGood, Sentence: "Any 1 node may fail now; searches stay complete."},
		Repos:           node.RepoCounts{Total: 3, Indexed: 2, Failed: 1, Unfetchable: 4}, Jobs: node.JobCounts{Pending: 1, Running: 2, Failed: 3, Retrying: 1},
		Connections: []operate.ConnectionStatus{aConnection},
		Running:     []operate.JobStatus{aJob}, Failed: []operate.JobStatus{aJob},
		Config:    configure.FileStatus{Path: "c.json", Hash: "ab", FileHash: "cd", Differs: true, LoadedAt: day, Errors: []string{"e"}, RefusedAt: day},
		Storage:   node.StorageStatus{Shards: 1, ShardBytes: 2, MirrorBytes: 3, Quarantined: 4, DiskFree: 5, DiskTotal: 6, UnknownSymbols: 7, Rebuild: node.RebuildStatus{Done: 8, Of: 9, Unread: 1, Took: 10 * time.Second}},
		Placement: node.PlacementStatus{Groups: 1, UnderReplicated: 2, Short: []string{"s"}, NoLiveCopy: 1, Missing: []string{"m"}, Moves: 3},
		Permissions: &job.PermissionState{
			Sync: catalog.PermissionSyncOn, Unlinked: 1, PeopleRunning: 2, PeopleLimit: 3, ReposRunning: 4, ReposLimit: 5,
			Hosts: []job.HostPermissions{{Host: "github:github.com", People: job.Answers{Wanted: 6, Answered: 1, Ended: 2, Refused: 3, Failing: 4, Newest: day, Oldest: day}, Repos: job.Answers{Wanted: 7, Newest: day, Oldest: day}}},
		},
		Watches:  node.WatchStatus{Watches: 6, Failing: 1, Backlog: 2},
		Warnings: []string{"w"},
	})
}

var aConnection = operate.ConnectionStatus{
	ID: 7, Name: "main", Kind: "git", Type: "git", State: "synced", Message: "m", Warnings: []string{"w"}, Repos: 3, SyncedAt: day,
	Issues:   []operate.ConnectionIssue{{Code: "FORBIDDEN", Target: "orgs/acme", Text: "no", Hint: "ask", Since: time.Unix(1_700_000_000, 0)}},
	Excluded: []operate.ExcludedCount{{Reason: "forks", Repos: 4}}, Kept: 5, Held: 6, HeldAt: day, RefusedAt: day, HidesAt: day, HiddenAt: day, Attempt: 9, Queued: true, EndedAt: day, NextAt: day, Listed: 7,
	Calls: 8, Limit: &operate.CallLimit{Calls: 9, Remaining: 1, ResetAt: day}, ExpiresAt: day,
	Following: operate.FollowingStatus{By: "signal", Signal: "pushed_at", Seconds: 30, LastAt: day, Problem: "p", HookAt: day},
}

var three = 3

func (f *fake) Connections(context.Context, account.Owner) ([]operate.ConnectionStatus, error) {
	return []operate.ConnectionStatus{aConnection}, f.err
}
func (f *fake) Connection(context.Context, account.Owner, string) (*operate.ConnectionResponse, error) {
	return answer(f, &operate.ConnectionResponse{ConnectionStatus: aConnection, Syncs: []operate.Listing{
		{BeganAt: day, TookMs: 1500, State: "failed", Error: "no route to the host"},
		{BeganAt: day.Add(-time.Hour), TookMs: 2000, State: "synced", Repos: &three},
	}})
}
func (f *fake) SyncConnection(context.Context, account.Owner, string) (*operate.ConnectionStatus, error) {
	c := aConnection
	return answer(f, &c)
}
func (f *fake) AcceptListing(context.Context, account.Owner, string) (*operate.ConnectionStatus, error) {
	c := aConnection
	return answer(f, &c)
}

func (f *fake) HistoryRules(context.Context, account.Owner) (*operate.HistoryResponse, error) {
	return answer(f, &operate.HistoryResponse{Rules: []operate.HistoryRule{{Glob: "example.com/legacy-*"}, {Glob: "example.com/*", Include: true}}})
}

func (f *fake) SetHistory(ctx context.Context, by account.Owner, _ operate.HistoryRequest) (*operate.HistoryResponse, error) {
	return f.HistoryRules(ctx, by)
}

func (f *fake) SnapshotChats(_ context.Context, _ account.Owner, w io.Writer) error {
	_, err := io.WriteString(w, "chats")
	return err
}

func (f *fake) Snapshot(_ context.Context, _ account.Owner, w io.Writer) error {
	if f.err != nil {
		return f.err
	}
	_, err := io.WriteString(w, "a catalog")
	return err
}
func (f *fake) Ready() node.ReadyResponse {
	return node.ReadyResponse{Ready: !f.notOK, Reasons: []string{"no catalog yet"}}
}

var aKey = account.KeyInfo{ID: "k1", Name: "ci", Role: catalog.RoleMember, Prefix: "shoal_1111", Created: day, Expires: day, User: "ann@example.com", All: true, Used: day}

var aSession = account.SessionInfo{ID: "s1", User: "u1", Method: "password", Created: day, Used: day, Ends: day, Address: "192.0.2.1", Agent: "Browser"}

// memberToken is the session token of a member.
const memberToken = "3333333333333333333333333333333333333333333333333333333333333333"

func (f *fake) SessionViewer(_ context.Context, token string) (catalog.Viewer, error) {
	if token == memberToken && !f.out.Load() {
		return catalog.Viewer{Role: catalog.RoleMember, Name: "alice", Account: "u1", Session: "s1"}, nil
	}
	if v, err := f.Authenticate(context.Background(), token); err == nil {
		v.Session = "s2"
		return v, nil // a session that began with the key
	}
	return catalog.Viewer{}, &nodecall.Error{Kind: nodecall.ErrUnauthenticated, Message: "You are signed out: sign in again"}
}
func (f *fake) BeginWithKey(ctx context.Context, key string, _ account.SignIn) (*account.BegunSession, error) {
	if _, err := f.Authenticate(ctx, key); err != nil {
		return nil, err
	}
	return answer(f, &account.BegunSession{Token: memberToken, Expires: clock.Now().Add(time.Hour)})
}
func (f *fake) EndSession(_ context.Context, token string) error {
	f.out.Store(token == memberToken)
	return f.err
}
func (f *fake) ByPassword() bool { return !f.guests }
func (f *fake) BeginWithPassword(_ context.Context, email, password string, _ account.SignIn) (*account.BegunSession, error) {
	switch {
	case email == "tired@example.com":
		return nil, &nodecall.Error{Kind: nodecall.ErrOverloaded, Message: "Too many attempts.", RetryAfter: 7 * time.Second}
	case email == aUser.Email && password == "correct horse":
		return answer(f, &account.BegunSession{Token: memberToken, Expires: day.AddDate(10, 0, 0)})
	}
	return nil, &nodecall.Error{Kind: nodecall.ErrUnauthenticated, Message: "That address and password do not fit."}
}
func (f *fake) SetPassword(context.Context, account.Owner, account.SetPasswordRequest) (*account.UserInfo, error) {
	return answer(f, &aUser)
}
func (f *fake) ChangePassword(_ context.Context, _ account.Person, old, _, _ string) error {
	if old != "correct horse" {
		return nodecall.Fail(nodecall.ErrInvalid, "that is not your present password")
	}
	return f.err
}
func (f *fake) NewLink(context.Context, account.Owner, account.NewLinkRequest) (*account.NewLink, error) {
	return answer(f, &account.NewLink{Token: memberToken, Expires: day, User: aUser, Mail: "sent to ann@example.com"})
}
func (f *fake) LinkOwner(_ context.Context, token string) (*account.UserInfo, error) {
	if token != memberToken {
		return nil, nodecall.Fail(nodecall.ErrNotFound, "This link was used or has ended.")
	}
	return answer(f, &aUser)
}
func (f *fake) BeginWithLink(ctx context.Context, token, _ string, _ account.SignIn) (*account.BegunSession, error) {
	if _, err := f.LinkOwner(ctx, token); err != nil {
		return nil, err
	}
	return answer(f, &account.BegunSession{Token: memberToken, Expires: clock.Now().Add(time.Hour)})
}

// The provider corp knows ann. host can be linked, and everybody but ann must.
func (f *fake) Providers() []signin.Provider {
	return []signin.Provider{{ID: "corp", Title: "Corp & Co", SignsIn: true}, {ID: "host", Title: "Host", Required: true}}
}
func (f *fake) Begin(_ context.Context, req signin.Start) (*signin.Begun, error) {
	if req.Provider != "corp" && req.By == nil {
		return nil, nodecall.Fail(nodecall.ErrForbidden, "Nobody signs in by Host here")
	}
	return &signin.Begun{Title: "Corp & Co", Address: "https://corp.example/authorize?state=12345678abc&link=" + req.Link, Cookie: "12345678", Value: "sealed"}, nil
}
func (f *fake) Finish(ctx context.Context, b signin.Back) (*signin.Finished, error) {
	switch {
	case b.Provider == "down":
		return nil, nodecall.Fail(nodecall.ErrUnavailable, "Down cannot be asked now")
	case b.CookieOf() == "" || b.Carried(b.CookieOf()) != "sealed":
		return nil, nodecall.Fail(nodecall.ErrInvalid, "not begun in this browser")
	case b.By != nil:
		return &signin.Finished{Title: "Host"}, nil
	}
	begun, err := f.BeginWithKey(ctx, memberKey, b.SignIn)
	return &signin.Finished{Session: begun, Next: "/repos"}, err
}
func (f *fake) Linked(context.Context, account.Person) []signin.Linked {
	return []signin.Linked{
		{Provider: signin.Provider{ID: "corp", Title: "Corp & Co"}, Authority: "https://corp.example", Subject: "7", Login: "ann"},
		{Provider: signin.Provider{ID: "host", Title: "Host", Required: true}},
		{Provider: signin.Provider{ID: "azure", Title: "Azure", ByToken: true}},
		{Provider: signin.Provider{ID: "gerrit", Title: "Gerrit", ByToken: true, ByUser: true}},
		{Authority: "https://old.example", Subject: "9"},
	}
}
func (f *fake) LinkByToken(_ context.Context, x signin.Shown) error {
	if x.Provider != "gerrit" || x.User != "ann" || x.Token != "hush" {
		return nodecall.Fail(nodecall.ErrInvalid, "Gerrit does not take that token")
	}
	return nil
}
func (f *fake) Unlink(_ context.Context, _ account.Person, _, subject string) error {
	if subject == "7" {
		return nodecall.Fail(nodecall.ErrInvalid, "It stays linked")
	}
	return nil
}
func (f *fake) Missing(catalog.Viewer) []string {
	if f.unlinked {
		return []string{"Host"}
	}
	return nil
}
func (f *fake) SessionsOf(context.Context, account.Holder, string) ([]account.SessionInfo, error) {
	return []account.SessionInfo{aSession}, f.err
}
func (f *fake) EndSessions(context.Context, account.Holder, string, string) (int, error) {
	return 3, f.err
}

var aUser = account.UserInfo{ID: "u1", Email: "ann@example.com", Name: "Ann", Role: catalog.RoleMember, State: catalog.AccountActive, Created: day, By: "operator", Keys: 2, Used: day}

func (f *fake) CreateUser(context.Context, account.Owner, account.CreateUserRequest) (*account.UserInfo, error) {
	return answer(f, &aUser)
}
func (f *fake) Users(context.Context, account.Owner) ([]account.UserInfo, error) {
	return []account.UserInfo{aUser}, f.err
}
func (f *fake) ChangeUser(context.Context, account.Owner, account.ChangeUserRequest) (*account.UserInfo, error) {
	return answer(f, &aUser)
}
func (f *fake) Why(context.Context, account.Owner, string, string) (*account.WhyResponse, error) {
	return &account.WhyResponse{
		User: account.UserInfo{ID: "u1", Email: "ann@example.com", Role: catalog.RoleMember, State: catalog.AccountActive, Created: day}, Repo: "github.com/acme/secret", Sees: true, HostsAsked: true,
		Reasons: []catalog.Reason{
			{Kind: "closed", Connections: []string{"work"}, Text: "It is not open to everybody: permissions are enforced by work."},
			{Kind: "host_by_person", Person: "annie (17)", At: day, Text: "github:github.com names it neither among what annie (17) may read, nor annie (17) among its readers."},
			{Kind: "grant", Sees: true, Text: "An owner granted it; the grants of the account changed last at this time.", At: day},
		},
	}, f.err
}

func (f *fake) Grant(context.Context, account.Owner, account.GrantRequest) (*account.GrantResponse, error) {
	return answer(f, &account.GrantResponse{User: aUser, Repos: []string{"example.com/a/b"}})
}
func (f *fake) DeleteUser(context.Context, account.Owner, string) (*account.UserInfo, error) {
	return answer(f, &aUser)
}

func (f *fake) Caller(v catalog.Viewer) (*account.Caller, error) {
	who := &account.Caller{Kind: account.CallerUser, ID: "u1", Name: v.Name, Email: "ann@example.com", Role: v.Role, By: account.ByKey, KeyID: cmp.Or(v.KeyID, "k1"), Expires: day}
	if v.Session != "" {
		who.By = account.BySession
	}
	return answer(f, who)
}

func (f *fake) CreateKey(_ context.Context, _ account.Holder, _ account.CreateKeyRequest) (*account.CreateKeyResponse, error) {
	made := aKey
	made.Used = time.Time{}
	return answer(f, &account.CreateKeyResponse{Key: memberKey, Info: made})
}
func (f *fake) Keys(context.Context, account.Holder, bool) ([]account.KeyInfo, error) {
	return []account.KeyInfo{aKey}, f.err
}
func (f *fake) RevokeKey(_ context.Context, _ account.Holder, _ string) (*account.KeyInfo, error) {
	return answer(f, &aKey)
}
func (f *fake) ApplyConfig(_ context.Context, _ account.Owner, req configure.ApplyConfigRequest) (*configure.ApplyConfigResponse, error) {
	return answer(f, &configure.ApplyConfigResponse{Hash: "ab", Connections: len(req.Text), Changed: true, Warnings: []string{"w"}})
}
func (f *fake) Configuration(context.Context, account.Owner) (*configure.ConfigurationResponse, error) {
	return answer(f, &configure.ConfigurationResponse{
		Hash: "ab", At: day, By: "n1", Connections: 1, Contexts: 1, Problem: "p", Warnings: []string{"w"}, Silent: []string{"n2"},
		Effects: config.Effects{Works: []config.Error{{Path: "connections.main", Message: "git"}}, None: []config.Error{{Path: "apps", Message: "unused"}}, Unsafe: []config.Error{{Path: "settings.enablePublicAccess", Message: "open"}}},
		Files:   []configure.NodeFile{{Node: "n1", Address: "127.0.0.1:7701", FileStatus: configure.FileStatus{Path: "c.json", Hash: "ab", FileHash: "cd", Differs: true, LoadedAt: day, Errors: []string{"e"}, RefusedAt: day}}},
	})
}
func (f *fake) Contexts(context.Context, catalog.Viewer) ([]configure.ContextInfo, error) {
	return []configure.ContextInfo{{Name: "web", Description: "Pages <and> styles", Repos: 3}}, f.err
}
func (f *fake) Drain(_ context.Context, _ account.Owner, node string) (*operate.DrainResponse, error) {
	return answer(f, &operate.DrainResponse{Node: node, Done: true, Remaining: 3, Warning: "w"})
}
func (f *fake) Placement(_ context.Context, _ account.Owner, req node.PlacementRequest) (*node.PlacementResponse, error) {
	return answer(f, &node.PlacementResponse{
		Replicas: 2, Tolerates: node.Tolerance{Searches: 1, Writes: 1}, Total: 95, Page: req.Page, Per: req.PerPage,
		PlacementStatus: node.PlacementStatus{Groups: 95, UnderReplicated: 2, Short: []string{"s"}, NoLiveCopy: 1, Missing: []string{"m"}, Moves: 3},
		Nodes:           []node.NodePlacement{{ID: "n1", Health: "alive", Draining: true, Left: 1, Drained: true, Units: 2, Bytes: 3, Coming: 4, Going: 5, Loses: node.Loss{Repos: 6, Names: []string{"example.com/a/b"}}}},
		Units:           []node.UnitPlacement{{Unit: 17, Kind: "group", Repos: 2, Targets: []string{"n1", "n2"}, Holders: []string{"n1"}, Live: 1}, {Unit: 458753, Kind: "slice", Repos: 1}},
	})
}
func (f *fake) Raft(context.Context, account.Owner) (*node.RaftResponse, error) {
	return answer(f, &node.RaftResponse{Node: "n1", Leader: "n1", Term: 4, Voters: 2, Quorum: 2, Members: []node.RaftMember{
		{ID: "n1", Address: "127.0.0.1:7701", Role: "leader", Health: "alive", Raft: &cluster.RaftState{State: "leader", Leader: "n1", Term: 4, Silence: 1500, Last: 12, Commit: 11, Applied: 10, Snapshot: 8}},
		{ID: "n2", Role: "voter", Health: "dead"},
	}})
}
func (f *fake) Undrain(_ context.Context, _ account.Owner, node string) (*operate.NodeResponse, error) {
	return answer(f, &operate.NodeResponse{Node: node})
}
func (f *fake) Lead(_ context.Context, _ account.Owner, node string) (*operate.NodeResponse, error) {
	return answer(f, &operate.NodeResponse{Node: node})
}
func (f *fake) Remove(_ context.Context, _ account.Owner, node string, acceptLoss bool) (*operate.RemoveResponse, error) {
	return answer(f, &operate.RemoveResponse{Node: node, Lost: []string{"example.com/a/b"}})
}

func (f *fake) Grep(ctx context.Context, v catalog.Viewer, req search.GrepRequest) (*search.GrepResponse, error) {
	if f.grep != nil {
		return f.grep(ctx, v, req)
	}
	return answer(f, &search.GrepResponse{Coverage: coverage.Of(coverage.Parts, 1, 1), Matches: 1, Files: []search.GrepFile{{Repo: "example.com/a/b", Path: "main.go", Matches: 1, Lines: []browse.Line{{Number: 3, Text: []byte("func main() {")}}}}})
}
func (f *fake) Glob(context.Context, catalog.Viewer, search.GlobRequest) (*search.GlobResponse, error) {
	return answer(f, &search.GlobResponse{Coverage: coverage.Of(coverage.Parts, 1, 1), Files: 1, Repos: []search.GlobRepo{{Repo: "example.com/a/b", Paths: []string{"main.go"}}}})
}
func (f *fake) ReadFile(_ context.Context, _ catalog.Viewer, req browse.ReadFileRequest) (*browse.ReadFileResponse, error) {
	return answer(f, &browse.ReadFileResponse{Repo: req.Repo, Path: req.Path, Commit: "c0ffee", First: 1, Lines: [][]byte{[]byte("package main")}, Total: 1, Size: 13})
}
func (f *fake) ListTree(_ context.Context, _ catalog.Viewer, req browse.ListTreeRequest) (*browse.ListTreeResponse, error) {
	return answer(f, &browse.ListTreeResponse{Repo: req.Repo, Commit: "c0ffee", Entries: []browse.TreeEntry{{Path: "a", Name: "a", Depth: 1, Type: "blob"}}})
}
func (f *fake) Outline(_ context.Context, _ catalog.Viewer, req browse.OutlineRequest) (*browse.OutlineResponse, error) {
	return answer(f, &browse.OutlineResponse{Commit: "c0ffee", Cut: true, Files: []browse.OutlineFile{{Path: req.Paths[0], Language: "Go", Lines: 3, Symbols: []browse.OutlineSymbol{{Name: "main", Kind: "function", ParentName: "main", ParentKind: "package", Signature: "()", First: 1, Last: 3}}}}})
}
func (f *fake) Trace(context.Context, catalog.Viewer, browse.TraceRequest) (*browse.TraceResponse, error) {
	return answer(f, &browse.TraceResponse{Commits: []browse.CommitInfo{aCommit}, Paths: map[string][]string{"c0ffee": {"main.go"}}})
}
func (f *fake) GoTo(_ context.Context, _ catalog.Viewer, text string) []suggest.Target {
	if text != "cmd/main.go:3" {
		return nil
	}
	return []suggest.Target{{Kind: suggest.FileTarget, Repository: "acme/app", Revision: "v1", Path: "cmd/main.go", Line: 3, EndLine: 4, Text: "func main() {", Language: "Go", Frame: true, Query: "file:main"}}
}

func (f *fake) Nearest(ctx context.Context, v catalog.Viewer, req search.Request, _ *search.Response) *suggest.Nearest {
	resp, err := f.Search(ctx, v, search.Request{Query: "a"})
	if req.Query != "cmd/main.go:3" || err != nil {
		return nil
	}
	return &suggest.Nearest{Parts: "main", Request: search.Request{Query: "main.*", Regexp: true}, Response: resp}
}

func (f *fake) Complete(_ context.Context, _ catalog.Viewer, text string, cursor int) ([]suggest.Suggestion, error) {
	return []suggest.Suggestion{{Kind: suggest.Symbol, Insert: "sym:^main$ ", Span: suggest.Span{End: cursor}, Label: text + "in", Detail: "function in a.go"}}, f.err
}
func (f *fake) Files(context.Context, catalog.Viewer, suggest.FilesRequest) (*suggest.FilesResponse, error) {
	return answer(f, &suggest.FilesResponse{Commit: "c0ffee", Paths: []suggest.Path{{Path: "dir/main.go", At: []int{4, 5}}}, Total: 2, Cut: true})
}
func (f *fake) NearPaths(context.Context, catalog.Viewer, string, string, string, bool) ([]string, error) {
	return []string{"dir/main.go"}, f.err
}
func (f *fake) Symbols(_ context.Context, _ catalog.Viewer, req suggest.SymbolsRequest) (*suggest.SymbolsResponse, error) {
	signature := ""
	if req.Signature {
		signature = "func main()"
	}
	return answer(f, &suggest.SymbolsResponse{
		Commit: "c0ffee", Cut: true, Similar: []string{"main2"},
		Symbols: []suggest.FoundSymbol{{Path: "dir/main.go", Line: 3, Name: "main", Kind: "function", ParentName: "p", ParentKind: "package", Signature: signature}},
	})
}
func (f *fake) Ranked(context.Context, catalog.Viewer, search.RankedRequest) (*search.RankedResponse, error) {
	return answer(f, &search.RankedResponse{Coverage: coverage.Of(coverage.Parts, 1, 1), Words: []string{"main"}, Whole: 1, Files: []search.RankedFile{{Repo: "example.com/a/b", Path: "main.go", Language: "Go", Words: 1, Lines: []search.RankedLine{{Line: browse.Line{Number: 3, Text: []byte("func main() {")}, In: shard.Symbol{Name: "main", Kind: "function"}}}}}})
}
func (f *fake) Models(context.Context, catalog.Viewer) ([]tool.Model, error) {
	return []tool.Model{{Provider: "anthropic", Model: "m", DisplayName: "M", Usable: true}}, f.err
}

var aReport = nodeask.Report{
	ID: "c0ffee", Query: "How?", Repos: []string{"example.com/a/b"}, Model: "anthropic/m", Status: nodeask.Done, Error: "none",
	Answer: []nodeask.Piece{{Text: "By `main` "}, {Cite: &nodeask.Citation{Repo: "example.com/a/b", Path: "main.go", Commit: "c0ffee", First: 3, Last: 4, State: nodeask.Moved}}},
	Limits: []string{"1 citations could not be verified."}, Began: time.Unix(1700000000, 0), Took: 2 * time.Second, Steps: 2, First: 1, Usage: model.Usage{Input: 120, Cached: 80, Output: 30},
}

func (f *fake) Ask(context.Context, catalog.Viewer, nodeask.Question) (*nodeask.Started, error) {
	return answer(f, &nodeask.Started{ID: "c0ffee", After: 7})
}
func (f *fake) Sees(context.Context, catalog.Viewer, string) error { return f.err }

var aChat = nodeask.Chat{
	ID: "c0ffee", Title: "How?", Public: true, Mine: true, Running: true, Created: time.Unix(1700000000, 0), Changed: time.Unix(1700000009, 0),
	Turns: []nodeask.Report{aReport}, Count: 1,
}

func (f *fake) Chat(context.Context, catalog.Viewer, string) (*nodeask.Chat, error) {
	return answer(f, &aChat)
}
func (f *fake) Chats(context.Context, catalog.Viewer, int, int) ([]nodeask.Chat, int, error) {
	return []nodeask.Chat{aChat}, 1, f.err
}
func (f *fake) StopChat(context.Context, catalog.Viewer, string) error { return f.err }
func (f *fake) ChangeChat(context.Context, catalog.Viewer, string, string, *bool) error {
	return f.err
}
func (f *fake) HasModel() bool                                           { return true }
func (f *fake) DeleteChat(context.Context, catalog.Viewer, string) error { return f.err }
func (f *fake) ForkChat(context.Context, catalog.Viewer, string) (string, error) {
	return "c0ffee2", f.err
}
func (f *fake) WatchChat(_ context.Context, _ catalog.Viewer, _ string, after int, fn func(nodeask.Event) error) error {
	for i, e := range []nodeask.Event{
		{Kind: nodeask.KindTurn, Text: aReport.Query}, {Kind: nodeask.KindText, Step: 2, Text: aReport.Answer[0].Text},
		{Kind: nodeask.KindCite, Step: 2, Cite: aReport.Answer[1].Cite}, {Kind: nodeask.KindDone, Text: string(nodeask.Done)},
	} {
		if e.N = i + 1; e.N <= after {
			continue
		}
		if err := fn(e); err != nil {
			return err
		}
	}
	return nil
}
func (f *fake) CheckModels(context.Context, account.Owner) ([]nodeask.ModelCheck, error) {
	return []nodeask.ModelCheck{{Provider: "anthropic", Model: "m", Took: 1500 * time.Millisecond, InputTokens: 120, OutputTokens: 8, Problem: "The instance's key for anthropic was refused."}}, f.err
}

// parts lets a test choose parts itself.
func (p parts) parts() parts { return p }

// start serves parts on a loopback port until the test ends.
func start(t *testing.T, on interface{ parts() parts }, change ...func(*Options)) *Server {
	t.Helper()
	opt := Options{Listen: "127.0.0.1:0", Version: "v1", EmbedAncestors: []string{"https://wiki.example.com"}}
	for _, c := range change {
		c(&opt)
	}
	s, err := newServer(on.parts(), opt)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return s
}

func (f *fake) Enabled() bool  { return true }
func (f *fake) Issuer() string { return cmp.Or(f.base, "http://shoal.example.com") }

// always returns a function for a fixed base URL.
func always(base string) func() string { return func() string { return base } }

func (f *fake) Resource() string     { return f.Issuer() + "/api/mcp" }
func (f *fake) DocumentsTaken() bool { return true }

func (f *fake) Register(context.Context, []byte) (*oauth.RegistrationAnswer, error) {
	return &oauth.RegistrationAnswer{ClientID: "shoal-c.1"}, f.err
}

func (f *fake) RegisterFor(_ context.Context, _ account.Owner, name string, redirects []string) (*oauth.RegistrationAnswer, error) {
	return &oauth.RegistrationAnswer{ClientID: "shoal-c.1", Registration: oauth.Registration{Name: name, RedirectURIs: redirects}}, f.err
}

func (f *fake) Authorize(context.Context, oauth.Person, url.Values) (*oauth.Pending, error) {
	return nil, &oauth.Error{Code: "invalid_client", Description: "There is no such client."}
}

func (f *fake) Decide(context.Context, oauth.Person, string, bool) (string, error) {
	return "https://agent.example/", f.err
}

func (f *fake) Exchange(context.Context, string, url.Values) (*oauth.Tokens, error) {
	return &oauth.Tokens{Access: "shoal_at_1", Type: "Bearer", ExpiresIn: 3600, Refresh: "shoal_rt_1", Scope: "mcp"}, f.err
}

func (f *fake) Revoke(context.Context, string) error { return f.err }

var fakeAgent = oauth.Agent{ID: "a1", Name: "Editor", Kind: oauth.Registered, Host: "localhost:4711", User: "ann@example.com", Created: day, Used: day.Add(time.Hour), Expires: day.AddDate(0, 3, 0)}

func (f *fake) Agents(context.Context, account.Holder) ([]oauth.Agent, error) {
	return []oauth.Agent{fakeAgent}, f.err
}

func (f *fake) EndAgent(context.Context, account.Holder, string) (*oauth.Agent, error) {
	return &fakeAgent, f.err
}

func (f *fake) NoteAccess(a chronicle.Access) {
	if f.noted != nil {
		f.noted(a)
	}
}

func (f *fake) Audit(_ context.Context, _ account.Owner, req chronicle.AuditRequest) (*chronicle.AuditResponse, error) {
	all := []chronicle.Line{
		{ID: "n2-7", At: time.Unix(1700000200, 0).UTC(), Action: "login.failed", ActorType: catalog.ActorGuest, TargetType: "user", TargetID: "ann@example.com", Address: "192.0.2.7", Node: "n2", Status: 401},
		{ID: "2050", Change: 2050, At: time.Unix(1700000100, 0).UTC(), Action: "api_key.deleted", TargetType: "api_key", TargetID: "k9", Node: "n1",
			ActorType: catalog.ActorUser, ActorID: "u1", ActorName: "ann@example.com", Address: "192.0.2.7", UserAgent: "Firefox", Metadata: map[string]string{"message": "ci", "credential": "s1"}},
		{ID: "1025", Change: 1025, At: time.Unix(1700000000, 0).UTC(), Action: "user.created", TargetType: "user", TargetID: "u1", Node: "n1", ActorType: catalog.ActorOperator},
	}
	gone := []chronicle.Gap{{Node: "n3", Why: "it cannot be reached"}}
	if req.Kind == chronicle.Changes {
		all, gone = all[1:], nil
	}
	out := &chronicle.AuditResponse{Total: len(all), Missing: gone}
	if req.After != nil {
		all = all[slices.IndexFunc(all, func(l chronicle.Line) bool { return l.ID == req.After.ID })+1:]
	}
	from := min((max(1, req.Page)-1)*req.PerPage, len(all))
	out.Lines = all[from:min(from+req.PerPage, len(all))]
	return out, nil
}
