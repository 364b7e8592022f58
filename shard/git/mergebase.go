package git

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/shoalsearch/shoal/shard/git/run"
)

// MergeBase finds the commit from which two parted: the best one that both have in
// their histories. Where several are as good, as after merges in both directions,
// it is the one that git names first. ErrNoBase: they have none in common.
func (h *logs) MergeBase(ctx context.Context, a, b string) (string, error) {
	for _, commit := range []string{a, b} {
		if err := checkCommit(commit); err != nil {
			return "", err
		}
	}

	c := h.git("merge-base", a, b)
	c.Timeout = diffTime
	out, err := c.Output(ctx)

	// It has nothing to say then, and ends so.
	if f := (*run.Failure)(nil); errors.As(err, &f) && f.Exit == 1 && len(out) == 0 {
		return "", fmt.Errorf("%.10s and %.10s: %w", a, b, ErrNoBase)
	}
	if err != nil {
		return "", fmt.Errorf("find where they parted: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}
