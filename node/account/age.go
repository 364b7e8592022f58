package account

import (
	"errors"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/node/call"
)

// AgeVariable bounds for how long a node may have missed changes and still
// believe a credential.
const AgeVariable = "SHOAL_MAX_PERMISSION_AGE"

const (
	leastAge = time.Minute // that can be asked for
	usualAge = 10 * time.Minute
)

// ParseAge reads AgeVariable: a duration of a minute or more, 0 for no bound;
// "" is ten minutes.
func ParseAge(text string) (time.Duration, error) {
	if text = strings.TrimSpace(text); text == "" {
		return usualAge, nil
	}

	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > 0 && d < leastAge {
		return 0, errors.New("want a duration of at least a minute, such as 10m, or 0 for no bound")
	}
	return d, nil
}

// Current fails with ErrStale where this node has heard of no leader for so
// long that a revocation may have passed it by. Credentials are not believed
// then; what is open to everybody stays open.
func (k *Keyring) Current() error {
	// Every request with a credential comes by here: no bound is below this.
	age := k.catalog.Age()
	if age <= leastAge {
		return nil
	}

	text, _ := k.lookup(AgeVariable)
	most, err := ParseAge(text)
	if err != nil {
		most = usualAge // an unreadable value opens nothing
	}

	empty := k.catalog.View().Time().IsZero() // not of a cluster yet: nobody is known
	if most == 0 || age <= most || empty {
		return nil
	}
	return call.Fail(call.ErrStale, "This node has heard nothing from the other nodes for %s and does not know who may still read what: "+
		"ask another node, or try again when a majority of nodes is back (%s bounds this).", age.Round(time.Second), AgeVariable)
}
