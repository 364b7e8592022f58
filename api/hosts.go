package api

import (
	"net"
	"net/url"
	"slices"
	"strings"
)

// hostRule refuses requests that another site's page makes a browser send by pointing its own
// name at this address (DNS rebinding). Plain addresses are safe, because only the user can have
// typed them.
type hostRule struct {
	loopback bool          // listening on loopback: accept only loopback names and addresses, besides configured ones
	port     string        // of the listener
	base     func() string // prefix of every link; its host is accepted
	names    []string      // configured names, some with a port
	any      bool
}

// newHostRule returns the rule for a service at addr. allowed are the host names that the operator
// allows; "*" allows any.
func newHostRule(addr net.Addr, base func() string, allowed []string) hostRule {
	// The port distinguishes this service from others on the same machine.
	r := hostRule{base: base}
	if tcp, ok := addr.(*net.TCPAddr); ok {
		r.loopback = tcp.IP.IsLoopback()
		_, r.port, _ = net.SplitHostPort(addr.String())
	}

	for _, name := range allowed {
		r.any = r.any || name == "*"
		r.names = append(r.names, strings.ToLower(name))
	}
	return r
}

// allowsHost reports whether the node answers to the Host of a request.
func (r hostRule) allowsHost(host, origin string) bool {
	if host == "" { // HTTP/1.0: browsers always send a host
		return origin == ""
	}
	host = strings.ToLower(host)
	name := hostname(host)
	switch {
	case r.any, slices.Contains(r.names, host), slices.Contains(r.names, name):
		return true
	case loopbackName(name), !r.loopback && net.ParseIP(name) != nil:
		return true
	}
	return name != "" && name == hostname(r.baseHost())
}

// baseHost returns the host of the base URL in lower case, with its port if it has one.
func (r hostRule) baseHost() string {
	u, err := url.Parse(r.base())
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Host)
}

// sameSite reports whether pages of origin belong to this service, and so may send requests to
// host.
func (r hostRule) sameSite(host, origin string) bool {
	if origin == "" {
		return true
	}

	// "null" is the origin of a sandboxed page of anybody, so refuse it.
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return false
	}
	from := strings.ToLower(u.Host)
	if from == strings.ToLower(host) || from == r.baseHost() || slices.Contains(r.names, from) {
		return true
	}

	// Another loopback name with our port is this service too.
	return r.loopback && loopbackName(hostname(from)) && u.Port() == r.port
}

// isHTTPS reports whether this service is reached by https.
func isHTTPS(base string) bool { return strings.HasPrefix(base, "https:") }

// hostname returns a host without its port and brackets.
func hostname(hostport string) string {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.Trim(hostport, "[]")
	}
	return host
}

// loopbackName reports whether a name or address means this machine.
func loopbackName(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || ip != nil && ip.IsLoopback()
}
