package ask

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/clustertest"
	"github.com/shoalsearch/shoal/node/thread"
)

// ending is a catalog and a network of one node. It says when a turn has ended.
type ending struct {
	*late
	ended func()
}

func (e *ending) Propose(_ context.Context, cmds ...catalog.Command) (uint64, error) {
	e.World.Do(cmds...)
	e.ended()
	return e.World.View().Index(), nil
}

func (e *ending) Handle(string, cluster.Handler) {}

func (e *ending) Call(context.Context, string, string, []byte) ([]byte, error) {
	return nil, errors.New("there is no other node")
}

// Whoever is told that a question cannot be gone on with may ask the next one of its
// thread at once.
func TestTheNextQuestionFollowsALostOne(t *testing.T) {
	t.Parallel()
	const id = "5b0c7a4e9d1f2a3b4c5d6e7f80912a3b"
	w := clustertest.New(t, `{}`, 1)
	w.Do(&catalog.BeginTurn{Thread: id, New: true, Owner: "operator", Node: "n1", Copies: []string{"n1"}})
	e := &ending{late: &late{World: w, view: w.View()}}
	runs := newRuns(time.Now)

	told := false
	e.ended = func() {
		told = true
		if err := runs.reserve(id); err != nil {
			t.Errorf("the next question: %v", err)
		}
	}
	store := thread.New(thread.Deps{Dir: t.TempDir(), Net: e, View: w.View, Propose: e.Propose, Alive: e.Alive, Now: time.Now, Log: slog.New(slog.DiscardHandler), Timing: 1, Replicas: 1})
	s := &starter{
		archive: &archive{catalog: e}, kit: &kit{log: slog.New(slog.DiscardHandler)}, runs: runs,
		keeper: &keeper{catalog: e, nodes: e, store: store, log: slog.New(slog.DiscardHandler)},
	}
	s.resume(t.Context(), id, w.View().Thread(id).Run.Fence)

	for h := range w.View().RunningThreads() {
		t.Errorf("not ended: %+v", h)
	}
	if !told {
		t.Error("nobody was told of the end")
	}

	// The place is that of the next question now: nobody else begins it.
	if runs.claim(id) {
		t.Error("the place of the next question was taken")
	}
}
