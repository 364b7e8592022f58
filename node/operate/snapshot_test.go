package operate

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/node/account"
)

// The age of the back-up counts from the last snapshot that succeeded.
func TestBackupAge_countsFromTheLastSuccess(t *testing.T) {
	t.Parallel()
	var fails error
	now := time.Unix(100, 0)
	a := &Archive{
		write:   func(context.Context, io.Writer) error { return fails },
		audited: func() bool { return false },
		now:     func() time.Time { return now },
		file:    filepath.Join(t.TempDir(), "last-backup"),
	}
	if a.readBackupTime(); !a.Saved().IsZero() {
		t.Errorf("before any back-up: %v", a.Saved())
	}
	if err := a.Snapshot(t.Context(), account.Owner{}, io.Discard); err != nil || a.Saved().Unix() != 100 {
		t.Errorf("after a back-up: %d, %v", a.Saved().Unix(), err)
	}
	now, fails = time.Unix(200, 0), errors.New("no room")
	if err := a.Snapshot(t.Context(), account.Owner{}, io.Discard); !errors.Is(err, fails) || a.Saved().Unix() != 100 {
		t.Errorf("after a failure: %d, %v", a.Saved().Unix(), err)
	}
	later := &Archive{file: a.file}
	if later.readBackupTime(); !later.Saved().Equal(a.Saved()) {
		t.Errorf("after a restart: %v", later.Saved())
	}
}
