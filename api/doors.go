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
	certificate            certificate // of api and metrics; nil for plain HTTP
}

// openDoors opens the listeners of opt and reads its certificate. On an error it closes the
// listeners that it has opened.
func openDoors(opt *Options) (d doors, err error) {
	// Do not serve with only some listeners: the node would look healthy to their clients.
	defer func() {
		if err != nil {
			err = errors.Join(err, d.close())
		}
	}()

	// Do not start without the certificate: plain HTTP would send keys in clear text.
	if d.certificate, err = openCertificate(opt); err != nil {
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

	// By this socket the operator makes the cluster's first key.
	if opt.DataDir != "" {
		d.operator, err = auth.ListenSocket(opt.DataDir)
	}
	return d, err
}

// onLoopback reports whether a listener is a port on loopback, which only programs of this machine
// reach.
func (d *doors) onLoopback(by door) bool {
	ln := d.api
	switch by {
	case doorSocket:
		return false
	case doorMetrics:
		ln = d.metrics
	}
	tcp, ok := ln.Addr().(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
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

// startServing serves each listener in a goroutine. The channel gets the error that ends a listener.
func (s *Server) startServing() <-chan error {
	// One place for each listener, so that no goroutine blocks after the receiver has gone.
	failed := make(chan error, 3)
	serve := func(ln net.Listener, by door) {
		if ln == nil {
			return
		}
		// The gate is below TLS, so that it counts connections before their expensive handshake.
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

// checkHost refuses requests to the wrong listener, for a host name that this node does not
// know, or from pages of other sites, unless allowCrossSite is set. It accepts all requests by the
// socket, and requests for health by any host name.
func (s *Server) checkHost(c *call, allowCrossSite bool) *failure {
	isHealth := c.path == "/livez" || c.path == "/readyz" || c.path == "/api/health"
	switch {
	case c.door == doorSocket:
		return nil // browsers cannot reach the socket
	case c.door == doorMetrics && c.path != "/metrics" && !isHealth:
		return &failure{Status: 404, Code: codeNotFound, Message: "At this address there are /metrics, /livez and /readyz only."}
	case c.door == doorMetrics || isHealth:
		return nil // load balancers and Prometheus use any name
	}

	host, origin := string(c.rc.Host()), c.requestHeader("Origin")
	if allowCrossSite && host != "" {
		origin = ""
	}
	if !s.hosts.allowsHost(host, origin) {
		return &failure{Status: 421, Code: codeWrongHost, Message: fmt.Sprintf("This node is not known as %q: name it with --base-url or --allowed-hosts.", host)}
	}
	if !s.hosts.sameSite(host, origin) {
		return &failure{Status: 403, Code: codeForbidden, Message: "Requests of pages of other sites are not answered."}
	}
	// By Sec-Fetch-Site browsers mark requests that another site's page caused, also those without
	// an Origin. Following a link is allowed.
	isNavigation := c.requestHeader("Sec-Fetch-Mode") == "navigate" && c.requestHeader("Sec-Fetch-Dest") == "document"
	if c.requestHeader("Sec-Fetch-Site") == "cross-site" && !isNavigation && !allowCrossSite {
		return &failure{Status: 403, Code: codeForbidden, Message: "Requests of pages of other sites are not answered."}
	}
	return nil
}
