package ask

import (
	"context"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/call"
)

// A turn runs on one node; the catalog says on which. Any other one asks that
// for its events. Who may see what is for the node to say that the viewer asked.

// chatRequest asks a node for a turn of a thread that it answers.
type chatRequest struct {
	ID    string
	Turn  int // how many turns of the thread are before it
	After int
	Wait  time.Duration // for the first event, where there is none yet
	Stop  bool
}

type chatResponse struct {
	Report    Report
	Events    []Event
	Ended     bool // Events has the last one
	Elsewhere bool // the turn does not run here
}

var chatCall = call.To[chatRequest, chatResponse]("chat")

const (
	watchWait = 10 * time.Second
	askMargin = 5 * time.Second // that an answer may take beside Wait
)

// remote asks for a turn where it runs.
type remote struct {
	runs  *runs
	nodes Nodes
	net   call.Network
	pace  pace
}

func (r *remote) handle() { chatCall.Serve(r.net, r.serve) }

func (r *remote) serve(ctx context.Context, req *chatRequest) (*chatResponse, error) {
	t := r.runs.of(req.ID)
	switch {
	case t == nil:
		return &chatResponse{Elsewhere: true}, nil
	// What was asked for is over, and needs no stop any more.
	case req.Turn < t.number:
		return &chatResponse{Elsewhere: !req.Stop}, nil
	// This one is over, and what was asked for is about to begin here.
	case req.Turn > t.number:
		return &chatResponse{Elsewhere: true}, nil
	}

	if req.Stop {
		t.end(errStopped) // what was said until now is the answer's
	}

	// Where there is nothing yet the first event is waited for.
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
	// One that could not be kept has its end in the thread alone.
	return &chatResponse{t.Now(), events, ended, lost && !ended}, nil
}

// running is the turn of a thread that is being answered, with its events
// after a number. It waits for the first one.
func (r *remote) running(ctx context.Context, h *catalog.Thread, after int, wait time.Duration) (*chatResponse, error) {
	req := &chatRequest{ID: h.ID, Turn: len(h.Turns), After: after, Wait: wait}
	if h.Run.Node == r.nodes.Self() {
		return r.serve(ctx, req)
	}
	ctx, cancel := context.WithTimeout(ctx, wait+r.pace.of(askMargin))
	defer cancel()
	return chatCall.Ask(ctx, r.net, h.Run.Node, req)
}

// stop ends the turn of a thread that is being answered.
func (r *remote) stop(ctx context.Context, h *catalog.Thread) error {
	req := &chatRequest{ID: h.ID, Turn: len(h.Turns), Stop: true}
	var answer *chatResponse
	var err error
	// The same function here and there, as for events.
	if h.Run.Node == r.nodes.Self() {
		answer, err = r.serve(ctx, req)
	} else {
		answer, err = chatCall.Ask(ctx, r.net, h.Run.Node, req)
	}

	// Said, not hidden: a question that goes on goes on costing.
	if err != nil || answer.Elsewhere {
		return call.Fail(call.ErrUnavailable, "The node that answers this question cannot be reached now: try again in a moment.")
	}
	return nil
}
