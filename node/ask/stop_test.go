package ask

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/clustertest"
	"github.com/shoalsearch/shoal/node/call"
)

// TestARequestMeansOneTurn asks for turns of a thread while the third one is
// answered.
func TestARequestMeansOneTurn(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		turn      int
		stopped   bool
		elsewhere bool // where it is watched
		refused   bool // the stop is
	}{
		"this one":                     {turn: 2, stopped: true},
		"one before":                   {turn: 1, elsewhere: true},
		"the next one, about to begin": {turn: 3, elsewhere: true, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &remote{runs: newRuns(time.Now)}
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

// late is a catalog of which this node has an old view until it asks the leader.
type late struct {
	*clustertest.World
	view *catalog.View
}

func (l *late) View() *catalog.View { return l.view }

func (l *late) Sync(context.Context) (uint64, error) {
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

// TestWhatIsOverNeedNotBeStopped stops a question of which this node does not know
// yet what became of it.
func TestWhatIsOverNeedNotBeStopped(t *testing.T) {
	t.Parallel()
	const id = "5b0c7a4e9d1f2a3b4c5d6e7f80912a3b"
	begin := &catalog.BeginTurn{Thread: id, New: true, Owner: "operator", Node: "n1", Copies: []string{"n1"}}
	again := &catalog.BeginTurn{Thread: id, Owner: "operator", Node: "n1", Copies: []string{"n1"}}
	end := func(fence uint64) *catalog.EndTurn { return &catalog.EndTurn{Thread: id, Fence: fence} }
	for name, tt := range map[string]struct {
		then    func(w *clustertest.World, fence uint64)
		here    bool // it is answered here
		stopped bool
		fails   bool
	}{
		"it goes on somewhere": {then: func(*clustertest.World, uint64) {}, fails: true},
		"it has ended":         {then: func(w *clustertest.World, fence uint64) { w.Do(end(fence)) }},
		"the next one runs": {then: func(w *clustertest.World, fence uint64) {
			w.Do(end(fence))
			w.Do(again)
		}},
		"the thread is gone": {then: func(w *clustertest.World, _ uint64) { w.Do(&catalog.DeleteThread{Thread: id}) }},
		"it has moved here": {then: func(w *clustertest.World, fence uint64) {
			w.Do(&catalog.MoveRun{Thread: id, Fence: fence, Node: "n1", Copies: []string{"n1"}})
		}, here: true, stopped: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := clustertest.New(t, `{}`, 1)
			w.Do(begin)
			l := &late{w, w.View()}
			tt.then(w, w.View().Thread(id).Run.Fence)

			r := &remote{runs: newRuns(time.Now), nodes: l, pace: 1}
			stopped := false
			if tt.here {
				r.runs.turns[id] = &Turn{changed: make(chan struct{}), halt: func(error) { stopped = true }}
			}
			f := &follower{archive: &archive{catalog: l, misses: make(chan struct{}, 1)}, remote: r, pace: 1}
			err := f.StopChat(t.Context(), catalog.Operator(), id)
			if errors.Is(err, call.ErrUnavailable) != tt.fails || err != nil && !tt.fails || stopped != tt.stopped {
				t.Errorf("%v, stopped %v", err, stopped)
			}
		})
	}
}
