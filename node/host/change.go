package host

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/shoalsearch/shoal/cluster/config"
)

// Mark is what a host reports of the last push to a repository. If the mark changes, the repository
// was pushed to.
type Mark struct {
	ExternalID string
	At         time.Time // time of the push by the host's clock; zero if the host reports commits
	Commits    []string  // commits of some branches, in hexadecimal
}

// Changer is a host that reports pushes in a few calls.
type Changer interface {
	// Changed passes on the mark of each repository that was pushed to after a time, and maybe
	// others. It returns the targets that it covers, as in [Repo]. Other targets are unknown. Only
	// one goroutine at a time calls take.
	Changed(ctx context.Context, since time.Time, take func(Mark)) (targets []string, err error)
}

// Signal is how a kind of host reports pushes.
type Signal struct {
	Name string // name for people, such as pushed_at
	// Sure is true if each push changes the mark. Then a repository with its old mark need not be
	// fetched.
	Sure bool
	// Lag is how long after a mark further pushes may leave it unchanged.
	Lag time.Duration
	// Hourly is a credential's limit of calls per hour, if the host announces none. Looking for
	// pushes takes at most a quarter of them.
	Hourly int
}

const (
	minLookInterval = 30 * time.Second // between two looks for pushes
	maxLookInterval = 15 * time.Minute
	lookShare       = 4 // looks take at most one call in this many
)

// Every returns the time between two looks that need this many calls.
func (s Signal) Every(calls int, a Allowance) time.Duration {
	hourly := s.Hourly
	if a.Limit > 0 && !a.Reset.IsZero() {
		hourly = max(hourly, a.Limit)
	}
	return min(max(minLookInterval, time.Hour*time.Duration(calls*lookShare)/time.Duration(max(hourly, 1))), maxLookInterval)
}

// SignalOf returns how the host of a connection reports pushes. It returns false if the host does
// not, or the connection is nil.
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

// CredentialKey returns a key that is the same for connections with the same host and credential,
// because hosts count their calls together. Gerrit and git connections without a token never share
// a key. Their credentials, if any, are in their URLs.
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

// readNewest reads a list that is sorted by the last push, newest first, back to the time since. It
// passes the mark of each entry to take. next returns the URL of the next page, as in listArrays.
func readNewest[T any](ctx context.Context, c *client, first *url.URL, since time.Time, mark func(*T) Mark, take func(Mark), next func(*url.URL, http.Header, int) *url.URL) error {
	return c.walkPages(ctx, first, nil, func(ctx context.Context, u *url.URL) (*url.URL, int, error) {
		var page []T
		head, err := c.getCached(ctx, u, &page)
		if err != nil {
			return nil, 0, err
		}

		// The list is sorted, so stop at the first old entry.
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

// runLooks runs the looks of a connection one after the other, and returns their targets. It skips a
// target that the host does not have, because the listing reports that. Any other error ends it.
func runLooks(looks []look) ([]string, error) {
	var targets []string
	for _, l := range looks {
		err := l.lookAtHost()

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

// look asks a host for recent pushes to the repositories of one target.
type look struct {
	target     string
	lookAtHost func() error
}
