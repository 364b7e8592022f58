package web

import (
	"context"
	"strings"

	"github.com/shoalsearch/shoal/api/layout"
)

// moved maps old addresses, and addresses of Sourcebot, to the present ones.
var moved = map[string]string{
	"/cluster":          "/settings",
	"/status":           "/settings",
	"/settings/general": "/settings",
	"/settings/apiKeys": "/settings/keys",
	"/settings/mcp":     "/settings/agents",
	"/chats":            "/chat",
}

// movedRoutes returns routes that redirect the addresses in moved, and all below /~ to those without it.
func movedRoutes() []Route {
	routes := []Route{{"/~/*", "GET", quick, redirectTo(func(path string) string { return strings.TrimPrefix(path, "/~") })}}
	for from, to := range moved {
		routes = append(routes, Route{from, "GET", quick, redirectTo(func(string) string { return to })})
	}
	return routes
}

// redirectTo makes a handler that redirects to the target of the visit's path, with the same query. It
// redirects to the first page if browsers would take the target for another site.
func redirectTo(target func(path string) string) layout.Handler {
	return func(_ context.Context, v *layout.Visit) error {
		to := target(v.Path)
		// Anybody can make a link whose target leads to another site, by two slashes or a backslash, or
		// adds a header, by a line break.
		if strings.HasPrefix(to, "//") || strings.ContainsAny(to, "\\\r\n") {
			to = "/"
		}
		if q := v.Query.Encode(); q != "" {
			to += "?" + q
		}
		return v.Redirect(301, to)
	}
}
