package ask

import (
	"context"
	"errors"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/model"
	"github.com/shoalsearch/shoal/node/thread"
)

// starter begins turns on this node, and goes on with those of others.
type starter struct {
	archive *archive
	planner *planner
	kit     *kit
	keeper  *keeper
	runs    *runs
}

var errNothing = errors.New("nothing of it is on this node")

// begin has this node answer a question, as a turn of the thread that first makes
// known to the catalog.
func (s *starter) begin(ctx context.Context, p *plan, first *catalog.BeginTurn) (*Started, error) {
	// One place of this node, until the turn has one of its own.
	if err := s.runs.reserve(first.Thread); err != nil {
		return nil, err
	}
	defer s.runs.release(first.Thread)

	// The question is on its copies before anybody is told that it was asked.
	log, err := s.keeper.begin(ctx, first)
	if err != nil {
		return nil, beginError(err)
	}

	// Looked at only now that no other turn can end before this one: what h says may be older.
	before := turnsOf(s.archive.catalog.View().Thread(first.Thread))
	t := s.turn(first.Thread, before, p, log)

	// What was said earlier is in the thread: it is read from there, not kept twice.
	asked := p.q
	asked.Earlier = nil
	t.note(entry{Begun: &begun{Asker: p.asker, Question: asked, Began: t.began}})
	t.emit(Event{Kind: KindTurn, Text: p.q.Query})

	if err := t.append(ctx, t.out); err != nil {
		s.keeper.abandon(s.runs.end, t.ID, log.Fence())
		return nil, call.Fail(call.ErrUnavailable, "The question cannot be kept: %v", err)
	}

	t.out = []entry{{}} // so that the writer shows what is written
	s.runs.start(t, nil)
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

// turn makes a turn of a thread behind others.
func (s *starter) turn(id string, before before, p *plan, log *thread.Log) *Turn {
	now := s.kit.now()
	return &Turn{
		Report: Report{
			ID:     id,
			Query:  p.q.Query,
			Repos:  p.names,
			Model:  p.name,
			Status: Running,
			Began:  now,
			First:  before.events + 1, // numbers go on through the thread
			Sight:  p.sight,
		},

		kit:    s.kit,
		keeper: s.keeper,
		asker:  p.asker,
		viewer: p.viewer,
		asked:  p.q,
		client: p.client,
		limit:  model.Limits(p.model),
		began:  now,
		log:    log,
		number: before.number,

		wake:    make(chan struct{}, 1), // one token is enough: the writer takes all there is
		changed: make(chan struct{}),
	}
}

// resume goes on with a turn that the catalog gives to this node and that is
// not being answered here.
func (s *starter) resume(ctx context.Context, id string, fence uint64) {
	// Asked several times a second: only the first may begin it.
	if !s.runs.claim(id) {
		return
	}
	err := s.goOn(ctx, id, fence)

	// Another node has it, or this one stops: neither is an end of the turn.
	if err == nil || errors.Is(err, thread.ErrLost) || ctx.Err() != nil {
		return
	}

	// It would fail again each time it is looked after, and never end. Its place is free by
	// now: whoever is told of the end may ask the next question at once.
	s.kit.log.Error("a question cannot be gone on with", "err", err)
	s.keeper.abandon(ctx, id, fence)
}

// goOn begins a turn again whose place has been claimed, and gives up the place.
func (s *starter) goOn(ctx context.Context, id string, fence uint64) error {
	defer s.runs.release(id)
	t, from, err := s.resumed(ctx, id, fence)
	if err != nil {
		return err
	}
	s.runs.start(t, from)
	return nil
}

// resumed makes a turn of what is in its log.
func (s *starter) resumed(ctx context.Context, id string, fence uint64) (*Turn, *state, error) {
	h := s.archive.catalog.View().Thread(id)
	if h == nil || h.Run.Fence != fence {
		return nil, nil, thread.ErrLost
	}

	log, entries, err := s.keeper.resume(ctx, h)
	if err != nil {
		return nil, nil, err
	}

	p, err := readLog(entries)
	if err != nil {
		return nil, nil, err
	}

	if p.begun == nil || len(p.events) == 0 {
		return nil, nil, errNothing
	}

	// Read anew from the thread, as the asker may see it by now.
	q := p.begun.Question
	q.Earlier, err = s.archive.earlier(ctx, p.begun.Asker, h)
	if err != nil {
		return nil, nil, err
	}

	// Where this node cannot answer, the turn still has to end, with the reason.
	plan, problem := s.planner.plan(s.runs.end, p.begun.Asker, q)
	if problem != nil {
		plan = planless(p.begun.Asker, q)
	}

	// What watchers have seen stays as it was, with its numbers.
	t := s.turn(id, turnsOf(h), plan, log)
	t.began, t.Began = p.begun.Began, p.begun.Began
	t.events = p.events
	for _, e := range p.events {
		t.size += len(e.Text)
	}

	if p.report != nil {
		// All is said: the turn has only to be closed.
		t.Report = *p.report
		t.last = true
		t.out = []entry{{}}
		t.stir()
		return t, nil, nil
	}

	// The step that was under way is made again from its beginning.
	t.emit(Event{Kind: KindAgain})
	t.emit(Event{Kind: KindNote, Text: "The node that answered went away; another one goes on."})

	if problem != nil {
		t.Report.Status, t.Report.Error = Failed, "The node that goes on cannot answer: "+problem.Error()
		t.emit(Event{Kind: KindError, Text: t.Report.Error})
		t.emit(Event{Kind: KindDone, Text: string(Failed)})
	}
	return t, p.state, nil
}
