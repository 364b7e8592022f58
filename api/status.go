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
	watches chan struct{}   // has one element for each running watch of the status
}

func (a *healthRoutes) rows() []route {
	return []route{
		newRoute("GET", "/api/status", accessRead, statusWatchTime, a.status),
		newRoute("GET", "/api/version", accessOpen, 0, a.tellVersion),
		newRoute("GET", "/api/health", accessOpen, 0, a.health),
		newRoute("GET", "/livez", accessOpen, 0, a.live),
		newRoute("GET", "/readyz", accessOpen, 0, a.ready),
	}
}

// status handles GET /api/status.
func (a *healthRoutes) status(ctx context.Context, c *call) error {
	p := c.params()
	watched := p.flag("watch", false)
	if err := p.err(); err != nil {
		return err
	}
	if watched {
		return a.watch(ctx, c)
	}

	// The route's timeout is for watches; one status is quick.
	ctx, cancel := context.WithTimeout(ctx, quickTimeout)
	defer cancel()
	return c.answer(a.state.Status(ctx, c.viewer))
}

// tellVersion handles GET /api/version.
func (a *healthRoutes) tellVersion(_ context.Context, c *call) error {
	return c.json(struct {
		Version string `json:"version"`
	}{a.version})
}

// health handles GET /api/health: the process is running.
func (a *healthRoutes) health(_ context.Context, c *call) error {
	return c.json(struct {
		Status string `json:"status"`
	}{"ok"})
}

// live handles GET /livez: the process is running, whatever its state.
func (a *healthRoutes) live(_ context.Context, c *call) error {
	c.mime, c.body = mimeText, []byte("ok\n")
	return nil
}

// ready handles GET /readyz: a load balancer should send requests here.
func (a *healthRoutes) ready(_ context.Context, c *call) error {
	// The server stops before its node, which does not know yet.
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
