package operate

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
)

// Archive writes the catalog down for owners.
type Archive struct {
	cluster Cluster
	write   func(ctx context.Context, w io.Writer) error
	audited func() bool
	now     func() time.Time
	saved   atomic.Int64 // see Saved
	log     *slog.Logger
}

// Saved is when this node last wrote the catalog down, in seconds since 1970, or when it started.
func (a *Archive) Saved() int64 { return a.saved.Load() }

// Snapshot writes the catalog as a file that `shoal snapshot restore` reads.
// It has the hashes of keys and the sealed secrets.
func (a *Archive) Snapshot(ctx context.Context, by account.Owner, w io.Writer) error {
	a.note(ctx, by)
	if err := a.write(ctx, w); err != nil {
		return fmt.Errorf("snapshot of the catalog: %w", err)
	}
	a.saved.Store(a.now().Unix())
	return nil
}

// note leaves an event where events are kept. A snapshot is for bad times too:
// without a leader it is taken and only logged.
func (a *Archive) note(ctx context.Context, by account.Owner) {
	// Without an audit nobody would look for it.
	if !a.audited() {
		return
	}

	event := &catalog.NoteEvent{Action: "snapshot.taken", TargetType: "catalog", Target: a.cluster.View().ClusterID()}
	if _, err := a.cluster.Propose(ctx, event); err != nil {
		a.log.Warn("a snapshot of the catalog is taken, and the audit cannot be told", "by", by.Name(), "err", err)
	}
}
