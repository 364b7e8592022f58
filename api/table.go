package api

import (
	"context"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"
)

// newRoutes makes the table of all routes. TestOpenAPI_hasEveryRoute compares those under /api with openapi.json.
func (s *Server) newRoutes(p parts) *routes {
	base, now, log := p.base, s.opt.Now, s.log
	authenticate := func(ctx context.Context, c *call, need access) error {
		return s.authenticate(ctx, c, &route{access: need})
	}
	tools := s.opt.tools
	if tools == nil {
		tools = toolServer(p, s.opt.Version, log)
	}
	pages := newPageRoutes(p, s.renderer, len(s.opt.EmbedAncestors) > 0, now)

	all := &routes{exact: map[string][]*route{}}
	for _, a := range []area{
		// Searching and reading.
		&searchRoutes{p.search, p.suggest, &s.buffers, s.panicked},
		&repoRoutes{p.browse, p.operate, base},
		&fileRoutes{p.browse, base},
		&historyRoutes{p.browse, base},
		&historyRuleRoutes{p.operate},
		&suggestRoutes{p.suggest, p.browse},
		&chatRoutes{p.chats, base},

		// The node and its cluster.
		&healthRoutes{p.state, s.opt.Version, s.leaving, make(chan struct{}, maxStatusWatches)},
		&metricsRoutes{s.opt.Gatherer, log},
		profileRoutes{},
		&nodeRoutes{p.operate, p.state, base},
		&connectionRoutes{p.operate, p.browse},
		&webhookRoutes{p.operate, base, now, s.opt.trusted, authenticate},
		&jobRoutes{p.operate, base},
		&configRoutes{p.config},
		&auditRoutes{p.chronicle, base, now},
		&referenceRoutes{p.users, auditRoutes{p.chronicle, base, now}, s.opt.Version},

		// Accounts and permissions.
		&sessionRoutes{pages.people, s.renderer.visit},
		&keyRoutes{p.apiKeys, p.callers, now},
		&watchRoutes{p.watches, base},
		&userRoutes{p.users, p.passwords, p.sessions, base},
		&agentRoutes{p.agents},
		&oauthRoutes{p.agents},

		&documentRoutes{},
		&toolRoutes{tools, s.panicked},
		pages,
	} {
		for _, x := range a.routes() {
			all.add(x)
		}
	}
	return all
}

// route returns the route of a call, and sets the values of the path's {parts}. With a failure, the
// returned route only names the call in metrics.
func (s *Server) route(c *call) (*route, *failure) {
	unknown := &route{name: "unknown"}
	if c.requestHeader(headerAmbiguous) != "" {
		return unknown, malformed()
	}
	found, values := s.routes.find(c.path)

	// Refuse pages of other sites before looking at the path, so that they learn nothing about it.
	allowCrossSite := s.allowsCrossSite(c, found)
	if f := s.checkHost(c, allowCrossSite); f != nil {
		return unknown, f
	}
	if allowCrossSite {
		c.allowCrossSiteRead(methodsOf(found))
	}

	if found == nil {
		return unknown, unknownPath(c.path)
	}
	c.pathValues = values
	for _, x := range found {
		if x.handles(c.method) {
			return x, nil
		}
	}

	// OPTIONS has no route of its own. The routes of the path tell the methods.
	f := &failure{Status: 405, Code: codeMethod, Allow: allowed(found)}
	if c.method == fasthttp.MethodOptions {
		return &route{name: found[0].name, maxBody: found[0].maxBody, handle: func(_ context.Context, c *call) error {
			c.status = fasthttp.StatusNoContent
			c.setHeader("Allow", f.Allow)
			return nil
		}}, nil
	}
	f.Message = "The method " + c.method + " is not allowed here; allowed: " + f.Allow + "."
	return found[0], f
}

// allowed returns the header Allow for a path's routes.
func allowed(found []*route) string {
	allow := []string{"OPTIONS"}
	for _, x := range found {
		allow = append(allow, x.method)
		if x.method == "GET" {
			allow = append(allow, "HEAD")
		}
	}
	slices.Sort(allow)
	return strings.Join(slices.Compact(allow), ", ")
}
