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
	firstBody    = 4 << 10          // first size of a body's buffer, in bytes
	maxHeader    = 16 << 10         // largest head, in bytes
	readTimeout  = 30 * time.Second // for a head, and for a body
	bodyPatience = 5 * time.Second  // for the first byte of a body; then bodyRate counts
	bodyRate     = 16 << 10         // slowest body, in bytes a second
	writeTimeout = 60 * time.Second // for a small answer, or each part of a streamed one
	idleTimeout  = 2 * time.Minute  // of a connection without a request
	stopGrace    = 5 * time.Second  // for running requests when the server stops
)

// trusted reports whether an address is a trusted proxy.
func (o *Options) trusted(a netip.Addr) bool {
	return slices.ContainsFunc(o.TrustedProxies, func(p netip.Prefix) bool { return p.Contains(a) })
}

// Server serves the API of one node. Make it with New, then call Run once.
type Server struct {
	opt          Options
	doors        doors
	log          *slog.Logger
	http         *fasthttp.Server
	routes       *routes
	renderer     *renderer // draws errors as pages
	buffers      buffers
	limits       *limiter
	crowd        *crowd
	memory       *memory
	peers        *peers
	meter        *meter
	hosts        hostRule
	proxyWarning sync.Once // logs the warning about an untrusted proxy

	// Authentication and the audit.
	auth      *auth.Authenticator
	trail     trail       // records accesses
	anonymous func() bool // reports whether requests without a credential may read
	enforces  func() bool // reports whether viewers may see different repositories
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

	// Open the listeners before anything that a failure would have to undo.
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
		renderer: &renderer{p.providers, p.base, opt.trusted, frameHeaders(opt.EmbedAncestors), opt.Now, opt.Log},
		limits:   newLimiter(limits, opt.Now),
		memory:   newMemory(limits.Memory),
		peers:    newPeers(),
		meter:    newMeter(opt.Registerer),
		hosts:    newHostRule(open.api.Addr(), p.base, opt.AllowedHosts),
		leaving:  make(chan struct{}),

		auth:      auth.New(p.keys, p.agents),
		trail:     p.chronicle,
		anonymous: p.keys.AnonymousAccess,
		enforces:  p.enforces,
		authority: p.agents,
	}

	// The context of Run must not be the parent of requests: they may run for stopGrace after its end.
	s.base, s.stop = context.WithCancelCause(context.Background())
	s.routes = s.newRoutes(p)

	s.crowd = &crowd{
		limit: limits.Connections, perAddress: limits.PerAddress, trusted: opt.trusted,
		log: opt.Log, now: opt.Now, stop: s.base.Done(), dropped: s.meter.dropped, networks: map[netip.Addr]*network{},
	}

	s.meter.addGauges(opt.Registerer, s.crowd.count, s.memory.used)
	if open.certificate != nil {
		s.meter.addCertificateGauge(opt.Registerer, func() time.Time { return expiryOf(open.certificate) })
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
		Concurrency:                  2*limits.Connections + 64, // more than the crowd allows, because closed connections take a moment to end
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

// Run serves until ctx ends. Then it lingers, waits up to stopGrace for running requests, cancels the
// others and returns nil. While it lingers it answers every request and then closes the connection,
// so that load balancers open new ones to other nodes. It returns an error if a listener breaks.
func (s *Server) Run(ctx context.Context) error {
	failed := s.startServing()

	// Watch for clients that leave, and for renewed certificates, until the last request has ended.
	watchCtx, stopWatching := context.WithCancel(context.Background())
	watchEnded := make(chan struct{})
	go func() { defer close(watchEnded); s.peers.run(watchCtx) }()
	if c := s.doors.certificate; c != nil {
		go c.run(watchCtx)
	}
	defer func() { stopWatching(); <-watchEnded }()

	stopBroken := func(err error) error {
		s.stop(errStopping)
		return fmt.Errorf("serve the API: %w", err)
	}

	select {
	case err := <-failed:
		return stopBroken(err)
	case <-ctx.Done():
	}

	close(s.leaving) // now /readyz fails, and streams of agents end

	if err := s.linger(failed); err != nil {
		return stopBroken(err)
	}

	cancelLate := time.AfterFunc(stopGrace, func() { s.stop(errStopping) })
	defer cancelLate.Stop()

	// Shutdown closes the listeners first, so that no request arrives any more. Then it waits up to
	// five seconds for a connection that has sent no byte: limit that to one second.
	shutdownCtx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err := s.http.ShutdownWithContext(shutdownCtx)
	<-s.running.idle()
	s.stop(errStopping)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("stop the API: %w", err)
	}
	return nil
}

// linger waits for Options.Linger, in which load balancers notice that this node stops, and until
// Options.Finish has returned. It returns the error of a listener that breaks meanwhile.
func (s *Server) linger(failed <-chan error) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	over := make(chan struct{})
	go func() {
		defer close(over)
		timer := time.NewTimer(s.opt.Linger)
		defer timer.Stop()
		if s.opt.Finish != nil {
			s.opt.Finish(ctx)
		}
		select {
		case <-timer.C:
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

// audit adds an answered call to the audit, if it is one that the audit records. f is the failure of
// the call; nil without one.
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

	c := &call{method: string(rc.Method()), path: servedPath(string(rc.Path())), rc: rc, door: guest.enteredBy(), status: 200}
	c.id = requestID(c.requestHeader(headerRequest))
	route, f := s.route(c)
	ctx, cancel := s.requestContext(c, route)

	// Cancel the call if the client leaves.
	peerID := uint64(0) // 0: the client is not watched
	if f == nil && route.timeout > 0 {
		peerID = s.peers.add(rc.Conn(), cancel)
	}

	// Each step runs only if the previous ones succeeded. Authentication comes before reading the
	// body.
	if f == nil {
		f = s.identify(ctx, c, route)
	}
	by := c.standing()
	s.warnOfProxy(c)
	if s.isExempt(c, route) {
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
	logIfSlow := c.slowLog(route, s.opt.Slow, s.log)

	// The writer of the answer calls end after its last byte.
	end := func() {
		if peerID != 0 {
			s.peers.remove(peerID)
		}
		cancel(nil)
		leave()
		c.lease.end()
		took := s.opt.Now().Sub(began)
		s.meter.observe(route.name, c.method, c.status, took)
		logIfSlow(took)
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

// requestContext returns the context of a call, with the route's deadline and a span if the call is
// traced. The returned function ends the context and the span.
func (s *Server) requestContext(c *call, route *route) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(nodecall.WithRequest(s.base, c.id))
	if route.timeout == 0 {
		return ctx, cancel
	}

	// Calls that read code get a span, below the client's.
	if s.opt.Tracer != nil && (accesses[c.method+" "+route.name] != "" || c.path == toolPath) {
		var span trace.Span
		ctx, span = s.opt.Tracer.Start(trace.Under(ctx, c.requestHeader("traceparent")), c.method+" "+route.name)
		span.Text("request", c.id)
		cancelContext := cancel
		cancel = func(err error) {
			cancelContext(err)
			span.End(err)
		}
	}
	ctx, stop := context.WithTimeout(ctx, route.timeout)
	return ctx, func(err error) {
		cancel(err)
		stop()
	}
}

// fail makes a failure the answer of a call, as a page or as JSON. It also logs it and reads the rest
// of the request's body.
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

// isExempt reports whether a call is exempt from limits: a call of a quick route that is open, or of
// a quick route at the metrics listener.
func (s *Server) isExempt(c *call, r *route) bool {
	return r.timeout == 0 && (s.accessOf(c, r) == accessOpen || c.door == doorMetrics)
}

// accessOf returns who may make a call of a route. Metrics count all repositories and name
// connections. So they are open only at a listener on loopback, while all viewers see the same
// repositories.
func (s *Server) accessOf(c *call, r *route) access {
	if r.access == accessMetrics && s.doors.onLoopback(c.door) && !s.enforces() {
		return accessOpen
	}
	return r.access
}

// identify authenticates the call as its route demands, and sets c.viewer. It fails if the caller may
// not call the route.
func (s *Server) identify(ctx context.Context, c *call, r *route) (f *failure) {
	var err error
	switch {
	case r.framed:
		err = s.makeAnonymous(c)
	case s.accessOf(c, r) != accessOpen:
		err = s.authenticate(ctx, c, r)
	case r.proof != nil:
		err = r.proof(ctx, c)
	}
	if err != nil {
		return asFailure(ctx, err)
	}
	return nil
}

// admit reads the body and counts the request against the limits. A stranger's request counts only
// when its body is complete. Until then its connection waits and may be closed, so that a client that
// sends a body slowly takes no place from other clients. The caller must call leave after the request.
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

// enter counts the request as running, unless a limit forbids it. The caller must call leave after
// the request.
func (s *Server) enter(c *call, r *route, guest *guest) (leave func(), f *failure) {
	if s.isExempt(c, r) {
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

// authenticate sets the viewer of a call, by its key, its session or its listener. It fails if the
// credential is invalid, or if the viewer may not call the route.
func (s *Server) authenticate(ctx context.Context, c *call, r *route) error {
	req := auth.Request{
		Authorization: c.requestHeader("Authorization"), APIKey: c.requestHeader(headerKey), Socket: c.door == doorSocket, Tools: c.path == toolPath, Metrics: r.access == accessMetrics,
	}

	// Accept a session cookie on pages and where the route allows it, and only without a key.
	if (r.page || r.session) && req.Authorization == "" && req.APIKey == "" {
		req.Session = string(c.rc.Request.Header.Cookie(people.CookieName(isHTTPS(s.hosts.base()))))
	}

	// A long answer calls reauthenticate when the request itself is reused already: req has copies.
	reauthenticate := func(ctx context.Context) (catalog.Viewer, error) { return s.auth.Viewer(ctx, req) }
	v, err := reauthenticate(ctx)
	if err != nil {
		return err
	}
	c.viewer, c.reauthenticate = v, reauthenticate

	switch r.access { // refuse the call before it counts against limits
	case accessOwner:
		_, err = account.AsOwner(v)
	case accessHolder:
		_, err = account.AsHolder(v)
	case accessMetrics:
		err = account.MayReadMetrics(v)
	}

	return err
}

// run calls the handler and turns an error or panic into a failure. It refuses compressed bodies.
func (s *Server) run(ctx context.Context, c *call, r *route) (f *failure) {
	// Recover, because a panic of a handler must not end the node.
	defer func() {
		if p := recover(); p != nil {
			c.stream = nil
			f = s.panicked(r.name, p)
		}
	}()

	// Refuse a compressed body: it could unpack to any size.
	if enc := c.requestHeader("Content-Encoding"); enc != "" && enc != "identity" {
		return &failure{Status: 415, Code: codeMediaType, Message: "Content-Encoding " + enc + " is not supported: send the body as it is."}
	}

	if err := r.handle(catalog.WithActor(ctx, c.actor(s.opt.trusted)), c); err != nil {
		f := asFailure(ctx, err)

		// If the request has no body, the invalid value was in the URL.
		if !c.hasBody() && f.Code == codeInvalidBody {
			f.Code = codeInvalidParams
		}
		return f
	}
	return nil
}

// report logs failures that an operator should know about, and counts clients that have left.
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

// quietLogger logs fasthttp's messages at debug level, because they are about clients that break the
// protocol or leave.
type quietLogger struct{ log *slog.Logger }

// Printf logs a message of fasthttp.
func (l quietLogger) Printf(format string, args ...any) {
	l.log.Debug("connection", "detail", fmt.Sprintf(format, args...))
}

// warnOfProxy warns, once, if a call has X-Forwarded-For from a proxy that is not trusted.
func (s *Server) warnOfProxy(c *call) {
	addr := origin.Of(c.rc.RemoteAddr())
	if addr.IsValid() && !s.opt.trusted(addr) && len(c.rc.Request.Header.Peek("X-Forwarded-For")) > 0 {
		s.proxyWarning.Do(func() {
			s.log.Warn("requests come through a proxy that is not trusted: all its clients count as one, for limits and for wrong passwords; name it with --trusted-proxies", "address", addr.String())
		})
	}
}
