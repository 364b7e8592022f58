package git

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/shard/git/pack"
)

const (
	countTime = 30 * time.Second       // for counting what a filter lets through
	countWait = 300 * time.Millisecond // that a reader waits for it
	countMost = 2                      // at a time, of one mirror
)

// errCounting means that enough is counted already.
var errCounting = errors.New("other commits are counted")

// count counts what a filter lets through, and remembers it: the pages of one list ask for
// the same. A page does not wait long for its total. The count goes on, and the next page
// has it; atLeast tells that it is not known yet.
func (h *logs) count(ctx context.Context, q LogQuery, filter []string) (total int, atLeast bool) {
	count := func(ctx context.Context) (int, error) {
		return h.totals.Do(ctx, h.tasks, q.key(filter), func(int) int64 { return 1 }, func(ctx context.Context) (int, error) {
			// Beyond that nobody waits for an exact number.
			select {
			case h.counting <- struct{}{}:
				defer func() { <-h.counting }()
			default:
				return 0, errCounting
			}

			n, err := h.countRead(ctx, q)
			if errors.Is(err, pack.ErrAskGit) {
				n, err = h.countAll(ctx, q, filter)
			}
			return n, err
		})
	}
	h.tasks.Run(func() { _, _ = count(h.tasks.Context) })

	ctx, cancel := context.WithTimeout(ctx, countWait)
	defer cancel()
	n, err := count(ctx)
	return n, err != nil
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
