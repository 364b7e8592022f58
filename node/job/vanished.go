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

// vanishedWait is how long a repository rests that its host says to have no more
// where it was listed: a listing tells what became of it, and hosts are flooded by
// those who go on to ask.
const vanishedWait = 6 * time.Hour

// vanished is the failure of a repository that has left the place where it was
// listed.
type vanished struct {
	error
	until time.Time
}

// Unwrap returns the failure of the fetch.
func (v vanished) Unwrap() error { return v.error }

// NotBefore is when another attempt is worth it.
func (v vanished) NotBefore() time.Time { return v.until }

// missing asks the hosts of a repository that git did not find what has become of
// it. Where one says that it is gone, is called otherwise or is chosen no more, a
// listing is to bring that into the catalog. A host that has it as it was listed,
// or cannot tell, leaves the failure what it was.
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

// rests reports whether a repository is not to be asked for yet, since its last job
// failed and waits for longer than any back-off. After an ordinary failure, as of a
// disk that was full, pushes are looked for all the same: the next attempt may be good.
func rests(view *catalog.View, id catalog.RepoID, now time.Time) bool {
	const longest = maxBackoff + maxBackoff/5
	j := view.Job(catalog.JobIndex, catalog.RepoSubject(id))
	return j != nil && j.State == catalog.JobBackoff && now.Add(longest).Before(j.NotBefore)
}

// noRemote reports whether git was told that there is no such repository.
func noRemote(err error) bool { return errors.Is(err, git.ErrNoRemote) }
