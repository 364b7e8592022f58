package account

import (
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// Later returns the clock by which credentials expire: the node's clock, but not before the newest
// entry that the node has applied. So if the clock is set back, expired credentials stay expired.
func Later(c interface{ View() *catalog.View }, now func() time.Time) func() time.Time {
	return func() time.Time {
		nodeTime := now()
		if agreed := c.View().Time(); agreed.After(nodeTime) {
			return agreed
		}
		return nodeTime
	}
}
