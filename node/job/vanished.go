package job

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/host"
	"github.com/shoalsearch/shoal/shard/git"
)

// vanishedWait is the pause after a repository was not found at its URL. A listing will find out
// more, and repeated tries would flood the host.
const vanishedWait = 6 * time.Hour

// vanished is the failure of a repository that is no longer at its URL.
type vanished struct {
	error
	until time.Time
}

// Unwrap returns the failure of the fetch.
func (v vanished) Unwrap() error { return v.error }

// NotBefore returns when to try again.
func (v vanished) NotBefore() time.Time { return v.until }

// explainMissing asks the hosts about a repository that git did not find. If a host says that it is
// gone, renamed or no longer selected, explainMissing asks for a listing, and returns an error that
// delays the next try. Otherwise it returns the failure unchanged.
func (x *indexer) explainMissing(ctx context.Context, repo *catalog.Repo, failure error) error {
	file := x.remotes.view().File()
	for _, link := range repo.Connections {
		conn := file.Connection(link.Name)
		if conn == nil {
			continue
		}

		h, err := host.Open(conn, x.remotes.hosts)
		if err != nil {
			continue
		}
		finder, ok := h.(host.Finder)
		if !ok {
			continue
		}

		// The host gives no answer, or knows the repository as the catalog does.
		found, chosen, err := finder.Lookup(ctx, repo.ExternalID)
		if err != nil && !errors.Is(err, host.ErrGone) || err == nil && chosen && found.Remote.URL == repo.CloneURL {
			continue
		}
		x.hint(link.Name)
		return vanished{fmt.Errorf("%w; connection %s is listed again to see what has become of it", failure, link.Name), x.now().Add(vanishedWait)}
	}
	return failure
}

// waitsLong reports whether a repository must not be polled yet, because its last job failed and
// waits longer than any back-off. After other failures, such as a full disk, polls go on, because
// the next attempt may succeed.
func waitsLong(view *catalog.View, id catalog.RepoID, now time.Time) bool {
	const longest = maxBackoff + maxBackoff/5
	j := view.Job(catalog.JobIndex, catalog.RepoSubject(id))
	return j != nil && j.State == catalog.JobBackoff && now.Add(longest).Before(j.NotBefore)
}

// noRemote reports whether git found no such repository.
func noRemote(err error) bool { return errors.Is(err, git.ErrNoRemote) }
