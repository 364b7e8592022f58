package account

import (
	"fmt"
	"time"

	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/call"
)

// AgeVariable limits for how long a node that missed changes still accepts credentials.
const AgeVariable = "SHOAL_MAX_PERMISSION_AGE"

// Current returns ErrStale if this node may have missed a revocation: it has not applied all
// committed entries for long, or another cluster has replaced its own. Then credentials are not
// accepted. What is open to everybody stays open, as far as the gate allows.
func (k *Keyring) Current() error {
	if why := k.catalog.Outlived(); why != nil {
		return call.Fail(call.ErrStale, "this node is not ready: %v", why)
	}

	// Each request with a credential calls Current, so return soon: no limit is shorter than this.
	age := k.catalog.Age()
	if age <= config.LeastPermissionAge {
		return nil
	}

	text, _ := k.lookup(AgeVariable)
	maxAge, _ := config.PermissionAge(text) // an invalid value gives the default

	empty := k.catalog.View().Time().IsZero() // not in a cluster yet, so there are no accounts
	if maxAge == 0 || age <= maxAge || empty {
		return nil
	}
	since := "since it started"
	if age < cluster.UnknownAge {
		since = fmt.Sprintf("for %s", age.Round(time.Second))
	}
	for _, fault := range k.catalog.Faults() {
		since += "; " + fault
	}
	return call.Fail(call.ErrStale, "This node has not caught up with the other nodes %s. It does not know who may still read what. "+
		"Ask another node, or try again when it reaches a majority of nodes (%s bounds this).", since, AgeVariable)
}
