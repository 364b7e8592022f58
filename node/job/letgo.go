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

// heldSince is since when all are missing that are held; zero where none is.
func heldSince(known *catalog.Connection, fin *catalog.FinishListing, now time.Time) time.Time {
	// One that was not held before begins the wait anew, for all of them.
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

// incomplete says in the command what was not listed in whole, and returns the
// targets that count as gone since they have been lost for long.
func (l *listing) incomplete(fin *catalog.FinishListing, known *catalog.Connection, now time.Time) map[string]bool {
	lost := map[string]bool{}
	for k := range l.issues {
		i := &l.issues[k]
		switch {
		case !i.Partial:
		// Without a target it is about the whole: the listing may then take nothing away.
		case i.Target == "":
			fin.Complete = false
		case lostTarget(known, i, now):
			lost[i.Target], i.Partial = true, false
		default:
			fin.Partial = append(fin.Partial, i.Target)
		}
	}
	return lost
}

const (
	// A listing that misses more than both of these at once is not believed
	// before it comes a second time.
	shrinkCount = 20
	shrinkShare = 0.20

	// shrinkWait is how long after the first such listing the second must come.
	shrinkWait = time.Hour

	// lostWait is for how long a target must not be there before what it had
	// listed counts as missing: a token may lose the sight of it for a while.
	lostWait = 7 * 24 * time.Hour
)

// lostTarget reports whether an issue is of a target that the host has said for
// long, at every listing, not to have.
func lostTarget(known *catalog.Connection, i *host.Issue, now time.Time) bool {
	if i.Code != host.TargetNotFound || known.Hash != known.Synced {
		return false
	}
	return slices.ContainsFunc(known.Issues, func(old catalog.ListingIssue) bool {
		return old.Code == string(i.Code) && old.Target == i.Target && !old.Since.IsZero() && now.Sub(old.Since) >= lostWait
	})
}

// tooMany reports whether so many are missing at once that the host, the token
// or a proxy is likelier to be wrong than that they are gone.
func tooMany(missing, linked int) bool {
	return missing > shrinkCount && float64(missing) > shrinkShare*float64(linked)
}

// absent decides about the repositories that the listing of whole targets
// does not have. What the connection leaves out by its own definition goes.
// Of the rest each is asked for by its id: gone is what the host says is gone.
// When many are missing at once, or all of a target that is lost, they stay until
// a second listing agrees, an hour later, or an owner accepts it.
func (l *listing) absent(ctx context.Context, h host.Host, known *catalog.Connection, lost map[string]bool, now time.Time, fin *catalog.FinishListing) error {
	missing, linked := l.missing(fin.Partial)
	finder, ok := h.(host.Finder)
	edited := known.Hash != known.Synced
	if !ok || edited || len(missing) == 0 {
		return nil
	}

	// Those that an earlier listing missed have waited since then; of the others
	// it counts how many there are now.
	held := roaring.BitmapOf(known.HeldRepos...)
	fresh := len(missing)
	for _, r := range missing {
		if held.Contains(r.repo.ID) {
			fresh--
		}
	}
	shrank, shrinksMore := tooMany(len(missing), linked), tooMany(fresh, linked)
	waited := !known.HeldAt.IsZero() && now.Sub(known.HeldAt) >= shrinkWait

	// What is suspect is held until it has waited, and goes then; the rest is asked for.
	var hold, ask []*catalog.Repo
	for _, r := range missing {
		was := held.Contains(r.repo.ID)
		suspect := lost[r.target] || shrank && (was || shrinksMore)
		switch {
		case !suspect:
			ask = append(ask, r.repo)
		case known.Accepted || was && waited: // they go
		default:
			hold = append(hold, r.repo)
		}
	}

	l.hold(fin, hold, linked)
	return l.ask(ctx, finder, ask, fin)
}

// hold keeps repositories that are missing until that is said again.
func (l *listing) hold(fin *catalog.FinishListing, missing []*catalog.Repo, linked int) {
	if len(missing) == 0 {
		return
	}

	// Kept leaves them where they are, and what is held the next listing has to agree about.
	for _, r := range missing {
		fin.Kept = append(fin.Kept, r.ID)
		fin.HeldRepos = append(fin.HeldRepos, r.ID)
	}
	fin.Held = uint32(len(missing))
	l.issues = append(l.issues, host.Issue{Code: host.ListShrank, Text: fmt.Sprintf(
		"%d of %d repositories are missing from the listing, for example %s; they stay until a listing an hour later misses them too",
		len(missing), linked, missing[0].Name)})
}

// ask asks the host for repositories one by one; what it cannot say now stays.
func (l *listing) ask(ctx context.Context, finder host.Finder, missing []*catalog.Repo, fin *catalog.FinishListing) error {
	for _, r := range missing {
		found, chosen, err := finder.Lookup(ctx, r.ExternalID)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)

		// Gone, or no longer chosen: not kept, so the catalog unlinks it.
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

// absentee is a repository that a listing does not have, and the selection that
// it had come by.
type absentee struct {
	repo   *catalog.Repo
	target string
}

// missing returns the repositories of the connection that the listing does
// not have, though it neither leaves them out nor failed to list where they
// came from, and how many repositories the connection had.
func (l *listing) missing(partial []string) (missing []absentee, linked int) {
	for repo := range l.view().Repos() {
		for _, link := range repo.Connections {
			if link.Name != l.job.Subject {
				continue
			}

			// All of them count: what is missing is judged by its share.
			linked++
			if !l.has(repo, link) && !slices.Contains(partial, link.Target) && !l.left[repo.ExternalID] {
				missing = append(missing, absentee{repo, link.Target})
			}
		}
	}
	return missing, linked
}

// has reports whether the listing has a repository of the connection.
func (l *listing) has(repo *catalog.Repo, link catalog.RepoConnection) bool {
	return l.seen[repo.ID] || link.Seen == l.job.Fence
}

// gone are the repositories of the connection that the listing does not have
// and that do not stay for another reason. Those of targets that were not listed
// stay, and count as the connection's.
func (l *listing) gone(fin *catalog.FinishListing) (gone []catalog.RepoID) {
	kept := roaring.BitmapOf(fin.Kept...)

	// Each one is there, stays for a reason that was told, or goes.
	for repo := range l.view().Repos() {
		for _, link := range repo.Connections {
			switch {
			case link.Name != l.job.Subject || l.has(repo, link) || kept.Contains(repo.ID):
			case slices.Contains(fin.Partial, link.Target):
				fin.Total++
			default:
				gone = append(gone, repo.ID)
			}
		}
	}
	return gone
}
