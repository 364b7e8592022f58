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

// call is one request, copied out of fasthttp's reusable one, and its answer.
// Whatever a handler passes down may outlive the request.
type call struct {
	id     string // of the request
	method string
	path   string
	wild   []string // what stood for the {parts} of the route's path
	rc     *fasthttp.RequestCtx
	door   door // by which it came in
	viewer catalog.Viewer
	sent   []byte // the request's body
	lease  *lease // what the body and the answer hold of the server's memory
	meant  bool   // what a query names is wanted beside the answer
	sought string // what the handler has read in the body that is looked for, "" for nothing yet

	// Who the viewer is by now, for an answer that goes on for long; nil where nobody was asked.
	again func(context.Context) (catalog.Viewer, error)

	// The answer. A handler sets one of body and stream.
	status int
	mime   string
	header [][2]string
	body   []byte
	pooled *[]byte // where body came from, to be given back once it is written
	stream func(w *bufio.Writer) error
}

const (
	mimeJSON  = "application/json; charset=utf-8"
	mimeSSE   = "text/event-stream; charset=utf-8"
	mimeText  = "text/plain; charset=utf-8"
	headerKey = "X-Sourcebot-Api-Key"
)

// header of the request, copied.
func (c *call) requestHeader(name string) string {
	return string(c.rc.Request.Header.Peek(name))
}

// requestBody is the body. Nobody writes to it any more.
func (c *call) requestBody() []byte { return c.sent }

// arg is a parameter of the query string, copied; the first where it is repeated.
func (c *call) arg(name string) (string, bool) {
	args := c.rc.QueryArgs()
	if !args.Has(name) {
		return "", false
	}
	return string(args.Peek(name)), true
}

// standing is how a client came and what it has shown. A credential that is not
// good shows nothing: its sender is a stranger.
func (c *call) standing() standing {
	switch {
	case c.door == doorSocket:
		return operator
	case c.viewer.KeyID != "" || c.viewer.Account != "":
		return holder
	}
	return stranger
}

// client is what limits count a viewer by: the key, the account, or the network
// of who has none.
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

// address is where a request comes from. What proxies that are trusted say in
// X-Forwarded-For counts, from its end up to the first address that is none of
// theirs: what stands before it anybody may have written.
func (c *call) address(trusted func(netip.Addr) bool) netip.Addr {
	// Only who is trusted may speak for others: anybody else could write any address.
	addr := origin.Of(c.rc.RemoteAddr())
	if !addr.IsValid() || !trusted(addr) {
		return addr
	}

	said := strings.Split(strings.Join(c.requestHeaders("X-Forwarded-For"), ","), ",")
	for _, text := range slices.Backward(said) {
		// A port, a name or garbage: the last address that is known counts.
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

// requestHeaders is every value of a header that may be repeated, copied.
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

// json answers with the encoding of v.
func (c *call) json(v any, how ...json.Options) error {
	body, err := reply.Encode(v, how...)
	if err != nil {
		return err
	}
	c.mime, c.body = mimeJSON, body
	return nil
}

// answer answers with the encoding of v, or fails with err.
func (c *call) answer(v any, err error) error {
	if err != nil {
		return err
	}
	return c.json(v)
}

// paged is what the headers of a paged list tell.
type paged struct {
	page, per, shown, total int
	atLeast                 bool // there are total or more
}

// page answers the headers of a paged list: the count of all, and RFC 8288
// links to the other pages, which are left out where there is one page only.
// While the count is not known there is no last page, and a full one has a
// next.
func (c *call) page(base string, p paged) {
	c.setHeader("X-Total-Count", strconv.Itoa(p.total))

	// Rounded up: the last page may be short.
	last := (p.total + p.per - 1) / p.per

	// Of a count that goes on only this page and the next are known.
	if p.atLeast {
		c.setHeader("X-Total-Count-At-Least", "true")
		if last = p.page; p.shown == p.per {
			last++
		}
	}

	if last <= 1 {
		return
	}

	// The links keep the other parameters of the call.
	var args fasthttp.Args
	c.rc.QueryArgs().CopyTo(&args)
	link := func(n int, rel string) string {
		args.SetUint("page", n)
		args.SetUint("perPage", p.per)
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

// stamp is a time as the API shows it, "" for the zero time.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.RFC3339)
}

// buffers keeps the memory of answers for the next ones.
type buffers struct{ pool sync.Pool }

// buffer is an empty slice for an answer, reused where possible.
func (b *buffers) get() *[]byte {
	if p, ok := b.pool.Get().(*[]byte); ok {
		return p
	}
	p := make([]byte, 0, 64<<10)
	return &p
}
