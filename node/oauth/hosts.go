package oauth

import (
	"net"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/glob"
)

// hostsAllowed reports whether all hosts match the globs in SHOAL_OAUTH_CLIENT_HOSTS. Without the
// variable all are allowed.
func (s *Server) hostsAllowed(hosts ...string) bool {
	// Read it each time, so that a change also affects known clients.
	text, ok := s.d.Lookup("SHOAL_OAUTH_CLIENT_HOSTS")
	if !ok || strings.TrimSpace(text) == "" {
		return true
	}
	globs := strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
	return !slices.ContainsFunc(hosts, func(host string) bool { return !matchesHost(globs, host) })
}

// matchesHost reports whether one of the globs matches a host.
func matchesHost(globs []string, host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	return slices.ContainsFunc(globs, func(pattern string) bool {
		g, err := glob.Compile(glob.Fold, pattern)
		return err == nil && g.Match(name)
	})
}
