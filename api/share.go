package api

import (
	"strings"

	"github.com/valyala/fasthttp"
)

// servedPath is the path by which a request is served: people write the address of the
// tool server with a slash at its end too.
func servedPath(path string) string {
	if path == toolPath+"/" {
		return toolPath
	}
	return path
}

// shares reports whether a page of another site may send this request. No cookie
// counts on these routes, so whatever the page can do, its maker could do
// without a browser; what only those can ask who reach this node is not among it.
func (s *Server) shares(c *call, found []*route) bool {
	if len(found) == 0 {
		return false
	}

	// A preflight carries no credential, so it has to pass for the request to come.
	switch found[0].shared {
	case anySite:
		return true
	case bearer:
		return c.method == fasthttp.MethodOptions || c.requestHeader("Authorization") != "" || !s.anonymous()
	}
	return false
}

// share lets a page of another site read the answer.
func (c *call) share(methods string) {
	// Any origin, and never with credentials: a browser then sends no cookie along.
	c.setHeader("Access-Control-Allow-Origin", "*")
	c.setHeader("Access-Control-Expose-Headers", "WWW-Authenticate, Retry-After, Mcp-Session-Id, Mcp-Protocol-Version")
	if c.method == fasthttp.MethodOptions {
		c.setHeader("Access-Control-Allow-Methods", methods)
		c.setHeader("Access-Control-Allow-Headers", "Authorization, Content-Type, Accept, Last-Event-ID, Mcp-Protocol-Version, Mcp-Session-Id, Mcp-Method, Mcp-Name")
		c.setHeader("Access-Control-Max-Age", "7200")
	}
}

// methodsOf lists the methods of some routes of one path.
func methodsOf(found []*route) string {
	var all []string
	for _, x := range found {
		all = append(all, x.method)
	}
	return strings.Join(append(all, fasthttp.MethodOptions), ", ")
}
