// Package mcp is the tool server for agents: one row of a table for each tool
// (tools.go), the text that a model reads (text.go and the files beside it),
// and nothing of how a tool works, which is package node's.
//
//	POST /api/mcp -> official go-sdk, stateless -> row of the table
//	   arguments checked against the row -> one method of node -> text within a budget
//
// Stateless means that each request stands alone: any node answers any
// request, and nothing of one user is there when the next one comes. Who asks
// is a value of the request's context ([WithViewer]) and never kept.
//
// Every result is one text. Its first line says what was found; its last line
// says that this was all, or what was left out and the exact call that
// continues. Text and no structured content, because clients that get both
// show the model either one of them or each twice.
package mcp

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"

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

// maxBody is the largest request, in bytes.
const maxBody = 1 << 20

// instructions is the workflow, told to every client that connects.
const instructions = `Searches and reads the source code of many git repositories at once.

Usual way: list_repos finds full repository names; grep finds lines by regular expression, in one repository or in all; read_file shows the lines around them. find_symbol_definitions and find_symbol_references answer "where is X defined / used". list_commits and get_diff tell what changed.

- Repositories have full names such as github.com/acme/app; an unambiguous ending (acme/app) is enough.
- ref is any branch, tag or commit (HEAD~3 too); without it, the default branch.
- path is a directory from the root of the repository; include and pattern are globs such as **/*.go.
- The first line of a result says what was found; the last line says "Complete." or what was left out and the call that continues.
- To give people a link to lines of a file: %s/browse/REPO@REF/-/blob/PATH#L10 (without @REF, the default branch).`

// contextKey is the type of the keys of this package's context values.
type contextKey int

const (
	viewerKey  contextKey = iota
	requestKey            // the context of the HTTP request, which ends when the client leaves
)

// WithViewer returns a context for serving one HTTP request on behalf of v.
func WithViewer(ctx context.Context, v node.Viewer) context.Context {
	ctx = context.WithValue(ctx, viewerKey, v)
	return context.WithValue(ctx, requestKey, ctx)
}

// viewerOf is the viewer of the request that ctx belongs to; without one it
// is the zero Viewer, which sees nothing.
func viewerOf(ctx context.Context) node.Viewer {
	v, _ := ctx.Value(viewerKey).(node.Viewer)
	return v
}

// New makes the handler of POST /api/mcp. base is the URL of the pages for
// people. The context of each request has to come from [WithViewer].
func New(n Tools, base, version string, log *slog.Logger) http.Handler {
	s := mcp.NewServer(&mcp.Implementation{
		Name: "shoal", Title: "Shoal code search", Version: version,
	}, &mcp.ServerOptions{
		Instructions:      fmt.Sprintf(instructions, base),
		Logger:            slog.New(loud{log.Handler()}),
		Capabilities:      &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}, Resources: &mcp.ResourceCapabilities{}},
		CompletionHandler: completer(n),
		// What a user sees is that user's alone.
		SetCacheable: func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) { c.CacheScope = "private" },
	})
	for _, t := range table(n) {
		s.AddTool(t.declaration(), t.handler(n, log))
	}
	addResources(s, n)
	return Mount(s, log)
}

// Mount makes the handler of a server: stateless, every protocol revision, a
// call ends with its request.
func Mount(s *mcp.Server, log *slog.Logger) http.Handler {
	s.AddReceivingMiddleware(endWithRequest)
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{
		Stateless:                    true,
		PropagateRequestCancellation: true,
		MaxRequestBodyBytes:          maxBody,
		Logger:                       slog.New(loud{log.Handler()}),
		DisableLocalhostProtection:   true, // package api checks Host and Origin for every route
	})
}

// loud lets only what is at least a warning through: to the SDK each call is a
// session, which it tells of as it comes and goes.
type loud struct{ slog.Handler }

// Enabled is of [slog.Handler].
func (l loud) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && l.Handler.Enabled(ctx, level)
}

// WithAttrs is of [slog.Handler].
func (l loud) WithAttrs(attrs []slog.Attr) slog.Handler { return loud{l.Handler.WithAttrs(attrs)} }

// WithGroup is of [slog.Handler].
func (l loud) WithGroup(name string) slog.Handler { return loud{l.Handler.WithGroup(name)} }

// endWithRequest ends the work of a call when its HTTP request ends. The SDK
// does so for the newest protocol only; with any version a client that has
// gone can receive no answer.
func endWithRequest(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		request, ok := ctx.Value(requestKey).(context.Context)
		if !ok {
			return next(ctx, method, req)
		}
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		defer context.AfterFunc(request, func() { cancel(context.Cause(request)) })()
		return next(ctx, method, req)
	}
}
