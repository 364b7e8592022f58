package search

import (
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/account"
)

// Cut is what an answer lacks.
type Cut struct {
	Why    CutReason // "" for nothing
	Count  int       // of repositories or parts of the index, with the reasons that speak of them
	Of     int       // of how many
	Failed int       // repositories that could not be indexed; the answer lacks nothing else of them
	Ref    string    // with the reasons that speak of a revision

	// Files that could hold a match and were not searched, as they are kept by
	// name only: at most three of Unsearched are named.
	Unsearched      int
	UnsearchedFiles []UnsearchedFile
}

// UnsearchedFile is a file that is kept by name only.
type UnsearchedFile struct{ Repo, Path, Why string }

// CutReason is why an answer is not all that there is.
type CutReason string

// The reasons.
const (
	CutLimit      CutReason = "limit"     // more than the limit lets through
	CutTime       CutReason = "time"      // time ran out
	CutParts      CutReason = "parts"     // Count of Of parts of the index did not answer, or for a viewer who may not see all of repositories
	CutPending    CutReason = "pending"   // Count repositories are not indexed yet
	CutRevision   CutReason = "revision"  // the revision is not indexed in Count of Of repositories, and in the others everything was looked at
	CutNoRevision CutReason = "no-commit" // no repository has the revision indexed
	CutSymbols    CutReason = "symbols"   // the symbols of some files are not known, yet or at all
	CutUnknown    CutReason = "unknown"
)

// cutOf is what the answer to a search lacks, of which limit files are wanted.
func (r *root) cutOf(answer *Response, limit int) Cut {
	pending, failed := r.unready()

	cut := Cut{Failed: failed}

	// The gravest reason counts: parts without an answer before a limit, and that
	// before repositories that are not ready. Parts that the time did not reach have
	// not failed: to ask for them again would take as long.
	late := answer.Stats.FlushReason == FlushTimeout
	switch {
	case late && len(r.failed) == 0:
		cut.Why = CutTime
	case len(r.lost) > 0 && r.blind:
		cut.Why, cut.Of = CutParts, int(r.repos.GetCardinality())
		cut.Count = len(r.lostRepos())
	case len(r.lost) > 0:
		cut.Why, cut.Of = CutParts, answer.Stats.ShardsRequired
		cut.Count = cut.Of - answer.Stats.ShardsAnswered

	case late:
		cut.Why = CutTime
	case r.untagged:
		cut.Why = CutSymbols
	case len(r.files) > limit || answer.Stats.FlushReason == FlushLimit:
		cut.Why = CutLimit
	case pending > 0:
		cut.Why, cut.Count = CutPending, pending
	case !answer.Exhaustive && failed == 0:
		cut.Why = CutUnknown
	}
	return cut
}

// unready counts the repositories without an index: those that wait for it,
// and those that could not be indexed.
func (r *root) unready() (pending, failed int) {
	for _, name := range r.unindexed {
		repo, err := r.seen.ByName(name)
		if err != nil {
			// It has gone from what the viewer may see since the search began.
			continue
		}

		// A job that failed once and is tried again counts as failed: its error is what can be mended.
		job := r.seen.View.Job(catalog.JobIndex, catalog.RepoSubject(repo.ID))
		if job != nil && job.Error != "" {
			failed++
		} else {
			pending++
		}
	}
	return pending, failed
}

// lackingOf notes, where all repositories were searched at a ref and nothing
// else was left out, that it is not indexed everywhere.
func (r *root) lackingOf(repo, ref string, cut *Cut) { lackingOf(r.seen, repo, ref, cut) }

// lackingOf is the same for what the viewer of several searches may see.
func lackingOf(seen *account.Repos, repo, ref string, cut *Cut) {
	if repo != "" || ref == "" || ref == "HEAD" || cut.Why != "" {
		return
	}
	for repo := range seen.All() {
		// Where nothing was ever committed there is nothing that could be searched.
		if !repo.Indexed() || repo.NoCommit() {
			continue
		}
		cut.Of++
		if nameOfRevision(repo, ref) == "" {
			cut.Count++
		}
	}

	switch cut.Count {
	case 0:
		cut.Of = 0
	case cut.Of:
		cut.Why = CutNoRevision
	default:
		cut.Why = CutRevision
	}

	if cut.Why != "" {
		cut.Ref = ref
	}
}
