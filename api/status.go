package api

import (
	"context"
	"strings"
)

// healthRoutes handles health, status and version.
type healthRoutes struct {
	state   state
	version string
	leaving <-chan struct{} // closed when the server begins to stop
	watches chan struct{}   // has one element for each running watch of the status; its capacity limits them
}

func (a *healthRoutes) routes() []route {
	return []route{
		newRoute("GET", "/api/status", accessRead, statusWatchTime, a.status),
		newRoute("GET", "/api/version", accessOpen, 0, a.showVersion),
		newRoute("GET", "/api/health", accessOpen, 0, a.health),
		newRoute("GET", "/livez", accessOpen, 0, a.live),
		newRoute("GET", "/readyz", accessOpen, 0, a.ready),
	}
}

// status handles GET /api/status: one status, or with watch=true a stream.
func (a *healthRoutes) status(ctx context.Context, c *call) error {
	p := c.params()
	watched := p.flag("watch", false)
	if err := p.err(); err != nil {
		return err
	}
	if watched {
		return a.watch(ctx, c)
	}

	// The route's timeout is that of watches. A single status must be quick.
	ctx, cancel := context.WithTimeout(ctx, quickTimeout)
	defer cancel()
	return c.answer(a.state.Status(ctx, c.viewer))
}

// showVersion handles GET /api/version.
func (a *healthRoutes) showVersion(_ context.Context, c *call) error {
	return c.json(struct {
		Version string `json:"version"`
	}{a.version})
}

// health handles GET /api/health, which succeeds while the process runs.
func (a *healthRoutes) health(_ context.Context, c *call) error {
	return c.json(struct {
		Status string `json:"status"`
	}{"ok"})
}

// live handles GET /livez, which succeeds while the process runs, whatever the node's state.
func (a *healthRoutes) live(_ context.Context, c *call) error {
	c.mime, c.body = mimeText, []byte("ok\n")
	return nil
}

// ready handles GET /readyz, which succeeds if a load balancer should send requests here.
func (a *healthRoutes) ready(_ context.Context, c *call) error {
	// The server begins to stop before its node, so Ready alone would not report it.
	r := a.state.Ready()
	select {
	case <-a.leaving:
		r.Ready, r.Reasons = false, append(r.Reasons, "stopping")
	default:
	}
	if !r.Ready {
		return &failure{Status: 503, Code: codeNotReady, Message: "Not ready: " + strings.Join(r.Reasons, "; ")}
	}
	c.mime, c.body = mimeText, []byte("ok\n")
	return nil
}
