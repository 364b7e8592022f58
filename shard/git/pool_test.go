package git

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestGitProcesses_mirrorsShareTheirLimit opens more mirrors than there may be processes. Idle
// processes end to make room, and a reader waits while all others are busy.
func TestGitProcesses_mirrorsShareTheirLimit(t *testing.T) {
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
	running := func() int { return most - ps.bound.Left() }
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
	// All processes are busy. The next reader waits, and continues when one is free.
	release, entered := make(chan struct{}), make(chan error, most)
	busy := make(chan struct{}, most)
	for _, m := range mirrors[:most] {
		go func() {
			entered <- m.with(ctx, func(reader) error {
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
