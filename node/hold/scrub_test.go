package hold

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// readFiles counts how often each index file is read.
type readFiles struct {
	names []string
	bytes int64
	bad   string
	read  map[string]int
}

func (f *readFiles) Names() []string   { return slices.Clone(f.names) }
func (f *readFiles) Size(string) int64 { return f.bytes }
func (f *readFiles) Has(string) bool   { return true }
func (f *readFiles) times(want int) (bad []string) {
	for _, name := range f.names {
		if f.read[name] != want {
			bad = append(bad, fmt.Sprintf("%s %d times", name, f.read[name]))
		}
	}
	return bad
}

func (f *readFiles) Verify(_ context.Context, name string) error {
	f.read[name]++
	if name == f.bad {
		return errors.New("damaged")
	}
	return nil
}

// Every file is read once a week, and a damaged file does not stop the scrubber.
func TestScrubber_readsEveryFileOnceAWeek(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &readFiles{names: []string{"a", "b", "c", "d", "e", "f", "g"}, bad: "c", read: map[string]int{}}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- NewScrubber(f, slog.New(slog.DiscardHandler)).Run(ctx) }()
		for week := range 3 {
			time.Sleep(scrubRound + time.Minute)
			synctest.Wait()
			if bad := f.times(week + 1); bad != nil {
				t.Errorf("after week %d: %q were read", week+1, bad)
			}
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// A node that restarts every day reads every file in time, because it does not start with the same
// file each time.
func TestScrubber_reachesEveryFileDespiteRestarts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &readFiles{names: []string{"a", "b", "c", "d", "e", "f", "g"}, read: map[string]int{}}
		for range 200 {
			ctx, stop := context.WithTimeout(t.Context(), scrubRound/7+time.Minute)
			if err := NewScrubber(f, slog.New(slog.DiscardHandler)).Run(ctx); err != nil {
				t.Error(err)
			}
			stop()
		}
		for _, name := range f.names {
			if f.read[name] == 0 {
				t.Errorf("%s was never read in 200 days", name)
			}
		}
	})
}

// Large files are read at a limited rate, however few there are.
func TestScrubber_waitsLongerBeforeLargeFiles(t *testing.T) {
	t.Parallel()
	if got, want := scrubWait(1_000_000, scrubRate*60), time.Minute; got != want {
		t.Errorf("before a file of a minute's bytes: %v, want %v", got, want)
	}
	if got, want := scrubWait(7, 1), 24*time.Hour; got != want {
		t.Errorf("before one of seven small files: %v, want %v", got, want)
	}
}
