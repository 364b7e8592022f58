package node_test

import (
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/node"
	"github.com/shoalsearch/shoal/node/nodetest"
)

// The clock of the leader was two hours ahead, and the next one's is right: the times
// that were agreed on are in its future. What is pushed from then on is polled for,
// indexed and found as always.
func TestPushesAreFoundAfterAClockWasHoursAhead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	repo := nodetest.NewRepo(t, filepath.Join(dir, "app"), map[string]string{"a.txt": "walrus\n"})
	var ahead atomic.Int64
	ahead.Store(int64(2 * time.Hour))
	n := nodetest.Start(t, nodetest.Config{File: local(dir), Edit: func(o *node.Options) {
		o.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	}})
	n.WaitIndexed(1)

	n.Stop()
	ahead.Store(0)
	n.Start()
	repo.Commit(map[string]string{"b.txt": "narwhal\n"})
	n.Wait("the push", found(n, "narwhal", "local/app:b.txt"))
	for _, j := range n.Status().Running {
		if j.Error != "" {
			t.Errorf("the job %s %s failed: %s", j.Kind, j.Subject, j.Error)
		}
	}
}
