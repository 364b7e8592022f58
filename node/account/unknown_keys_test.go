package account

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoalsearch/shoal/node/call"
)

// keyNumber returns the HMAC of a test's key.
func keyNumber(i int) (sum [sha256.Size]byte) {
	binary.BigEndian.PutUint64(sum[:], uint64(i))
	return sum
}

func TestUnknownKeys_manyKeysCauseFewQuestionsToTheLeader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		u := newUnknownKeys(func(context.Context) (uint64, error) {
			asked++
			time.Sleep(20 * time.Millisecond) // a round trip
			return 1, nil
		}, time.Now)
		began := time.Now()
		for round := range 10 {
			var wg sync.WaitGroup
			for i := range 100 {
				wg.Go(func() {
					if err := u.askLeader(t.Context(), keyNumber(100*round+i)); err != nil {
						t.Errorf("key %d: %v", i, err)
					}
				})
			}
			wg.Wait()
		}
		// The first two questions come at once, the others after gaps.
		if most := 2 + int(time.Since(began)/askGap); asked > most {
			t.Errorf("1,000 unknown keys were %d questions to the leader in %v, want at most %d", asked, time.Since(began), most)
		}
	})
}

func TestUnknownKeys_rejectedKeysAreRemembered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		u := newUnknownKeys(func(context.Context) (uint64, error) { asked++; return 1, nil }, time.Now)
		ask := func(want int) {
			t.Helper()
			if err := u.askLeader(t.Context(), keyNumber(1)); err != nil || asked != want {
				t.Errorf("asked %d times, error %v; want %d", asked, err, want)
			}
		}
		ask(1)
		ask(1)
		time.Sleep(rejectedFor - time.Millisecond)
		ask(1)
		time.Sleep(time.Millisecond)
		ask(2)
		for i := range 3 * rejectedMost {
			u.rememberRejected(keyNumber(i))
		}
		if len(u.rejected) > rejectedMost {
			t.Errorf("%d rejected keys are remembered, want at most %d", len(u.rejected), rejectedMost)
		}
	})
}

// A question that was sent before a key was created proves nothing about it.
func TestUnknownKeys_questionSentBeforeTheKeyWasMadeProvesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan struct{})
		u := newUnknownKeys(func(context.Context) (uint64, error) { <-answer; return 1, nil }, time.Now)
		done := make(chan int, 2)
		for i := range 2 {
			go func() { u.askLeader(t.Context(), keyNumber(i)); done <- i }()
			synctest.Wait()
		}
		answer <- struct{}{}
		synctest.Wait()
		if len(done) != 1 || <-done != 0 {
			t.Errorf("the answer to the question of the first key was taken for the second's")
		}
		answer <- struct{}{}
		if last := <-done; last != 1 {
			t.Errorf("the second question was for key %d", last)
		}
	})
}

func TestUnknownKeys_failWithoutALeader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		u := newUnknownKeys(func(ctx context.Context) (uint64, error) { <-ctx.Done(); return 0, ctx.Err() }, time.Now)
		var wg sync.WaitGroup
		for i := range askWaiting {
			wg.Go(func() {
				if err := u.askLeader(t.Context(), keyNumber(i)); !errors.Is(err, call.ErrNoLeader) {
					t.Errorf("a key that nobody could be asked about gives %v, want no leader", err)
				}
			})
		}
		synctest.Wait()
		if err := u.askLeader(t.Context(), keyNumber(askWaiting)); !errors.Is(err, call.ErrOverloaded) {
			t.Errorf("one more than may wait gives %v, want overloaded", err)
		}
		began := time.Now()
		wg.Wait()
		if took := time.Since(began); took > 2*askTime+askGap {
			t.Errorf("they waited for %v", took)
		}
	})
}
