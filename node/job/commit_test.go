package job

import (
	"context"
	"errors"
	"testing"

	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/cluster/catalog"
)

// behind is a cluster in which this node lags behind what it proposes.
type behind struct {
	Cluster
	index   uint64
	result  catalog.Result
	err     error
	awaited uint64
}

func (b *behind) ProposeAll(context.Context, ...catalog.Command) (uint64, []catalog.Result, error) {
	return b.index, []catalog.Result{b.result}, b.err
}

func (b *behind) Await(_ context.Context, index uint64) error {
	b.awaited = index
	return nil
}

// A report that was committed while this node lagged behind counts: the job must not fail and wait.
func TestCommittedReport_isASuccessWhileThisNodeLags(t *testing.T) {
	t.Parallel()
	stale := &catalog.Refusal{Code: catalog.Stale, Reason: "x"}
	for _, c := range []struct {
		name    string
		cluster behind
		awaited uint64
		want    error
	}{
		{"agreed", behind{index: 7}, 0, nil},
		{"agreed while this node was behind", behind{index: 7, err: context.DeadlineExceeded}, 7, nil},
		{"refused while this node was behind", behind{index: 7, err: context.DeadlineExceeded, result: catalog.Result{Err: stale}}, 7, stale},
		{"refused", behind{index: 7, result: catalog.Result{Err: stale}}, 0, stale},
		{"not agreed", behind{err: cluster.ErrNoLeader}, 0, cluster.ErrNoLeader},
	} {
		if err := commitAndApply(t.Context(), &c.cluster, &catalog.Noop{}); !errors.Is(err, c.want) || c.cluster.awaited != c.awaited {
			t.Errorf("%s: %v after waiting for %d, want %v after %d", c.name, err, c.cluster.awaited, c.want, c.awaited)
		}
	}
}
