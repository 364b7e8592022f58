package call

import (
	"context"
	"testing"
	"time"
)

// Long work makes room for others if the next lane has a free place. At the end all places are
// free again.
func TestLane_longWorkMovesToTheNextLane(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	l, next := NewLane("searches", 1, 8), NewLane("searches", 1, 0)

	// The second begins before the first ends.
	first, _, err := l.EnterLong(ctx, time.Millisecond, next)
	if err != nil {
		t.Fatal(err)
	}
	second, _, err := l.EnterLong(ctx, time.Millisecond, next)
	if err != nil {
		t.Fatal(err)
	}

	// Both lanes are full: a third one waits until one ends.
	began := make(chan func())
	go func() {
		third, _, err := l.EnterLong(ctx, time.Hour, next)
		if err != nil {
			t.Error(err)
		}
		began <- third
	}()
	for waiting := 0; waiting == 0; _, waiting = l.Busy() {
	}
	if running, _ := next.Busy(); running != 1 {
		t.Errorf("%d run in the next lane, want 1", running)
	}
	second()
	third := <-began

	// The first had moved to the next lane, so that lane has a free place.
	first()
	third()
	for _, lane := range []*Lane{l, next} {
		if running, waiting := lane.Busy(); running+waiting != 0 {
			t.Errorf("%d run and %d wait in the end", running, waiting)
		}
	}

	ended, cancel := context.WithCancel(ctx)
	cancel()
	held, _, _ := l.Enter(ctx)
	if _, _, err := l.EnterLong(ended, time.Hour, next); err == nil {
		t.Error("an ended request has begun")
	}
	held()
}
