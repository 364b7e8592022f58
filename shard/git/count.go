package git

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/shoalsearch/shoal/node/lru"
	"github.com/shoalsearch/shoal/shard/git/pack"
	"github.com/shoalsearch/shoal/shard/git/run"
)

const (
	countTime = 30 * time.Second       // for counting what a filter lets through
	countWait = 300 * time.Millisecond // that a reader waits for it
	countMost = 2                      // at a time, of one mirror
)

// counter counts the commits of one mirror in the background: whoever asks waits
// a moment only, and a count that takes longer is there when somebody asks again.
type counter struct {
	known *lru.Cache[string, int] // by filter

	mu      sync.Mutex               // guards the field below
	running map[string]chan struct{} // by filter; closed at the end
}

func newCounter() counter {
	return counter{known: lru.New[string, int](manyAnswers), running: map[string]chan struct{}{}}
}

// start counts for a key unless that is done already, and returns when it ends;
// nil when too much is counted already, or the owner is closed.
func (c *counter) start(owner *run.Tasks, key string, count func(ctx context.Context) (int, error)) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if done, ok := c.running[key]; ok {
		return done
	}

	// Beyond that nobody waits for an exact number.
	if len(c.running) == countMost {
		return nil
	}

	done := make(chan struct{})
	started := owner.Run(func() {
		if n, err := count(owner.Context); err == nil {
			c.known.Put(key, n, 1)
		}

		c.mu.Lock()
		delete(c.running, key)
		c.mu.Unlock()
		close(done)
	})
	if !started {
		return nil
	}

	c.running[key] = done
	return done
}

// count counts what a filter lets through, and remembers it: the pages of one
// list ask for the same. atLeast tells that it is not known yet.
func (h *logs) count(ctx context.Context, q LogQuery, filter []string) (total int, atLeast bool) {
	key := q.key(filter)
	if n, ok := h.totals.known.Get(key); ok {
		return n, false
	}

	done := h.totals.start(h.tasks, key, func(ctx context.Context) (int, error) {
		n, err := h.countRead(ctx, q)
		if errors.Is(err, pack.ErrAskGit) {
			n, err = h.countAll(ctx, q, filter)
		}
		return n, err
	})
	if done == nil {
		return 0, true
	}

	// The page does not wait long for its total: the next one has it.
	wait := time.NewTimer(countWait)
	defer wait.Stop()

	select {
	case <-done:
	case <-wait.C:
	case <-ctx.Done():
	}

	n, ok := h.totals.known.Get(key)
	return n, !ok
}

// countRead counts by the commit graph and the packs.
func (h *logs) countRead(ctx context.Context, q LogQuery) (n int, err error) {
	ctx, cancel := context.WithTimeout(ctx, countTime)
	defer cancel()

	c, err := openChronicle(h.dir)
	if err != nil {
		return 0, err
	}
	defer c.close()

	w, err := c.begin(q, func() error { return context.Cause(ctx) })
	if err != nil {
		return 0, err
	}
	for ; ; n++ {
		if _, err := w.next(); err == io.EOF {
			return n, nil
		} else if err != nil {
			return 0, err
		}
	}
}

// countAll has git count.
func (h *logs) countAll(ctx context.Context, q LogQuery, filter []string) (int, error) {
	c := h.git("log", "--no-show-signature", "--no-patch", "--format=tformat:x") // rev-list has no --use-mailmap
	c.Timeout, c.Limit = countTime, 4<<30

	// Without a filter, which leaves only where to begin, git counts by itself:
	// that is faster than printing.
	if len(filter) == 3 {
		c.Args = append([]string{"rev-list", "--count"}, filter...)
		out, err := c.Output(ctx)
		if err != nil {
			return 0, err
		}
		return strconv.Atoi(strings.TrimSpace(string(out)))
	}

	// Otherwise the lines are counted.
	q.read(c)
	c.Args = append(c.Args, filter...)
	n := 0
	err := c.Stream(ctx, func(r io.Reader) error {
		buf := make([]byte, 64<<10)
		for {
			k, err := r.Read(buf)
			for _, b := range buf[:k] {
				if b == '\n' {
					n++
				}
			}

			if err == io.EOF {
				return nil
			}
			if err != nil {
				return err
			}
		}
	})
	return n, err
}
