package api

import (
	"crypto/rand"
	"log/slog"
	"strings"
	"time"
)

// headerRequest is the header with the id of a request: sent by the client or made by the node.
// It is in the answer and in every log line about the request.
const headerRequest = "X-Request-Id"

// maxRequestID limits a client's request id, in bytes.
const maxRequestID = 128

// requestID returns the id that a client has sent, or a new one if the client sent none, or one
// that is too long or could confuse a log.
func requestID(sent string) string {
	odd := func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`"'\<>`, r) }
	if sent == "" || len(sent) > maxRequestID || strings.ContainsFunc(sent, odd) {
		return strings.ToLower(rand.Text()[:16])
	}
	return sent
}

// slowLog returns a function to call when the request is over. It logs reads that took at least
// as long as slow; 0 means none.
func (c *call) slowLog(r *route, slow time.Duration, log *slog.Logger) (over func(took time.Duration)) {
	action := accesses[r.method+" "+r.name]
	if slow == 0 || action == "" {
		return func(time.Duration) {}
	}

	// Read everything now: the request must not be used later.
	read, id, status := c.read(action), c.id, c.status
	return func(took time.Duration) {
		if took >= slow {
			log.Warn("slow request", "request", id, "action", read.Action, "target", read.Target, "query", read.Query, "status", status, "took", took)
		}
	}
}
