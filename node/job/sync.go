package job

import (
	"context"
	"errors"
	"fmt"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/host"
)

// sync lists a connection and brings the listing into the catalog, in pages.
// Only a complete listing lets go of repositories that it does not have.
func (r *Runner) sync(ctx context.Context, a *attempt) error {
	j := a.job
	view := r.opt.Cluster.View()
	conn := view.File().Connection(j.Subject)
	known := view.Connection(j.Subject)
	if conn == nil || known == nil {
		return fmt.Errorf("the configuration has no connection %q any more: %w", j.Subject, errPermanent)
	}
	h, err := host.Open(conn, r.opt.Secret)
	if err != nil {
		if ns := (*host.NotSyncing)(nil); errors.As(err, &ns) {
			return fmt.Errorf("%w: %w", err, errPermanent)
		}
		return err
	}
	a.step("listing")
	listing, err := h.Repos(ctx)
	if err != nil {
		return err
	}
	a.step("recording")
	for i := 0; i < len(listing.Repos); i += catalog.MaxPage {
		page := &catalog.SyncPage{Connection: j.Subject, Fence: j.Fence}
		for _, repo := range listing.Repos[i:min(i+catalog.MaxPage, len(listing.Repos))] {
			page.Repos = append(page.Repos, listed(view, repo))
		}
		if _, err := r.propose(ctx, j, page); err != nil {
			return fmt.Errorf("record the listing: %w", err)
		}
		a.count(int64(i+len(page.Repos)), int64(len(listing.Repos)))
	}
	fin := &catalog.FinishSync{
		Connection: j.Subject, Fence: j.Fence, Hash: known.Hash,
		Complete: listing.Complete, Listed: uint32(len(listing.Repos)), Warnings: append(listing.Warnings, shadowed(r.opt.Cluster.View(), listing.Repos)...),
	}
	if _, err := r.propose(ctx, j, fin); err != nil {
		return fmt.Errorf("finish the listing: %w", err)
	}
	r.opt.Log.Info("connection synced", "connection", j.Subject, "repos", len(listing.Repos), "complete", listing.Complete, "warnings", len(fin.Warnings))
	return nil
}

// maxShadowed bounds the warnings about names that another connection has.
const maxShadowed = 20

// shadowed warns of listed repositories whose name another connection has for
// another address: they are not indexed under this one.
func shadowed(view *catalog.View, list []host.Repo) []string {
	var warnings []string
	for _, repo := range list {
		known := view.RepoByName(repo.Name)
		if known == nil || known.CloneURL == repo.Remote.URL || len(known.Connections) == 0 {
			continue
		}
		if len(warnings) == maxShadowed {
			return append(warnings, "and more names that other connections have")
		}
		warnings = append(warnings, fmt.Sprintf("%s is the name of another repository of connection %s: %s is not indexed; give it a remote.origin.url or move it to a directory of another name", repo.Name, known.Connections[0].Name, repo.Remote.URL))
	}
	return warnings
}

// listed is a repository of a listing as the catalog has it. What a host does
// not know stays as the last index job found it.
func listed(view *catalog.View, repo host.Repo) catalog.ListedRepo {
	facts := catalog.RepoFacts{
		DisplayName: repo.DisplayName, HostKind: repo.HostType, ExternalID: repo.Name, CloneURL: repo.Remote.URL,
		WebURL: repo.WebURL, Topics: repo.Topics, Fork: repo.Fork, Archived: repo.Archived, Public: repo.Public,
	}
	if old := view.RepoByName(repo.Name); old != nil {
		facts.DefaultBranch, facts.PushedAt = old.DefaultBranch, old.PushedAt
	}
	return catalog.ListedRepo{Name: repo.Name, RepoFacts: facts}
}
