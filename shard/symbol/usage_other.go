//go:build !linux

package symbol

import (
	"github.com/shoalsearch/shoal/clock"
)

// usageOf cannot read CPU time here: it takes all time for that.
func usageOf(int) (usage, bool) { return usage{cpu: clock.Since(loaded), busy: true}, true }

var loaded = clock.Now()
