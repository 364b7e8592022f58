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

// ring is secrets of the cluster that follow one another. Each stands in the
// catalog under the ring's name and the second at which it was made:
//
//	oauth-access/1795446000
//
// The newest one that every node has had time to hear of seals; all that are
// there open. Only the leader makes and drops secrets, by the clock: nothing
// that anybody asks for does.
type ring struct {
	name   string
	period time.Duration // until the next one is made; 0: never
	keep   time.Duration // that one still opens boxes after the next one was made
}

var (
	clientRing  = ring{name: "oauth-clients"} // ids of clients are kept for years by those who got them
	accessRing  = ring{name: "oauth-access", period: 24 * time.Hour, keep: config.MostAccessTokenLife + time.Hour}
	refreshRing = ring{name: "oauth-refresh", period: 180 * 24 * time.Hour, keep: config.MostRefreshTokenLife}

	allRings = []ring{clientRing, accessRing, refreshRing}
)

const (
	settled   = 2 * time.Minute // after which every node has a new secret
	current   = time.Minute     // since a node heard of the leader: it has all that seals, also where clocks differ
	ringPause = time.Minute     // between two looks at the rings
	ringRetry = time.Second     // the same while there are none
)

// errSecret is of a box that was sealed with a secret that the cluster does not
// have.
var errSecret = errors.New("sealed with an unknown secret")

// rings finds the secrets of the cluster. Opened ones are kept in memory.
type rings struct {
	catalog Cluster
	now     func() time.Time

	mu     sync.Mutex // guards the field below
	opened map[string][]byte
}

func newRings(c Cluster, now func() time.Time) *rings {
	return &rings{catalog: c, now: now, opened: map[string][]byte{}}
}

// made lists when the secrets of a ring were made, oldest first.
func (r ring) made(view *catalog.View) (all []int64) {
	for s := range view.Secrets() {
		text, ok := strings.CutPrefix(s.Name, r.name+"/")
		if at, err := strconv.ParseInt(text, 10, 64); ok && err == nil {
			all = append(all, at)
		}
	}
	slices.Sort(all)
	return all
}

func (r ring) secret(made int64) string { return r.name + "/" + strconv.FormatInt(made, 10) }

// sealing is the secret of a ring to seal with, and when it was made.
func (s *rings) sealing(ctx context.Context, r ring) (made int64, secret []byte, err error) {
	all := r.made(s.catalog.View())
	if len(all) == 0 {
		return 0, nil, errNotReady
	}

	// Where none has settled, the oldest: most nodes have that.
	made = all[0]
	for _, at := range all {
		// By the newest that has: a node that does not have it yet could not open what was sealed.
		if s.now().Sub(time.Unix(at, 0)) >= settled {
			made = at
		}
	}
	secret, err = s.find(ctx, r.secret(made))
	return made, secret, err
}

// opening is the secret of a ring that was made at some second. It fails with
// errSecret where there is none, and with errNotReady where there may be one that
// this node has not heard of.
func (s *rings) opening(ctx context.Context, r ring, made int64) ([]byte, error) {
	view := s.catalog.View()
	if view.Secret(r.secret(made)) != nil {
		return s.find(ctx, r.secret(made))
	}

	all := r.made(view)
	if len(all) == 0 {
		return nil, errNotReady
	}

	// Anybody can write a second into a text. One that is newer than all that are here counts
	// only where this node is cut off, and only when it is old enough to seal: a node that hears
	// of the leader has every secret that seals.
	newer := made > all[len(all)-1] && made <= s.now().Add(-current).Unix()
	if newer && s.catalog.Age() >= current {
		return nil, errNotReady
	}
	return nil, errSecret
}

// find opens a secret that is in the catalog. One that is not is never made here.
func (s *rings) find(ctx context.Context, name string) ([]byte, error) {
	// One at a time: who waits finds it opened.
	s.mu.Lock()
	defer s.mu.Unlock()
	if secret := s.opened[name]; secret != nil {
		return secret, nil
	}

	if s.catalog.View().Secret(name) == nil {
		// Making one is the leader's, by the clock: nobody makes one by asking for it.
		return nil, errNotReady
	}

	secret, err := s.catalog.Secret(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("oauth: secret %s: %w", name, err)
	}
	s.opened[name] = secret
	return secret, nil
}

// run turns the rings until ctx ends.
func (s *rings) run(ctx context.Context, log *slog.Logger) {
	for ctx.Err() == nil {
		changed := s.catalog.Changed()
		whole, err := s.turn(ctx)
		if err != nil && ctx.Err() == nil {
			log.Warn("the secrets of agents' tokens cannot be renewed now; it is tried again", "err", err)
		}

		// A young cluster has none until it has a leader. That is a change, which
		// may be seen before this node knows that it leads.
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

// turn makes the secrets that are due and drops those that nothing needs, on
// the leader. It reports whether every ring has one.
func (s *rings) turn(ctx context.Context) (whole bool, err error) {
	view, now := s.catalog.View(), s.now()
	whole = true
	var drop []string
	for _, r := range allRings {
		all := r.made(view)
		due := len(all) == 0 || r.period > 0 && now.Sub(time.Unix(all[len(all)-1], 0)) >= r.period
		// Another node may lead by the time it is made: then there are two, which does no harm.
		if due && s.catalog.Leading() {
			if _, err := s.catalog.Secret(ctx, r.secret(now.Unix())); err != nil {
				return false, err
			}
		} else if len(all) == 0 {
			whole = false
		}

		// One opens boxes as long as it seals, until the next one has settled, and a while more.
		for i := 0; i+1 < len(all); i++ {
			if now.Sub(time.Unix(all[i+1], 0)) > settled+r.keep {
				drop = append(drop, r.secret(all[i]))
			}
		}
	}

	if len(drop) > 0 && s.catalog.Leading() {
		if _, err := s.catalog.Propose(ctx, &catalog.DropSecrets{Names: drop}); err != nil {
			return whole, err
		}

		s.mu.Lock()
		defer s.mu.Unlock()
		// With the dropped ones all go: those that are needed are opened again.
		clear(s.opened)
	}
	return whole, nil
}
