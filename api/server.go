package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"github.com/shoalsearch/shoal/api/auth"
	"github.com/shoalsearch/shoal/node"
)

// The bounds of the door.
const (
	maxBody      = 1 << 20 // bytes of a request body
	maxHeader    = 16 << 10
	readTimeout  = 30 * time.Second // for a whole request, head and body
	writeTimeout = 60 * time.Second // for a whole answer, or for each part of a streamed one
	idleTimeout  = 2 * time.Minute
	stopGrace    = 5 * time.Second // for running requests when the server stops
)

// Options is how a server is started.
type Options struct {
	Listen     string                // host:port; port 0 picks one
	OwnerKey   func(key string) bool // recognises the operator's own credential; nil for none
	Version    string
	Limits     Limits
	Linger     time.Duration         // between saying that it stops and refusing connections: for load balancers to notice
	Log        *slog.Logger          // nil discards
	Gatherer   prometheus.Gatherer   // what /metrics shows; nil for nothing
	Registerer prometheus.Registerer // nil keeps the metrics of this package to itself
	Now        func() time.Time      // nil means time.Now

	tools http.Handler // of the tool server; nil means those of package mcp
}

// Server serves the API of one node. Make it with New, then call Run once.
type Server struct {
	node   Node
	opt    Options
	ln     net.Listener
	log    *slog.Logger
	http   *fasthttp.Server
	routes *routes
	auth   *auth.Authenticator
	limits *limiter
	peers  *peers
	meter  *meter
	hosts  hostRule

	base context.Context // of every request; ends when the server stops
	stop context.CancelCauseFunc

	running inflight      // requests under way
	leaving chan struct{} // closed when the server begins to stop
}

// New listens on the address of opt and wires the routes. Nothing is
// answered before Run.
func New(n Node, opt Options) (*Server, error) {
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	ln, err := net.Listen("tcp", opt.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen for the API: %w", err)
	}
	s := &Server{
		node: n, opt: opt, ln: ln, log: opt.Log,
		auth:    auth.New(n, opt.OwnerKey),
		limits:  newLimiter(opt.Limits, opt.Now),
		peers:   newPeers(),
		meter:   newMeter(opt.Registerer),
		hosts:   newHostRule(ln.Addr(), n.BaseURL()),
		leaving: make(chan struct{}),
	}
	s.base, s.stop = context.WithCancelCause(context.Background())
	s.routes = s.newRoutes()
	s.http = &fasthttp.Server{
		Handler:                      s.serve,
		ErrorHandler:                 s.refuse,
		ExpectHandler:                s.expect,
		ReadBufferSize:               maxHeader,
		ReadTimeout:                  readTimeout,
		WriteTimeout:                 writeTimeout,
		IdleTimeout:                  idleTimeout,
		MaxRequestBodySize:           maxBody,
		Concurrency:                  65536,
		TCPKeepalive:                 true,
		DisablePreParseMultipartForm: true,
		NoDefaultServerHeader:        true,
		NoDefaultContentType:         true,
		SecureErrorLogMessage:        true,
		CloseOnShutdown:              true,
		Logger:                       quietLogger{opt.Log},
	}
	return s, nil
}

// Addr is the address that the server listens on.
func (s *Server) Addr() net.Addr { return s.ln.Addr() }

// Run serves until ctx ends, lingers, lets running requests finish within a few
// seconds, cancels the rest and returns nil when it stopped because of ctx.
// While it lingers every request is answered, and its connection ends with the
// answer: a load balancer that closed none of them by itself would send the
// next request where nobody listens any more.
func (s *Server) Run(ctx context.Context) error {
	failed := make(chan error, 1)
	go func() { failed <- s.http.Serve(s.ln) }()
	watch, unwatch := context.WithCancel(context.Background())
	watched := make(chan struct{})
	go func() { defer close(watched); s.peers.run(watch) }()
	defer func() { unwatch(); <-watched }()
	broke := func(err error) error {
		s.stop(errStopping)
		return fmt.Errorf("serve the API: %w", err)
	}
	select {
	case err := <-failed:
		return broke(err)
	case <-ctx.Done():
	}
	close(s.leaving) // /readyz turns bad, streams of agents end
	linger := time.NewTimer(s.opt.Linger)
	defer linger.Stop()
	select {
	case <-linger.C:
	case err := <-failed:
		return broke(err)
	}
	late := time.AfterFunc(stopGrace, func() { s.stop(errStopping) })
	defer late.Stop()
	// The listener closes first, so that nothing new comes in while the
	// running requests end. A connection that has never sent a byte counts as
	// busy for five seconds: it is not worth waiting for.
	bound, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err := s.http.ShutdownWithContext(bound)
	<-s.running.none()
	s.stop(errStopping)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("stop the API: %w", err)
	}
	return nil
}

// serve answers one request. Nothing of rc is used once it returns, except by
// the stream of an answer, which fasthttp reads before it uses rc again.
func (s *Server) serve(rc *fasthttp.RequestCtx) {
	s.running.add()
	began := s.opt.Now()
	c := &call{method: string(rc.Method()), path: string(rc.Path()), rc: rc, status: 200}
	route, f := s.route(c)
	ctx, cancel := context.WithCancelCause(s.base)
	if route.timeout > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, route.timeout)
		inner := cancel
		cancel = func(err error) { inner(err); stop() }
	}
	leave := func() {}
	if f == nil {
		leave, f = s.admit(ctx, c, route)
	}
	watched := uint64(0)
	if f == nil && route.timeout > 0 {
		watched = s.peers.add(rc.Conn(), cancel)
	}
	if f == nil {
		f = s.run(ctx, c, route)
	}
	end := func() {
		if watched != 0 {
			s.peers.remove(watched)
		}
		cancel(nil)
		leave()
		s.meter.done(route.name, c.method, c.status, s.opt.Now().Sub(began))
		s.running.done()
	}
	if f != nil {
		s.report(c, f)
		c.fail(f)
	}
	select {
	case <-s.leaving:
		rc.SetConnectionClose()
	default:
	}
	if c.stream == nil {
		c.write(s)
		end()
		return
	}
	c.writeStream(s, end)
}

// admit finds the viewer and counts the request against the limits.
func (s *Server) admit(ctx context.Context, c *call, r *route) (leave func(), f *failure) {
	if r.access == accessOpen {
		return func() {}, nil
	}
	if err := s.authenticate(ctx, c, r.access); err != nil {
		return func() {}, asFailure(ctx, err)
	}
	name := c.client()
	if f := s.limits.enter(name); f != nil {
		s.meter.limited.Inc()
		return func() {}, f
	}
	return func() { s.limits.leave(name) }, nil
}

func (s *Server) authenticate(ctx context.Context, c *call, need access) error {
	v, err := s.auth.Viewer(ctx, c.requestHeader("Authorization"), c.requestHeader(headerKey))
	if err != nil {
		return err
	}
	if need == accessOwner && v.Role < node.RoleOwner {
		return &node.Error{Kind: node.ErrForbidden, Message: "This needs a key of an owner."}
	}
	c.viewer = v
	return nil
}

// run calls the handler and turns what went wrong, a panic too, into a failure.
func (s *Server) run(ctx context.Context, c *call, r *route) (f *failure) {
	defer func() {
		if p := recover(); p != nil {
			c.stream = nil
			f = s.panicked(r.name, p)
		}
	}()
	if enc := c.requestHeader("Content-Encoding"); enc != "" && enc != "identity" {
		return &failure{Status: 415, Code: codeMediaType, Message: "Content-Encoding " + enc + " is not supported: send the body as it is."}
	}
	if err := r.handle(ctx, c); err != nil {
		return asFailure(ctx, err)
	}
	return nil
}

// report logs failures that an operator should know of.
func (s *Server) report(c *call, f *failure) {
	switch {
	case f.Status == statusClientGone:
		s.meter.gone.Inc()
	case f.Status == 500:
		s.log.Error("request failed", "method", c.method, "path", c.path, "error", f.cause)
	case f.Status > 500 && f.Code != codeNotReady:
		s.log.Warn("request not served", "method", c.method, "path", c.path, "code", f.Code, "error", f.cause)
	}
}

// hostRule refuses requests that a page of another site makes a browser send
// here by pointing its own name at this address: a node that listens on
// loopback answers to loopback names and to the host of its base URL only.
type hostRule struct {
	loopback bool
	base     string // host of the base URL, with its port
	origin   string // scheme and host of the base URL
}

func newHostRule(addr net.Addr, baseURL string) hostRule {
	r := hostRule{}
	if tcp, ok := addr.(*net.TCPAddr); ok {
		r.loopback = tcp.IP.IsLoopback()
	}
	if u, err := url.Parse(baseURL); err == nil && u.Host != "" {
		r.base, r.origin = strings.ToLower(u.Host), strings.ToLower(u.Scheme+"://"+u.Host)
	}
	return r
}

func (r hostRule) allows(host, origin string) bool {
	if !r.loopback {
		return true
	}
	if host == "" { // a health check in HTTP/1.0: browsers always name the host
		return origin == ""
	}
	host = strings.ToLower(host)
	if host != r.base && !loopbackName(host) {
		return false
	}
	if origin == "" || strings.EqualFold(origin, r.origin) {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && loopbackName(u.Host)
}

func loopbackName(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.Trim(hostport, "[]")
	}
	ip := net.ParseIP(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || ip != nil && ip.IsLoopback()
}

// quietLogger passes what fasthttp has to say to the debug level: it is about
// clients that break the protocol or leave.
type quietLogger struct{ log *slog.Logger }

// Printf logs a line of fasthttp.
func (l quietLogger) Printf(format string, args ...any) {
	l.log.Debug("connection", "detail", fmt.Sprintf(format, args...))
}
