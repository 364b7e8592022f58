package api

import (
	"strings"

	"github.com/valyala/fasthttp"
)

// servedPath returns the path to look up: the path without the slash at its end if it is that of the
// tool server, which answers there too.
func servedPath(path string) string {
	if path == toolPath+"/" {
		return toolPath
	}
	return path
}

// allowsCrossSite reports whether another site's page may send this request to these routes. Shared
// routes ignore cookies, so the page can do no more than its author could without a browser. But a
// request without a credential might succeed only because it comes from the visitor's network.
func (s *Server) allowsCrossSite(c *call, found []*route) bool {
	if len(found) == 0 {
		return false
	}

	// Allow preflight requests (OPTIONS) to bearer routes, because they never have a credential.
	switch found[0].shared {
	case anySite:
		return true
	case bearer:
		return c.method == fasthttp.MethodOptions || c.requestHeader("Authorization") != "" || !s.anonymous()
	}
	return false
}

// allowCrossSiteRead lets another site's page read the answer.
func (c *call) allowCrossSiteRead(methods string) {
	// Allow every origin, but not credentials, so that browsers send no cookies.
	c.setHeader("Access-Control-Allow-Origin", "*")
	c.setHeader("Access-Control-Expose-Headers", "WWW-Authenticate, Retry-After, Mcp-Session-Id, Mcp-Protocol-Version")
	if c.method == fasthttp.MethodOptions {
		c.setHeader("Access-Control-Allow-Methods", methods)
		c.setHeader("Access-Control-Allow-Headers", "Authorization, Content-Type, Accept, Last-Event-ID, Mcp-Protocol-Version, Mcp-Session-Id, Mcp-Method, Mcp-Name")
		c.setHeader("Access-Control-Max-Age", "7200")
	}
}

// methodsOf lists the methods of a path's routes.
func methodsOf(found []*route) string {
	var all []string
	for _, x := range found {
		all = append(all, x.method)
	}
	return strings.Join(append(all, fasthttp.MethodOptions), ", ")
}
