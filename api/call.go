package api

import (
	"bufio"
	"encoding/json"
	"net"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/shoalsearch/shoal/node"
)

// call is one request, copied out of fasthttp's reusable one, and its answer.
// Whatever a handler passes down may outlive the request.
type call struct {
	method string
	path   string
	wild   []string // what stood for the {parts} of the route's path
	rc     *fasthttp.RequestCtx
	viewer node.Viewer

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

// requestBody is the body, copied.
func (c *call) requestBody() []byte {
	return append([]byte(nil), c.rc.Request.Body()...)
}

// arg is a parameter of the query string, copied; the first where it is repeated.
func (c *call) arg(name string) (string, bool) {
	args := c.rc.QueryArgs()
	if !args.Has(name) {
		return "", false
	}
	return string(args.Peek(name)), true
}

// client is what limits count an anonymous viewer by.
func (c *call) client() string {
	if c.viewer.KeyID != "" {
		return c.viewer.KeyID
	}
	if tcp, ok := c.rc.RemoteAddr().(*net.TCPAddr); ok {
		return tcp.IP.String()
	}
	return c.rc.RemoteAddr().String()
}

// setHeader adds a header to the answer.
func (c *call) setHeader(name, value string) {
	c.header = append(c.header, [2]string{name, value})
}

// json answers with the encoding of v.
func (c *call) json(v any) error {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	c.mime, c.body = mimeJSON, []byte(strings.TrimSuffix(b.String(), "\n"))
	return nil
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
	last := (p.total + p.per - 1) / p.per
	if p.atLeast {
		c.setHeader("X-Total-Count-At-Least", "true")
		if last = p.page; p.shown == p.per {
			last++
		}
	}
	if last <= 1 {
		return
	}
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
