package api

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/shoalsearch/shoal/api/mcp"
	"github.com/shoalsearch/shoal/node/tool"
)

// toolRoutes are the routes of the tool server.
type toolRoutes struct {
	server   http.Handler
	panicked func(what string, p any) *failure
}

func (a *toolRoutes) rows() []route {
	served := row("POST", toolPath, accessRead, toolTimeout, bridge(a.server, a.panicked, func(ctx context.Context, c *call) context.Context {
		return mcp.WithViewer(ctx, c.viewer)
	}))
	served.shared = bearer
	return []route{served}
}

// toolServer makes the tool server of a node.
func toolServer(p parts, version string, log *slog.Logger) http.Handler {
	p.tools.Log = log
	files := struct {
		tool.Browser
		tool.Historian
		tool.Lister
	}{p.tools.Browse, p.tools.History, p.tools.List}
	return mcp.New(tool.New(p.tools, p.asking...), files, p.base, version, log)
}
