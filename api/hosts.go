package api

import (
	"net"
	"net/url"
	"slices"
	"strings"
)

// hostRule refuses requests that a page of another site makes a browser send
// here by pointing its own name at this address. Addresses are safe: a browser
// that names one was told that address by its user.
type hostRule struct {
	loopback bool          // the listener is: loopback names and addresses only, besides the others
	port     string        // of the listener
	base     func() string // prefix of every link, whose host is ours
	names    []string      // more names, some with a port
	any      bool
}

func newHostRule(addr net.Addr, base func() string, allowed []string) hostRule {
	// The port alone tells this service from another one on the same machine.
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

// knows reports whether a node answers to the Host of a request.
func (r hostRule) knows(host, origin string) bool {
	if host == "" { // HTTP/1.0: browsers always name the host
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
	return name != "" && name == hostname(r.own())
}

// own is the host of the base URL, with its port where that has one, in lower case as
// hosts have none.
func (r hostRule) own() string {
	u, err := url.Parse(r.base())
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Host)
}

// sameSite reports whether a page of origin may send requests to host: it is
// one of this service's own.
func (r hostRule) sameSite(host, origin string) bool {
	if origin == "" {
		return true
	}

	// Browsers send "null" for pages without an origin of their own: a frame of anybody.
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return false
	}
	from := strings.ToLower(u.Host)
	if from == strings.ToLower(host) || from == r.own() || slices.Contains(r.names, from) {
		return true
	}

	// Another name of this machine with our port is this service.
	return r.loopback && loopbackName(hostname(from)) && u.Port() == r.port
}

// secure reports whether this service is reached by https.
func secure(base string) bool { return strings.HasPrefix(base, "https:") }

// hostname is a host without its port and brackets.
func hostname(hostport string) string {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.Trim(hostport, "[]")
	}
	return host
}

// loopbackName reports whether a name or an address, without a port, is of this host.
func loopbackName(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || ip != nil && ip.IsLoopback()
}
