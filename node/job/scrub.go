package job

import (
	"context"
	"time"
)

// The pace of scrubbing: every file once in scrubRound, at most scrubRate
// bytes a second.
const (
	scrubRound = 7 * 24 * time.Hour
	scrubRate  = 20 << 20
	scrubIdle  = time.Minute
)

// Scrubber reads every file of this node again and again, slowly, and
// compares it with its name: a bit that has flipped is found before the copy
// that it is needed from is gone. What is damaged is put aside by the set,
// which tells the keeper.
type Scrubber struct{ r *Runner }

// NewScrubber returns a Scrubber.
func NewScrubber(r *Runner) *Scrubber { return &Scrubber{r: r} }

// Run scrubs until the context ends.
func (s *Scrubber) Run(ctx context.Context) error {
	for {
		names := s.r.opt.Set.Names()
		if len(names) == 0 && !sleep(ctx, scrubIdle) {
			return nil
		}
		for _, name := range names {
			wait := max(scrubRound/time.Duration(len(names)), time.Duration(s.r.opt.Set.Size(name))*time.Second/scrubRate)
			if !sleep(ctx, wait) {
				return nil
			}
			if err := s.r.opt.Set.Verify(ctx, name); err != nil && ctx.Err() == nil && s.r.opt.Set.Has(name) {
				s.r.opt.Log.Warn("a file could not be checked", "file", name, "err", err)
			}
		}
	}
}
