package git

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	countTime = 30 * time.Second       // for counting what a filter lets through
	countWait = 300 * time.Millisecond // that a reader waits for it
	countMost = 2                      // at a time, of one mirror
)

// counter counts commits of one mirror behind the backs of those who ask:
// what takes long is there when somebody asks again.
type counter struct {
	ctx  context.Context // of all counting
	stop context.CancelFunc
	done sync.WaitGroup

	known remembered[int] // by filter

	mu      sync.Mutex               // guards the fields below
	running map[string]chan struct{} // by filter; closed at the end
	closed  bool
}

// close ends the counting and waits for it.
func (c *counter) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.stop()
	c.done.Wait()
}

// start counts for a key unless that is done already, and tells when it ends;
// nil when too much is counted already.
func (c *counter) start(key string, count func(ctx context.Context) (int, error)) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if done, ok := c.running[key]; ok {
		return done
	}
	if c.closed || len(c.running) == countMost {
		return nil
	}
	if c.running == nil {
		c.running = map[string]chan struct{}{}
	}
	done := make(chan struct{})
	c.running[key] = done
	c.done.Go(func() {
		if n, err := count(c.ctx); err == nil {
			c.known.put(key, n)
		}
		c.mu.Lock()
		delete(c.running, key)
		c.mu.Unlock()
		close(done)
	})
	return done
}

// count counts what a filter lets through, and remembers it: the pages of one
// list ask for the same. atLeast tells that it is not known yet.
func (m *Mirror) count(ctx context.Context, q LogQuery, filter []string) (total int, atLeast bool) {
	key := strings.Join(filter, "\x00")
	if n, ok := m.counter.known.get(key); ok {
		return n, false
	}
	done := m.counter.start(key, func(ctx context.Context) (int, error) {
		n, err := m.countRead(ctx, q)
		if errors.Is(err, errElsewhere) || errors.Is(err, errPack) {
			n, err = m.countAll(ctx, filter)
		}
		return n, err
	})
	if done == nil {
		return 0, true
	}
	wait := time.NewTimer(countWait)
	defer wait.Stop()
	select {
	case <-done:
	case <-wait.C:
	case <-ctx.Done():
	}
	n, ok := m.counter.known.get(key)
	return n, !ok
}

// countRead counts by the commit graph and the packs.
func (m *Mirror) countRead(ctx context.Context, q LogQuery) (n int, err error) {
	ctx, cancel := context.WithTimeout(ctx, countTime)
	defer cancel()
	c, err := openChronicle(m.dir)
	if err != nil {
		return 0, err
	}
	defer c.close()
	w, match, err := c.begin(q, func() error { return context.Cause(ctx) })
	if err != nil {
		return 0, err
	}
	if match == nil {
		for ; ; n++ {
			if _, err := w.next(); err == io.EOF {
				return n, nil
			} else if err != nil {
				return 0, err
			}
		}
	}
	err = eachText(ctx, w, maxBatch, func(_, text []byte, low *[]byte) bool { return match(text, low) }, func(ok bool) bool {
		if ok {
			n++
		}
		return true
	})
	return n, err
}

// countAll has git count.
func (m *Mirror) countAll(ctx context.Context, filter []string) (int, error) {
	c := m.git("rev-list")
	c.timeout, c.limit = countTime, 4<<30
	if len(filter) == 3 { // only where to begin: git counts faster than it prints
		c.args = append(append(c.args, "--count"), filter...)
		out, err := c.output(ctx)
		if err != nil {
			return 0, err
		}
		return strconv.Atoi(strings.TrimSpace(string(out)))
	}
	c.args = append(c.args, filter...)
	n := 0
	err := c.stream(ctx, func(r io.Reader) error {
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
