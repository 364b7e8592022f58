package host

import (
	"context"

	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/shard/git"
)

func openGeneric(conn config.Connection, _ Tools) (Host, error) {
	return &generic{url: conn.(*config.Git).URL}, nil
}

// List passes on the repository of an address, or those in directories.
func (g *generic) List(ctx context.Context, sink Sink) error {
	l, err := g.Repos(ctx)
	if err != nil {
		return err
	}

	// A directory that could not be read may hold repositories: nothing is let go then.
	for _, w := range l.Warnings {
		w.Partial = !l.Complete
		sink.Issue(w)
	}

	for i, r := range l.Repos {
		if err := sink.Repo(ctx, r); err != nil {
			return err
		}
		sink.Progress(i+1, len(l.Repos))
	}
	return nil
}

// genericCredential is the user in the address of the connection, for that
// address alone.
func genericCredential(_ context.Context, conn config.Connection, cloneURL string, _ Tools) (git.Credential, error) {
	c := conn.(*config.Git)
	if repo, err := repoAt(c.URL); err == nil && repo.Remote.URL == cloneURL {
		return userOf(c.URL), nil
	}
	return git.Credential{}, nil
}
