package ask

import (
	"context"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/model"
)

// starter begins turns on this node.
type starter struct {
	archive *archive
	kit     *kit
	keeper  *keeper
	runs    *runs
}

// startTurn starts a turn on this node. first registers it in the catalog.
func (s *starter) startTurn(ctx context.Context, p *plan, first *catalog.BeginTurn) (*Started, error) {
	// Reserve a place until the turn is registered.
	if err := s.runs.reserve(first.Thread); err != nil {
		return nil, err
	}
	defer s.runs.release(first.Thread)

	now := s.kit.now()
	report := Report{
		ID:     first.Thread,
		Query:  p.q.Query,
		Repos:  p.names,
		Model:  p.name,
		Status: Running,
		Began:  now,
		Sight:  p.sight,
	}

	// Store the question before confirming it to the asker.
	fence, err := s.keeper.beginTurn(ctx, first, report)
	if err != nil {
		return nil, beginError(err)
	}

	// Read the view only now: an older one may lack a turn that has ended. From here on no other
	// turn of the thread can end first.
	before := turnsOf(s.archive.catalog.View().Thread(first.Thread))
	report.First = before.events + 1 // numbers continue through the thread

	t := &Turn{
		Report:   report,
		kit:      s.kit,
		keeper:   s.keeper,
		asker:    p.asker,
		viewer:   p.viewer,
		question: p.q,
		client:   p.client,
		limit:    model.Limits(p.model),
		began:    now,
		fence:    fence,
		number:   before.number,

		wake:    make(chan struct{}, 1), // one token is enough: it covers all pending events
		changed: make(chan struct{}),
	}
	t.emit(Event{Kind: KindTurn, Text: p.q.Query})
	t.showEvents(1)
	s.runs.startTurn(t)
	return &Started{t.ID, before.events}, nil
}

// before counts what a thread had before a turn.
type before struct {
	number int // turns
	events int // numbers used by their events
}

func turnsOf(h *catalog.Thread) before {
	if h == nil {
		return before{} // deleted since the turn began
	}
	return before{len(h.Turns), h.Events()}
}
