package api

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"github.com/shoalsearch/shoal/api/auth"
)

// doors are the listeners of a server; nil where there is none.
type doors struct {
	api, metrics, operator net.Listener
	certificate            *certificate // of api and metrics; nil for plain HTTP
}

// openDoors listens at every address of opt, or at none.
func openDoors(opt *Options) (d doors, err error) {
	// All or none: a node that listens at half of its doors would look healthy to some.
	defer func() {
		if err != nil {
			err = errors.Join(err, d.close())
		}
	}()

	// A certificate that cannot be read stops the start: plain HTTP in its place would
	// send keys in clear.
	if d.certificate, err = openCertificate(opt.TLSCert, opt.TLSKey, opt.Log); err != nil {
		return d, err
	}
	if d.api, err = net.Listen("tcp", opt.Listen); err != nil {
		return d, fmt.Errorf("listen for the API: %w", err)
	}

	if opt.MetricsListen != "" {
		if d.metrics, err = net.Listen("tcp", opt.MetricsListen); err != nil {
			return d, fmt.Errorf("listen for metrics: %w", err)
		}
	}

	// The operator's way in, for a cluster that has no key yet.
	if opt.DataDir != "" {
		d.operator, err = auth.ListenSocket(opt.DataDir)
	}
	return d, err
}

func (d *doors) close() error {
	var errs []error
	for _, ln := range []net.Listener{d.api, d.metrics, d.operator} {
		if ln != nil {
			errs = append(errs, ln.Close())
		}
	}
	return errors.Join(errs...)
}

// open serves at every door. The first one that breaks is told.
func (s *Server) open() <-chan error {
	// Room for each, so that none hangs when nobody listens any more.
	failed := make(chan error, 3)
	serve := func(ln net.Listener, by door) {
		if ln == nil {
			return
		}
		// The gate is below TLS: a connection counts before its handshake, which costs the most.
		ln = &gate{ln, by, s.crowd}
		if c := s.doors.certificate; c != nil && by != doorSocket {
			ln = tls.NewListener(ln, c.config())
		}
		go func() { failed <- s.http.Serve(ln) }()
	}
	serve(s.doors.api, doorAPI)
	serve(s.doors.metrics, doorMetrics)
	serve(s.doors.operator, doorSocket)
	return failed
}

// turnedAway refuses a request that came to the wrong door, or by a name or
// from a page that this node does not know. Pages of other sites may ask what
// is shared with them.
func (s *Server) turnedAway(c *call, shared bool) *failure {
	health := c.path == "/livez" || c.path == "/readyz" || c.path == "/api/health"
	switch {
	case c.door == doorSocket:
		return nil // no browser gets there
	case c.door == doorMetrics && c.path != "/metrics" && !health:
		return &failure{Status: 404, Code: codeNotFound, Message: "At this address there are /metrics, /livez and /readyz only."}
	case c.door == doorMetrics || health:
		return nil // load balancers and Prometheus come by any name
	}

	host, origin := string(c.rc.Host()), c.requestHeader("Origin")
	if shared && host != "" {
		origin = ""
	}
	if !s.hosts.knows(host, origin) {
		return &failure{Status: 421, Code: codeWrongHost, Message: fmt.Sprintf("This node is not known as %q: name it with --base-url or --allowed-hosts.", host)}
	}
	if !s.hosts.sameSite(host, origin) {
		return &failure{Status: 403, Code: codeForbidden, Message: "Requests of pages of other sites are not answered."}
	}
	// Browsers tell of requests that a page of another site made them send, also
	// where they name no origin. Following a link is no such request.
	navigates := c.requestHeader("Sec-Fetch-Mode") == "navigate" && c.requestHeader("Sec-Fetch-Dest") == "document"
	if c.requestHeader("Sec-Fetch-Site") == "cross-site" && !navigates && !shared {
		return &failure{Status: 403, Code: codeForbidden, Message: "Requests of pages of other sites are not answered."}
	}
	return nil
}
