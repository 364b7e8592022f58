package api

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"time"

	"github.com/shoalsearch/shoal/api/layout"
	"github.com/shoalsearch/shoal/api/reply"
	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node"
)

// The bounds of watches of the status.
const (
	maxStatusWatches = 32              // at a node
	statusWatchTime  = time.Hour       // of one; whoever still wants to know begins another
	statusPause      = time.Second     // between two looks, at least
	statusRest       = 10              // times as long as a look took it rests at least, so that watches never keep a node busy
	statusRetry      = 5 * time.Second // for who found too many of them
	diskSteps        = 1000            // a change of the free disk by less than one of so many parts is none
)

// statusWatch tells one client the status whenever it has changed.
type statusWatch struct {
	state   state
	leaving <-chan struct{}
	again   func(context.Context) (catalog.Viewer, error)
	role    catalog.Role // of the viewer when the watch began
	lease   *lease

	told     [sha256.Size]byte // digest of the last status, of what counts as a change
	next     []byte            // event that is still to be written, nil where nothing has changed
	took     time.Duration     // for the last look
	draining bool              // this node is being drained
}

// watch is GET /api/status?watch=true.
func (a *healthRoutes) watch(ctx context.Context, c *call) error {
	select {
	case a.watches <- struct{}{}:
	default:
		return overloaded("This node has as many watches of its status as it may: try again, watch at another node, or ask without watch from time to time.", statusRetry)
	}

	// Given back here only where no stream begins.
	begun := false
	defer func() {
		if !begun {
			<-a.watches
		}
	}()

	// The first look decides whether the answer is a stream at all: before it a failure
	// has a status of its own.
	w := &statusWatch{state: a.state, leaving: a.leaving, again: c.again, role: c.viewer.Role, lease: c.lease}
	if err := w.look(ctx); err != nil {
		return err
	}

	c.mime = mimeSSE
	c.setHeader("Cache-Control", "no-cache, no-transform")
	c.setHeader("X-Accel-Buffering", "no")
	c.stream = func(out *bufio.Writer) error {
		defer func() { <-a.watches }()
		return w.run(ctx, out)
	}
	begun = true
	return nil
}

// run writes the status until the watch ends, and then why.
func (w *statusWatch) run(ctx context.Context, out *bufio.Writer) error {
	err := w.tell(ctx, out)
	if errors.Is(context.Cause(ctx), errPeerGone) {
		return err
	}
	return writeEvent(out, errorEvent(asFailure(ctx, err)))
}

// tell writes each status that differs from the one before. It returns why it cannot go on.
func (w *statusWatch) tell(ctx context.Context, out *bufio.Writer) error {
	alive, spoke := layout.KeepAlive(out), clock.Now()
	for {
		switch {
		case w.next != nil:
			if err := writeEvent(out, w.next); err != nil {
				return err
			}
			w.next, spoke = nil, clock.Now()
			w.lease.end() // a watch holds nothing between two events
		case clock.Since(spoke) >= layout.QuietEvents:
			if err := alive(); err != nil {
				return err
			}
			spoke = clock.Now()
		}

		// Told before: the last status shows that it is so.
		if w.draining {
			return &failure{Status: 503, Code: codeUnavailable, Message: "This node is being drained: watch at another one, or ask without watch from time to time.", RetryAfter: statusRetry}
		}

		if err := w.rest(ctx); err != nil {
			return err
		}
		if err := w.look(ctx); err != nil {
			return err
		}
	}
}

// rest waits until the next look, or fails with what ends the watch.
func (w *statusWatch) rest(ctx context.Context) error {
	timer := time.NewTimer(min(max(statusPause, statusRest*w.took), layout.QuietEvents))
	defer timer.Stop()

	select {
	case <-timer.C:
		return nil
	case <-w.leaving:
		return stopping(nil)
	case <-ctx.Done():
	}

	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &failure{Status: 504, Code: codeTimeout, Message: "A watch of the status lasts an hour: begin another one."}
	}
	return context.Cause(ctx)
}

// look reads the status, and keeps it as the next event where it has changed.
func (w *statusWatch) look(ctx context.Context) error {
	began := clock.Now()
	ctx, cancel := context.WithTimeout(ctx, quickTimeout)
	defer cancel()

	// Since the last look a key may have been revoked, or rights taken away.
	v, err := w.again(ctx)
	if err != nil {
		return err
	}
	if v.Role != w.role {
		return &failure{Status: 403, Code: codeForbidden, Message: "Your role has changed since this watch began: begin another one."}
	}

	r, err := w.state.Status(ctx, v)
	if err != nil {
		return err
	}
	w.took = clock.Since(began)
	return w.keep(r)
}

// keep makes a status the next event if it differs from the last one.
func (w *statusWatch) keep(r *node.StatusResponse) error {
	w.draining = slices.ContainsFunc(r.Members, func(m node.MemberStatus) bool { return m.ID == r.Node && m.Draining })

	digest, err := digestOf(r)
	if err != nil || digest == w.told {
		return err
	}

	text, err := reply.Encode(r)
	if err != nil {
		return err
	}
	if f := w.lease.set(int64(len(text))); f != nil {
		return f
	}
	w.told, w.next = digest, slices.Concat([]byte(`{"type":"status","status":`), text, []byte("}"))
	return nil
}

// digestOf is the same for two statuses that differ only in what changes all the time:
// how old the catalog may be, and a little of the free disk.
func digestOf(s *node.StatusResponse) ([sha256.Size]byte, error) {
	steady := *s
	steady.CatalogAge = 0
	steady.Storage.DiskFree /= max(1, steady.Storage.DiskTotal/diskSteps)

	text, err := reply.Encode(&steady)
	return sha256.Sum256(text), err
}
