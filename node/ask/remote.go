package ask

import (
	"context"
	"sync"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/call"
)

// A turn runs on one node; the catalog says on which. Any other one asks that
// for its events. Who may see what is for the node to say that the viewer asked.

// chatRequest asks a node for the turn that it answers under a fence, or one of
// later.
type chatRequest struct {
	ID    string
	Fence uint64
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

// beginRequest asks a node to answer a question of a viewer whom another node
// has let in.
type beginRequest struct {
	Viewer   catalog.Viewer
	Question Question
}

var (
	chatCall  = call.To[chatRequest, chatResponse]("chat")
	beginCall = call.To[beginRequest, Started]("chat-begin")
)

const (
	watchWait = 10 * time.Second
	askMargin = 5 * time.Second // that an answer may take beside Wait
)

func (a *Asker) handle() {
	chatCall.Serve(a.d.Net, a.serveChat)
	beginCall.Serve(a.d.Net, func(ctx context.Context, req *beginRequest) (*Started, error) {
		return a.begin(ctx, req.Viewer, req.Question)
	})
}

func (a *Asker) serveChat(ctx context.Context, req *chatRequest) (*chatResponse, error) {
	a.mu.Lock()
	t := a.turns[req.ID]
	a.mu.Unlock()
	if t == nil {
		return &chatResponse{Elsewhere: true}, nil
	}

	if req.Stop {
		t.end(errStopped)
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
	return &chatResponse{t.Now(), events, ended, lost && !ended}, nil
}

// runningTurn is the turn of a thread that is being answered, with its events
// after a number. It waits for the first one.
func (a *Asker) runningTurn(ctx context.Context, h *catalog.Thread, after int, wait time.Duration) (*chatResponse, error) {
	req := &chatRequest{ID: h.ID, Fence: h.Run.Fence, After: after, Wait: wait}
	if h.Run.Node == a.d.Self {
		return a.serveChat(ctx, req)
	}
	ctx, cancel := context.WithTimeout(ctx, wait+a.scaled(askMargin))
	defer cancel()
	return chatCall.Ask(ctx, a.d.Net, h.Run.Node, req)
}

// stopTurn ends the turn of a thread that is being answered.
func (a *Asker) stopTurn(ctx context.Context, h *catalog.Thread) error {
	req := &chatRequest{ID: h.ID, Fence: h.Run.Fence, Stop: true}
	r, err := (*chatResponse)(nil), error(nil)
	if h.Run.Node == a.d.Self {
		r, err = a.serveChat(ctx, req)
	} else {
		r, err = chatCall.Ask(ctx, a.d.Net, h.Run.Node, req)
	}
	if err != nil || r.Elsewhere {
		return call.Fail(call.ErrUnavailable, "The node that answers this question cannot be reached now: try again in a moment.")
	}
	return nil
}

// recent keeps what was said in the turns that were read last. Nobody changes
// what it gives out.
type recent struct {
	mu    sync.Mutex
	turns map[string]*kept // by file
	order []string
}

const recentTurns = 32

func (r *recent) get(file string) *kept {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.turns[file]
}

func (r *recent) put(file string, k *kept) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.turns == nil {
		r.turns = map[string]*kept{}
	}

	if r.turns[file] != nil {
		return
	}

	r.turns[file], r.order = k, append(r.order, file)
	if len(r.order) > recentTurns {
		delete(r.turns, r.order[0])
		r.order = r.order[1:]
	}
}
