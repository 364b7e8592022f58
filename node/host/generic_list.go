package host

import (
	"context"

	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/shard/git"
)

func openGeneric(conn config.Connection, _ Tools) (Host, error) {
	return &generic{url: conn.(*config.Git).URL}, nil
}

// List lists the repository of a URL, or those in directories.
func (g *generic) List(ctx context.Context, sink Sink) error {
	l, err := g.Repos(ctx)
	if err != nil {
		return err
	}

	// An unreadable directory may contain repositories, so the listing is partial.
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

// genericCredential returns the user in the connection's URL, for that URL only.
func genericCredential(_ context.Context, conn config.Connection, cloneURL string, _ Tools) (git.Credential, error) {
	c := conn.(*config.Git)
	if repo, err := repoAt(c.URL); err == nil && repo.Remote.URL == cloneURL {
		return credentialOf(c.URL), nil
	}
	return git.Credential{}, nil
}
