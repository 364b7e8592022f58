package git

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/shoalsearch/shoal/shard/git/run"
)

// MergeBase finds the best common ancestor of two commits. If several are equally good, as after
// merges in both directions, it returns the first that git names. The error is ErrNoBase if the
// commits have no common ancestor.
func (h *logs) MergeBase(ctx context.Context, a, b string) (string, error) {
	for _, commit := range []string{a, b} {
		if err := checkCommit(commit); err != nil {
			return "", err
		}
	}

	c := h.git("merge-base", a, b)
	c.Timeout = diffTime
	out, err := c.Output(ctx)

	// Without a common ancestor git prints nothing and exits with 1.
	if f := (*run.Failure)(nil); errors.As(err, &f) && f.Exit == 1 && len(out) == 0 {
		return "", fmt.Errorf("%.10s and %.10s: %w", a, b, ErrNoBase)
	}
	if err != nil {
		return "", fmt.Errorf("find where they parted: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}
