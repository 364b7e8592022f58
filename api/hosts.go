package api

import (
	"net"
	"net/url"
	"slices"
	"strings"
)

// hostRule decides which host names and sites a service accepts. Another site's page could make a
// browser send requests here by pointing its own name at this address (DNS rebinding). IP addresses
// are accepted, because such a page cannot use them.
type hostRule struct {
	loopback bool          // the listener is on loopback: accept no other addresses
	port     string        // of the listener
	base     func() string // prefix of every link; its host is accepted
	names    []string      // configured names, some with a port
	anyName  bool          // accept every name
}

// newHostRule returns the rule for a service that listens at addr. allowed are the host names that
// the operator allows; "*" allows any.
func newHostRule(addr net.Addr, base func() string, allowed []string) hostRule {
	// sameSite needs the port: another loopback service has the same names and another port.
	r := hostRule{base: base}
	if tcp, ok := addr.(*net.TCPAddr); ok {
		r.loopback = tcp.IP.IsLoopback()
		_, r.port, _ = net.SplitHostPort(addr.String())
	}

	for _, name := range allowed {
		r.anyName = r.anyName || name == "*"
		r.names = append(r.names, strings.ToLower(name))
	}
	return r
}

// allowsHost reports whether the service answers a request with these headers Host and Origin.
func (r hostRule) allowsHost(host, origin string) bool {
	if host == "" { // an HTTP/1.0 client; browsers always send a host
		return origin == ""
	}
	host = strings.ToLower(host)
	name := hostname(host)
	switch {
	case r.anyName, slices.Contains(r.names, host), slices.Contains(r.names, name):
		return true
	case isLoopback(name), !r.loopback && net.ParseIP(name) != nil:
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

	// Refuse the origin "null": any site's sandboxed page has it.
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return false
	}
	from := strings.ToLower(u.Host)
	if from == strings.ToLower(host) || from == r.baseHost() || slices.Contains(r.names, from) {
		return true
	}

	// Another loopback name with our port is this service too.
	return r.loopback && isLoopback(hostname(from)) && u.Port() == r.port
}

// isHTTPS reports whether clients reach the service with this base URL by https.
func isHTTPS(base string) bool { return strings.HasPrefix(base, "https:") }

// hostname returns the name or address in host:port, [host]:port, [host] or host.
func hostname(hostport string) string {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.Trim(hostport, "[]")
	}
	return host
}

// isLoopback reports whether a name or address means this machine.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || ip != nil && ip.IsLoopback()
}
