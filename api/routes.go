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
	accessOpen    access = iota // everybody: the answer says nothing about repositories
	accessRead                  // whoever has a credential; everybody if anonymous access is on
	accessOwner                 // owners
	accessHolder                // owners for all things, other accounts for what is theirs
	accessMetrics               // owners, and keys with the role metrics; on loopback everybody, see accessOf
)

// handler answers a call or returns an error. ctx ends at the route's deadline, when the client
// leaves, or when the server stops.
type handler func(ctx context.Context, c *call) error

// ownerHandler makes a handler that refuses callers who are no owners, and calls h with the proof
// that the caller is one.
func ownerHandler(h func(ctx context.Context, c *call, by account.Owner) error) handler {
	return func(ctx context.Context, c *call) error {
		by, err := account.AsOwner(c.viewer)
		if err != nil {
			return err
		}
		return h(ctx, c, by)
	}
}

// holderHandler makes a handler that refuses guests, and calls h with the proof of what the caller
// may use: an owner all things, another account what is its own.
func holderHandler(h func(ctx context.Context, c *call, by account.Holder) error) handler {
	return func(ctx context.Context, c *call) error {
		by, err := account.AsHolder(c.viewer)
		if err != nil {
			return err
		}
		return h(ctx, c, by)
	}
}

// ownerAnswer makes a handler that answers an owner with the result of read.
func ownerAnswer[T any](read func(context.Context, account.Owner) (T, error)) handler {
	return ownerHandler(func(ctx context.Context, c *call, by account.Owner) error { return c.answer(read(ctx, by)) })
}

// ownerAction makes a handler that calls do for an owner with the name in the path, and answers with
// its result.
func ownerAction[T any](do func(ctx context.Context, by account.Owner, name string) (T, error)) handler {
	return ownerHandler(func(ctx context.Context, c *call, by account.Owner) error {
		return c.answer(do(ctx, by, c.pathValues[0]))
	})
}

// queuedAction is ownerAction for work that continues after the answer, which has the status 202.
func queuedAction[T any](do func(ctx context.Context, by account.Owner, name string) (T, error)) handler {
	handle := ownerAction(do)
	return func(ctx context.Context, c *call) error {
		c.status = 202
		return handle(ctx, c)
	}
}

// viewerAnswer makes a handler that answers a viewer with the result of read.
func viewerAnswer[T any](read func(context.Context, catalog.Viewer) (T, error)) handler {
	return func(ctx context.Context, c *call) error { return c.answer(read(ctx, c.viewer)) }
}

// route is one operation of the API.
type route struct {
	name    string // path with its {parts}; the label in metrics
	method  string
	access  access
	timeout time.Duration // 0: the handler is quick and has no deadline
	handle  handler
	page    bool    // a page for people: errors are pages too, and session cookies are accepted
	session bool    // session cookies are accepted, although the route is no page
	framed  bool    // pages of other sites embed the answer; callers are anonymous
	maxBody int     // bytes; 0 means maxBody
	proof   handler // checks a call before its body is read; nil checks nothing
	shared  sharing
}

// sharing says whether pages of other sites may call a route from a visitor's browser.
type sharing uint8

const (
	ownSite sharing = iota // never
	anySite                // always: the route does the same for everybody
	bearer                 // with a credential; without one only if anonymous access is off
)

// newRoute makes a route.
func newRoute(method, name string, need access, timeout time.Duration, h handler) route {
	return route{name: name, method: method, access: need, timeout: timeout, handle: h}
}

// withMaxBody returns the route with a limit of the body, in bytes.
func (r route) withMaxBody(limit int) route {
	r.maxBody = limit
	return r
}

// withProof returns the route with a check that runs before the body is read.
func (r route) withProof(check handler) route {
	r.proof = check
	return r
}

// acceptingSession returns a route that accepts session cookies. It must not change anything, because
// another site's page can make a browser send the request with its cookie.
func (r route) acceptingSession() route {
	r.session = true
	return r
}

// bodyLimit returns the largest body of the route, in bytes.
func (r *route) bodyLimit() int { return cmp.Or(r.maxBody, maxBody) }

// area is a group of routes, with the parts of a node that their handlers use.
type area interface{ routes() []route }

// authenticator sets the viewer of a call, or refuses the call.
type authenticator func(ctx context.Context, c *call, need access) error

// routes finds the route of a request.
type routes struct {
	exact    map[string][]*route // paths without {parts}
	patterns []*route            // paths with {parts}, tried in order
	prefixes []*route            // paths that end in /*
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
		r.patterns = append(r.patterns, &x)
	default:
		r.exact[x.name] = append(r.exact[x.name], &x)
	}
}

// find returns the routes of a path, one for each method, and the values of its {parts}. An exact
// path comes before one with {parts}, and that before a prefix.
func (r *routes) find(path string) (found []*route, values []string) {
	if list := r.exact[path]; list != nil {
		return list, nil
	}

	// Several matching routes have the same path and different methods, so their values are the same.
	for _, x := range r.patterns {
		if v, ok := match(x.name, path); ok {
			found, values = append(found, x), v
		}
	}

	if found != nil {
		return found, values
	}

	// Try prefixes last, because they match all longer paths.
	for _, x := range r.prefixes {
		if strings.HasPrefix(path, strings.TrimSuffix(x.name, "*")) {
			found = append(found, x)
		}
	}
	return found, nil
}

// match reports whether a path matches a pattern, and returns the values of the pattern's {parts}.
// Each {part} matches one or more characters except slashes.
func match(pattern, path string) (values []string, ok bool) {
	want, have := strings.Split(pattern, "/"), strings.Split(path, "/")
	if len(want) != len(have) {
		return nil, false
	}

	// A value must not be empty: /api/keys/ would name the key "".
	for i, w := range want {
		switch {
		case strings.HasPrefix(w, "{") && have[i] != "":
			values = append(values, have[i])
		case w != have[i]:
			return nil, false
		}
	}
	return values, true
}

// handles reports whether the route handles a method. A route without a method handles all methods. A
// route for GET also handles HEAD.
func (r *route) handles(method string) bool {
	return r.method == method || r.method == "" || r.method == "GET" && method == "HEAD"
}

// toolPath is the path of the tool server.
const toolPath = "/api/mcp"

// sessionPath is the path by which scripts of this site, and programs, sign in and out.
const sessionPath = "/api/session"
