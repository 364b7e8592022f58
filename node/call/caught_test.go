package call

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
)

// A panic of a function of a group is repeated where the group is waited for, and its context ends.
func TestGroup_repeatsAPanicWhereItIsWaitedFor(t *testing.T) {
	t.Parallel()
	group, ctx := NewGroup(t.Context(), 0)
	group.Go(func() error { panic("one") })
	group.Go(func() error { <-ctx.Done(); return ctx.Err() })
	trouble := Caught(func() { _ = group.Wait() })
	if !strings.HasPrefix(trouble, "one\n") || !strings.Contains(trouble, "caught_test.go") {
		t.Errorf("%s", trouble)
	}
}

// Without a panic a group ends with its first error, and keeps to its limit.
func TestGroup_runsFewAtATimeAndReturnsTheFirstError(t *testing.T) {
	t.Parallel()
	wrong := errors.New("wrong")
	for _, want := range []error{nil, wrong} {
		group, _ := NewGroup(context.Background(), 2)
		var running, most atomic.Int64
		for i := range 20 {
			group.Go(func() error {
				if n := running.Add(1); n > most.Load() {
					most.Store(n)
				}
				defer running.Add(-1)
				if i == 7 {
					return want
				}
				return nil
			})
		}
		if err := group.Wait(); !errors.Is(err, want) || most.Load() > 2 {
			t.Errorf("%v, %d at a time", err, most.Load())
		}
	}
}
