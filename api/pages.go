package api

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/valyala/fasthttp"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/api/people"
	"github.com/shoalsearch/shoal/api/settings"
	"github.com/shoalsearch/shoal/api/web"
	"github.com/shoalsearch/shoal/cluster/origin"
	nodecall "github.com/shoalsearch/shoal/node/call"
)

// renderer answers with pages and error pages.
type renderer struct {
	providers people.Providers
	base      func() string         // prefix of every link
	trusted   func(netip.Addr) bool // addresses of trusted proxies
	framing   [][2]string           // headers of embedded files
	now       func() time.Time
	log       *slog.Logger
}

// pageRoutes handles the pages for browsers.
type pageRoutes struct {
	renderer *renderer
	people   *people.Pages
	web      *web.Pages
	settings *settings.Pages
	embed    bool // other sites may embed files
}

// newPageRoutes makes the pages from the parts of a node. embed lets other sites embed files.
func newPageRoutes(p parts, r *renderer, embed bool, now func() time.Time) *pageRoutes {
	return &pageRoutes{
		renderer: r,
		embed:    embed,
		people: people.New(people.Deps{
			Sessions:  p.sessions,
			Passwords: p.passwords,
			Providers: p.providers,
			Accounts:  p.users,
			Base:      p.base,
			Now:       now,
		}),

		web: web.New(web.Deps{
			Search:   p.search,
			Browse:   p.browse,
			Suggest:  p.suggest,
			Keys:     p.apiKeys,
			Watches:  p.watches,
			Consents: p.agents,
			Chats:    p.chats,
			Base:     p.base,
			Embed:    embed,
			Now:      now,
		}),

		settings: settings.New(settings.Deps{
			State:     p.state,
			Browse:    p.browse,
			Operate:   p.operate,
			Chronicle: p.chronicle,
			Config:    p.config,
			Base:      p.base,
			Now:       now,
		}),
	}
}

func (a *pageRoutes) routes() []route {
	all := []route{newRoute("GET", "/static/*", accessOpen, 0, serveStatic), newRoute("GET", "/robots.txt", accessOpen, 0, serveRobots)}

	// Every page first checks whether its reader must link an account.
	addPage := func(method, path string, need access, timeout time.Duration, draw layout.Handler) {
		x := newRoute(method, path, need, timeout, a.renderer.page(a.renderer.requireLinks(draw)))
		x.page = true
		all = append(all, x)
	}

	// Only pages for signing in are open. What the other pages show, the node decides by their viewer.
	for _, x := range a.people.Routes() {
		need := accessRead
		if x.Open {
			need = accessOpen
		}
		addPage(x.Method, x.Path, need, x.Timeout, x.Handle)
	}

	for _, x := range a.web.Routes() {
		addPage(x.Method, x.Path, accessRead, x.Timeout, x.Handle)
	}
	for _, x := range a.settings.Routes() {
		addPage(x.Method, x.Path, accessRead, x.Timeout, x.Handle)
	}

	// While embedding is off, its address does not exist.
	if a.embed {
		x := newRoute("GET", embedName, accessRead, browseTimeout, a.renderer.embedHandler(a.web.Embedded))
		x.framed = true
		all = append(all, x)
	}
	return all
}

// serveRobots asks search engines to read nothing. They would read every file at every commit.
func serveRobots(_ context.Context, c *call) error {
	c.mime, c.body = "text/plain; charset=utf-8", []byte("User-agent: *\nDisallow: /\n")
	return nil
}

// serveStatic serves styles and scripts, compressed if the browser allows it. Their URLs contain
// their version, so browsers may cache them forever.
func serveStatic(_ context.Context, c *call) error {
	file, lasting, ok := layout.Static(c.path)
	if !ok {
		return &failure{Status: 404, Code: codeNotFound, Message: "There is no such file"}
	}

	// A URL with another version gets the file of this version, which no browser may cache.
	c.setHeader("Cache-Control", "no-cache")
	if lasting {
		c.setHeader("Cache-Control", "public, max-age=31536000, immutable")
	}

	c.setHeader("Vary", "Accept-Encoding")
	c.setHeader("Content-Security-Policy", layout.CSP)
	c.setHeader("Cross-Origin-Resource-Policy", "same-origin")

	// The files are part of the program, which compresses each once.
	c.mime, c.body = file.Mime, file.Body
	if strings.Contains(c.requestHeader("Accept-Encoding"), "gzip") {
		c.setHeader("Content-Encoding", "gzip")
		c.body = file.Gzip
	}
	return nil
}

// page makes a handler that draws a page. It parses the form of a POST, which must come from this
// site.
func (r *renderer) page(draw layout.Handler) handler {
	return func(ctx context.Context, c *call) error {
		began := r.now()
		v := r.visit(c)
		if c.method == "POST" {
			// Check the origin, because browsers send cookies with another site's forms too.
			if err := v.SameSite(); err != nil {
				return err
			}
			form, err := url.ParseQuery(string(c.requestBody()))
			if err != nil {
				return &failure{Status: 400, Code: codeInvalidBody, Message: "The form cannot be read."}
			}
			v.Form = form
		}

		if err := draw(ctx, v); err != nil {
			return err
		}
		v.Set("Server-Timing", "page;dur="+strconv.FormatFloat(float64(r.now().Sub(began))/float64(time.Millisecond), 'f', 1, 64))
		c.answerPage(v)
		return nil
	}
}

// requireLinks makes a handler that redirects a person who must link an account to the page for
// that. It draws that page, and all pages for viewers without a session.
func (r *renderer) requireLinks(draw layout.Handler) layout.Handler {
	return func(ctx context.Context, v *layout.Visit) error {
		if v.Path != "/settings/account" && v.Viewer.Session != "" && len(r.providers.Missing(v.Viewer)) > 0 {
			if v.Method != "GET" && v.Method != "HEAD" {
				return nodecall.Fail(nodecall.ErrForbidden, "Link your accounts first, in the settings of your account.")
			}
			return v.Redirect(303, "/settings/account?missing")
		}
		return draw(ctx, v)
	}
}

// visit converts a call to the request that pages use.
func (r *renderer) visit(c *call) *layout.Visit {
	v := &layout.Visit{
		Method: c.method, Path: string(c.rc.URI().PathOriginal()), Part: c.requestHeader("X-Shoal-Part"),
		Viewer: c.viewer, Secure: isHTTPS(r.base()), Sent: c.requestHeader, Status: 200,
		Cookie: func(name string) string { return string(c.rc.Request.Header.Cookie(name)) }, Address: c.address(r.trusted).String(),
	}
	v.Arrives = layout.Arrives(v.Sent)
	v.Query, _ = url.ParseQuery(string(c.rc.URI().QueryString())) // unreadable parameters are absent
	return v
}

// answerPage copies the drawn page into the answer, with the headers that all pages have.
func (c *call) answerPage(v *layout.Visit) {
	c.status, c.mime, c.body = v.Status, v.Mime, v.Body
	c.header = append(c.header, v.Header...)
	if v.Stream != nil {
		c.stream = v.Stream
		c.setHeader("X-Accel-Buffering", "no")
	}

	// Keep headers that the page has set itself.
	if !c.hasHeader("Content-Security-Policy") {
		c.setHeader("Content-Security-Policy", v.Policy())
	}

	for _, kv := range pageHeaders {
		if !c.hasHeader(kv[0]) {
			c.setHeader(kv[0], kv[1])
		}
	}
	c.compress()
}

// pageHeaders are the headers of every page that does not set them itself.
var pageHeaders = [...][2]string{
	{"Cache-Control", "no-store"},
	{"Referrer-Policy", "same-origin"}, // with no-referrer, browsers send forms with "Origin: null", which SameSite refuses
	{"X-Frame-Options", "DENY"},
	{"Cross-Origin-Opener-Policy", "same-origin"},
	{"Cross-Origin-Resource-Policy", "same-origin"},
	{"Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()"},
	{"Vary", "X-Shoal-Part, Accept-Encoding"},
}

// hasHeader reports whether the answer has a header.
func (c *call) hasHeader(name string) bool {
	for _, kv := range c.header {
		if kv[0] == name {
			return true
		}
	}
	return false
}

// minCompressed is the size of the smallest page that is compressed, in bytes.
const minCompressed = 4 << 10

// compress compresses the page in the answer, if the browser allows it, and neither the page is
// small nor the browser on this machine. Answers of the API stay uncompressed, because most of their
// clients are near.
func (c *call) compress() {
	addr := origin.Of(c.rc.RemoteAddr())
	isLocal := addr.IsValid() && addr.IsLoopback() && c.requestHeader("X-Forwarded-For") == ""
	if isLocal || c.stream == nil && len(c.body) < minCompressed || !strings.Contains(c.requestHeader("Accept-Encoding"), "gzip") || !strings.HasPrefix(c.mime, "text/") {
		return
	}

	c.setHeader("Content-Encoding", "gzip")
	if c.stream != nil {
		c.stream = compressStream(c.stream)
		return
	}
	var b bytes.Buffer
	w := newCompressor(&b)
	_, _ = w.Write(c.body) // writes to memory do not fail
	_ = w.Close()
	c.body = b.Bytes()
}

// compressionLevel is gzip's level for pages. Its pages are a fifth smaller than at the fastest
// level, and take half a millisecond longer.
const compressionLevel = 6

func newCompressor(w io.Writer) *gzip.Writer {
	z, _ := gzip.NewWriterLevel(w, compressionLevel) // fails for invalid levels only
	return z
}

// compressStream makes a stream that compresses another one. It sends what a flush or a full buffer
// of the page writes at once.
func compressStream(stream func(*bufio.Writer) error) func(*bufio.Writer) error {
	return func(w *bufio.Writer) error {
		z := newCompressor(w)
		if err := stream(bufio.NewWriterSize(flushingCompressor{z, w}, compressedPart)); err != nil {
			return err
		}
		return errors.Join(z.Close(), w.Flush())
	}
}

// compressedPart is how many bytes of a page are compressed together.
const compressedPart = 32 << 10

// flushingCompressor compresses each part that is written, and sends it at once.
type flushingCompressor struct {
	z *gzip.Writer
	w *bufio.Writer
}

// Write compresses and sends p.
func (f flushingCompressor) Write(p []byte) (int, error) {
	n, err := f.z.Write(p)
	if err != nil {
		return n, err
	}
	return n, errors.Join(f.z.Flush(), f.w.Flush())
}

// fail answers a failure as a page. It redirects a reader who has to sign in to the sign-in page,
// which leads back afterwards.
func (r *renderer) fail(c *call, f *failure) {
	v := r.visit(c)

	c.header, c.stream, c.pooled = nil, nil, nil
	if f.Status == 401 && c.method == "GET" && v.Part == "" {
		_ = v.Redirect(fasthttp.StatusSeeOther, "/login?next="+url.QueryEscape(string(c.rc.URI().RequestURI()))) // never fails
		c.answerPage(v)
		return
	}

	waitSeconds := 0
	if f.RetryAfter > 0 || f.Status == 429 {
		waitSeconds, _ = strconv.Atoi(f.retryAfter())
		v.Set("Retry-After", f.retryAfter())
	}

	if err := v.ShowError(f.Status, f.Message, waitSeconds); err != nil {
		r.log.Error("draw an error page", "error", err)
		c.fail(f)
		return
	}
	c.answerPage(v)
}

// wantsPage reports whether the server answers a failure with a page: if the route is a page, or if
// a browser has opened another address outside of /api/.
func (c *call) wantsPage(r *route) bool {
	return r.page || !strings.HasPrefix(c.path, "/api/") && c.rc != nil && strings.Contains(c.requestHeader("Accept"), "text/html")
}
