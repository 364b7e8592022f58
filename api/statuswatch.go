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

// Limits of watches of the status.
const (
	maxStatusWatches = 32              // on one node
	statusWatchTime  = time.Hour       // of one watch; the client then starts another
	statusPause      = time.Second     // shortest pause between two reads of the status
	pausePerRead     = 10              // the pause is at least this many times the duration of a read
	statusRetry      = 5 * time.Second // retry time if there are too many watches
	diskSteps        = 1000            // smaller changes of free disk space than 1/diskSteps do not count
)

// statusWatch sends one client the status whenever it changes.
type statusWatch struct {
	state          state
	leaving        <-chan struct{} // closed when the server begins to stop
	reauthenticate func(context.Context) (catalog.Viewer, error)
	role           catalog.Role // of the viewer when the watch began
	lease          *lease

	lastDigest [sha256.Size]byte // of the last status that was stored to be sent
	next       []byte            // event to send; nil if nothing has changed
	took       time.Duration     // duration of the last read
	draining   bool              // this node is being drained
}

// watch handles GET /api/status?watch=true.
func (a *healthRoutes) watch(ctx context.Context, c *call) error {
	select {
	case a.watches <- struct{}{}:
	default:
		return overloaded("This node has as many watches of its status as it may: try again, watch at another node, or ask without watch from time to time.", statusRetry)
	}

	// The stream frees the place in a.watches when it ends. If it never begins, free it here.
	begun := false
	defer func() {
		if !begun {
			<-a.watches
		}
	}()

	// Read the status once before streaming, so that an error can have its own status.
	w := &statusWatch{state: a.state, leaving: a.leaving, reauthenticate: c.reauthenticate, role: c.viewer.Role, lease: c.lease}
	if err := w.readStatus(ctx); err != nil {
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

// run sends the status until the watch ends, and then the reason, unless the client has left.
func (w *statusWatch) run(ctx context.Context, out *bufio.Writer) error {
	err := w.sendChanges(ctx, out)
	if errors.Is(context.Cause(ctx), errPeerGone) {
		return err
	}
	return writeEvent(out, errorEvent(asFailure(ctx, err)))
}

// sendChanges sends each status that differs from the previous one, and a comment after a silence. It
// returns the reason why the watch must end.
func (w *statusWatch) sendChanges(ctx context.Context, out *bufio.Writer) error {
	keepAlive, lastWrite := layout.KeepAlive(out), clock.Now()
	for {
		switch {
		case w.next != nil:
			if err := writeEvent(out, w.next); err != nil {
				return err
			}
			w.next, lastWrite = nil, clock.Now()
			w.lease.end() // a watch holds no memory between two events
		case clock.Since(lastWrite) >= layout.QuietEvents:
			if err := keepAlive(); err != nil {
				return err
			}
			lastWrite = clock.Now()
		}

		// End after the status that shows the draining was sent.
		if w.draining {
			return &failure{Status: 503, Code: codeUnavailable, Message: "This node is being drained: watch at another one, or ask without watch from time to time.", RetryAfter: statusRetry}
		}

		if err := w.waitNext(ctx); err != nil {
			return err
		}
		if err := w.readStatus(ctx); err != nil {
			return err
		}
	}
}

// waitNext waits until the next read of the status is due. It fails if the watch must end before.
func (w *statusWatch) waitNext(ctx context.Context) error {
	timer := time.NewTimer(min(max(statusPause, pausePerRead*w.took), layout.QuietEvents))
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

// readStatus reads the status, and stores it as the next event if it has changed. It fails if the
// viewer may no longer read it, or has another role.
func (w *statusWatch) readStatus(ctx context.Context) error {
	began := clock.Now()
	ctx, cancel := context.WithTimeout(ctx, quickTimeout)
	defer cancel()

	// Authenticate again, because the key may have been revoked since.
	v, err := w.reauthenticate(ctx)
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
	return w.store(r)
}

// store makes a status the next event if it differs from the last one. It also notes whether this
// node is being drained.
func (w *statusWatch) store(r *node.StatusResponse) error {
	w.draining = slices.ContainsFunc(r.Members, func(m node.MemberStatus) bool { return m.ID == r.Node && m.Draining })

	digest, err := digestOf(r)
	if err != nil || digest == w.lastDigest {
		return err
	}

	text, err := reply.Encode(r)
	if err != nil {
		return err
	}
	if f := w.lease.resize(int64(len(text))); f != nil {
		return f
	}
	w.lastDigest, w.next = digest, slices.Concat([]byte(`{"type":"status","status":`), text, []byte("}"))
	return nil
}

// digestOf returns a digest of a status. Values that change all the time do not change it: the
// catalog's age, and small changes of free disk space.
func digestOf(s *node.StatusResponse) ([sha256.Size]byte, error) {
	steady := *s
	steady.CatalogAge = 0
	steady.Storage.DiskFree /= max(1, steady.Storage.DiskTotal/diskSteps)

	text, err := reply.Encode(&steady)
	return sha256.Sum256(text), err
}
