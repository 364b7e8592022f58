package web

import (
	"context"
	"strings"

	"github.com/shoalsearch/shoal/api/layout"
)

// moved are addresses of before and of the product whose links people have,
// with the ones of now.
var moved = map[string]string{
	"/cluster":          "/settings",
	"/status":           "/settings",
	"/settings/general": "/settings",
	"/settings/apiKeys": "/settings/keys",
	"/settings/mcp":     "/settings/agents",
	"/chats":            "/chat",
}

// movedRoutes lead from each address of moved to its new one, and from
// everything below /~ to the same without it.
func movedRoutes() []Route {
	routes := []Route{{"/~/*", "GET", quick, redirectTo(func(path string) string { return strings.TrimPrefix(path, "/~") })}}
	for from, to := range moved {
		routes = append(routes, Route{from, "GET", quick, redirectTo(func(string) string { return to })})
	}
	return routes
}

// redirectTo sends the reader on, with the query that came. An address that a
// browser would take for another site's leads to the first page.
func redirectTo(target func(path string) string) layout.Handler {
	return func(_ context.Context, v *layout.Visit) error {
		to := target(v.Path)
		// Two slashes, or a backslash, lead to another site: the address may come from anybody. A
		// line break would write a header.
		if strings.HasPrefix(to, "//") || strings.ContainsAny(to, "\\\r\n") {
			to = "/"
		}
		if q := v.Query.Encode(); q != "" {
			to += "?" + q
		}
		return v.Redirect(301, to)
	}
}
