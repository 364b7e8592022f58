package ask

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/config"
)

// How long threads are kept after they changed last.
const (
	retainGuestDays = 7
	deletedAtOnce   = 100
)

// retention deletes threads that nobody needs any more.
type retention struct {
	catalog Catalog
	lookup  func(variable string) (string, bool)
	log     *slog.Logger
}

// keeps is for how long a thread is kept after it changed last.
func (r *retention) keeps(h *catalog.Thread) time.Duration {
	text, _ := r.lookup("SHOAL_ASK_RETENTION_DAYS")
	days, _ := config.ThreadDays(text) // one that cannot be read is the usual one
	if h.Owner == "" {
		days = min(days, retainGuestDays)
	}
	return time.Duration(days) * 24 * time.Hour
}

// expire deletes the threads that are too old, and those of accounts that are
// gone. The leader does it.
func (r *retention) expire(ctx context.Context, now time.Time) {
	view := r.catalog.View()
	var old []catalog.Command
	// What an account has asked goes with it; keys and guests only age.
	for h := range view.Threads() {
		id, isAccount := strings.CutPrefix(h.Owner, "account ")
		gone := isAccount && view.Account(id) == nil
		// Never one that is being answered. What changes meanwhile stays: the command says which
		// state it is of.
		if h.Run.Fence == 0 && (gone || now.Sub(h.Changed) > r.keeps(h)) && len(old) < deletedAtOnce {
			old = append(old, &catalog.DeleteThread{Thread: h.ID, Changed: h.Changed})
		}
	}

	if len(old) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, proposeTime)
	defer cancel()

	// In one entry of the log, of bounded size; the rest comes next time.
	if _, err := r.catalog.Propose(ctx, old...); err != nil {
		r.log.Warn("old questions were not deleted", "err", err)
	}
}
