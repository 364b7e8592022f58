package ask

import (
	"context"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/call"
)

// A turn runs on one node, which the catalog names. Other nodes ask that node for its events; the
// node that talks to the viewer filters what the viewer may see.

// chatRequest asks a node for the events of a turn that it runs.
type chatRequest struct {
	ID    string
	Turn  int // number of turns before it in the thread
	After int
	Wait  time.Duration // how long to wait for the first event
	Stop  bool
}

type chatResponse struct {
	Report    Report
	Events    []Event
	Ended     bool // Events contains the last one
	Elsewhere bool // the turn does not run on this node
}

var chatCall = call.To[chatRequest, chatResponse]("chat")

const (
	watchWait = 10 * time.Second
	askMargin = 5 * time.Second // time for the call beside Wait
)

// remote reads a turn on the node that runs it.
type remote struct {
	runs  *runs
	nodes Nodes
	net   call.Network
	pace  pace
}

func (r *remote) handle() { chatCall.Serve(r.net, r.serve) }

// serve answers another node with the events of a turn that runs here.
func (r *remote) serve(ctx context.Context, req *chatRequest) (*chatResponse, error) {
	t := r.runs.turnOf(req.ID)
	switch {
	case t == nil:
		return &chatResponse{Elsewhere: true}, nil
	// The requested turn is over, so there is nothing to stop.
	case req.Turn < t.number:
		return &chatResponse{Elsewhere: !req.Stop}, nil
	// The requested turn is a later one, which this node has not begun yet.
	case req.Turn > t.number:
		return &chatResponse{Elsewhere: true}, nil
	}

	if req.Stop {
		t.cancelTurn(errStopped) // what was said so far stays
	}

	// Wait for the first event if there is none yet.
	events, more, ended, lost := t.Events(req.After)
	if len(events) == 0 && !ended && !lost && req.Wait > 0 {
		timer := time.NewTimer(req.Wait)
		defer timer.Stop()
		select {
		case <-more:
		case <-timer.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}

		events, _, ended, lost = t.Events(req.After)
	}
	// The end of a lost turn is only in the thread.
	return &chatResponse{t.Now(), events, ended, lost && !ended}, nil
}

// readRunning returns the running turn of a thread, with its events after the given number. It waits
// up to wait for the first one.
func (r *remote) readRunning(ctx context.Context, h *catalog.Thread, after int, wait time.Duration) (*chatResponse, error) {
	req := &chatRequest{ID: h.ID, Turn: len(h.Turns), After: after, Wait: wait}
	if h.Run.Node == r.nodes.Self() {
		return r.serve(ctx, req)
	}
	ctx, cancel := context.WithTimeout(ctx, wait+r.pace.scale(askMargin))
	defer cancel()
	return chatCall.Ask(ctx, r.net, h.Run.Node, req)
}

// stopRunning ends the running turn of a thread.
func (r *remote) stopRunning(ctx context.Context, h *catalog.Thread) error {
	req := &chatRequest{ID: h.ID, Turn: len(h.Turns), Stop: true}
	var answer *chatResponse
	var err error
	if h.Run.Node == r.nodes.Self() {
		answer, err = r.serve(ctx, req)
	} else {
		answer, err = chatCall.Ask(ctx, r.net, h.Run.Node, req)
	}

	// Report the failure: a turn that goes on costs money.
	if err != nil || answer.Elsewhere {
		return call.Fail(call.ErrUnavailable, "The node that answers this question cannot be reached now: try again in a moment.")
	}
	return nil
}
