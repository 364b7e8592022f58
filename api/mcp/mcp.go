// Package mcp is the tool server for agents: one registration for each tool,
// the text that a model reads, and nothing of how a tool works.
package mcp

import (
	"context"

	"github.com/shoalsearch/shoal/node"
)

// Tools is what the tools need of a node. Each method's contract is in package node.
type Tools interface {
	Grep(context.Context, node.Viewer, node.GrepRequest) (*node.GrepResponse, error)
	Glob(context.Context, node.Viewer, node.GlobRequest) (*node.GlobResponse, error)
	ReadFile(context.Context, node.Viewer, node.ReadFileRequest) (*node.ReadFileResponse, error)
	ListTree(context.Context, node.Viewer, node.ListTreeRequest) (*node.ListTreeResponse, error)
	ListCommits(context.Context, node.Viewer, node.CommitsRequest) (*node.CommitsResponse, error)
	ListBranches(context.Context, node.Viewer, node.RefsRequest) (*node.RefsResponse, error)
	GetDiff(context.Context, node.Viewer, node.DiffRequest) (*node.DiffResponse, error)
	ListRepos(context.Context, node.Viewer, node.ReposRequest) (*node.ReposResponse, error)
	Definitions(context.Context, node.Viewer, node.SymbolRequest) (*node.SymbolResponse, error)
	References(context.Context, node.Viewer, node.SymbolRequest) (*node.SymbolResponse, error)
	Models(context.Context, node.Viewer) ([]node.Model, error)
}
