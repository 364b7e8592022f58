package git

import (
	"context"
	"errors"
	"regexp"
	"time"

	"github.com/shoalsearch/shoal/shard/git/run"
)

// soundTime bounds the reading of all objects of a mirror. It happens only
// where something has failed already.
const soundTime = 30 * time.Minute

// corrupt is what git fsck says of objects whose bytes are not those that
// were written. Objects that were made wrong, which old repositories have, are
// no damage: another copy has them too.
var corrupt = regexp.MustCompile(`(?i)hash mismatch|object corrupt or missing|inflate|garbage|unable to (unpack|parse|read|find)|unknown object type`)

// Sound reads all of the mirror and reports whether everything that its
// references lead to is there as it was written. It is for telling damage of
// this disk from other failures, and takes long for a large mirror. A mirror
// that was never fetched is sound; so is one that could not be looked at in time.
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

	// The lowest bit of the exit code is for single objects.
	return failed.Exit == 1 && !damage.MatchString(failed.Stderr) && !corrupt.MatchString(failed.Stderr)
}

// Discard removes a mirror that is not sound. The next fetch or copy makes
// it anew.
func (u *updater) Discard(ctx context.Context) error {
	release, err := u.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	return u.discard()
}

// damage is what git says when objects of the mirror itself are missing.
var damage = regexp.MustCompile(`(?i)object file .* is empty|bad object|loose object .* is corrupt|packfile .* (cannot be accessed|is far too short)|is corrupt|missing (blob|tree|commit)|did not send all necessary objects|unresolved deltas|bad tree object|could not parse`)
