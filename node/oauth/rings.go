package oauth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/config"
)

// ring is a sequence of secrets of the cluster. The catalog names each by the ring and the second
// of its creation:
//
//	oauth-access/1795446000
//
// New boxes are sealed with the newest secret that every node has had time to receive; all existing
// secrets open boxes. Only the leader creates and drops secrets, on schedule: no request can cause
// it.
type ring struct {
	name   string
	period time.Duration // age at which the next secret is created; 0: never
	keep   time.Duration // how long a secret still opens boxes after the next one was created
}

var (
	clientRing  = ring{name: "oauth-clients"} // clients keep their ids for years
	accessRing  = ring{name: "oauth-access", period: 24 * time.Hour, keep: config.MostAccessTokenLife + time.Hour}
	refreshRing = ring{name: "oauth-refresh", period: 180 * 24 * time.Hour, keep: config.MostRefreshTokenLife}

	allRings = []ring{clientRing, accessRing, refreshRing}
)

const (
	settleTime  = 2 * time.Minute // after this time every node has a new secret
	currentTime = time.Minute     // a node that heard of the leader within this time has every secret in use for sealing
	ringPause   = time.Minute     // between two looks at the rings
	ringRetry   = time.Second     // the same while secrets are missing
)

// errSecret is returned for a box that was sealed with an unknown secret.
var errSecret = errors.New("sealed with an unknown secret")

// rings looks up the secrets, and caches opened ones in memory.
type rings struct {
	catalog Cluster
	now     func() time.Time

	mu     sync.Mutex // guards the field below
	opened map[string][]byte
}

func newRings(c Cluster, now func() time.Time) *rings {
	return &rings{catalog: c, now: now, opened: map[string][]byte{}}
}

// creationTimes returns the creation times of a ring's secrets, oldest first.
func (r ring) creationTimes(view *catalog.View) (all []int64) {
	for s := range view.Secrets() {
		text, ok := strings.CutPrefix(s.Name, r.name+"/")
		if at, err := strconv.ParseInt(text, 10, 64); ok && err == nil {
			all = append(all, at)
		}
	}
	slices.Sort(all)
	return all
}

func (r ring) secretName(made int64) string { return r.name + "/" + strconv.FormatInt(made, 10) }

// newestSecret returns the secret of a ring for sealing, and its creation time.
func (s *rings) newestSecret(ctx context.Context, r ring) (made int64, secret []byte, err error) {
	all := r.creationTimes(s.catalog.View())
	if len(all) == 0 {
		return 0, nil, errNotReady
	}

	// If none has settled, use the oldest: most nodes have it.
	made = all[0]
	for _, at := range all {
		// Use the newest settled one: every node must be able to open the box.
		if s.now().Sub(time.Unix(at, 0)) >= settleTime {
			made = at
		}
	}
	secret, err = s.findSecret(ctx, r.secretName(made))
	return made, secret, err
}

// secretForOpening returns the secret of a ring with a creation time. It returns errSecret if there is none,
// and errNotReady if this node may have missed it.
func (s *rings) secretForOpening(ctx context.Context, r ring, made int64) ([]byte, error) {
	view := s.catalog.View()
	if view.Secret(r.secretName(made)) != nil {
		return s.findSecret(ctx, r.secretName(made))
	}

	all := r.creationTimes(view)
	if len(all) == 0 {
		return nil, errNotReady
	}

	// Anybody can make up a time. A newer secret than all known ones is possible only if this node
	// is cut off, and if the secret is old enough for sealing.
	newer := made > all[len(all)-1] && made <= s.now().Add(-currentTime).Unix()
	if newer && s.catalog.Age() >= currentTime {
		return nil, errNotReady
	}
	return nil, errSecret
}

// findSecret opens a secret in the catalog. It never creates one.
func (s *rings) findSecret(ctx context.Context, name string) ([]byte, error) {
	// The lock makes other callers wait for the opened secret.
	s.mu.Lock()
	defer s.mu.Unlock()
	if secret := s.opened[name]; secret != nil {
		return secret, nil
	}

	if s.catalog.View().Secret(name) == nil {
		// Only the leader creates secrets, on schedule.
		return nil, errNotReady
	}

	secret, err := s.catalog.Secret(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("oauth: secret %s: %w", name, err)
	}
	s.opened[name] = secret
	return secret, nil
}

// run maintains the rings until ctx ends.
func (s *rings) run(ctx context.Context, log *slog.Logger) {
	for ctx.Err() == nil {
		changed := s.catalog.Changed()
		whole, err := s.maintain(ctx)
		if err != nil && ctx.Err() == nil {
			log.Warn("the secrets of agents' tokens cannot be renewed now; it is tried again", "err", err)
		}

		// A new cluster has no secrets until it has a leader. The change may be visible before this
		// node knows that it leads.
		if !whole && err == nil {
			select {
			case <-ctx.Done():
			case <-changed:
			case <-time.After(ringRetry):
			}
			continue
		}
		clock.Wait(ctx, ringPause)
	}
}

// maintain creates due secrets and drops unneeded ones, on the leader. whole reports whether every ring
// has a secret.
func (s *rings) maintain(ctx context.Context) (whole bool, err error) {
	view, now := s.catalog.View(), s.now()
	whole = true
	var drop []string
	for _, r := range allRings {
		all := r.creationTimes(view)
		due := len(all) == 0 || r.period > 0 && now.Sub(time.Unix(all[len(all)-1], 0)) >= r.period
		// If another leader also creates one, there are two, which is harmless.
		if due && s.catalog.Leading() {
			if _, err := s.catalog.Secret(ctx, r.secretName(now.Unix())); err != nil {
				return false, err
			}
		} else if len(all) == 0 {
			whole = false
		}

		// A secret is needed until the next one has settled, and for the time keep after that.
		for i := 0; i+1 < len(all); i++ {
			if now.Sub(time.Unix(all[i+1], 0)) > settleTime+r.keep {
				drop = append(drop, r.secretName(all[i]))
			}
		}
	}

	if len(drop) > 0 && s.catalog.Leading() {
		if _, err := s.catalog.Propose(ctx, &catalog.DropSecrets{Names: drop}); err != nil {
			return whole, err
		}

		s.mu.Lock()
		defer s.mu.Unlock()
		// Clear all: needed ones are opened again.
		clear(s.opened)
	}
	return whole, nil
}
