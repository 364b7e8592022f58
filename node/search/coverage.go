package search

import (
	"slices"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
	"github.com/shoalsearch/shoal/node/coverage"
)

// coverage is what the search covers: a proof by enumeration. Every shard that had to
// answer did, every repository in question has an index, and no limit cut anything.
func (a *answer) coverage(late bool) coverage.Coverage {
	c := coverage.Of(coverage.Parts, a.stats.ShardsRequired, a.stats.ShardsAnswered)
	lost := coverage.Gap{Kind: coverage.Lost, Count: a.missing(), Of: a.stats.ShardsRequired}

	// Which file a repository is in depends on who else is in the file: a viewer who may
	// not see all of them is told the repositories alone.
	if a.q.blind {
		all, missing := int(a.q.repos.GetCardinality()), len(a.lostRepos())
		c = coverage.Of(coverage.Repositories, all, all-missing)
		lost.Count, lost.Of = missing, all
	}

	// Parts that the time did not reach have not failed: to ask for them again would take
	// as long.
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

	// Time that ran out cuts too.
	if a.cut && !late {
		c = c.With(coverage.Gap{Kind: coverage.Limit})
	}
	return a.unready(c)
}

// UpTo is the coverage c of an answer that shows so many of the files that were found.
func UpTo(c coverage.Coverage, files, found int) coverage.Coverage {
	if found > files && !c.Has(coverage.Limit, coverage.Late) {
		c = c.With(coverage.Gap{Kind: coverage.Limit})
	}
	return c
}

// unready adds the repositories without an index: those that wait for it, and those that
// could not be indexed.
func (a *answer) unready(c coverage.Coverage) coverage.Coverage {
	failed := 0
	for _, name := range a.unindexed {
		repo, err := a.q.sight.ByName(name)
		if err != nil {
			// It has gone from what the viewer may see since the search began.
			continue
		}

		// A job that failed once and is tried again counts as failed: its error is what can be mended.
		job := a.q.sight.View.Job(catalog.JobIndex, catalog.RepoSubject(repo.ID))
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

// AtRevision adds to a coverage in how many repositories a revision is not indexed: of all
// that a viewer may see, or of one or several.
func AtRevision(c coverage.Coverage, seen *account.Repos, name string, several []string, ref string) coverage.Coverage {
	if ref == "" || ref == "HEAD" {
		return c
	}
	gap := coverage.Gap{Kind: coverage.Revision, Ref: ref}
	for repo := range seen.All() {
		// Where nothing was ever committed there is nothing that could be searched.
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

// FlushReasonOf says why an answer ends where it does, by what it covers.
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
