package account

import (
	"fmt"
	"time"

	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/call"
)

// AgeVariable bounds for how long a node may have missed changes and still
// believe a credential.
const AgeVariable = "SHOAL_MAX_PERMISSION_AGE"

// Current fails with ErrStale where a revocation may have passed this node by:
// for long it has not applied all that was committed, or another cluster has taken
// the place of its own. Credentials are not believed then; what is open to everybody stays
// open as far as the gate lets it.
func (k *Keyring) Current() error {
	if why := k.catalog.Outlived(); why != nil {
		return call.Fail(call.ErrStale, "this node is not ready: %v", why)
	}

	// Every request with a credential comes by here: no bound is below this.
	age := k.catalog.Age()
	if age <= config.LeastPermissionAge {
		return nil
	}

	text, _ := k.lookup(AgeVariable)
	most, _ := config.PermissionAge(text) // one that cannot be read is the usual one

	empty := k.catalog.View().Time().IsZero() // not of a cluster yet: nobody is known
	if most == 0 || age <= most || empty {
		return nil
	}
	since := "since it started"
	if age < cluster.UnknownAge {
		since = fmt.Sprintf("for %s", age.Round(time.Second))
	}
	return call.Fail(call.ErrStale, "This node has not caught up with the other nodes %s and does not know who may still read what: "+
		"ask another node, or try again when it reaches a majority of nodes (%s bounds this).", since, AgeVariable)
}
