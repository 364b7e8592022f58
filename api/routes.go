package api

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/shoalsearch/shoal/api/mcp"
)

// access is who may call a route.
type access uint8

const (
	accessOpen  access = iota // anybody: nothing of any repository is told
	accessRead                // a key, or nobody in particular where anonymous access is on
	accessOwner               // an owner's key
)

// handler answers a call: it fills in the answer or returns an error. ctx ends
// at the route's deadline, when the client leaves, or when the server stops.
type handler func(ctx context.Context, c *call) error

// route is one operation of the API.
type route struct {
	name    string // the path with its {parts}: the label of metrics
	method  string
	access  access
	timeout time.Duration // 0: the handler is quick and never stopped
	handle  handler
}

// routes finds the route of a request.
type routes struct {
	exact    map[string][]*route // by path
	wild     []*route            // with {parts}, tried in order
	prefixes []*route            // ending in /*
	buffers  buffers
}

const (
	searchTimeout = 60 * time.Second
	browseTimeout = 60 * time.Second
	adminTimeout  = 60 * time.Second
	quickTimeout  = 10 * time.Second
	streamTimeout = 5 * time.Minute
	toolTimeout   = 10 * time.Minute
)

// newRoutes is the table of everything that the server answers. The routes
// under /api are those of openapi.json; a test compares them.
func (s *Server) newRoutes() *routes {
	r := &routes{exact: map[string][]*route{}}
	for _, x := range []route{
		{"/api/search", "POST", accessRead, searchTimeout, s.search},
		{"/api/stream_search", "POST", accessRead, streamTimeout, s.streamSearch},
		{"/api/find_definitions", "POST", accessRead, searchTimeout, s.definitions},
		{"/api/find_references", "POST", accessRead, searchTimeout, s.references},
		{"/api/repos", "GET", accessRead, quickTimeout, s.repos},
		{"/api/repos/{id}/reindex", "POST", accessOwner, adminTimeout, s.reindex},
		{"/api/source", "GET", accessRead, browseTimeout, s.source},
		{"/api/tree", "POST", accessRead, browseTimeout, s.tree},
		{"/api/commits", "GET", accessRead, browseTimeout, s.commits},
		{"/api/commit", "GET", accessRead, browseTimeout, s.commit},
		{"/api/commits/authors", "GET", accessRead, browseTimeout, s.authors},
		{"/api/diff", "GET", accessRead, browseTimeout, s.diff},
		{"/api/blame", "GET", accessRead, browseTimeout, s.blame},
		{"/api/branches", "GET", accessRead, browseTimeout, s.branches},
		{"/api/tags", "GET", accessRead, browseTimeout, s.tags},
		{"/api/models", "GET", accessRead, quickTimeout, s.models},
		{"/api/status", "GET", accessRead, quickTimeout, s.status},
		{"/api/version", "GET", accessOpen, 0, s.version},
		{"/api/health", "GET", accessOpen, 0, s.health},
		{"/api/openapi.json", "GET", accessOpen, 0, s.openAPI},
		{"/api/keys", "GET", accessOwner, adminTimeout, s.keys},
		{"/api/keys", "POST", accessOwner, adminTimeout, s.createKey},
		{"/api/keys/{key}", "DELETE", accessOwner, adminTimeout, s.revokeKey},
		{"/api/nodes/{node}/drain", "POST", accessOwner, adminTimeout, s.drain},
		{"/api/nodes/{node}/remove", "POST", accessOwner, adminTimeout, s.remove},
		{"/api/snapshot", "GET", accessOwner, adminTimeout, s.snapshot},
		{"/api/webhook/{connection}", "POST", accessOpen, adminTimeout, s.webhook},
		{"/api/webhook/{connection}", "GET", accessOwner, adminTimeout, s.webhookSecret},
		{"/metrics", "GET", accessOpen, 0, s.metrics},
		{"/livez", "GET", accessOpen, 0, s.live},
		{"/readyz", "GET", accessOpen, 0, s.ready},
	} {
		r.add(x)
	}
	tools := s.opt.tools
	if tools == nil {
		tools = mcp.New(s.node, s.node.BaseURL(), s.opt.Version, s.log)
	}
	r.add(route{"/api/mcp", "POST", accessRead, toolTimeout, s.bridge(tools, func(ctx context.Context, c *call) context.Context {
		return mcp.WithViewer(ctx, c.viewer)
	})})
	for _, path := range []string{"/", "/search", "/repos", "/status", "/browse/*", "/static/*"} {
		r.add(route{path, "GET", accessOpen, 0, s.page})
	}
	return r
}

func (r *routes) add(x route) {
	switch {
	case strings.HasSuffix(x.name, "/*"):
		r.prefixes = append(r.prefixes, &x)
	case strings.Contains(x.name, "{"):
		r.wild = append(r.wild, &x)
	default:
		r.exact[x.name] = append(r.exact[x.name], &x)
	}
}

// at lists the routes of a path, one for each method, and what stood for its {parts}.
func (r *routes) at(path string) (found []*route, wild []string) {
	if list := r.exact[path]; list != nil {
		return list, nil
	}
	for _, x := range r.wild {
		if parts, ok := match(x.name, path); ok {
			found, wild = append(found, x), parts
		}
	}
	if found != nil {
		return found, wild
	}
	for _, x := range r.prefixes {
		if strings.HasPrefix(path, strings.TrimSuffix(x.name, "*")) {
			found = append(found, x)
		}
	}
	return found, nil
}

// match compares a path with one that has {parts}, each of which stands for
// one or more characters without a slash.
func match(pattern, path string) (wild []string, ok bool) {
	want, have := strings.Split(pattern, "/"), strings.Split(path, "/")
	if len(want) != len(have) {
		return nil, false
	}
	for i, w := range want {
		switch {
		case strings.HasPrefix(w, "{") && have[i] != "":
			wild = append(wild, have[i])
		case w != have[i]:
			return nil, false
		}
	}
	return wild, true
}

// route finds the route of a call. With a failure the route only serves to
// name what was asked for in metrics.
func (s *Server) route(c *call) (*route, *failure) {
	unknown := &route{name: "unknown"}
	if !s.hosts.allows(string(c.rc.Host()), c.requestHeader("Origin")) {
		return unknown, &failure{Status: 403, Code: codeForbidden, Message: "This node listens on a loopback address and does not answer to that host name or origin; set --base-url to the address that clients use."}
	}
	found, wild := s.routes.at(c.path)
	if found == nil {
		return unknown, &failure{Status: 404, Code: codeNotFound, Message: "This API endpoint does not exist"}
	}
	c.wild = wild
	var allow []string
	for _, x := range found {
		if x.method == c.method || x.method == "GET" && c.method == "HEAD" || x.method == "" {
			return x, nil
		}
		allow = append(allow, x.method)
		if x.method == "GET" {
			allow = append(allow, "HEAD")
		}
	}
	allow = append(allow, "OPTIONS")
	slices.Sort(allow)
	f := &failure{Status: 405, Code: codeMethod, Allow: strings.Join(slices.Compact(allow), ", ")}
	if c.method == fasthttp.MethodOptions {
		return &route{name: found[0].name, handle: func(_ context.Context, c *call) error {
			c.status = fasthttp.StatusNoContent
			c.setHeader("Allow", f.Allow)
			return nil
		}}, nil
	}
	f.Message = "The method " + c.method + " is not allowed here; allowed: " + f.Allow + "."
	return found[0], f
}
