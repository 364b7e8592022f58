package git

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestMirrorsShareABoundOnProcesses opens more mirrors than there may be
// processes: those that rest make room, those that work are waited for.
func TestMirrorsShareABoundOnProcesses(t *testing.T) {
	t.Parallel()
	r, ctx := newRepo(t), within(t)
	h := &stream{}
	h.commit("refs/heads/main", 1, "Ann", "one", "a", "text\n")
	r.load(h)
	head := r.git("rev-parse", "main")
	const most = 3
	ps := NewProcesses(most, time.Now)
	var mirrors []*Mirror
	for range 8 {
		m := ps.Open(r.dir)
		t.Cleanup(func() { m.Close() })
		mirrors = append(mirrors, m)
	}
	running := func() int { return most - len(ps.free) }
	for range 3 {
		for _, m := range mirrors {
			if _, err := m.Stat(ctx, head, "a"); err != nil {
				t.Fatal(err)
			}
			if n := running(); n > most {
				t.Fatalf("%d processes", n)
			}
		}
	}
	// All are at work: the next reader waits, and goes on when one is done.
	release, entered := make(chan struct{}), make(chan error, most)
	busy := make(chan struct{}, most)
	for _, m := range mirrors[:most] {
		go func() {
			entered <- m.pool.with(ctx, func(*catFile) error {
				busy <- struct{}{}
				<-release
				return nil
			})
		}()
	}
	for range most {
		<-busy
	}
	short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	if _, err := mirrors[most].Stat(short, head, "a"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a reader beyond the bound: %v", err)
	}
	waited := make(chan error, 1)
	go func() {
		_, err := mirrors[most].Stat(ctx, head, "a")
		waited <- err
	}()
	close(release)
	for range most {
		if err := <-entered; err != nil {
			t.Error(err)
		}
	}
	if err := <-waited; err != nil {
		t.Errorf("the reader that waited: %v", err)
	}
	for _, m := range mirrors {
		m.Close()
	}
}

func TestAQuestionIsAnsweredOnceForAllWhoAsk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, owner := flights[int]{most: 100}, newTasks()
		defer owner.close()
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
				n, err := f.do(of, owner, "key", size, work)
				if i == 0 != (err != nil) || err == nil && n != 7 {
					t.Errorf("%d: %d, %v", i, n, err)
				}
			}()
			synctest.Wait()
		}
		cancel() // one of three leaves: the others have their answer
		<-time.After(2 * time.Second)
		if n, err := f.do(t.Context(), owner, "key", size, work); n != 7 || err != nil || runs.Load() != 1 || ended.Load() != 0 {
			t.Errorf("%d, %v after %d runs", n, err, runs.Load())
		}
		left, leave := context.WithCancel(t.Context())
		go func() { _, _ = f.do(left, owner, "other", size, work) }()
		synctest.Wait()
		leave() // nobody waits any more
		synctest.Wait()
		if runs.Load() != 2 || ended.Load() != 1 || len(f.running) != 0 {
			t.Errorf("%d runs, %d of them ended, %d go on", runs.Load(), ended.Load(), len(f.running))
		}
		for i := range 20 {
			go func() { _, _ = f.do(t.Context(), owner, fmt.Sprint(i), size, work) }()
		}
		<-time.After(2 * time.Second)
		synctest.Wait()
		if f.bytes > 100 || len(f.known) != 10 || len(f.order) != 10 {
			t.Errorf("%d bytes, %d answers", f.bytes, len(f.known))
		}
	})
}
