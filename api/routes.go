package api

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
)

// access says who may call a route.
type access uint8

const (
	accessOpen   access = iota // anybody: the answer says nothing about repositories
	accessRead                 // a credential, or nobody if anonymous access is on
	accessOwner                // owners
	accessHolder               // owners, or any account for its own things
)

// handler answers a call or returns an error. ctx ends at the route's deadline, when the client
// leaves, or when the server stops.
type handler func(ctx context.Context, c *call) error

// ownerHandler makes a handler from one that needs an account.Owner. No other function gives a request
// that proof.
func ownerHandler(h func(ctx context.Context, c *call, by account.Owner) error) handler {
	return func(ctx context.Context, c *call) error {
		by, err := account.AsOwner(c.viewer)
		if err != nil {
			return err
		}
		return h(ctx, c, by)
	}
}

// holderHandler makes a handler of an operation that owners may use on everything, and other people
// on what is theirs.
func holderHandler(h func(ctx context.Context, c *call, by account.Holder) error) handler {
	return func(ctx context.Context, c *call) error {
		by, err := account.AsHolder(c.viewer)
		if err != nil {
			return err
		}
		return h(ctx, c, by)
	}
}

// ownerAnswer makes a handler that answers an owner with the result of tell.
func ownerAnswer[T any](tell func(context.Context, account.Owner) (T, error)) handler {
	return ownerHandler(func(ctx context.Context, c *call, by account.Owner) error { return c.answer(tell(ctx, by)) })
}

// ownerAction makes a handler for an owner's operation on the thing that the path names.
func ownerAction[T any](do func(context.Context, account.Owner, string) (T, error)) handler {
	return ownerHandler(func(ctx context.Context, c *call, by account.Owner) error { return c.answer(do(ctx, by, c.wild[0])) })
}

// queuedAction is for work that continues after the answer, which has status 202.
func queuedAction[T any](do func(context.Context, account.Owner, string) (T, error)) handler {
	handle := ownerAction(do)
	return func(ctx context.Context, c *call) error {
		c.status = 202
		return handle(ctx, c)
	}
}

// viewerAnswer makes a handler that answers a viewer with the result of tell.
func viewerAnswer[T any](tell func(context.Context, catalog.Viewer) (T, error)) handler {
	return func(ctx context.Context, c *call) error { return c.answer(tell(ctx, c.viewer)) }
}

// route is one operation of the API.
type route struct {
	name    string // path with its {parts}; the label in metrics
	method  string
	access  access
	timeout time.Duration // 0: the handler is quick and has no deadline
	handle  handler
	page    bool    // for people: errors are pages too, and session cookies count
	session bool    // session cookies count, though it is no page
	framed  bool    // embedded in pages of other sites; callers are anonymous
	most    int     // bytes of the body; 0: default
	proof   handler // checks a call before its body is read; nil checks nothing
	shared  sharing
}

// sharing says which other sites' pages may call a route from a visitor's browser.
type sharing uint8

const (
	ownSite sharing = iota // none
	anySite                // all: the route does the same for everybody
	bearer                 // those that send a credential, or if anonymous access is off
)

// newRoute makes a route.
func newRoute(method, name string, need access, timeout time.Duration, h handler) route {
	return route{name: name, method: method, access: need, timeout: timeout, handle: h}
}

// withMaxBody sets the route's limit of the body.
func (r route) withMaxBody(most int) route {
	r.most = most
	return r
}

// withProof sets a check that runs before the body is read.
func (r route) withProof(by handler) route {
	r.proof = by
	return r
}

// bySession accepts session cookies. The route must not change anything, because another site's
// page can make a browser send requests.
func (r route) bySession() route {
	r.session = true
	return r
}

// bodyLimit returns the largest body of the route, in bytes.
func (r *route) bodyLimit() int { return cmp.Or(r.most, maxBody) }

// area is a group of routes with what their handlers use. Rows and handlers are in the same file.
type area interface{ rows() []route }

// authenticator sets the viewer of a call, or refuses the call.
type authenticator func(ctx context.Context, c *call, need access) error

// routes finds the route of a request.
type routes struct {
	exact    map[string][]*route // by path
	wild     []*route            // with {parts}, tried in order
	prefixes []*route            // ending in /*
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

// find returns the routes of a path, one for each method, and the values of its {parts}.
func (r *routes) find(path string) (found []*route, wild []string) {
	// Most paths have no {parts}.
	if list := r.exact[path]; list != nil {
		return list, nil
	}

	// Several matches are methods of the same path, so their values are the same.
	for _, x := range r.wild {
		if parts, ok := match(x.name, path); ok {
			found, wild = append(found, x), parts
		}
	}

	if found != nil {
		return found, wild
	}

	// Prefixes come last, since they match everything below.
	for _, x := range r.prefixes {
		if strings.HasPrefix(path, strings.TrimSuffix(x.name, "*")) {
			found = append(found, x)
		}
	}
	return found, nil
}

// match compares a path with a pattern. Each of its {parts} matches one or more characters except
// slashes.
func match(pattern, path string) (wild []string, ok bool) {
	want, have := strings.Split(pattern, "/"), strings.Split(path, "/")
	if len(want) != len(have) {
		return nil, false
	}

	// Values are never empty, or /api/keys/ would name a key "".
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

// handles reports whether the route handles a method. A route without a method handles all. GET
// also handles HEAD.
func (r *route) handles(method string) bool {
	return r.method == method || r.method == "" || r.method == "GET" && method == "HEAD"
}

// toolPath is the path of the tool server.
const toolPath = "/api/mcp"

// sessionPath is the path for signing in and out by a script of this site.
const sessionPath = "/api/session"
