package ask

import (
	"context"
	"errors"
	"testing"

	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/clustertest"
	"github.com/shoalsearch/shoal/node/call"
)

// Turns of a thread are stopped while the third one is being answered.
func TestStopTurn_affectsOnlyThatTurn(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		turn      int
		stopped   bool
		elsewhere bool // watched at another node
		refused   bool // the stop is refused
	}{
		"this one":                     {turn: 2, stopped: true},
		"one before":                   {turn: 1, elsewhere: true},
		"the next one, about to begin": {turn: 3, elsewhere: true, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &remote{runs: newRuns()}
			stopped := false
			r.runs.turns["x"] = &Turn{number: 2, changed: make(chan struct{}), halt: func(why error) { stopped = errors.Is(why, errStopped) }}

			w, err := r.serve(t.Context(), &chatRequest{ID: "x", Turn: tt.turn})
			if err != nil || w.Elsewhere != tt.elsewhere || stopped {
				t.Errorf("watched: %v, %+v", err, w)
			}
			s, err := r.serve(t.Context(), &chatRequest{ID: "x", Turn: tt.turn, Stop: true})
			if err != nil || s.Elsewhere != tt.refused || stopped != tt.stopped {
				t.Errorf("stopped: %v, %+v: %v, want %v", err, s, stopped, tt.stopped)
			}
		})
	}
}

// late is a catalog whose view is old until the node asks the leader.
type late struct {
	*clustertest.World
	view  *catalog.View
	alone bool // without a leader
}

func (l *late) View() *catalog.View { return l.view }

func (l *late) Sync(context.Context) (uint64, error) {
	if l.alone {
		return 0, cluster.ErrNoLeader
	}
	l.view = l.World.View()
	return l.view.Index(), nil
}

func (l *late) Changed() <-chan struct{} { return nil }

func (l *late) Propose(context.Context, ...catalog.Command) (uint64, error) {
	return 0, errors.New("not in this test")
}

func (l *late) Self() string      { return "n1" }
func (l *late) Alive(string) bool { return true }
func (l *late) Leading() bool     { return false }

// Threads are looked up at a node whose view is old.
func TestThread_isFoundThoughThisNodeLags(t *testing.T) {
	t.Parallel()
	const id, other = "5b0c7a4e9d1f2a3b4c5d6e7f80912a3b", "00000000000000000000000000000000"
	w := clustertest.New(t, `{}`, 1)
	old := w.View()
	w.Do(beginTurn(id, true))

	for name, tt := range map[string]struct {
		id    string
		alone bool // without a leader
		busy  bool // the maximum of look-ups is running
		want  error
	}{
		"it is at the leader":               {id: id},
		"it is nowhere":                     {id: other, want: call.ErrNotFound},
		"nobody leads":                      {id: id, alone: true, want: call.ErrNoLeader},
		"nobody leads, and it is nowhere":   {id: other, alone: true, want: call.ErrNoLeader},
		"somebody tries ids":                {id: id, busy: true, want: call.ErrOverloaded},
		"what cannot be an id is not there": {id: "0123", alone: true, busy: true, want: call.ErrNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := &archive{catalog: &late{World: w, view: old, alone: tt.alone}, misses: make(chan struct{}, 1)}
			if tt.busy {
				a.misses <- struct{}{}
			}
			h, err := a.visibleOrNewThread(t.Context(), catalog.Operator(), tt.id)
			if !errors.Is(err, tt.want) || tt.want == nil && (err != nil || h == nil) {
				t.Errorf("%v, %v; want %v", h, err, tt.want)
			}
		})
	}
}

// A question is stopped that has ended, without this node knowing it.
func TestStopTurn_afterItsEndDoesNothing(t *testing.T) {
	t.Parallel()
	const id = "5b0c7a4e9d1f2a3b4c5d6e7f80912a3b"
	begin := beginTurn(id, true)
	again := beginTurn(id, false)
	end := func(fence uint64) *catalog.EndTurn {
		return &catalog.EndTurn{Thread: id, Fence: fence, Turn: beginTurn(id, true).Lost}
	}
	for name, tt := range map[string]struct {
		then  func(w *clustertest.World, fence uint64)
		fails bool
	}{
		"it goes on somewhere": {then: func(*clustertest.World, uint64) {}, fails: true},
		"it has ended":         {then: func(w *clustertest.World, fence uint64) { w.Do(end(fence)) }},
		"the next one runs": {then: func(w *clustertest.World, fence uint64) {
			w.Do(end(fence))
			w.Do(again)
		}},
		"the thread is gone": {then: func(w *clustertest.World, _ uint64) { w.Do(&catalog.DeleteThread{Thread: id}) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := clustertest.New(t, `{}`, 1)
			w.Do(begin)
			l := &late{World: w, view: w.View()}
			tt.then(w, w.View().Thread(id).Run.Fence)

			r := &remote{runs: newRuns(), nodes: l, pace: 1}
			f := &follower{archive: &archive{catalog: l, misses: make(chan struct{}, 1)}, remote: r, pace: 1}
			err := f.StopChat(t.Context(), catalog.Operator(), id)
			if errors.Is(err, call.ErrUnavailable) != tt.fails || err != nil && !tt.fails {
				t.Error(err)
			}
		})
	}
}
