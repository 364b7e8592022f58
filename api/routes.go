package api

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
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

// owned returns the handler that answers an owner with what tell returns.
func owned[T any](tell func(context.Context, account.Owner) (T, error)) handler {
	return owners(func(ctx context.Context, c *call, by account.Owner) error { return c.answer(tell(ctx, by)) })
}

// named returns the handler by which an owner does something with what the path names.
func named[T any](do func(context.Context, account.Owner, string) (T, error)) handler {
	return owners(func(ctx context.Context, c *call, by account.Owner) error { return c.answer(do(ctx, by, c.wild[0])) })
}

// queued is named for work that goes on after the answer: it has status 202.
func queued[T any](do func(context.Context, account.Owner, string) (T, error)) handler {
	handle := named(do)
	return func(ctx context.Context, c *call) error {
		c.status = 202
		return handle(ctx, c)
	}
}

// visible returns the handler that answers a viewer with what tell returns.
func visible[T any](tell func(context.Context, catalog.Viewer) (T, error)) handler {
	return func(ctx context.Context, c *call) error { return c.answer(tell(ctx, c.viewer)) }
}

// route is one operation of the API.
type route struct {
	name    string // the path with its {parts}: the label of metrics
	method  string
	access  access
	timeout time.Duration // 0: the handler is quick and never stopped
	handle  handler
	page    bool    // it is for people: a failure is a page too, and a browser's cookie counts
	session bool    // a browser's cookie counts, though it is no page
	framed  bool    // pages of other sites show it: whoever asks is nobody in particular
	most    int     // bytes of a body; 0: as usual
	proof   handler // refuses a call before its body is read; nil refuses none
	shared  sharing
}

// sharing is which pages of other sites may ask a route, in a browser of
// somebody who visits both.
type sharing uint8

const (
	ownSite sharing = iota // none
	anySite                // all: it does the same for everybody who asks
	bearer                 // those that send a credential of their own, or would get nothing without one
)

// row is a route with what all of them have.
func row(method, name string, need access, timeout time.Duration, h handler) route {
	return route{name: name, method: method, access: need, timeout: timeout, handle: h}
}

// taking is the route with a bound of its own on the body.
func (r route) taking(most int) route {
	r.most = most
	return r
}

// proving is the route with a look at the head, before the body is read.
func (r route) proving(by handler) route {
	r.proof = by
	return r
}

// bySession is the route for who shows the cookie of a browser as well. It must not
// change anything: a page of another site can make a browser send a request.
func (r route) bySession() route {
	r.session = true
	return r
}

// mostBody is how many bytes the body of a request for this route may have.
func (r *route) mostBody() int { return cmp.Or(r.most, maxBody) }

// area is a group of routes and what their handlers use. Its rows and its
// handlers stand in one file.
type area interface{ rows() []route }

// authenticator notes who makes a call, or refuses one who may not.
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

// at lists the routes of a path, one for each method, and what stood for its {parts}.
func (r *routes) at(path string) (found []*route, wild []string) {
	// Most paths have no parts, so they are found at once.
	if list := r.exact[path]; list != nil {
		return list, nil
	}

	// Several of one path are its methods: their parts are the same.
	for _, x := range r.wild {
		if parts, ok := match(x.name, path); ok {
			found, wild = append(found, x), parts
		}
	}

	if found != nil {
		return found, wild
	}

	// Last: a prefix would take everything below it.
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

	// A part is never empty, or /api/keys/ would be a key without a name.
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

// answers reports whether the route is for a method. One without a method is
// for all, and HEAD is GET without its body.
func (r *route) answers(method string) bool {
	return r.method == method || r.method == "" || r.method == "GET" && method == "HEAD"
}

// toolPath is where the tool server is.
const toolPath = "/api/mcp"

// sessionPath is where a script of this site signs in and out.
const sessionPath = "/api/session"
