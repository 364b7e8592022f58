//go:build !linux

package symbol

import (
	"github.com/shoalsearch/shoal/clock"
)

// usageOf cannot read CPU time here: it counts all time as CPU time.
func usageOf(int) (usage, bool) { return usage{cpu: clock.Since(loaded), busy: true}, true }

var loaded = clock.Now()
