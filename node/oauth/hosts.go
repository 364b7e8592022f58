package oauth

import (
	"net"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/glob"
)

// allowed tells whether every one of some hosts may take part:
// SHOAL_OAUTH_CLIENT_HOSTS lists globs of them, and without it all may.
func (s *Server) allowed(hosts ...string) bool {
	// Read each time, so that a change counts for clients that are known already.
	text, ok := s.d.Lookup("SHOAL_OAUTH_CLIENT_HOSTS")
	if !ok || strings.TrimSpace(text) == "" {
		return true
	}
	globs := strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
	return !slices.ContainsFunc(hosts, func(host string) bool { return !matches(globs, host) })
}

func matches(globs []string, host string) bool {
	name := host
	// A port is of no concern to who may come in.
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	return slices.ContainsFunc(globs, func(pattern string) bool {
		g, err := glob.Compile(glob.Fold, pattern)
		return err == nil && g.Match(name)
	})
}
