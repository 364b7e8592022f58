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

// remotes fetches the mirrors of repositories from their remotes.
type remotes struct {
	view    func() *catalog.View
	mirrors *hold.Mirrors
	hosts   host.Tools
	log     *slog.Logger
}

// fetchMirror updates the mirror of a repository from its remote.
func (rs *remotes) fetchMirror(ctx context.Context, repo *catalog.Repo, opt git.FetchOptions) (*git.Mirror, git.Fetched, error) {
	remote, err := rs.remoteOf(ctx, repo)
	if err != nil {
		return nil, git.Fetched{}, err
	}

	mirror := rs.mirrors.Get(repo.ID)
	fetched, err := mirror.Fetch(ctx, remote, opt)

	// Try again if the credential was just changed.
	if errors.Is(err, git.ErrAuth) && ctx.Err() == nil {
		if fresh, changed := rs.renewedRemote(ctx, repo, remote); changed {
			fetched, err = mirror.Fetch(ctx, fresh, opt)
		}
	}

	// A failed fetch may have brought objects, too.
	if err != nil || fetched.Changed {
		rs.mirrors.Changed(repo.ID)
	}

	if err != nil {
		return nil, fetched, err
	}
	return mirror, fetched, nil
}

// renewedRemote reads the credential of a repository again after the host refused one. changed
// reports whether it is another one now.
func (rs *remotes) renewedRemote(ctx context.Context, repo *catalog.Repo, refused git.Remote) (remote git.Remote, changed bool) {
	rs.hosts.Refused()
	fresh, err := rs.remoteOf(ctx, repo)
	return fresh, err == nil && fresh.Credential != refused.Credential
}

// remoteOf returns where to fetch a repository, with the credential of its first connection that has
// one. For a local repository it also sets the directory that must contain it.
func (rs *remotes) remoteOf(ctx context.Context, repo *catalog.Repo) (git.Remote, error) {
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
		// Another connection may have a working credential.
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

// revisionsToIndex returns the revisions to index, none for an empty repository. leftOut counts wanted
// revisions beyond the limit.
func (rs *remotes) revisionsToIndex(ctx context.Context, m *git.Mirror, repo *catalog.Repo) (revs []git.Revision, leftOut int, err error) {
	b, t := revisionGlobs(rs.view(), repo)
	branches, err := glob.Compile(glob.Exact, b...)
	if err != nil {
		return nil, 0, fmt.Errorf("branches: %w", err)
	}
	tags, err := glob.Compile(glob.Exact, t...)
	if err != nil {
		return nil, 0, fmt.Errorf("tags: %w", err)
	}

	revs, leftOut, err = m.Revisions(ctx, branches, tags)
	// An empty repository is no failure.
	if errors.Is(err, git.ErrEmpty) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, fmt.Errorf("list revisions: %w", err)
	}
	return revs, leftOut, nil
}

// revisionGlobs returns the globs of the branches and tags to index, of all connections of a
// repository.
func revisionGlobs(view *catalog.View, repo *catalog.Repo) (branches, tags []string) {
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
