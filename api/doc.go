// Package api is the HTTP side of a node: it decodes and authenticates a
// request, calls one method of package node, and encodes the answer exactly
// as the specification has it. It decides nothing.
//
//	POST /api/search        body -> search.Request -> Node.Search -> encode_search.go
//	POST /api/stream_search the same, as server-sent events
//	GET  /api/...           one handler of ten lines for each operation
//	POST /api/mcp           package api/mcp, through the bridge of bridge.go
//	GET  /                  the pages of package api/web
//
// Routes come in areas: searches, keys, jobs and so on. An area is a small type
// in the file of its handlers, with the few things that these use; newRoutes
// (table.go) joins the rows of all. [Server] knows connections, limits and who
// asks, and nothing of what is asked.
//
// Rules that every file here keeps:
//
//   - A [fasthttp.RequestCtx] is reused for the next request as soon as a
//     handler returns. What is passed down is copied out of it first ([call]),
//     and no context is ever derived from it: contexts here descend from the
//     server's own.
//   - Every failure leaves as {statusCode, errorCode, message}, that of a query with
//     its place; errors.go is the only table from kinds to codes.
//   - Every request has a deadline, a bound on its body, and ends when its
//     client leaves (peer.go).
package api
