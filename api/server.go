package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"github.com/shoalsearch/shoal/api/auth"
	"github.com/shoalsearch/shoal/api/people"
	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/origin"
	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/account"
	nodecall "github.com/shoalsearch/shoal/node/call"
)

// The bounds of the door.
const (
	firstBody    = 4 << 10 // bytes that a body gets room for before any came
	maxHeader    = 16 << 10
	readTimeout  = 30 * time.Second // for a head, and for a body
	bodyPatience = 5 * time.Second  // for the first byte of a body; what comes after it keeps up with bodyRate
	bodyRate     = 16 << 10         // bytes a second
	writeTimeout = 60 * time.Second // for a small answer, or for each part of a streamed one
	idleTimeout  = 2 * time.Minute
	stopGrace    = 5 * time.Second // for running requests when the server stops
)

// Options is how a server is started.
type Options struct {
	Listen        string // host:port; port 0 picks one
	MetricsListen string // host:port for /metrics, /livez and /readyz alone; "" for none
	// MetricsKeyFile is a file with a key that opens /metrics and nothing else, at both
	// addresses; "" for none.
	MetricsKeyFile string
	DataDir        string // where the operator's socket is made; "" for none
	TLSCert        string // file of the certificate chain of Listen and MetricsListen; "" for plain HTTP
	TLSKey         string // file of its key
	// AllowedHosts are the names by which clients may call the API, besides that
	// of the base URL: host, or host:port. "*" is any.
	AllowedHosts []string
	// EmbedAncestors are the sites that may show lines of files within their pages, as
	// ParseAncestors has them. Without one nothing can be embedded.
	EmbedAncestors []string
	Version        string
	Limits         Limits
	// TrustedProxies are networks whose connections speak for many clients: they
	// are not bounded by address, and X-Forwarded-For counts when they send it.
	TrustedProxies []netip.Prefix
	Linger         time.Duration         // between saying that it stops and refusing connections: for load balancers to notice
	Finish         func(context.Context) // what else to wait for meanwhile; nil for nothing
	Slow           time.Duration         // reads that take as long are logged; 0 for none
	Log            *slog.Logger          // nil discards
	Gatherer       prometheus.Gatherer   // what /metrics shows; nil for nothing
	Registerer     prometheus.Registerer // nil keeps the metrics of this package to itself
	Now            func() time.Time      // nil means the clock of the machine

	tools    http.Handler  // of the tool server; nil means those of package mcp
	patience time.Duration // with which a body may begin; 0 means bodyPatience
}

// trusted reports whether an address is that of a proxy of ours.
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
	renderer *renderer // of failures that are shown as pages
	buffers  buffers
	limits   *limiter
	crowd    *crowd
	memory   *memory
	peers    *peers
	meter    *meter
	hosts    hostRule
	proxied  sync.Once // a proxy that is not trusted was told of

	// Who makes a request.
	auth      *auth.Authenticator
	trail     trail       // what the audit keeps of it
	anonymous func() bool // whether somebody without a key may read
	authority authority   // who lets agents in

	base context.Context // of every request; ends when the server stops
	stop context.CancelCauseFunc

	running inflight      // requests under way
	leaving chan struct{} // closed when the server begins to stop
}

// New listens on the address of opt and wires the routes. Nothing is
// answered before Run.
func New(n *node.Node, opt Options) (*Server, error) { return newServer(partsOf(n), opt) }

func newServer(p parts, opt Options) (*Server, error) {
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	if opt.Now == nil {
		opt.Now = clock.Now
	}
	opt.patience = cmp.Or(opt.patience, bodyPatience)

	// Before anything is made that would have to be undone.
	open, err := openDoors(&opt)
	if err != nil {
		return nil, err
	}

	if open.certificate != nil {
		p.state = certified{p.state, open.certificate, opt.Now}
	}

	limits := opt.Limits.filled()
	s := &Server{
		opt: opt, doors: open, log: opt.Log,
		renderer: &renderer{p.doors, p.base, opt.trusted, framing(opt.EmbedAncestors), opt.Now, opt.Log},
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

	// Of no request and no caller: it outlives the context of Run by the grace of requests.
	s.base, s.stop = context.WithCancelCause(context.Background())
	s.routes = s.newRoutes(p)

	s.crowd = &crowd{
		limit: limits.Connections, perAddress: limits.PerAddress, trusted: opt.trusted,
		log: opt.Log, now: opt.Now, stop: s.base.Done(), dropped: s.meter.dropped, networks: map[netip.Addr]*network{},
	}

	s.meter.watch(opt.Registerer, s.crowd.count, s.memory.used)
	if open.certificate != nil {
		s.meter.watchCertificate(opt.Registerer, open.certificate.ends)
	}

	s.http = &fasthttp.Server{
		Handler:                      s.serve,
		ErrorHandler:                 s.refuse,
		ExpectHandler:                s.expect,
		HeaderReceived:               s.headRead,
		StreamRequestBody:            true, // read by readBody, once it is known who asks
		MaxRequestBodySize:           1,    // bytes of a body to wait for before the handler is called; see readBody for the bound
		ReadBufferSize:               maxHeader,
		ReadTimeout:                  readTimeout,
		WriteTimeout:                 writeTimeout,
		IdleTimeout:                  idleTimeout,
		Concurrency:                  2*limits.Connections + 64, // the crowd bounds them; those that it closed take a moment to end
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
func (s *Server) Addr() net.Addr { return s.doors.api.Addr() }

// MetricsAddr is the address that metrics are told at beside it, nil for none.
func (s *Server) MetricsAddr() net.Addr {
	if s.doors.metrics == nil {
		return nil
	}
	return s.doors.metrics.Addr()
}

// Run serves until ctx ends, lingers, lets running requests finish within a few
// seconds, cancels the rest and returns nil when it stopped because of ctx.
// While it lingers every request is answered, and its connection ends with the
// answer: a load balancer that closed none of them by itself would send the
// next request where nobody listens any more.
func (s *Server) Run(ctx context.Context) error {
	failed := s.open()

	// The watch over clients that leave ends after the last request.
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

	close(s.leaving) // /readyz turns bad, streams of agents end

	if err := s.linger(failed); err != nil {
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

// linger waits until load balancers have noticed that this node stops, and what it
// has to finish is finished.
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

// serve answers one request. Nothing of rc is used once it returns, except by
// the stream of an answer, which fasthttp reads before it uses rc again.
func (s *Server) serve(rc *fasthttp.RequestCtx) {
	s.running.add()
	guest := guestOf(rc.Conn())
	began := s.opt.Now()

	c := &call{method: string(rc.Method()), path: servedPath(string(rc.Path())), rc: rc, door: guest.by(), status: 200}
	c.id = requestID(c.requestHeader(headerRequest))
	route, f := s.route(c)
	ctx, cancel := s.bounded(c, route)

	// A client that leaves ends the work for it.
	watched := uint64(0)
	if f == nil && route.timeout > 0 {
		watched = s.peers.add(rc.Conn(), cancel)
	}

	// Each step is taken only while none before it failed: who asks is known
	// before a byte of the body is read.
	if f == nil {
		f = s.identify(ctx, c, route)
	}
	by := c.standing()
	s.noteProxy(c)
	if c.uncounted(route) {
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
		f = c.lease.set(int64(len(c.body)))
	}
	if f != nil {
		s.fail(c, route, f)
	}
	s.record(c, route, f)
	slow := s.watchSlow(c, route)

	// Whoever writes the answer calls end after its last byte.
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

	// On a node that leaves each connection ends with its answer.
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

// bounded is the context of a call of a route, and the function that ends it.
func (s *Server) bounded(c *call, route *route) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(nodecall.WithRequest(s.base, c.id))
	if route.timeout == 0 {
		return ctx, cancel
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

// uncounted reports whether a call is answered from memory, and asked for by
// those who watch the node: no limit refuses it.
func (c *call) uncounted(r *route) bool {
	return r.timeout == 0 && (r.access == accessOpen || c.door == doorMetrics)
}

// identify finds the viewer.
func (s *Server) identify(ctx context.Context, c *call, r *route) (f *failure) {
	if c.uncounted(r) {
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

// admit reads the body and counts the request against the limits. A stranger
// counts once the body is there. Until then the connection waits: it makes room
// for others, so that a silent body takes no place from anybody.
func (s *Server) admit(c *call, r *route, guest *guest) (leave func(), f *failure) {
	leave = func() {}
	if c.standing() != stranger {
		if leave, f = s.enter(c, r, guest); f == nil {
			f = s.readBody(c, r.mostBody())
		}
		return leave, f
	}

	c.lease.become(sender)
	if f = s.readBody(c, r.mostBody()); f == nil {
		c.lease.become(stranger)
		leave, f = s.enter(c, r, guest)
	}
	return leave, f
}

// enter counts a request as under way.
func (s *Server) enter(c *call, r *route, guest *guest) (leave func(), f *failure) {
	if c.uncounted(r) {
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

func (s *Server) authenticate(ctx context.Context, c *call, r *route) error {
	req := auth.Request{
		Authorization: c.requestHeader("Authorization"), APIKey: c.requestHeader(headerKey), Socket: c.door == doorSocket, Tools: c.path == toolPath,
	}

	// A browser's session counts on pages and where it is asked who one is, and only
	// without a key.
	if (r.page || r.session) && req.Authorization == "" && req.APIKey == "" {
		req.Session = string(c.rc.Request.Header.Cookie(people.CookieName(secure(s.hosts.base()))))
	}

	// The credentials are a copy: whoever asks again does so when the request is long over.
	again := func(ctx context.Context) (catalog.Viewer, error) { return s.auth.Viewer(ctx, req) }
	v, err := again(ctx)
	if err != nil {
		return err
	}
	c.viewer, c.again = v, again

	switch r.access { // refused here, before it counts against any limit
	case accessOwner:
		_, err = account.AsOwner(v)
	case accessHolder:
		_, err = account.AsHolder(v)
	}

	return err
}

// run calls the handler and turns what went wrong, a panic too, into a failure.
func (s *Server) run(ctx context.Context, c *call, r *route) (f *failure) {
	// One broken answer must not end the node, which serves everybody else.
	defer func() {
		if p := recover(); p != nil {
			c.stream = nil
			f = s.panicked(r.name, p)
		}
	}()

	// Unpacked it could be of any size: the bound of a body is one of what comes.
	if enc := c.requestHeader("Content-Encoding"); enc != "" && enc != "identity" {
		return &failure{Status: 415, Code: codeMediaType, Message: "Content-Encoding " + enc + " is not supported: send the body as it is."}
	}

	if err := r.handle(catalog.WithActor(ctx, c.actor(s.opt.trusted)), c); err != nil {
		f := asFailure(ctx, err)

		// A rule that is broken without a body was broken by the address.
		if !c.hasBody() && f.Code == codeInvalidBody {
			f.Code = codeInvalidParams
		}
		return f
	}
	return nil
}

// report logs failures that an operator should know of.
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

// quietLogger passes what fasthttp has to say to the debug level: it is about
// clients that break the protocol or leave.
type quietLogger struct{ log *slog.Logger }

// Printf logs a line of fasthttp.
func (l quietLogger) Printf(format string, args ...any) {
	l.log.Debug("connection", "detail", fmt.Sprintf(format, args...))
}

// noteProxy warns once where a proxy speaks for others and is not trusted.
func (s *Server) noteProxy(c *call) {
	addr := origin.Of(c.rc.RemoteAddr())
	if addr.IsValid() && !s.opt.trusted(addr) && len(c.rc.Request.Header.Peek("X-Forwarded-For")) > 0 {
		s.proxied.Do(func() {
			s.log.Warn("requests come through a proxy that is not trusted: all its clients count as one, for limits and for wrong passwords; name it with --trusted-proxies", "address", addr.String())
		})
	}
}
