package job

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/host"
)

// A held repository is missing from a listing, but stays until a later listing confirms that.

// heldSince returns since when all held repositories are missing; zero: none is held. A newly held
// repository restarts the wait for all.
func heldSince(known *catalog.Connection, fin *catalog.FinishListing, now time.Time) time.Time {
	fresh := roaring.BitmapOf(fin.HeldRepos...)
	fresh.AndNot(roaring.BitmapOf(known.HeldRepos...))
	switch {
	case fin.Held == 0:
		return time.Time{}
	case known.HeldAt.IsZero() || !fresh.IsEmpty():
		return now
	}
	return known.HeldAt
}

// recordIncomplete records in fin which targets were listed only in part: nothing may be removed
// from these. It returns the targets that count as gone, because the host has lacked them for
// lostWait.
func (l *listing) recordIncomplete(fin *catalog.FinishListing, known *catalog.Connection, now time.Time) map[string]bool {
	lost := map[string]bool{}
	for k := range l.issues {
		i := &l.issues[k]
		switch {
		case !i.Partial:
		// Without a target the whole listing is affected: it must not remove anything.
		case i.Target == "":
			fin.Complete = false
		case isLostTarget(known, i, now):
			lost[i.Target], i.Partial = true, false
		default:
			fin.Partial = append(fin.Partial, i.Target)
		}
	}
	return lost
}

const (
	// A listing that misses more than both of these at once counts only if a second one agrees.
	shrinkCount = 20
	shrinkShare = 0.20

	// shrinkWait is the least time between these two listings.
	shrinkWait = time.Hour

	// lostWait is how long a target must be missing before its repositories count as missing: a
	// token may lose access to it for a while.
	lostWait = 7 * 24 * time.Hour
)

// isLostTarget reports whether every listing since lostWait has found a target missing.
func isLostTarget(known *catalog.Connection, i *host.Issue, now time.Time) bool {
	if i.Code != host.TargetNotFound || known.Hash != known.Synced {
		return false
	}
	return slices.ContainsFunc(known.Issues, func(old catalog.ListingIssue) bool {
		return old.Code == string(i.Code) && old.Target == i.Target && !old.Since.IsZero() && now.Sub(old.Since) >= lostWait
	})
}

// tooManyMissing reports whether so many repositories are missing that a fault of the host, the
// token or a proxy is more likely than their deletion.
func tooManyMissing(missing, linked int) bool {
	return missing > shrinkCount && float64(missing) > shrinkShare*float64(linked)
}

// decideMissing decides which of the repositories that a complete listing misses stay, and records
// them in fin. If the connection's definition was edited, none stays. If many are missing, or all of
// a lost target, they are held until a listing an hour later misses them too, or an owner accepts
// their removal. For each other missing repository it asks the host.
func (l *listing) decideMissing(ctx context.Context, h host.Host, known *catalog.Connection, lost map[string]bool, now time.Time, fin *catalog.FinishListing) error {
	missing, linked := l.findMissing(fin.Partial)
	finder, ok := h.(host.Finder)
	edited := known.Hash != known.Synced
	if !ok || edited || len(missing) == 0 {
		return nil
	}

	// Count the missing repositories that are not held yet.
	held := roaring.BitmapOf(known.HeldRepos...)
	fresh := len(missing)
	for _, r := range missing {
		if held.Contains(r.repo.ID) {
			fresh--
		}
	}
	shrank := tooManyMissing(len(missing), linked)
	shrinksMore := tooManyMissing(fresh, linked)
	waited := !known.HeldAt.IsZero() && now.Sub(known.HeldAt) >= shrinkWait

	var hold, ask []*catalog.Repo
	for _, r := range missing {
		wasHeld := held.Contains(r.repo.ID)
		suspect := lost[r.target] || shrank && (wasHeld || shrinksMore)
		switch {
		case !suspect:
			ask = append(ask, r.repo)
		case known.Accepted || wasHeld && waited: // removed
		default:
			hold = append(hold, r.repo)
		}
	}

	l.holdMissing(fin, hold, linked)
	return l.lookUpMissing(ctx, finder, ask, fin)
}

// holdMissing records that missing repositories stay until a second listing misses them, too.
func (l *listing) holdMissing(fin *catalog.FinishListing, missing []*catalog.Repo, linked int) {
	if len(missing) == 0 {
		return
	}

	// Kept makes the catalog keep them. HeldRepos tells the next listing which it must confirm.
	for _, r := range missing {
		fin.Kept = append(fin.Kept, r.ID)
		fin.HeldRepos = append(fin.HeldRepos, r.ID)
	}
	fin.Held = uint32(len(missing))
	l.issues = append(l.issues, host.Issue{Code: host.ListShrank, Text: fmt.Sprintf(
		"%d of %d repositories are missing from the listing, for example %s; they stay until a listing an hour later misses them too",
		len(missing), linked, missing[0].Name)})
}

// lookUpMissing asks the host for each repository by its id. A repository stays if the host still has
// it or gives no answer.
func (l *listing) lookUpMissing(ctx context.Context, finder host.Finder, missing []*catalog.Repo, fin *catalog.FinishListing) error {
	for _, r := range missing {
		found, chosen, err := finder.Lookup(ctx, r.ExternalID)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)

		// Gone, or no longer selected: not kept, so the catalog unlinks it.
		case errors.Is(err, host.ErrGone) || err == nil && !chosen:
		case err != nil:
			fin.Kept = append(fin.Kept, r.ID)
		default:
			fin.Kept = append(fin.Kept, r.ID)
			l.issues = append(l.issues, host.Issue{Code: host.PartialListing, Target: found.Name, Text: "the listing does not have it, but the host still does; it stays"})
		}
	}
	return nil
}

// missingRepo is a repository that a listing misses, with the selection that contained it.
type missingRepo struct {
	repo   *catalog.Repo
	target string
}

// findMissing returns the repositories of the connection that the listing misses. It skips those that
// the connection leaves out, and those whose target is in partial. linked is the number of all
// repositories of the connection.
func (l *listing) findMissing(partial []string) (missing []missingRepo, linked int) {
	for repo := range l.view().Repos() {
		for _, link := range repo.Connections {
			if link.Name != l.job.Subject {
				continue
			}

			linked++
			if !l.contains(repo, link) && !slices.Contains(partial, link.Target) && !l.leftOut[repo.ExternalID] {
				missing = append(missing, missingRepo{repo, link.Target})
			}
		}
	}
	return missing, linked
}

// contains reports whether the listing contains a repository of the connection.
func (l *listing) contains(repo *catalog.Repo, link catalog.RepoConnection) bool {
	return l.unchanged[repo.ID] || link.Seen == l.job.Fence
}

// findGone returns the repositories to remove from the connection: the listing misses them, and
// fin.Kept does not have them. Those of incomplete targets stay, and are added to fin.Total.
func (l *listing) findGone(fin *catalog.FinishListing) (gone []catalog.RepoID) {
	kept := roaring.BitmapOf(fin.Kept...)

	for repo := range l.view().Repos() {
		for _, link := range repo.Connections {
			switch {
			case link.Name != l.job.Subject || l.contains(repo, link) || kept.Contains(repo.ID):
			case slices.Contains(fin.Partial, link.Target):
				fin.Total++
			default:
				gone = append(gone, repo.ID)
			}
		}
	}
	return gone
}
