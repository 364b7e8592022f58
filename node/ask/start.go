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

// begin has this node answer a question, as a turn of the thread that first makes
// known to the catalog.
func (s *starter) begin(ctx context.Context, p *plan, first *catalog.BeginTurn) (*Started, error) {
	// One place of this node, until the turn has one of its own.
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

	// The question is on its nodes before anybody is told that it was asked.
	fence, err := s.keeper.begin(ctx, first, report)
	if err != nil {
		return nil, beginError(err)
	}

	// Looked at only now that no other turn can end before this one: an older view may lack one.
	before := turnsOf(s.archive.catalog.View().Thread(first.Thread))
	report.First = before.events + 1 // numbers go on through the thread

	t := &Turn{
		Report: report,
		kit:    s.kit,
		keeper: s.keeper,
		asker:  p.asker,
		viewer: p.viewer,
		asked:  p.q,
		client: p.client,
		limit:  model.Limits(p.model),
		began:  now,
		fence:  fence,
		number: before.number,

		wake:    make(chan struct{}, 1), // one token is enough: it is for all there is
		changed: make(chan struct{}),
	}
	t.emit(Event{Kind: KindTurn, Text: p.q.Query})
	t.show(1)
	s.runs.start(t)
	return &Started{t.ID, before.events}, nil
}

// before is what stands in a thread before a turn.
type before struct {
	number int // of turns
	events int // of numbers that their events took
}

func turnsOf(h *catalog.Thread) before {
	if h == nil {
		return before{} // deleted right after it was begun
	}
	return before{len(h.Turns), h.Events()}
}
