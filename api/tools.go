package api

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/shoalsearch/shoal/api/mcp"
	"github.com/shoalsearch/shoal/node/tool"
)

// toolRoutes handles the tool server.
type toolRoutes struct {
	server   http.Handler
	panicked func(what string, p any) *failure
}

func (a *toolRoutes) routes() []route {
	withViewer := func(ctx context.Context, c *call) context.Context { return mcp.WithViewer(ctx, c.viewer) }
	calls := newRoute("POST", toolPath, accessRead, toolTimeout, bridge(a.server, a.panicked, withViewer))
	calls.shared = bearer // agents in browsers call tools from pages of other sites
	return []route{calls}
}

// toolServer makes the tool server of a node.
func toolServer(p parts, version string, log *slog.Logger) http.Handler {
	set := tool.New(tool.Parts{Search: p.search, Browse: p.browse, Models: p.chats, Log: log}, p.modelTools...)
	return mcp.New(set, p.browse, p.base, version, log)
}
