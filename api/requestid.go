package api

import (
	"crypto/rand"
	"strings"
	"time"
)

// headerRequest is the id of a request: the client's own, or one that the node makes. The
// answer has it, and each line of the log about the request.
const headerRequest = "X-Request-Id"

// maxRequestID is how long an id of a client may be, in bytes.
const maxRequestID = 128

// requestID is the id of a request whose client has sent one, or "". An id that could
// not stand in a line of a log as it is, or is too long, does not count.
func requestID(sent string) string {
	odd := func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`"'\<>`, r) }
	if sent == "" || len(sent) > maxRequestID || strings.ContainsFunc(sent, odd) {
		return strings.ToLower(rand.Text()[:16])
	}
	return sent
}

// watchSlow returns what to call when a request is over: it logs one that has read
// something and took longer than the operator wants.
func (s *Server) watchSlow(c *call, r *route) (over func(took time.Duration)) {
	action := accesses[r.method+" "+r.name]
	if s.opt.Slow == 0 || action == "" {
		return func(time.Duration) {}
	}

	// Now, since nothing of the request may be used later.
	read, id, status := c.read(action), c.id, c.status
	return func(took time.Duration) {
		if took >= s.opt.Slow {
			s.log.Warn("slow request", "request", id, "action", read.Action, "target", read.Target, "query", read.Query, "status", status, "took", took)
		}
	}
}
