package clock

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestWait_endsWithTheTimeOrTheContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := Now()
		if !Wait(t.Context(), time.Hour) || Since(began) != time.Hour {
			t.Errorf("waited %v of an hour", Since(began))
		}

		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if left, ok := Left(ctx); left != time.Minute || !ok {
			t.Errorf("%v are left, %v", left, ok)
		}
		began = Now()
		if Wait(ctx, time.Hour) || Since(began) != time.Minute {
			t.Errorf("waited %v of a minute", Since(began))
		}
		if left, ok := Left(ctx); left != 0 || !ok {
			t.Errorf("%v are left after the end, %v", left, ok)
		}
		if Wait(ctx, 0) {
			t.Error("a wait under a context that has ended goes on")
		}
		if _, ok := Left(context.Background()); ok {
			t.Error("a context without a deadline has time left")
		}
		if d := In(time.Second).Sub(Now()); d != time.Second {
			t.Errorf("in a second is in %v", d)
		}
	})
}
