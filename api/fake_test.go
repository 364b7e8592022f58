package api

import (
	"context"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/shard"
)

// fake answers every operation with a response whose every field is filled,
// so that what the API makes of it can be compared with the specification.
type fake struct {
	guests  bool
	base    string
	notOK   bool
	search  func(context.Context, node.Viewer, node.SearchRequest) (*node.SearchResponse, error)
	stream  func(context.Context, node.Viewer, node.SearchRequest, func(*node.SearchChunk) error) (*node.SearchResponse, error)
	grep    func(context.Context, node.Viewer, node.GrepRequest) (*node.GrepResponse, error)
	err     error // of every operation
	lastReq atomic.Value
}

const (
	memberKey = "shoal_1111111111111111111111111111111111111111111111111111111111111111"
	ownerKey  = "shoal_2222222222222222222222222222222222222222222222222222222222222222"
	localKey  = "shoal_3333333333333333333333333333333333333333333333333333333333333333"
)

var day = time.Date(2026, 11, 2, 10, 20, 30, 0, time.UTC)

func (f *fake) Authenticate(_ context.Context, key string) (node.Viewer, error) {
	switch key {
	case memberKey:
		return node.Viewer{Role: node.RoleMember, Name: "alice", KeyID: "k1"}, nil
	case ownerKey:
		return node.Viewer{Role: node.RoleOwner, Name: "root", KeyID: "k2"}, nil
	}
	return node.Viewer{}, &node.Error{Kind: node.ErrUnauthenticated, Message: "Not authenticated: the key is unknown, revoked or expired."}
}
func (f *fake) AnonymousAccess() bool { return f.guests }
func (f *fake) BaseURL() string       { return f.base }

func at(offset, line, column uint32) shard.Position {
	return shard.Position{Offset: offset, Line: line, Column: column}
}

func searchResponse() *node.SearchResponse {
	return &node.SearchResponse{
		Stats: node.SearchStats{
			Stats: shard.Stats{
				ActualMatches: 1, TotalMatches: 2, Files: 3, FilesSkipped: 4, ContentBytes: 5, IndexBytes: 6, ShardFiles: 7,
				FilesConsidered: 8, FilesLoaded: 9, ShardsScanned: 10, ShardsSkipped: 11, ShardsFiltered: 12, NgramMatches: 13,
				NgramLookups: 14, RegexpsConsidered: 15, Planning: 1600 * time.Millisecond, Searching: 17,
			},
			Duration: 2*time.Second + 18, Wait: 19, Crashes: 20, ShardsRequired: 21, ShardsAnswered: 22, FlushReason: node.FlushFinal,
		},
		Files: []node.SearchFile{{
			RepoID: 7, Repository: "example.com/a/b", Path: "dir/m\xe9<in>.go", Language: "Go",
			NameRanges: []shard.Range{{Start: at(4, 1, 5), End: at(5, 1, 6)}},
			WebURL:     "http://shoal/browse/x", ExternalWebURL: "https://example.com/a/b/x",
			Chunks: []shard.Chunk{{
				Content: []byte("func \"main\"\t{\x01\xff}\r\n\u2028"), Start: at(10, 2, 1),
				Ranges:  []shard.Range{{Start: at(16, 2, 7), End: at(20, 2, 11)}, {Start: at(30, 3, 1), End: at(30, 3, 1)}},
				Symbols: []shard.Symbol{{Name: "main", Kind: "function", ParentName: "p", ParentKind: "package"}, {}},
			}},
			Branches: []string{"refs/heads/main"}, Content: []byte("whole\n"),
		}, {RepoID: 7, Repository: "example.com/a/b", Path: "plain"}},
		Repositories: []node.RepositoryInfo{{ID: 7, Name: "example.com/a/b", DisplayName: "a/b", WebURL: "https://example.com/a/b", CodeHostType: "genericGitHost"}},
		Exhaustive:   true,
		Cluster: node.ClusterInfo{CatalogIndex: 99, CatalogAge: 1500 * time.Millisecond, ShardsMissing: []string{"ab"}, ReposMissing: []string{"r"},
			NodesFailed: []string{"n2"}},
	}
}

func (f *fake) Search(ctx context.Context, v node.Viewer, req node.SearchRequest) (*node.SearchResponse, error) {
	f.lastReq.Store(req)
	if f.search != nil {
		return f.search(ctx, v, req)
	}
	return answer(f, searchResponse())
}

func (f *fake) StreamSearch(ctx context.Context, v node.Viewer, req node.SearchRequest, send func(*node.SearchChunk) error) (*node.SearchResponse, error) {
	f.lastReq.Store(req)
	if f.stream != nil {
		return f.stream(ctx, v, req, send)
	}
	if f.err != nil {
		return nil, f.err
	}
	r := searchResponse()
	for range 2 {
		if err := send(&node.SearchChunk{Stats: r.Stats, Files: r.Files, Repositories: r.Repositories}); err != nil {
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

func (f *fake) symbols() (*node.SymbolResponse, error) {
	return answer(f, &node.SymbolResponse{
		MatchCount: 1, Exhaustive: true,
		Repositories: searchResponse().Repositories,
		Files: []node.SymbolFile{{
			RepoID: 7, Repository: "example.com/a/b", Path: "main.go", WebURL: "http://shoal/browse/x", Language: "Go",
			Matches: []node.SymbolMatch{{Line: []byte("func main() {"), Range: shard.Range{Start: at(5, 1, 6), End: at(9, 1, 10)}, Kind: "function", ParentName: "p", ParentKind: "package"}},
		}},
	})
}
func (f *fake) Definitions(context.Context, node.Viewer, node.SymbolRequest) (*node.SymbolResponse, error) {
	return f.symbols()
}
func (f *fake) References(context.Context, node.Viewer, node.SymbolRequest) (*node.SymbolResponse, error) {
	return f.symbols()
}

func (f *fake) Repos(_ context.Context, _ node.Viewer, req node.ReposRequest) (*node.ReposResponse, error) {
	return answer(f, &node.ReposResponse{Total: 95, Page: req.Page, Per: req.PerPage, Repos: []node.RepoInfo{{
		ID: 7, Name: "example.com/a/b", DisplayName: "a/b", CodeHostType: "genericGitHost", WebURL: "http://shoal/browse/x", ExternalWebURL: "https://example.com/a/b",
		Connections: []string{"main"}, Topics: []string{"search"}, DefaultBranch: "main", Fork: true, Archived: true, Public: true,
		PushedAt: day, IndexedAt: day, Revisions: []node.RevisionInfo{{Name: "HEAD", Commit: "c0ffee"}},
		Documents: 1, TextBytes: 2, ShardBytes: 3, Error: "clone failed",
	}}})
}
func (f *fake) ListRepos(ctx context.Context, v node.Viewer, req node.ReposRequest) (*node.ReposResponse, error) {
	return f.Repos(ctx, v, req)
}
func (f *fake) Reindex(_ context.Context, _ node.Viewer, req node.ReindexRequest) (*node.ReindexResponse, error) {
	return answer(f, &node.ReindexResponse{ID: req.ID, Name: "example.com/a/b"})
}
func (f *fake) Webhook(_ context.Context, _ node.Viewer, _ node.WebhookRequest) (*node.WebhookResponse, error) {
	return answer(f, &node.WebhookResponse{Repos: []string{"example.com/a/b"}})
}
func (f *fake) WebhookSecret(connection string) (string, error) { return "hush-" + connection, f.err }

func (f *fake) Source(_ context.Context, _ node.Viewer, _ node.SourceRequest) (*node.SourceResponse, error) {
	return answer(f, &node.SourceResponse{
		Content: []byte("a\xe9\n"), Language: "Go", Path: "dir/a.go", Repo: "example.com/a/b", CodeHostType: "genericGitHost", DisplayName: "a/b",
		RepoWebURL: "https://example.com/a/b", WebURL: "http://shoal/browse/x", ExternalWebURL: "https://example.com/a/b/x", OID: "b10b", Commit: "c0ffee", FirstLine: 2, Total: 9,
	})
}
func (f *fake) Tree(_ context.Context, _ node.Viewer, _ node.TreeRequest) (*node.TreeResponse, error) {
	return answer(f, &node.TreeResponse{Commit: "c0ffee", Cut: true, Root: node.TreeNode{Type: "tree", Children: []node.TreeNode{{Type: "blob", Path: "a", Name: "a"}}}})
}

var aCommit = node.CommitInfo{Hash: "c0ffee", Date: day, Message: "subject", Body: "body", Refs: "HEAD -> main", AuthorName: "A", AuthorEmail: "a@example.com", Parents: []string{"dad"}}

func (f *fake) Commits(_ context.Context, _ node.Viewer, req node.CommitsRequest) (*node.CommitsResponse, error) {
	return answer(f, &node.CommitsResponse{Commits: []node.CommitInfo{aCommit}, Total: 1, AtLeast: true, Page: req.Page, Per: req.PerPage})
}
func (f *fake) ListCommits(ctx context.Context, v node.Viewer, req node.CommitsRequest) (*node.CommitsResponse, error) {
	return f.Commits(ctx, v, req)
}
func (f *fake) Commit(context.Context, node.Viewer, node.CommitRequest) (*node.CommitInfo, error) {
	c := aCommit
	return answer(f, &c)
}
func (f *fake) Authors(context.Context, node.Viewer, node.AuthorsRequest) (*node.AuthorsResponse, error) {
	return answer(f, &node.AuthorsResponse{Authors: []node.AuthorInfo{{Name: "A", Email: "a@example.com", Commits: 3}}, Total: 1})
}
func (f *fake) Diff(context.Context, node.Viewer, node.DiffRequest) (*node.DiffResponse, error) {
	return answer(f, &node.DiffResponse{Cut: true, Files: []node.DiffFile{
		{OldPath: "a", Hunks: []node.DiffHunk{{OldStart: 1, OldLines: 2, NewStart: 3, NewLines: 4, Heading: "func x", Body: " a\n-b\n"}}},
		{NewPath: "b", Binary: true},
	}})
}
func (f *fake) GetDiff(ctx context.Context, v node.Viewer, req node.DiffRequest) (*node.DiffResponse, error) {
	return f.Diff(ctx, v, req)
}
func (f *fake) Blame(context.Context, node.Viewer, node.BlameRequest) (*node.BlameResponse, error) {
	return answer(f, &node.BlameResponse{
		Ranges:  []node.BlameRange{{Hash: "c0ffee", Path: "a", StartLine: 1, LineCount: 2}},
		Commits: map[string]node.BlameCommit{"c0ffee": {Hash: "c0ffee", Message: "subject", Date: day, AuthorName: "A", AuthorEmail: "a@example.com", PreviousHash: "dad", PreviousPath: "old"}},
	})
}
func (f *fake) Branches(_ context.Context, _ node.Viewer, req node.RefsRequest) (*node.RefsResponse, error) {
	return answer(f, &node.RefsResponse{Repo: req.Repo, DefaultBranch: "main", Total: 1, Refs: []node.RefInfo{{Name: "main", Commit: "c0ffee", CommittedAt: day, Default: true, Indexed: true}}})
}
func (f *fake) ListBranches(ctx context.Context, v node.Viewer, req node.RefsRequest) (*node.RefsResponse, error) {
	return f.Branches(ctx, v, req)
}
func (f *fake) Tags(ctx context.Context, v node.Viewer, req node.RefsRequest) (*node.RefsResponse, error) {
	return f.Branches(ctx, v, req)
}

func (f *fake) Status(context.Context, node.Viewer, node.StatusRequest) (*node.StatusResponse, error) {
	job := node.JobStatus{Kind: "index", Subject: "example.com/a/b", Node: "n1", Attempt: 2, Started: day, Deadline: day, Step: "reading", Done: 3, Total: 4, Bytes: 5, Error: "no", NextTry: day}
	return answer(f, &node.StatusResponse{
		Version: "v1", Node: "n1", Leader: "n1", CatalogIndex: 9, CatalogAge: time.Second,
		Members: []node.MemberStatus{{ID: "n1", Address: "127.0.0.1:7701", API: "http://127.0.0.1:7700", Zone: "default", Role: "leader", Health: "alive", Draining: true, Weight: 1, Version: "v1", Groups: 2, Bytes: 3, Applied: 4, Lag: 5}},
		Repos:   node.RepoCounts{Total: 3, Indexed: 2, Failed: 1}, Jobs: node.JobCounts{Pending: 1, Running: 2, Failed: 3},
		Connections: []node.ConnectionStatus{{Name: "main", Type: "git", State: "synced", Message: "m", Warnings: []string{"w"}, Repos: 3, SyncedAt: day}},
		Running:     []node.JobStatus{job}, Failed: []node.JobStatus{job},
		Config:    node.ConfigStatus{Path: "c.json", Hash: "ab", LoadedAt: day, Errors: []string{"e"}, RefusedAt: day},
		Storage:   node.StorageStatus{Shards: 1, ShardBytes: 2, MirrorBytes: 3, Quarantined: 4, DiskFree: 5, DiskTotal: 6},
		Placement: node.PlacementStatus{Groups: 1, UnderReplicated: 2, Short: []string{"s"}, Moves: 3},
		Warnings:  []string{"w"},
	})
}
func (f *fake) Snapshot(_ context.Context, _ node.Viewer, w io.Writer) error {
	if f.err != nil {
		return f.err
	}
	_, err := io.WriteString(w, "a catalog")
	return err
}
func (f *fake) Ready() node.ReadyResponse {
	return node.ReadyResponse{Ready: !f.notOK, Reasons: []string{"no catalog yet"}}
}

var aKey = node.KeyInfo{ID: "k1", Name: "ci", Role: node.RoleMember, Prefix: "shoal_1111", Created: day, Expires: day}

func (f *fake) CreateKey(_ context.Context, _ node.Viewer, _ node.CreateKeyRequest) (*node.CreateKeyResponse, error) {
	return answer(f, &node.CreateKeyResponse{Key: memberKey, Info: aKey})
}
func (f *fake) Keys(context.Context, node.Viewer, node.KeysRequest) (*node.KeysResponse, error) {
	return answer(f, &node.KeysResponse{Keys: []node.KeyInfo{aKey}})
}
func (f *fake) RevokeKey(_ context.Context, _ node.Viewer, _ node.RevokeKeyRequest) (*node.RevokeKeyResponse, error) {
	return answer(f, &node.RevokeKeyResponse{Info: aKey})
}
func (f *fake) Drain(_ context.Context, _ node.Viewer, req node.DrainRequest) (*node.DrainResponse, error) {
	return answer(f, &node.DrainResponse{Node: req.Node, Done: true, Remaining: 3})
}
func (f *fake) Remove(_ context.Context, _ node.Viewer, req node.RemoveRequest) (*node.RemoveResponse, error) {
	return answer(f, &node.RemoveResponse{Node: req.Node, Lost: []string{"example.com/a/b"}})
}

func (f *fake) Grep(ctx context.Context, v node.Viewer, req node.GrepRequest) (*node.GrepResponse, error) {
	if f.grep != nil {
		return f.grep(ctx, v, req)
	}
	return answer(f, &node.GrepResponse{Matches: 1, Files: []node.GrepFile{{Repo: "example.com/a/b", Path: "main.go", Lines: []node.GrepLine{{Number: 3, Text: []byte("func main() {")}}}}})
}
func (f *fake) Glob(context.Context, node.Viewer, node.GlobRequest) (*node.GlobResponse, error) {
	return answer(f, &node.GlobResponse{Files: 1, Repos: []node.GlobRepo{{Repo: "example.com/a/b", Paths: []string{"main.go"}}}})
}
func (f *fake) ReadFile(_ context.Context, _ node.Viewer, req node.ReadFileRequest) (*node.ReadFileResponse, error) {
	return answer(f, &node.ReadFileResponse{Repo: req.Repo, Path: req.Path, Commit: "c0ffee", First: 1, Lines: [][]byte{[]byte("package main")}, Total: 1, Size: 13})
}
func (f *fake) ListTree(_ context.Context, _ node.Viewer, req node.ListTreeRequest) (*node.ListTreeResponse, error) {
	return answer(f, &node.ListTreeResponse{Repo: req.Repo, Commit: "c0ffee", Entries: []node.TreeEntry{{Path: "a", Name: "a", Depth: 1, Type: "blob"}}})
}
func (f *fake) Models(context.Context, node.Viewer) ([]node.Model, error) {
	return []node.Model{{Provider: "anthropic", Model: "m", DisplayName: "M"}}, f.err
}

// start serves a fake on a loopback port until the test ends.
func start(t *testing.T, n Node, change ...func(*Options)) *Server {
	t.Helper()
	if f, ok := n.(*fake); ok && f.base == "" {
		f.base = "http://shoal.example.com"
	}
	opt := Options{Listen: "127.0.0.1:0", Version: "v1", OwnerKey: func(k string) bool { return k == localKey }}
	for _, c := range change {
		c(&opt)
	}
	s, err := New(n, opt)
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
