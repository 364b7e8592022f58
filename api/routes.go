package api

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/shoalsearch/shoal/api/mcp"
	"github.com/shoalsearch/shoal/api/people"
	"github.com/shoalsearch/shoal/api/settings"
	"github.com/shoalsearch/shoal/api/web"
	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/host"
	"github.com/shoalsearch/shoal/node/tool"
)

// access is who may call a route.
type access uint8

const (
	accessOpen   access = iota // anybody: nothing of any repository is told
	accessRead                 // a key, or nobody in particular where anonymous access is on
	accessOwner                // an owner's key
	accessHolder               // an owner's key, or that of an account for its own things
)

// handler answers a call: it fills in the answer or returns an error. ctx ends
// at the route's deadline, when the client leaves, or when the server stops.
type handler func(ctx context.Context, c *call) error

// owners makes a handler of one that needs the proof that an owner asks. It is
// the only way to that proof for a request.
func owners(h func(ctx context.Context, c *call, by account.Owner) error) handler {
	return func(ctx context.Context, c *call) error {
		by, err := account.AsOwner(c.viewer)
		if err != nil {
			return err
		}
		return h(ctx, c, by)
	}
}

// holders is owners for operations that people also do on what is their own.
func holders(h func(ctx context.Context, c *call, by account.Holder) error) handler {
	return func(ctx context.Context, c *call) error {
		by, err := account.AsHolder(c.viewer)
		if err != nil {
			return err
		}
		return h(ctx, c, by)
	}
}

// route is one operation of the API.
type route struct {
	name    string // the path with its {parts}: the label of metrics
	method  string
	access  access
	timeout time.Duration // 0: the handler is quick and never stopped
	handle  handler
	page    bool // it is for people: a failure is a page too, and a browser's cookie counts
	most    int  // bytes of a body; 0: as usual
	shared  sharing
}

// mostBody is how many bytes the body of a request for this route may have.
func (r *route) mostBody() int {
	switch r.name {
	case "/api/config":
		return config.MaxSize
	case "/api/webhook/{connection}":
		return host.MaxDelivery
	}
	return cmp.Or(r.most, maxBody)
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
	chatTimeout   = 15 * time.Minute // longer than a question may take
)

// newRoutes is the table of everything that the server answers. The routes
// under /api are those of openapi.json; a test compares them.
func (s *Server) newRoutes() *routes {
	r := &routes{exact: map[string][]*route{}}
	for _, x := range []struct {
		name    string
		method  string
		access  access
		timeout time.Duration
		handle  handler
	}{
		{"/api/search", "POST", accessRead, searchTimeout, s.search},
		{"/api/stream_search", "POST", accessRead, streamTimeout, s.streamSearch},
		{"/api/find_definitions", "POST", accessRead, searchTimeout, s.definitions},
		{"/api/find_references", "POST", accessRead, searchTimeout, s.references},
		{"/api/repos", "GET", accessRead, quickTimeout, s.repos},
		{"/api/repos/{id}/reindex", "POST", accessOwner, adminTimeout, owners(s.reindex)},
		{"/api/source", "GET", accessRead, browseTimeout, s.source},
		{"/api/tree", "POST", accessRead, browseTimeout, s.tree},
		{"/api/commits", "GET", accessRead, browseTimeout, s.commits},
		{"/api/commit", "GET", accessRead, browseTimeout, s.commit},
		{"/api/commits/authors", "GET", accessRead, browseTimeout, s.authors},
		{"/api/diff", "GET", accessRead, browseTimeout, s.diff},
		{"/api/blame", "GET", accessRead, browseTimeout, s.blame},
		{"/api/branches", "GET", accessRead, browseTimeout, s.branches},
		{"/api/tags", "GET", accessRead, browseTimeout, s.tags},
		{"/api/suggest", "GET", accessRead, quickTimeout, s.suggest},
		{"/api/files", "GET", accessRead, browseTimeout, s.findFiles},
		{"/api/symbols", "GET", accessRead, browseTimeout, s.outline},
		{"/api/models", "GET", accessRead, quickTimeout, s.models},
		{"/api/models/check", "POST", accessOwner, toolTimeout, owners(s.checkModels)},
		{"/api/status", "GET", accessRead, quickTimeout, s.status},
		{"/api/version", "GET", accessOpen, 0, s.version},
		{"/api/health", "GET", accessOpen, 0, s.health},
		{"/api/openapi.json", "GET", accessOpen, 0, s.openAPI},
		{"/api/events", "GET", accessOwner, quickTimeout, owners(s.listEvents)},
		{"/api/audit", "GET", accessOwner, adminTimeout, owners(s.audit)},
		{"/api/jobs", "GET", accessRead, quickTimeout, s.listJobs},
		{"/api/jobs/{id}", "GET", accessRead, quickTimeout, s.job},
		{"/api/jobs/{id}/retry", "POST", accessOwner, adminTimeout, owners(s.retryJob)},
		{"/api/jobs/{id}/cancel", "POST", accessOwner, adminTimeout, owners(s.cancelJob)},
		{"/api/config", "GET", accessOwner, quickTimeout, owners(s.configuration)},
		{"/api/contexts", "GET", accessRead, quickTimeout, s.contexts},
		{"/api/config", "POST", accessOwner, adminTimeout, owners(s.applyConfig)},
		{"/api/keys", "GET", accessHolder, adminTimeout, holders(s.keys)},
		{"/api/keys", "POST", accessHolder, adminTimeout, holders(s.createKey)},
		{"/api/keys/{key}", "DELETE", accessHolder, adminTimeout, holders(s.revokeKey)},
		{"/api/users", "GET", accessOwner, adminTimeout, owners(s.users)},
		{"/api/users", "POST", accessOwner, adminTimeout, owners(s.createUser)},
		{"/api/users/{user}", "POST", accessOwner, adminTimeout, owners(s.changeUser)},
		{"/api/users/{user}/grants", "POST", accessOwner, adminTimeout, owners(s.grant)},
		{"/api/users/{user}", "DELETE", accessOwner, adminTimeout, owners(s.deleteUser)},
		{"/api/users/{user}/password", "POST", accessOwner, adminTimeout, owners(s.setPassword)},
		{"/api/users/{user}/link", "POST", accessOwner, adminTimeout, owners(s.newLink)},
		{"/api/users/{user}/sessions", "GET", accessHolder, adminTimeout, holders(s.listSessions)},
		{"/api/users/{user}/sessions", "DELETE", accessHolder, adminTimeout, holders(s.endSessions)},
		{"/api/connections", "GET", accessOwner, quickTimeout, owners(s.connections)},
		{"/api/connections/{connection}/sync", "POST", accessOwner, adminTimeout, owners(s.syncConnection)},
		{"/api/connections/{connection}/accept", "POST", accessOwner, adminTimeout, owners(s.acceptListing)},
		{"/api/nodes/{node}/drain", "POST", accessOwner, adminTimeout, owners(s.drain)},
		{"/api/nodes/{node}/undrain", "POST", accessOwner, adminTimeout, owners(s.undrain)},
		{"/api/nodes/{node}/remove", "POST", accessOwner, adminTimeout, owners(s.remove)},
		{"/api/snapshot", "GET", accessOwner, adminTimeout, owners(s.snapshot)},
		{"/api/webhook/{connection}", "POST", accessOpen, adminTimeout, s.webhook},
		{"/api/webhook/{connection}", "GET", accessOwner, adminTimeout, owners(s.webhookSecret)},
		{"/api/webhook/{connection}/rotate", "POST", accessOwner, adminTimeout, owners(s.rotateWebhook)},
		{"/metrics", "GET", s.metricsAccess(), 0, s.metrics},
		{"/livez", "GET", accessOpen, 0, s.live},
		{"/readyz", "GET", accessOpen, 0, s.ready},
	} {
		r.add(route{name: x.name, method: x.method, access: x.access, timeout: x.timeout, handle: x.handle})
	}
	s.addChats(r)
	s.addTools(r)
	s.addOAuth(r)
	s.addAgents(r)
	s.addPages(r)
	return r
}

// addChats adds what asks a language model.
func (s *Server) addChats(r *routes) {
	for _, x := range []route{
		{name: "/api/chat", method: "POST", access: accessRead, timeout: quickTimeout, handle: s.chat},
		{name: "/api/chat", method: "GET", access: accessRead, timeout: quickTimeout, handle: s.chats},
		{name: "/api/chat/blocking", method: "POST", access: accessRead, timeout: toolTimeout, handle: s.blockingChat},
		{name: "/api/chat/{id}", method: "GET", access: accessRead, timeout: quickTimeout, handle: s.chatByID},
		{name: "/api/chat/{id}", method: "PATCH", access: accessRead, timeout: quickTimeout, handle: s.changeChat},
		{name: "/api/chat/{id}", method: "DELETE", access: accessRead, timeout: quickTimeout, handle: s.deleteChat},
		{name: "/api/chat/{id}/messages", method: "POST", access: accessRead, timeout: quickTimeout, handle: s.chatMessage},
		{name: "/api/chat/{id}/fork", method: "POST", access: accessRead, timeout: quickTimeout, handle: s.forkChat},
		{name: "/api/chat/{id}/stop", method: "POST", access: accessRead, timeout: quickTimeout, handle: s.stopChat},
		{name: "/api/chat/{id}/events", method: "GET", access: accessRead, timeout: chatTimeout, handle: s.chatEvents},
	} {
		r.add(x)
	}
}

// addTools adds the tool server.
func (s *Server) addTools(r *routes) {
	tools := s.opt.tools
	if tools == nil {
		p := s.parts.tools
		p.Log = s.log
		files := struct {
			tool.Browser
			tool.Historian
			tool.Lister
		}{p.Browse, p.History, p.List}
		tools = mcp.New(tool.New(p, s.parts.asking...), files, s.parts.base, s.opt.Version, s.log)
	}
	r.add(route{name: toolPath, method: "POST", access: accessRead, timeout: toolTimeout, shared: bearer, handle: s.bridge(tools, func(ctx context.Context, c *call) context.Context {
		return mcp.WithViewer(ctx, c.viewer)
	})})
}

// addPages adds what people see in a browser.
func (s *Server) addPages(r *routes) {
	r.add(route{name: "/static/*", method: "GET", access: accessOpen, handle: s.static})
	persons := people.New(people.Deps{
		Sessions: s.parts.sessions, Passwords: s.parts.signing, Providers: s.parts.doors, Accounts: s.parts.people, Base: s.parts.base, Now: s.opt.Now,
	})
	for _, x := range persons.Routes() {
		need := accessRead
		if x.Open {
			need = accessOpen
		}
		r.add(route{name: x.Path, method: x.Method, access: need, timeout: x.Timeout, handle: s.page(s.held(x.Handle)), page: true})
	}
	pages := web.New(web.Deps{
		Search: s.parts.search, Repos: s.parts.repos, Files: s.parts.files, Trees: s.parts.tools.Browse, History: s.parts.history, Keys: s.parts.accounts, Consents: s.parts.agents.consents, Suggest: s.parts.suggest, Asker: s.parts.asker,
		Base: s.parts.base, Now: s.opt.Now,
	})
	for _, x := range pages.Routes() {
		r.add(route{name: x.Path, method: x.Method, access: accessRead, timeout: x.Timeout, handle: s.page(s.held(x.Handle)), page: true})
	}
	running := settings.New(settings.Deps{
		State: s.parts.state, Repos: s.parts.repos, Connections: s.parts.conns, Jobs: s.parts.jobs, Events: s.parts.events, Audit: s.parts.audit, Members: s.parts.members, Config: s.parts.settings,
		Base: s.parts.base, Now: s.opt.Now,
	})
	for _, x := range running.Routes() {
		r.add(route{name: x.Path, method: x.Method, access: accessRead, timeout: x.Timeout, handle: s.page(s.held(x.Handle)), page: true})
	}
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
	found, wild := s.routes.at(c.path)
	shared := s.shares(c, found)
	if f := s.turnedAway(c, shared); f != nil {
		return unknown, f
	}
	if shared {
		c.share(methodsOf(found))
	}
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
