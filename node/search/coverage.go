package search

import (
	"slices"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/coverage"
)

// coverage returns what the search covers. It proves this by enumeration: every required shard
// answered, every repository of the query has an index, and no limit cut anything.
func (a *answer) coverage(late bool) coverage.Coverage {
	c := coverage.Of(coverage.Parts, a.stats.ShardsRequired, a.stats.ShardsAnswered)
	lost := coverage.Gap{Kind: coverage.Lost, Count: a.missing(), Of: a.stats.ShardsRequired}

	// Other repositories in the same file decide where a repository's data is: a viewer who may not
	// see all of them learns only which repositories are missing.
	if a.q.hideCounts {
		all, missing := int(a.q.repos.GetCardinality()), len(a.lostRepos())
		c = coverage.Of(coverage.Repositories, all, all-missing)
		lost.Count, lost.Of = missing, all
	}

	// If time ran out, the missing parts have not failed, and asking for them again would take as
	// long.
	if late {
		c = c.With(coverage.Gap{Kind: coverage.Late})
	}
	if len(a.lost) > 0 && (!late || len(a.failed) > 0) {
		c = c.With(lost)
	}
	if n := a.stats.FilesNotSearched; n > 0 {
		c = c.With(coverage.Gap{Kind: coverage.NameOnly, Count: n})
	}
	for _, g := range a.untagged {
		c = c.With(g)
	}

	if a.q.revision.Count > 0 {
		c = c.With(a.q.revision)
	}

	// If time ran out, the cut is no limit of its own.
	if a.cut && !late {
		c = c.With(coverage.Gap{Kind: coverage.Limit})
	}
	return a.unready(c)
}

// UpTo returns the coverage of an answer that shows only files of the found files.
func UpTo(c coverage.Coverage, files, found int) coverage.Coverage {
	if found > files && !c.Has(coverage.Limit, coverage.Late) {
		c = c.With(coverage.Gap{Kind: coverage.Limit})
	}
	return c
}

// unready adds a gap for the repositories without an index: those that wait for it, and those that
// could not be indexed.
func (a *answer) unready(c coverage.Coverage) coverage.Coverage {
	failed := 0
	for _, name := range a.unindexed {
		repo, err := a.q.visible.ByName(name)
		if err != nil {
			// The viewer may no longer see it.
			continue
		}

		// A job that failed and will be tried again counts as failed: its error is what somebody
		// can fix.
		job := a.q.visible.View.Job(catalog.JobIndex, catalog.RepoSubject(repo.ID))
		if job != nil && job.Error != "" {
			failed++
		}
	}

	if failed > 0 {
		c = c.With(coverage.Gap{Kind: coverage.Failed, Count: failed})
	}
	if pending := len(a.unindexed) - failed; pending > 0 {
		c = c.With(coverage.Gap{Kind: coverage.Pending, Count: pending})
	}
	return c
}

// AtRevision adds to a coverage how many repositories do not have a revision in the index. It
// counts all repositories of the viewer, or those with a name, or those in a list.
func AtRevision(c coverage.Coverage, visible *account.Repos, name string, several []string, ref string) coverage.Coverage {
	if ref == "" || ref == "HEAD" {
		return c
	}
	gap := coverage.Gap{Kind: coverage.Revision, Ref: ref}
	for repo := range visible.All() {
		// A repository without any commit has nothing to search.
		asked := (name == "" || repo.Name == name) && (several == nil || slices.Contains(several, repo.Name))
		if !asked || !repo.Indexed() || repo.NoCommit() {
			continue
		}
		gap.Of++
		if nameOfRevision(repo, ref) == "" && !hasRevision(repo, ref) {
			gap.Count++
		}
	}

	switch gap.Count {
	case 0:
		return c
	case gap.Of:
		gap.Kind = coverage.NoRevision
	}
	return c.With(gap)
}

// FlushReasonOf returns why an answer ends where it does, judged by its coverage.
func FlushReasonOf(c coverage.Coverage) FlushReason {
	switch {
	case c.Has(coverage.Late):
		return FlushTimeout
	case c.Has(coverage.Lost):
		return FlushUnavailable
	case c.Has(coverage.Symbols):
		return FlushUntagged
	case c.Has(coverage.Limit):
		return FlushLimit
	}
	return FlushFinal
}
