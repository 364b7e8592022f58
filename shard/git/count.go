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
	countTime = 30 * time.Second       // time limit for counting the commits of a query
	countWait = 300 * time.Millisecond // time that a request waits for the count
	maxCounts = 2                      // greatest number of counts at a time in one mirror
)

// startArguments is the number of arguments of a filter without a condition: --end-of-options, the
// start and --.
const startArguments = 3

// errCounting means that maxCounts counts are running already.
var errCounting = errors.New("other commits are counted")

// count counts the commits of a query, whose arguments for git are filter, and caches the number
// for all pages of the list. It waits only countWait: then it returns atLeast, the counting
// continues, and a later page gets the number.
func (h *logs) count(ctx context.Context, q LogQuery, filter []string) (total int, atLeast bool) {
	count := func(ctx context.Context) (int, error) {
		return h.totals.Do(ctx, h.tasks, q.key(filter), func(int) int64 { return 1 }, func(ctx context.Context) (int, error) {
			// Do not wait if maxCounts counts are running already.
			select {
			case h.counting <- struct{}{}:
				defer func() { <-h.counting }()
			default:
				return 0, errCounting
			}

			n, err := h.countByGraph(ctx, q)
			if errors.Is(err, pack.ErrAskGit) {
				n, err = h.countByGit(ctx, q, filter)
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

// countByGraph counts the commits of a query with the commit graph and the packs.
func (h *logs) countByGraph(ctx context.Context, q LogQuery) (n int, err error) {
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

// countByGit lets git count the commits of a query.
func (h *logs) countByGit(ctx context.Context, q LogQuery, filter []string) (int, error) {
	c := h.git("log", "--no-show-signature", "--no-patch", "--format=tformat:x") // rev-list has no --use-mailmap
	c.Timeout, c.Limit = countTime, 4<<30

	// Without a path or another condition, git can count by itself, which is faster than printing.
	if len(filter) == startArguments {
		c.Args = append([]string{"rev-list", "--count"}, filter...)
		out, err := c.Output(ctx)
		if err != nil {
			return 0, err
		}
		return strconv.Atoi(strings.TrimSpace(string(out)))
	}

	// Otherwise count the lines.
	q.setReading(c)
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
