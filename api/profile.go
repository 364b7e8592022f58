package api

import (
	"bytes"
	"context"
	"runtime/pprof"
	"runtime/trace"
	"strconv"
	"time"

	"github.com/shoalsearch/shoal/node/account"
	nodecall "github.com/shoalsearch/shoal/node/call"
)

// How long a CPU profile or trace takes, in seconds.
const (
	defaultProfileSeconds = 10
	maxProfileSeconds     = 60
)

// profileRoutes handles profiles, at the paths of net/http/pprof.
type profileRoutes struct{}

func (a profileRoutes) routes() []route {
	return []route{newRoute("GET", "/debug/pprof/{profile}", accessOwner, streamTimeout, ownerHandler(a.serveProfile))}
}

// serveProfile handles GET /debug/pprof/{profile}: "profile" for CPU time, "trace", or one of
// [pprof.Profiles]. The answer is a file for `go tool pprof`, or of a trace for `go tool trace`.
func (a profileRoutes) serveProfile(ctx context.Context, c *call, _ account.Owner) error {
	var b bytes.Buffer
	var err error
	switch name := c.pathValues[0]; name {
	case "profile":
		err = a.runProfile(ctx, c, func() error { return pprof.StartCPUProfile(&b) }, pprof.StopCPUProfile)
	case "trace":
		err = a.runProfile(ctx, c, func() error { return trace.Start(&b) }, trace.Stop)
	default:
		p := pprof.Lookup(name)
		if p == nil {
			return unknownPath(c.path)
		}
		err = p.WriteTo(&b, 0) // 0: as a file for go tool pprof
	}
	if err != nil {
		return err
	}
	c.mime, c.body = "application/octet-stream", b.Bytes()
	return nil
}

// runProfile calls start, waits for the requested number of seconds, and calls stop. start fails
// while another such profile runs.
func (profileRoutes) runProfile(ctx context.Context, c *call, start func() error, stop func()) error {
	seconds := defaultProfileSeconds
	if text, ok := c.arg("seconds"); ok {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxProfileSeconds {
			return invalidParams("seconds must be a whole number from 1 to %d", maxProfileSeconds)
		}
		seconds = n
	}

	if err := start(); err != nil {
		return nodecall.Fail(nodecall.ErrUnable, "another profile is being taken: try again when it is over")
	}
	defer stop()
	select {
	case <-time.After(time.Duration(seconds) * time.Second):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
