package run

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestFlights_runWorkOnceForConcurrentCallers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, owner := NewFlights[int](100), NewTasks()
		defer owner.Close()
		var runs, ended atomic.Int32
		work := func(ctx context.Context) (int, error) {
			runs.Add(1)
			select {
			case <-time.After(time.Second):
				return 7, nil
			case <-ctx.Done():
				ended.Add(1)
				return 0, ctx.Err()
			}
		}
		size := func(int) int64 { return 10 }
		ctx, cancel := context.WithCancel(t.Context())
		for i := range 3 {
			of := t.Context()
			if i == 0 {
				of = ctx
			}
			go func() {
				n, err := f.Do(of, owner, "key", size, work)
				if i == 0 != (err != nil) || err == nil && n != 7 {
					t.Errorf("%d: %d, %v", i, n, err)
				}
			}()
			synctest.Wait()
		}
		cancel() // one of three callers leaves: the others get the answer
		<-time.After(2 * time.Second)
		if n, err := f.Do(t.Context(), owner, "key", size, work); n != 7 || err != nil || runs.Load() != 1 || ended.Load() != 0 {
			t.Errorf("%d, %v after %d runs", n, err, runs.Load())
		}
		left, leave := context.WithCancel(t.Context())
		go func() { _, _ = f.Do(left, owner, "other", size, work) }()
		synctest.Wait()
		leave() // nobody waits any more
		synctest.Wait()
		if runs.Load() != 2 || ended.Load() != 1 || len(f.running) != 0 {
			t.Errorf("%d runs, %d of them ended, %d go on", runs.Load(), ended.Load(), len(f.running))
		}
		for i := range 20 {
			go func() { _, _ = f.Do(t.Context(), owner, fmt.Sprint(i), size, work) }()
		}
		<-time.After(2 * time.Second)
		synctest.Wait()
		if n := f.cached.Size(); n != 100 { // ten answers
			t.Errorf("%d bytes are remembered, want 100", n)
		}
	})
}
