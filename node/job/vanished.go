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

// missing asks the hosts of a repository that git did not find. If a host says that it is gone,
// renamed or no longer selected, missing hints at a listing. Otherwise it returns the failure
// unchanged.
func (x *indexer) missing(ctx context.Context, repo *catalog.Repo, failure error) error {
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

		now, chosen, err := finder.Lookup(ctx, repo.ExternalID)
		if err != nil && !errors.Is(err, host.ErrGone) || err == nil && chosen && now.Remote.URL == repo.CloneURL {
			continue
		}
		x.hint(link.Name)
		return vanished{fmt.Errorf("%w; connection %s is listed again to see what has become of it", failure, link.Name), x.now().Add(vanishedWait)}
	}
	return failure
}

// rests reports whether a repository must not be polled yet, because its last job failed with a
// longer wait than any back-off. After an ordinary failure, as of a full disk, polls go on: the
// next attempt may succeed.
func rests(view *catalog.View, id catalog.RepoID, now time.Time) bool {
	const longest = maxBackoff + maxBackoff/5
	j := view.Job(catalog.JobIndex, catalog.RepoSubject(id))
	return j != nil && j.State == catalog.JobBackoff && now.Add(longest).Before(j.NotBefore)
}

// noRemote reports whether git found no such repository.
func noRemote(err error) bool { return errors.Is(err, git.ErrNoRemote) }
