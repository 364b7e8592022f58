package operate

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/disk"
	"github.com/shoalsearch/shoal/node/account"
)

// Archive writes snapshots of the catalog for owners.
type Archive struct {
	cluster Cluster
	write   func(ctx context.Context, w io.Writer) error
	chats   func(ctx context.Context, w io.Writer) error
	audited func() bool
	now     func() time.Time
	file    string       // with the time of the newest one, for later starts
	saved   atomic.Int64 // see Saved
	log     *slog.Logger
}

// Saved returns when this node last wrote a snapshot of the catalog; zero if never.
func (a *Archive) Saved() time.Time {
	if at := a.saved.Load(); at > 0 {
		return time.Unix(at, 0).UTC()
	}
	return time.Time{}
}

// readBackupTime sets a.saved to the time when the newest back-up was written, as its file says. It
// leaves a.saved unchanged if the file cannot be read.
func (a *Archive) readBackupTime() {
	text, err := os.ReadFile(a.file)
	if err != nil {
		return
	}
	if at, err := time.Parse(time.RFC3339, strings.TrimSpace(string(text))); err == nil {
		a.saved.Store(at.Unix())
	}
}

// Snapshot writes the catalog as a file for `shoal snapshot restore`. The file contains the hashes
// of keys and the sealed secrets.
func (a *Archive) Snapshot(ctx context.Context, by account.Owner, w io.Writer) error {
	a.recordEvent(ctx, by, "catalog")
	if err := a.write(ctx, w); err != nil {
		return fmt.Errorf("snapshot of the catalog: %w", err)
	}
	a.saved.Store(a.now().Unix())
	if _, err := disk.Replace(a.file, strings.NewReader(a.Saved().Format(time.RFC3339)+"\n")); err != nil {
		a.log.Warn("the time of this back-up is forgotten at the next start", "file", a.file, "err", err)
	}
	return nil
}

// SnapshotChats writes all conversations, sealed, as a file for `shoal snapshot restore --chats`.
func (a *Archive) SnapshotChats(ctx context.Context, by account.Owner, w io.Writer) error {
	a.recordEvent(ctx, by, "chats")
	return a.chats(ctx, w)
}

// recordEvent records an event, if events are kept. Snapshots must also work without a leader, so a
// failure is only logged.
func (a *Archive) recordEvent(ctx context.Context, by account.Owner, what string) {
	// Without an audit, events are not kept.
	if !a.audited() {
		return
	}

	event := &catalog.NoteEvent{Action: "snapshot.taken", TargetType: what, Target: a.cluster.View().ClusterID()}
	if _, err := a.cluster.Propose(ctx, event); err != nil {
		a.log.Warn("a snapshot is taken, and the audit cannot be told", "of", what, "by", by.Name(), "err", err)
	}
}
