package api

import (
	"bufio"
	"context"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/valyala/fasthttp"

	"github.com/shoalsearch/shoal/api/reply"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/origin"
)

// call is one request and its answer. The request is copied from fasthttp's, which fasthttp reuses,
// because what a handler passes down may outlive the request.
type call struct {
	id           string // request id
	method       string
	path         string
	pathValues   []string // values of the {parts} of the route's path
	rc           *fasthttp.RequestCtx
	door         door // the listener
	viewer       catalog.Viewer
	received     []byte // the request body
	lease        *lease // memory of the server that the body and the answer use
	wantsMeaning bool   // the answer also says what the query may mean
	feedOf       string // id of the watch, if the handler has read a feed; for the audit
	query        string // the query, if the handler has read it from the body; for the audit
	// reauthenticate returns the viewer again, during a long answer. It is nil if the call was not
	// authenticated.
	reauthenticate func(context.Context) (catalog.Viewer, error)

	// The answer. A handler sets body or stream.
	status int
	mime   string // the content type
	header [][2]string
	body   []byte
	pooled *[]byte // the buffer of body, if it belongs to the pool; write returns it
	stream func(w *bufio.Writer) error
}

const (
	mimeJSON  = "application/json; charset=utf-8"
	mimeSSE   = "text/event-stream; charset=utf-8"
	mimeText  = "text/plain; charset=utf-8"
	headerKey = "X-Sourcebot-Api-Key"
)

// requestHeader returns a copy of a request header; "" if it is missing.
func (c *call) requestHeader(name string) string {
	return string(c.rc.Request.Header.Peek(name))
}

// requestBody returns the request body, once it is received. Nobody may change it.
func (c *call) requestBody() []byte { return c.received }

// arg returns a copy of a query parameter, and whether there is one. A repeated parameter counts
// with its first value.
func (c *call) arg(name string) (string, bool) {
	args := c.rc.QueryArgs()
	if !args.Has(name) {
		return "", false
	}
	return string(args.Peek(name)), true
}

// standing returns how far the client is identified. An invalid credential counts as none.
func (c *call) standing() standing {
	switch {
	case c.door == doorSocket:
		return operator
	case c.viewer.KeyID != "" || c.viewer.Account != "":
		return holder
	}
	return stranger
}

// client returns the key by which limits count a viewer: the API key, the account, or the network
// of an anonymous client.
func (c *call) client(trusted func(netip.Addr) bool) string {
	if c.viewer.KeyID != "" {
		return c.viewer.KeyID
	}
	if c.viewer.Account != "" {
		return c.viewer.Account
	}
	if addr := c.address(trusted); addr.IsValid() {
		return origin.Network(addr).String()
	}
	return c.rc.RemoteAddr().String()
}

// address returns the client's address. If the connection comes from a trusted proxy, that is the
// last address in X-Forwarded-For that is no trusted proxy. Anybody may have written the addresses
// before it.
func (c *call) address(trusted func(netip.Addr) bool) netip.Addr {
	// Only a trusted proxy may name another address.
	addr := origin.Of(c.rc.RemoteAddr())
	if !addr.IsValid() || !trusted(addr) {
		return addr
	}

	hops := strings.Split(strings.Join(c.requestHeaders("X-Forwarded-For"), ","), ",")
	for _, text := range slices.Backward(hops) {
		// If a hop is no address, nobody knows what comes before it: use the hop after it.
		hop, err := netip.ParseAddr(strings.TrimSpace(text))
		if err != nil {
			return addr
		}
		if addr = hop.Unmap().WithZone(""); !trusted(addr) {
			return addr
		}
	}
	return addr
}

// requestHeaders returns copies of all values of a header.
func (c *call) requestHeaders(name string) []string {
	var all []string
	for _, v := range c.rc.Request.Header.PeekAll(name) {
		all = append(all, string(v))
	}
	return all
}

// setHeader adds a header to the answer.
func (c *call) setHeader(name, value string) {
	c.header = append(c.header, [2]string{name, value})
}

// json makes v, encoded as JSON, the body of the answer.
func (c *call) json(v any, how ...json.Options) error {
	body, err := reply.Encode(v, how...)
	if err != nil {
		return err
	}
	c.mime, c.body = mimeJSON, body
	return nil
}

// answer makes v, encoded as JSON, the body of the answer, unless err is not nil: then it returns
// err.
func (c *call) answer(v any, err error) error {
	if err != nil {
		return err
	}
	return c.json(v)
}

// paged describes one page of a list, for the answer's headers.
type paged struct {
	page, perPage, shown, total int
	atLeast                     bool // total is a minimum: there may be more
}

// setPageHeaders sets the headers of a paged list: the total count, and RFC 8288 links to other
// pages if there are any. With atLeast there is no link to the last page, and a full page has a
// next one.
func (c *call) setPageHeaders(base string, p paged) {
	c.setHeader("X-Total-Count", strconv.Itoa(p.total))

	// Round up, because the last page may be short.
	last := (p.total + p.perPage - 1) / p.perPage
	// If the total is a minimum, only this page and the next one are known.
	if p.atLeast {
		c.setHeader("X-Total-Count-At-Least", "true")
		if last = p.page; p.shown == p.perPage {
			last++
		}
	}

	if last <= 1 {
		return
	}

	// Keep the other query parameters.
	var args fasthttp.Args
	c.rc.QueryArgs().CopyTo(&args)
	link := func(n int, rel string) string {
		args.SetUint("page", n)
		args.SetUint("perPage", p.perPage)
		return "<" + base + c.path + "?" + args.String() + ">; rel=\"" + rel + "\""
	}

	links := []string{link(1, "first")}
	if p.page > 1 {
		links = append(links, link(min(p.page-1, last), "prev"))
	}
	if p.page < last {
		links = append(links, link(p.page+1, "next"))
	}
	if !p.atLeast {
		links = append(links, link(last, "last"))
	}
	c.setHeader("Link", strings.Join(links, ", "))
}

// formatTime formats a time for the API; "" for the zero time.
func formatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.RFC3339)
}

// buffers is a pool of buffers for answers.
type buffers struct{ pool sync.Pool }

// get returns an empty buffer, from the pool if it has one.
func (b *buffers) get() *[]byte {
	if p, ok := b.pool.Get().(*[]byte); ok {
		return p
	}
	p := make([]byte, 0, 64<<10)
	return &p
}
