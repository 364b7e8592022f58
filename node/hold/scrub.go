package hold

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/shoalsearch/shoal/clock"
)

// The scrubber reads every file once in scrubRound, or later if that would be more than scrubRate
// bytes a second.
const (
	scrubRound = 7 * 24 * time.Hour
	scrubRate  = 20 << 20
	scrubIdle  = time.Minute
)

// Scrubber reads every file of this node again and again, slowly, and compares it with its name. So
// it finds a flipped bit before the other copies are gone. The set puts a damaged file aside, and
// its owner tells the Collector.
type Scrubber struct {
	files scrubbed
	log   *slog.Logger
}

// scrubbed is what a Scrubber needs of the index files.
type scrubbed interface {
	Names() []string
	Size(name string) int64
	Has(name string) bool
	Verify(ctx context.Context, name string) error
}

// NewScrubber returns a Scrubber. Run makes it work.
func NewScrubber(files scrubbed, log *slog.Logger) *Scrubber { return &Scrubber{files, log} }

// Run verifies the checksums of this node's files, one after the other, until ctx ends.
func (s *Scrubber) Run(ctx context.Context) error {
	// Start at a random file, so that a node which restarts often reaches all files.
	begin := rand.Float64()

	for {
		names := s.files.Names()
		if len(names) == 0 && !clock.Wait(ctx, scrubIdle) {
			return nil
		}

		first := int(begin * float64(len(names)))
		for _, name := range slices.Concat(names[first:], names[:first]) {
			if !clock.Wait(ctx, scrubWait(len(names), s.files.Size(name))) {
				return nil
			}
			if err := s.files.Verify(ctx, name); err != nil && ctx.Err() == nil && s.files.Has(name) {
				s.log.Warn("a file could not be checked", "file", name, "err", err)
			}
		}
	}
}

// scrubWait returns the pause before a file of that many bytes, if there are that many files.
func scrubWait(files int, bytes int64) time.Duration {
	return max(scrubRound/time.Duration(files), time.Duration(bytes)*time.Second/scrubRate)
}
