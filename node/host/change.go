package host

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/shoalsearch/shoal/cluster/config"
)

// Mark is what a host says of the last push to a repository. Two different
// marks of a repository mean that it was pushed to between them.
type Mark struct {
	ExternalID string
	At         time.Time // of the push, by the host's clock; zero where the host names a commit instead
	Commits    []string  // of some branches, in hexadecimal digits
}

// Changer is a host that tells in a few calls what was pushed to.
type Changer interface {
	// Changed passes on the mark of each repository that was pushed to since a
	// time, and maybe of others. It returns the selections that it looked at, as
	// [Repo] has them: of others it knows nothing. take is called from one
	// goroutine at a time.
	Changed(ctx context.Context, since time.Time, take func(Mark)) (targets []string, err error)
}

// Signal is how a kind of host tells of pushes: a property of its row.
type Signal struct {
	Name string // of what is looked at, for people: pushed_at
	// Sure is set where no push goes unnoticed: what has no new mark need not be
	// fetched.
	Sure bool
	// Lag is for how long after a mark further pushes may leave it as it is.
	Lag time.Duration
	// Hourly is how many calls of an hour a credential has, where the host
	// does not say: looking for pushes takes a quarter of them at most.
	Hourly int
}

const (
	soonest   = 30 * time.Second // between two looks for pushes
	latest    = 15 * time.Minute
	lookShare = 4 // looks take at most one in so many calls
)

// Every is how long to wait between two looks that make so many calls with a
// credential.
func (s Signal) Every(calls int, a Allowance) time.Duration {
	hourly := s.Hourly
	if a.Limit > 0 && !a.Reset.IsZero() {
		hourly = max(hourly, a.Limit)
	}
	return min(max(soonest, time.Hour*time.Duration(calls*lookShare)/time.Duration(max(hourly, 1))), latest)
}

// SignalOf is how the host of a connection tells of pushes; false where it
// does not, and for a connection that is not there.
func SignalOf(conn config.Connection) (Signal, bool) {
	if conn == nil {
		return Signal{}, false
	}
	k, ok := kindOf(conn)
	if b, is := conn.(*config.Bitbucket); is && b.Deployment == config.Server {
		return Signal{}, false
	}
	return k.Signal, ok && k.Signal.Name != ""
}

// CredentialKey is the same for connections that share a host and a
// credential, whose calls a host counts together. Those of Gerrit and git without a
// token share nothing: what opens their host stands in its address, if anywhere.
func CredentialKey(conn config.Connection) string {
	address, token := conn.Access()
	switch conn.(type) {
	case *config.Gerrit, *config.Git:
		if token == nil {
			return string(conn.Kind()) + " " + conn.Shared().Name
		}
	}
	return string(conn.Kind()) + " " + address + " " + budgetKey(token)
}

// newest reads a list that begins with what was pushed to last, as far as a
// time. mark is what an entry says of its repository.
func newest[T any](ctx context.Context, c *client, first *url.URL, since time.Time, mark func(*T) Mark, take func(Mark), next func(*url.URL, http.Header, int) *url.URL) error {
	return c.walk(ctx, first, nil, func(ctx context.Context, u *url.URL) (*url.URL, int, error) {
		var page []T
		head, err := c.recall(ctx, u, &page)
		if err != nil {
			return nil, 0, err
		}

		// The list is sorted: behind the first that is too old nothing is new.
		for i := range page {
			m := mark(&page[i])
			if m.At.Before(since) {
				return nil, 0, nil
			}
			take(m)
		}
		return next(u, head, len(page)), len(page), nil
	})
}

// looked runs the looks of a connection one after the other, by their
// selections. What is not there is no failure of the others: the listing tells
// of it.
func looked(looks []look) ([]string, error) {
	var targets []string
	for _, l := range looks {
		err := l.look()

		// What is not there has no pushes; the other selections are looked at all the same.
		if errors.Is(err, ErrGone) {
			continue
		}
		if err != nil {
			return nil, err
		}
		targets = append(targets, l.target)
	}
	return targets, nil
}

// look asks for the pushes of one selection.
type look struct {
	target string
	look   func() error
}
