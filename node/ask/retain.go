package ask

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/config"
)

// Limits of keeping threads.
const (
	retainGuestDays = 7
	deletedAtOnce   = 100
)

// retention deletes old threads.
type retention struct {
	catalog Catalog
	lookup  func(variable string) (string, bool)
	log     *slog.Logger
}

// lifetime returns how long a thread is kept after its last change.
func (r *retention) lifetime(h *catalog.Thread) time.Duration {
	text, _ := r.lookup("SHOAL_ASK_RETENTION_DAYS")
	days, _ := config.ThreadDays(text) // invalid means the default
	if h.Owner == "" {
		days = min(days, retainGuestDays)
	}
	return time.Duration(days) * 24 * time.Hour
}

// deleteOldThreads deletes threads that are too old, and those of deleted accounts. Only the leader calls
// it.
func (r *retention) deleteOldThreads(ctx context.Context, now time.Time) {
	view := r.catalog.View()
	var old []catalog.Command
	// Threads of a deleted account go at once. Threads of keys and guests only age.
	for h := range view.Threads() {
		id, isAccount := strings.CutPrefix(h.Owner, "account ")
		accountGone := isAccount && view.Account(id) == nil
		// Skip running threads. Changed makes the catalog refuse the deletion if the thread
		// changes meanwhile.
		if h.Run.Fence == 0 && (accountGone || now.Sub(h.Changed) > r.lifetime(h)) && len(old) < deletedAtOnce {
			old = append(old, &catalog.DeleteThread{Thread: h.ID, Changed: h.Changed})
		}
	}

	if len(old) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, proposeTime)
	defer cancel()

	// One log entry of limited size; the rest follows next time.
	if _, err := r.catalog.Propose(ctx, old...); err != nil {
		r.log.Warn("old questions were not deleted", "err", err)
	}
}
