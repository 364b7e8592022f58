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
	countTime = 30 * time.Second       // time limit for counting what a filter selects
	countWait = 300 * time.Millisecond // time that a reader waits for the count
	countMost = 2                      // counts at a time for one mirror
)

// errCounting means that enough counts are running already.
var errCounting = errors.New("other commits are counted")

// count counts the commits that a filter selects, and caches the number, because all pages of a
// list need the same. A page does not wait long: the count continues, and the next page has it.
// atLeast reports that it is not known yet.
func (h *logs) count(ctx context.Context, q LogQuery, filter []string) (total int, atLeast bool) {
	count := func(ctx context.Context) (int, error) {
		return h.totals.Do(ctx, h.tasks, q.key(filter), func(int) int64 { return 1 }, func(ctx context.Context) (int, error) {
			// Nobody waits longer for an exact number.
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

// countRead counts with the commit graph and the packs.
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

// countAll lets git count the commits of a query.
func (h *logs) countAll(ctx context.Context, q LogQuery, filter []string) (int, error) {
	c := h.git("log", "--no-show-signature", "--no-patch", "--format=tformat:x") // rev-list has no --use-mailmap
	c.Timeout, c.Limit = countTime, 4<<30

	// Without a filter git counts by itself, which is faster than printing.
	if len(filter) == 3 {
		c.Args = append([]string{"rev-list", "--count"}, filter...)
		out, err := c.Output(ctx)
		if err != nil {
			return 0, err
		}
		return strconv.Atoi(strings.TrimSpace(string(out)))
	}

	// Otherwise count the lines.
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
