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

// heldSince returns since when all held repositories are missing; zero: none is held.
func heldSince(known *catalog.Connection, fin *catalog.FinishListing, now time.Time) time.Time {
	// A newly held repository restarts the wait for all.
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

// incomplete records in the command which targets were listed only in part. It returns the targets
// that count as gone, because the host has lacked them for long.
func (l *listing) incomplete(fin *catalog.FinishListing, known *catalog.Connection, now time.Time) map[string]bool {
	lost := map[string]bool{}
	for k := range l.issues {
		i := &l.issues[k]
		switch {
		case !i.Partial:
		// Without a target the whole listing is affected: it must not remove anything.
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
	// A listing that misses more than both of these at once counts only if a second one agrees.
	shrinkCount = 20
	shrinkShare = 0.20

	// shrinkWait is the least time between these two listings.
	shrinkWait = time.Hour

	// lostWait is how long a target must be missing before its repositories count as missing: a
	// token may lose access to it for a while.
	lostWait = 7 * 24 * time.Hour
)

// lostTarget reports whether the host has reported a target as missing for lostWait, at every
// listing.
func lostTarget(known *catalog.Connection, i *host.Issue, now time.Time) bool {
	if i.Code != host.TargetNotFound || known.Hash != known.Synced {
		return false
	}
	return slices.ContainsFunc(known.Issues, func(old catalog.ListingIssue) bool {
		return old.Code == string(i.Code) && old.Target == i.Target && !old.Since.IsZero() && now.Sub(old.Since) >= lostWait
	})
}

// tooMany reports whether so many repositories are missing that a fault of the host, the token or a
// proxy is more likely than their deletion.
func tooMany(missing, linked int) bool {
	return missing > shrinkCount && float64(missing) > shrinkShare*float64(linked)
}

// decideMissing decides about the repositories that a complete listing misses. Those that the connection's
// definition leaves out are removed. The host is asked for each other one by its id, and may say
// that it is gone. If many are missing at once, or all of a lost target, they stay until a second
// listing an hour later agrees, or an owner accepts it.
func (l *listing) decideMissing(ctx context.Context, h host.Host, known *catalog.Connection, lost map[string]bool, now time.Time, fin *catalog.FinishListing) error {
	missing, linked := l.missing(fin.Partial)
	finder, ok := h.(host.Finder)
	edited := known.Hash != known.Synced
	if !ok || edited || len(missing) == 0 {
		return nil
	}

	// Repositories that an earlier listing missed have waited since then. Count the others.
	held := roaring.BitmapOf(known.HeldRepos...)
	fresh := len(missing)
	for _, r := range missing {
		if held.Contains(r.repo.ID) {
			fresh--
		}
	}
	shrank, shrinksMore := tooMany(len(missing), linked), tooMany(fresh, linked)
	waited := !known.HeldAt.IsZero() && now.Sub(known.HeldAt) >= shrinkWait

	// Hold a suspect repository until it has waited. Ask the host for the others.
	var hold, ask []*catalog.Repo
	for _, r := range missing {
		was := held.Contains(r.repo.ID)
		suspect := lost[r.target] || shrank && (was || shrinksMore)
		switch {
		case !suspect:
			ask = append(ask, r.repo)
		case known.Accepted || was && waited: // removed
		default:
			hold = append(hold, r.repo)
		}
	}

	l.hold(fin, hold, linked)
	return l.ask(ctx, finder, ask, fin)
}

// hold keeps missing repositories until a second listing misses them, too.
func (l *listing) hold(fin *catalog.FinishListing, missing []*catalog.Repo, linked int) {
	if len(missing) == 0 {
		return
	}

	// Kept leaves them in the catalog. HeldRepos are for the next listing to confirm.
	for _, r := range missing {
		fin.Kept = append(fin.Kept, r.ID)
		fin.HeldRepos = append(fin.HeldRepos, r.ID)
	}
	fin.Held = uint32(len(missing))
	l.issues = append(l.issues, host.Issue{Code: host.ListShrank, Text: fmt.Sprintf(
		"%d of %d repositories are missing from the listing, for example %s; they stay until a listing an hour later misses them too",
		len(missing), linked, missing[0].Name)})
}

// ask asks the host for repositories one by one. If the host gives no answer, the repository stays.
func (l *listing) ask(ctx context.Context, finder host.Finder, missing []*catalog.Repo, fin *catalog.FinishListing) error {
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

// missing returns the repositories of the connection that the listing misses, except those that
// were left out or whose selection was listed only in part. linked is the number of all
// repositories of the connection.
func (l *listing) missing(partial []string) (missing []missingRepo, linked int) {
	for repo := range l.view().Repos() {
		for _, link := range repo.Connections {
			if link.Name != l.job.Subject {
				continue
			}

			// Count all, to judge the share of missing ones.
			linked++
			if !l.has(repo, link) && !slices.Contains(partial, link.Target) && !l.leftOut[repo.ExternalID] {
				missing = append(missing, missingRepo{repo, link.Target})
			}
		}
	}
	return missing, linked
}

// has reports whether the listing contains a repository of the connection.
func (l *listing) has(repo *catalog.Repo, link catalog.RepoConnection) bool {
	return l.unchanged[repo.ID] || link.Seen == l.job.Fence
}

// gone returns the repositories to remove from the connection: the listing misses them, and there
// is no reason to keep them. Those of incomplete targets stay, and count in fin.Total.
func (l *listing) gone(fin *catalog.FinishListing) (gone []catalog.RepoID) {
	kept := roaring.BitmapOf(fin.Kept...)

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
