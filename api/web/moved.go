package web

import (
	"context"
	"strings"

	"github.com/shoalsearch/shoal/api/layout"
)

// moved maps old addresses, and those of Sourcebot, to the present ones.
var moved = map[string]string{
	"/cluster":          "/settings",
	"/status":           "/settings",
	"/settings/general": "/settings",
	"/settings/apiKeys": "/settings/keys",
	"/settings/mcp":     "/settings/agents",
	"/chats":            "/chat",
}

// movedRoutes redirect the addresses of moved, and everything below /~ to the same without it.
func movedRoutes() []Route {
	routes := []Route{{"/~/*", "GET", quick, redirectTo(func(path string) string { return strings.TrimPrefix(path, "/~") })}}
	for from, to := range moved {
		routes = append(routes, Route{from, "GET", quick, redirectTo(func(string) string { return to })})
	}
	return routes
}

// redirectTo redirects with the same query. An address that browsers would take for another site
// leads to the first page.
func redirectTo(target func(path string) string) layout.Handler {
	return func(_ context.Context, v *layout.Visit) error {
		to := target(v.Path)
		// Two slashes or a backslash lead to another site, and anybody can make such links. A
		// line break would add a header.
		if strings.HasPrefix(to, "//") || strings.ContainsAny(to, "\\\r\n") {
			to = "/"
		}
		if q := v.Query.Encode(); q != "" {
			to += "?" + q
		}
		return v.Redirect(301, to)
	}
}
