package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/shoalsearch/shoal/api/auth"
	"github.com/shoalsearch/shoal/api/people"
	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/origin"
	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/account"
	nodecall "github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/trace"
)

// Limits of requests.
const (
	firstBody    = 4 << 10 // first size of a body's buffer
	maxHeader    = 16 << 10
	readTimeout  = 30 * time.Second // for a head, and for a body
	bodyPatience = 5 * time.Second  // for the first byte of a body; then bodyRate counts
	bodyRate     = 16 << 10         // bytes a second
	writeTimeout = 60 * time.Second // for a small answer, or each part of a streamed one
	idleTimeout  = 2 * time.Minute
	stopGrace    = 5 * time.Second // for running requests when the server stops
)

// trusted reports whether an address is a trusted proxy.
func (o *Options) trusted(a netip.Addr) bool {
	return slices.ContainsFunc(o.TrustedProxies, func(p netip.Prefix) bool { return p.Contains(a) })
}

// Server serves the API of one node. Make it with New, then call Run once.
type Server struct {
	opt      Options
	doors    doors
	log      *slog.Logger
	http     *fasthttp.Server
	routes   *routes
	renderer *renderer // draws errors as pages
	buffers  buffers
	limits   *limiter
	crowd    *crowd
	memory   *memory
	peers    *peers
	meter    *meter
	hosts    hostRule
	proxied  sync.Once // the warning about an untrusted proxy was logged

	// Authentication and the audit.
	auth      *auth.Authenticator
	trail     trail       // audit
	anonymous func() bool // reports whether requests without a credential may read
	authority authority   // authorizes agents

	base context.Context // parent of every request's context; ends when the server stops
	stop context.CancelCauseFunc

	running inflight      // running requests
	leaving chan struct{} // closed when the server begins to stop
}

// New opens the listeners of opt and makes the routes. It answers nothing before Run.
func New(n *node.Node, opt Options) (*Server, error) { return newServer(partsOf(n), opt) }

// newServer returns a server that answers from the parts of a node. It opens the listeners.
func newServer(p parts, opt Options) (*Server, error) {
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	if opt.Now == nil {
		opt.Now = clock.Now
	}
	opt.patience = cmp.Or(opt.patience, bodyPatience)

	// First, because nothing has to be undone if it fails.
	open, err := openDoors(&opt)
	if err != nil {
		return nil, err
	}

	if open.certificate != nil {
		p.state = certified{p.state, open.certificate, opt.Now}
	}

	limits := opt.Limits.withDefaults()
	s := &Server{
		opt: opt, doors: open, log: opt.Log,
		renderer: &renderer{p.doors, p.base, opt.trusted, frameHeaders(opt.EmbedAncestors), opt.Now, opt.Log},
		limits:   newLimiter(limits, opt.Now),
		memory:   newMemory(limits.Memory),
		peers:    newPeers(),
		meter:    newMeter(opt.Registerer),
		hosts:    newHostRule(open.api.Addr(), p.base, opt.AllowedHosts),
		leaving:  make(chan struct{}),

		auth:      auth.New(p.keys, p.agents),
		trail:     p.chronicle,
		anonymous: p.keys.AnonymousAccess,
		authority: p.agents,
	}

	// This context outlives that of Run by stopGrace, and belongs to no request.
	s.base, s.stop = context.WithCancelCause(context.Background())
	s.routes = s.newRoutes(p)

	s.crowd = &crowd{
		limit: limits.Connections, perAddress: limits.PerAddress, trusted: opt.trusted,
		log: opt.Log, now: opt.Now, stop: s.base.Done(), dropped: s.meter.dropped, networks: map[netip.Addr]*network{},
	}

	s.meter.watch(opt.Registerer, s.crowd.count, s.memory.used)
	if open.certificate != nil {
		s.meter.watchCertificate(opt.Registerer, func() time.Time { return ends(open.certificate) })
	}

	s.http = &fasthttp.Server{
		Handler:                      s.serve,
		ErrorHandler:                 s.refuse,
		ExpectHandler:                s.expect,
		HeaderReceived:               s.onHead,
		StreamRequestBody:            true, // readBody reads it after authentication
		MaxRequestBodySize:           1,    // bytes to wait for before the handler runs; readBody has the real limit
		ReadBufferSize:               maxHeader,
		ReadTimeout:                  readTimeout,
		WriteTimeout:                 writeTimeout,
		IdleTimeout:                  idleTimeout,
		Concurrency:                  2*limits.Connections + 64, // the crowd limits connections; closed ones take a moment to end
		DisablePreParseMultipartForm: true,
		NoDefaultServerHeader:        true,
		NoDefaultContentType:         true,
		SecureErrorLogMessage:        true,
		CloseOnShutdown:              true,
		Logger:                       quietLogger{opt.Log},
	}
	return s, nil
}

// Addr returns the address of the API's listener.
func (s *Server) Addr() net.Addr { return s.doors.api.Addr() }

// MetricsAddr returns the address of the metrics listener; nil if there is none.
func (s *Server) MetricsAddr() net.Addr {
	if s.doors.metrics == nil {
		return nil
	}
	return s.doors.metrics.Addr()
}

// Run serves until ctx ends. Then it lingers, lets running requests finish within stopGrace,
// cancels the rest and returns nil. While it lingers it answers every request and then closes the
// connection, so that load balancers open new ones elsewhere.
func (s *Server) Run(ctx context.Context) error {
	failed := s.open()

	// Watch for clients that leave until the last request is over.
	watch, unwatch := context.WithCancel(context.Background())
	watched := make(chan struct{})
	go func() { defer close(watched); s.peers.run(watch) }()
	if c := s.doors.certificate; c != nil {
		go c.run(watch)
	}
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

	close(s.leaving) // now /readyz fails, and streams of agents end

	if err := s.linger(failed); err != nil {
		return broke(err)
	}

	late := time.AfterFunc(stopGrace, func() { s.stop(errStopping) })
	defer late.Stop()
	// The listener closes first, so that nothing new arrives. fasthttp counts a connection
	// without a byte as busy for five seconds; do not wait for it.
	bound, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()

	err := s.http.ShutdownWithContext(bound)
	<-s.running.idle()
	s.stop(errStopping)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("stop the API: %w", err)
	}
	return nil
}

// linger waits until load balancers have noticed that this node stops, and Options.Finish has
// returned.
func (s *Server) linger(failed <-chan error) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	over := make(chan struct{})
	go func() {
		defer close(over)
		noticed := time.NewTimer(s.opt.Linger)
		defer noticed.Stop()
		if s.opt.Finish != nil {
			s.opt.Finish(ctx)
		}
		select {
		case <-noticed.C:
		case <-ctx.Done():
		}
	}()

	select {
	case <-over:
		return nil
	case err := <-failed:
		return err
	}
}

// audit writes a call to the audit: what it read, or why it was refused.
func (s *Server) audit(c *call, r *route, f *failure) {
	status := c.status
	if f != nil {
		status = f.Status
	}
	if a := c.access(r, status); a.Action != "" {
		a.Actor, a.Status = c.actor(s.opt.trusted), status
		s.trail.NoteAccess(a)
	}
}

// serve answers one request. It does not use rc after it returns, except in a streamed answer,
// which fasthttp reads before it reuses rc.
func (s *Server) serve(rc *fasthttp.RequestCtx) {
	s.running.add()
	guest := guestOf(rc.Conn())
	began := s.opt.Now()

	c := &call{method: string(rc.Method()), path: servedPath(string(rc.Path())), rc: rc, door: guest.by(), status: 200}
	c.id = requestID(c.requestHeader(headerRequest))
	route, f := s.route(c)
	ctx, cancel := s.requestContext(c, route)

	// Cancel the work if the client leaves.
	watched := uint64(0)
	if f == nil && route.timeout > 0 {
		watched = s.peers.add(rc.Conn(), cancel)
	}

	// Each step runs only if the previous ones succeeded. Authentication comes before reading the
	// body.
	if f == nil {
		f = s.identify(ctx, c, route)
	}
	by := c.standing()
	s.noteProxy(c)
	if c.isExempt(route) {
		by = operator
	}
	c.lease = s.memory.lease(c.client(s.opt.trusted), by)
	leave := func() {}
	if f == nil {
		leave, f = s.admit(c, route, guest)
	}
	if f == nil {
		f = s.run(ctx, c, route)
	}
	if f == nil && c.stream == nil {
		f = c.lease.resize(int64(len(c.body)))
	}
	if f != nil {
		s.fail(c, route, f)
	}
	s.audit(c, route, f)
	slow := c.slowLog(route, s.opt.Slow, s.log)

	// The writer of the answer calls end after its last byte.
	end := func() {
		if watched != 0 {
			s.peers.remove(watched)
		}
		cancel(nil)
		leave()
		c.lease.end()
		took := s.opt.Now().Sub(began)
		s.meter.done(route.name, c.method, c.status, took)
		slow(took)
		s.crowd.end(guest, c.standing())
		s.running.done()
	}

	// A node that stops closes each connection after its answer.
	select {
	case <-s.leaving:
		rc.SetConnectionClose()
	default:
	}

	switch {
	case c.stream != nil:
		c.writeStream(s, end)
	case len(c.body) > smallLease:
		c.writeSlowly(s, end)
	default:
		c.write(s)
		end()
	}
}

// requestContext returns the context of a call with the route's deadline, and the function that ends it.
func (s *Server) requestContext(c *call, route *route) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(nodecall.WithRequest(s.base, c.id))
	if route.timeout == 0 {
		return ctx, cancel
	}

	// Requests that read code get a span, below the client's.
	if s.opt.Tracer != nil && (accesses[c.method+" "+route.name] != "" || c.path == toolPath) {
		var span trace.Span
		ctx, span = s.opt.Tracer.Start(trace.Under(ctx, c.requestHeader("traceparent")), c.method+" "+route.name)
		span.Text("request", c.id)
		untraced := cancel
		cancel = func(err error) {
			untraced(err)
			span.End(err)
		}
	}
	ctx, stop := context.WithTimeout(ctx, route.timeout)
	return ctx, func(err error) {
		cancel(err)
		stop()
	}
}

// fail makes a failure the answer of a call.
func (s *Server) fail(c *call, route *route, f *failure) {
	s.report(c, f)
	if f.Status == 401 {
		c.setHeader("WWW-Authenticate", c.challenge(s.authority))
	}

	switch {
	case route.framed:
		s.renderer.failFrame(c, f)
	case c.wantsPage(route):
		s.renderer.fail(c, f)
	default:
		c.fail(f)
	}
	c.dropBody()
}

// isExempt reports whether a call is exempt from limits: quick routes without authentication,
// and the metrics listener.
func (c *call) isExempt(r *route) bool {
	return r.timeout == 0 && (r.access == accessOpen || c.door == doorMetrics)
}

// identify authenticates the call.
func (s *Server) identify(ctx context.Context, c *call, r *route) (f *failure) {
	if c.isExempt(r) {
		return nil
	}

	var err error
	switch {
	case r.framed:
		err = s.guest(c)
	case r.access != accessOpen:
		err = s.authenticate(ctx, c, r)
	case r.proof != nil:
		err = r.proof(ctx, c)
	}
	if err != nil {
		return asFailure(ctx, err)
	}
	return nil
}

// admit reads the body and counts the request against the limits. A stranger counts only once the
// body is complete. Until then its connection waits and may be closed, so that a silent body
// takes no place from others.
func (s *Server) admit(c *call, r *route, guest *guest) (leave func(), f *failure) {
	leave = func() {}
	if c.standing() != stranger {
		if leave, f = s.enter(c, r, guest); f == nil {
			f = s.readBody(c, r.bodyLimit())
		}
		return leave, f
	}

	c.lease.setStanding(sender)
	if f = s.readBody(c, r.bodyLimit()); f == nil {
		c.lease.setStanding(stranger)
		leave, f = s.enter(c, r, guest)
	}
	return leave, f
}

// enter counts the request as running.
func (s *Server) enter(c *call, r *route, guest *guest) (leave func(), f *failure) {
	if c.isExempt(r) {
		return func() {}, nil
	}
	name, by := c.client(s.opt.trusted), c.standing()
	if f := s.limits.enter(name, by); f != nil {
		s.meter.limited.Inc()
		return func() {}, f
	}
	s.crowd.begin(guest, by)
	return func() { s.limits.leave(name, by) }, nil
}

// authenticate finds the viewer of a call, by its key or session, and whether the viewer may call
// the route.
func (s *Server) authenticate(ctx context.Context, c *call, r *route) error {
	req := auth.Request{
		Authorization: c.requestHeader("Authorization"), APIKey: c.requestHeader(headerKey), Socket: c.door == doorSocket, Tools: c.path == toolPath,
	}

	// A session cookie counts on pages and where the route allows it, and only without a key.
	if (r.page || r.session) && req.Authorization == "" && req.APIKey == "" {
		req.Session = string(c.rc.Request.Header.Cookie(people.CookieName(isHTTPS(s.hosts.base()))))
	}

	// req is a copy, because again may be called after the request is over.
	again := func(ctx context.Context) (catalog.Viewer, error) { return s.auth.Viewer(ctx, req) }
	v, err := again(ctx)
	if err != nil {
		return err
	}
	c.viewer, c.again = v, again

	switch r.access { // refuse here, before the call counts against limits
	case accessOwner:
		_, err = account.AsOwner(v)
	case accessHolder:
		_, err = account.AsHolder(v)
	}

	return err
}

// run calls the handler and turns an error or panic into a failure.
func (s *Server) run(ctx context.Context, c *call, r *route) (f *failure) {
	// A broken handler must not end the node.
	defer func() {
		if p := recover(); p != nil {
			c.stream = nil
			f = s.panicked(r.name, p)
		}
	}()

	// A compressed body could unpack to any size.
	if enc := c.requestHeader("Content-Encoding"); enc != "" && enc != "identity" {
		return &failure{Status: 415, Code: codeMediaType, Message: "Content-Encoding " + enc + " is not supported: send the body as it is."}
	}

	if err := r.handle(catalog.WithActor(ctx, c.actor(s.opt.trusted)), c); err != nil {
		f := asFailure(ctx, err)

		// Without a body, the invalid value was in the URL.
		if !c.hasBody() && f.Code == codeInvalidBody {
			f.Code = codeInvalidParams
		}
		return f
	}
	return nil
}

// report logs failures that an operator should know about.
func (s *Server) report(c *call, f *failure) {
	switch {
	case f.Status == statusClientGone:
		s.meter.gone.Inc()
	case f.Status == 500:
		s.log.Error("request failed", "request", c.id, "method", c.method, "path", c.path, "error", f.cause)
	case f.Status > 500 && f.Code != codeNotReady:
		s.log.Warn("request not served", "request", c.id, "method", c.method, "path", c.path, "code", f.Code, "error", f.cause)
	}
}

// quietLogger logs fasthttp's messages at debug level: they are about clients that break the
// protocol or leave.
type quietLogger struct{ log *slog.Logger }

// Printf logs a message of fasthttp.
func (l quietLogger) Printf(format string, args ...any) {
	l.log.Debug("connection", "detail", fmt.Sprintf(format, args...))
}

// noteProxy warns once if an untrusted proxy sends X-Forwarded-For.
func (s *Server) noteProxy(c *call) {
	addr := origin.Of(c.rc.RemoteAddr())
	if addr.IsValid() && !s.opt.trusted(addr) && len(c.rc.Request.Header.Peek("X-Forwarded-For")) > 0 {
		s.proxied.Do(func() {
			s.log.Warn("requests come through a proxy that is not trusted: all its clients count as one, for limits and for wrong passwords; name it with --trusted-proxies", "address", addr.String())
		})
	}
}
