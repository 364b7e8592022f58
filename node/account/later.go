package account

import (
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// Later is the clock that credentials end by: that of the node, and where it is
// behind, the time of the newest entry that the node has applied. So a clock
// that is set back brings back nothing that had ended when the cluster last
// agreed on something.
func Later(c interface{ View() *catalog.View }, now func() time.Time) func() time.Time {
	return func() time.Time {
		here := now()
		if agreed := c.View().Time(); agreed.After(here) {
			return agreed
		}
		return here
	}
}
