package job

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/glob"
	"github.com/shoalsearch/shoal/node/hold"
	"github.com/shoalsearch/shoal/node/host"
	"github.com/shoalsearch/shoal/shard/git"
)

// remotes fetches the mirrors of repositories from where they come from.
type remotes struct {
	view    func() *catalog.View
	mirrors *hold.Mirrors
	hosts   host.Tools
	log     *slog.Logger
}

// fetch makes the mirror of a repository what the remote is now.
func (rs *remotes) fetch(ctx context.Context, repo *catalog.Repo, opt git.FetchOptions) (*git.Mirror, git.Fetched, error) {
	remote, err := rs.remote(ctx, repo)
	if err != nil {
		return nil, git.Fetched{}, err
	}

	mirror := rs.mirrors.Get(repo.ID)
	fetched, err := mirror.Fetch(ctx, remote, opt)

	// A credential that was changed a moment ago counts at once.
	if errors.Is(err, git.ErrAuth) && ctx.Err() == nil {
		if fresh, changed := rs.changed(ctx, repo, remote); changed {
			fetched, err = mirror.Fetch(ctx, fresh, opt)
		}
	}

	// A fetch that failed may have brought objects too.
	if err != nil || fetched.Changed {
		rs.mirrors.Changed(repo.ID)
	}

	if err != nil {
		return nil, fetched, err
	}
	return mirror, fetched, nil
}

// changed gives a remote with its credential of now, where that is another than the
// one that was refused.
func (rs *remotes) changed(ctx context.Context, repo *catalog.Repo, refused git.Remote) (git.Remote, bool) {
	rs.hosts.Refused()
	fresh, err := rs.remote(ctx, repo)
	return fresh, err == nil && fresh.Credential != refused.Credential
}

// remote is where a repository is fetched from: with the credential of the
// first connection which has one, and within the directory of the first which
// has local repositories.
func (rs *remotes) remote(ctx context.Context, repo *catalog.Repo) (git.Remote, error) {
	file := rs.view().File()
	remote := git.Remote{URL: repo.CloneURL}
	var failed error
	for _, link := range repo.Connections {
		conn := file.Connection(link.Name)
		if conn == nil {
			continue
		}

		remote.Within = cmp.Or(remote.Within, host.Within(conn, repo.CloneURL))

		cred, err := host.Credential(ctx, conn, repo.CloneURL, rs.hosts)
		// Another connection may have one that works.
		if err != nil {
			failed = fmt.Errorf("credential of connection %s: %w", link.Name, err)
			continue
		}
		if cred != (git.Credential{}) {
			remote.Credential = cred
			return remote, nil
		}
	}
	return remote, failed
}

// revisions is what is to be indexed, none for a repository without commits, and how
// many more are asked for than can be.
func (rs *remotes) revisions(ctx context.Context, m *git.Mirror, repo *catalog.Repo) (revs []git.Revision, leftOut int, err error) {
	b, t := globs(rs.view(), repo)
	branches, err := glob.Compile(glob.Exact, b...)
	if err != nil {
		return nil, 0, fmt.Errorf("branches: %w", err)
	}
	tags, err := glob.Compile(glob.Exact, t...)
	if err != nil {
		return nil, 0, fmt.Errorf("tags: %w", err)
	}

	revs, leftOut, err = m.Revisions(ctx, branches, tags)
	// Nothing to index yet is no failure.
	if errors.Is(err, git.ErrEmpty) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, fmt.Errorf("list revisions: %w", err)
	}
	return revs, leftOut, nil
}

// globs is what the connections of a repository ask for, together.
func globs(view *catalog.View, repo *catalog.Repo) (branches, tags []string) {
	for _, link := range repo.Connections {
		if conn := view.File().Connection(link.Name); conn != nil {
			revs := conn.Shared().Revisions
			branches, tags = append(branches, revs.Branches...), append(tags, revs.Tags...)
		}
	}
	slices.Sort(branches)
	slices.Sort(tags)
	return slices.Compact(branches), slices.Compact(tags)
}
