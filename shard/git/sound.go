package git

import (
	"context"
	"errors"
	"regexp"
	"time"

	"github.com/shoalsearch/shoal/shard/git/run"
)

// soundTime is the time limit for reading all objects of a mirror. That happens only after
// something has failed.
const soundTime = 30 * time.Minute

// corrupt matches what git fsck prints about objects whose bytes have changed since git wrote them.
// Objects that were malformed from the start, as in old repositories, are no damage: a new copy of
// the mirror would have them, too.
var corrupt = regexp.MustCompile(`(?i)hash mismatch|object corrupt or missing|inflate|garbage|unable to (unpack|parse|read|find)|unknown object type`)

// Sound reads the whole mirror and reports whether it has all objects that its references lead to,
// unchanged. A caller tells damage on this disk from other failures by it. It takes long for a large
// mirror. A mirror that was never fetched is sound, and so is one that takes too long to read.
func (u *updater) Sound(ctx context.Context) bool {
	if format, err := formatOf(u.dir); err != nil || format == "" {
		return err == nil
	}

	c := u.git("fsck", "--full", "--no-dangling", "--no-progress")
	c.Timeout = soundTime
	_, err := c.Output(ctx)

	var failed *run.Failure
	if err == nil || ctx.Err() != nil || !errors.As(err, &failed) || failed.Exit < 0 || errors.Is(err, ErrTooLarge) {
		return true
	}

	// The lowest bit of the exit code reports problems of single objects.
	return failed.Exit == 1 && !damage.MatchString(failed.Stderr) && !corrupt.MatchString(failed.Stderr)
}

// Discard removes a damaged mirror. The next fetch or copy makes it anew.
func (u *updater) Discard(ctx context.Context) error {
	release, err := u.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	return u.discard()
}

// damage matches what git prints if objects of the mirror itself are missing.
var damage = regexp.MustCompile(`(?i)object file .* is empty|bad object|loose object .* is corrupt|packfile .* (cannot be accessed|is far too short)|is corrupt|missing (blob|tree|commit)|did not send all necessary objects|unresolved deltas|bad tree object|could not parse`)
