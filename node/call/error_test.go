package call

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/cluster"
)

// A client retries after 503, so a missing quorum must always be 503.
func TestWriteError_ofAMissingQuorumIsAlways503(t *testing.T) {
	t.Parallel()
	for _, err := range []error{
		cluster.ErrNoLeader,
		cluster.ErrDisputed,
		cluster.ErrUnconfirmed,
		context.DeadlineExceeded,
		fmt.Errorf("cluster: wait for entry 7: %w", context.DeadlineExceeded),
		fmt.Errorf("%w: %w", cluster.ErrNoLeader, context.DeadlineExceeded),
	} {
		if row := KindOf(WriteError(err)); row == nil || row.Status != 503 || row.Code != "NO_LEADER" {
			t.Errorf("%v is %+v", err, row)
		}
	}
	if got := WriteError(fmt.Errorf("%w: %w", cluster.ErrNoLeader, cluster.ErrNoLeader)).Error(); strings.Count(got, "no leader") != 1 || !strings.Contains(got, "shoal status") {
		t.Error(got)
	}
	for err, want := range map[error]string{
		fmt.Errorf("%w: call to n2: %w", cluster.ErrUnconfirmed, context.DeadlineExceeded): "may take effect",
		fmt.Errorf("%w: call to n2: %w", cluster.ErrNoLeader, context.DeadlineExceeded):    "nothing was changed",
	} {
		if got := WriteError(err).Error(); !strings.Contains(got, want) {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
	if err := errors.New("another"); WriteError(err) != err {
		t.Error("an error of no kind is changed")
	}
}
