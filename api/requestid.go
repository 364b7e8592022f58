package api

import (
	"crypto/rand"
	"log/slog"
	"strings"
	"time"
)

// headerRequest is the header with the id of a request, which the client sends or the node makes. The
// answer and every log line about the request have it.
const headerRequest = "X-Request-Id"

// maxRequestID limits a client's request id, in bytes.
const maxRequestID = 128

// requestID returns the id that a client has sent. It returns a new id if the client has sent none,
// one that is too long, or one that could confuse readers of a log.
func requestID(sent string) string {
	isUnsafe := func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`"'\<>`, r) }
	if sent == "" || len(sent) > maxRequestID || strings.ContainsFunc(sent, isUnsafe) {
		return strings.ToLower(rand.Text()[:16])
	}
	return sent
}

// slowLog returns a function to call with the duration of the request when its answer is sent. The
// function logs a read that took at least slow. If slow is 0, it logs nothing.
func (c *call) slowLog(r *route, slow time.Duration, log *slog.Logger) (logIfSlow func(took time.Duration)) {
	action := accesses[r.method+" "+r.name]
	if slow == 0 || action == "" {
		return func(time.Duration) {}
	}

	// Read what the log line needs now, because fasthttp reuses the request after the answer.
	read, id, status := c.read(action), c.id, c.status
	return func(took time.Duration) {
		if took >= slow {
			log.Warn("slow request", "request", id, "action", read.Action, "target", read.Target, "query", read.Query, "status", status, "took", took)
		}
	}
}
