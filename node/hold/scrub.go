package hold

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/shoalsearch/shoal/clock"
)

// The pace of scrubbing: every file once in scrubRound, or later where that
// would be more than scrubRate bytes a second.
const (
	scrubRound = 7 * 24 * time.Hour
	scrubRate  = 20 << 20
	scrubIdle  = time.Minute
)

// Scrubber reads every file of this node again and again, slowly, and
// compares it with its name: a bit that has flipped is found before the copy
// that it is needed from is gone. What is damaged is put aside by the set,
// whose owner tells the Collector.
type Scrubber struct {
	files verified
	log   *slog.Logger
}

// verified is what a Scrubber takes of the index files.
type verified interface {
	Names() []string
	Size(name string) int64
	Has(name string) bool
	Verify(ctx context.Context, name string) error
}

// NewScrubber returns a Scrubber; Run makes it work.
func NewScrubber(files verified, log *slog.Logger) *Scrubber { return &Scrubber{files, log} }

// Run scrubs until the context ends.
func (s *Scrubber) Run(ctx context.Context) error {
	// A node that is started again and again must not come to the same files only.
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

// scrubWait is the time before a file of some bytes, of so many files.
func scrubWait(files int, bytes int64) time.Duration {
	return max(scrubRound/time.Duration(files), time.Duration(bytes)*time.Second/scrubRate)
}
