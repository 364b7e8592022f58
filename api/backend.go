package api

import (
	"context"
	"io"

	"github.com/shoalsearch/shoal/api/mcp"
	"github.com/shoalsearch/shoal/node"
)

// Node is what this package needs of a node: one method for each operation.
// *node.Node is the only one outside tests; each method's contract is there.
type Node interface {
	mcp.Tools

	Authenticate(ctx context.Context, key string) (node.Viewer, error)
	AnonymousAccess() bool
	BaseURL() string

	Search(context.Context, node.Viewer, node.SearchRequest) (*node.SearchResponse, error)
	StreamSearch(context.Context, node.Viewer, node.SearchRequest, func(*node.SearchChunk) error) (*node.SearchResponse, error)

	Repos(context.Context, node.Viewer, node.ReposRequest) (*node.ReposResponse, error)
	Reindex(context.Context, node.Viewer, node.ReindexRequest) (*node.ReindexResponse, error)
	Webhook(context.Context, node.Viewer, node.WebhookRequest) (*node.WebhookResponse, error)
	WebhookSecret(connection string) (string, error)

	Source(context.Context, node.Viewer, node.SourceRequest) (*node.SourceResponse, error)
	Tree(context.Context, node.Viewer, node.TreeRequest) (*node.TreeResponse, error)
	Commits(context.Context, node.Viewer, node.CommitsRequest) (*node.CommitsResponse, error)
	Commit(context.Context, node.Viewer, node.CommitRequest) (*node.CommitInfo, error)
	Authors(context.Context, node.Viewer, node.AuthorsRequest) (*node.AuthorsResponse, error)
	Diff(context.Context, node.Viewer, node.DiffRequest) (*node.DiffResponse, error)
	Blame(context.Context, node.Viewer, node.BlameRequest) (*node.BlameResponse, error)
	Branches(context.Context, node.Viewer, node.RefsRequest) (*node.RefsResponse, error)
	Tags(context.Context, node.Viewer, node.RefsRequest) (*node.RefsResponse, error)

	Status(context.Context, node.Viewer, node.StatusRequest) (*node.StatusResponse, error)
	Ready() node.ReadyResponse
	Snapshot(context.Context, node.Viewer, io.Writer) error
	CreateKey(context.Context, node.Viewer, node.CreateKeyRequest) (*node.CreateKeyResponse, error)
	Keys(context.Context, node.Viewer, node.KeysRequest) (*node.KeysResponse, error)
	RevokeKey(context.Context, node.Viewer, node.RevokeKeyRequest) (*node.RevokeKeyResponse, error)
	Drain(context.Context, node.Viewer, node.DrainRequest) (*node.DrainResponse, error)
	Remove(context.Context, node.Viewer, node.RemoveRequest) (*node.RemoveResponse, error)
}
