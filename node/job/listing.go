package job

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/host"
)

// listing takes what a host lists and writes it to the catalog in pages.
type listing struct {
	view     func() *catalog.View
	propose  func(context.Context, catalog.Command) error
	job      *catalog.Job
	progress func(done, total int64)

	mu       sync.Mutex // guards the fields below
	heap     func()     // ends what a large listing asked of the collector; nil before
	page     []catalog.ListedRepo
	listed   int                     // repositories so far
	written  int                     // of them, that were not in the catalog as they were listed
	seen     map[catalog.RepoID]bool // of them, that were
	left     map[string]bool         // external ids that the connection leaves out
	excluded map[host.Reason]uint32
	issues   []host.Issue
	shadowed []string
	renamed  []string
}

func newListing(view func() *catalog.View, propose func(context.Context, catalog.Command) error, j *catalog.Job) *listing {
	return &listing{
		view:     view,
		propose:  propose,
		job:      j,
		progress: func(int64, int64) {},
		left:     map[string]bool{},
		excluded: map[host.Reason]uint32{},
		seen:     map[catalog.RepoID]bool{},
	}
}

// largeListing is the number of repositories from which on a listing is large.
const largeListing = 5000

// close ends what the listing asked of the process.
func (l *listing) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.heap != nil {
		l.heap()
	}
}

// Repo takes a repository; a full page is written before it returns.
func (l *listing) Repo(ctx context.Context, repo host.Repo) error {
	view := l.view()

	l.mu.Lock()
	defer l.mu.Unlock()
	l.giveWay(view, &repo)
	l.note(view, &repo)

	// What comes is garbage as soon as it is looked at: the heap need not grow with it.
	if l.listed++; l.listed == largeListing {
		l.heap = smallHeap()
	}

	// What the catalog has as it is needs no entry of the log.
	entry := listed(view, repo)
	if known := view.Listed(l.job.Subject, &entry); known != nil {
		l.seen[known.ID] = true
		return nil
	}
	l.page = append(l.page, entry)
	l.written++
	if len(l.page) < catalog.MaxPage {
		return nil
	}
	return l.write(ctx)
}

// note remembers what an operator should know of a repository.
func (l *listing) note(view *catalog.View, repo *host.Repo) {
	if repo.Unfetchable != "" {
		l.issues = append(l.issues, host.Issue{Code: host.NotFetchable, Target: repo.Name, Text: repo.Unfetchable})
	}
	if w := shadow(view, repo); w != "" {
		l.shadowed = append(l.shadowed, w)
	}
}

// write writes the page that has come together.
func (l *listing) write(ctx context.Context) error {
	if len(l.page) == 0 {
		return nil
	}
	err := l.propose(ctx, &catalog.SyncPage{Connection: l.job.Subject, Fence: l.job.Fence, Repos: l.page})
	if err != nil {
		return fmt.Errorf("record the listing: %w", err)
	}
	l.page = nil
	return nil
}

func (l *listing) flush(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.write(ctx)
}

// Issue takes a problem.
func (l *listing) Issue(i host.Issue) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.issues = append(l.issues, i)
}

// Skip takes a repository that the connection leaves out.
func (l *listing) Skip(externalID string, why host.Reason) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left[externalID] = true
	l.excluded[why]++
}

// Progress tells how far the listing is.
func (l *listing) Progress(done, total int) { l.progress(int64(done), int64(total)) }

// finish is the command that ends a listing.
func (l *listing) finish(ctx context.Context, h host.Host, known *catalog.Connection, now time.Time) (*catalog.FinishListing, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fin := &catalog.FinishListing{Total: uint32(l.listed), FinishSync: catalog.FinishSync{
		Connection: l.job.Subject,
		Fence:      l.job.Fence,
		Hash:       known.Hash,
		Complete:   true,
		Listed:     uint32(l.written),
	}}

	// What an issue says decides what the listing may take away: nothing at all, or nothing of a target.
	l.issues = append(l.issues, expiry(allowance(h).Expires, now)...)

	lost := map[string]bool{}
	for k := range l.issues {
		i := &l.issues[k]
		switch {
		case !i.Partial:
		case i.Target == "":
			fin.Complete = false
		case lostTarget(known, i, now):
			lost[i.Target], i.Partial = true, false
		default:
			fin.Partial = append(fin.Partial, i.Target)
		}
	}

	if fin.Complete {
		if err := l.absent(ctx, h, known, lost, now, fin); err != nil {
			return nil, err
		}
		fin.Gone = l.gone(fin)
	}

	fin.Again = again(l.issues, heldSince(known, fin, now), now)
	fin.Warnings = l.warnings()
	for _, i := range l.issues {
		fin.Issues = append(fin.Issues, catalog.ListingIssue{Code: string(i.Code), Target: i.Target, Text: i.Text, Partial: i.Partial})
	}

	for why, n := range l.excluded {
		fin.Excluded = append(fin.Excluded, catalog.ReasonCount{Reason: string(why), Count: n})
	}
	slices.SortFunc(fin.Excluded, func(a, b catalog.ReasonCount) int { return strings.Compare(a.Reason, b.Reason) })
	return fin, nil
}

// heldSince is since when all are missing that are held; zero where none is.
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

// giveWay gives a local repository the name of its directory where the name
// that it says it has is another's by another connection: its claim never takes
// or hides what is listed. A warning says so.
func (l *listing) giveWay(view *catalog.View, repo *host.Repo) {
	known := view.RepoByName(repo.Name)
	if repo.OwnName == "" || known == nil || known.CloneURL == repo.Remote.URL {
		return
	}
	other := slices.IndexFunc(known.Connections, func(c catalog.RepoConnection) bool { return c.Name != l.job.Subject })
	if other < 0 {
		return
	}

	l.renamed = append(l.renamed, fmt.Sprintf("%s says that it is %s, which connection %s lists: it is listed as %s",
		repo.Remote.URL, repo.Name, known.Connections[other].Name, repo.OwnName))
	repo.Name, repo.DisplayName, repo.OwnName = repo.OwnName, repo.OwnName, ""
}

// maxShadowed bounds the warnings about names that another connection has.
const maxShadowed = 20

// warnings are the issues as sentences.
func (l *listing) warnings() []string {
	var out []string
	for _, i := range l.issues {
		text := i.Text
		if i.Target != "" {
			text = i.Target + ": " + text
		}
		out = append(out, text)
	}

	for _, kind := range [][]string{l.renamed, l.shadowed} {
		out = append(out, kind[:min(len(kind), maxShadowed)]...)
		if more := len(kind) - maxShadowed; more > 0 {
			out = append(out, fmt.Sprintf("and %d more local repositories have names that other connections list", more))
		}
	}
	return out
}

// shadow warns of a listed repository without an id of its host whose name
// another connection has for another address: it is not indexed under it.
func shadow(view *catalog.View, repo *host.Repo) string {
	known := view.RepoByName(repo.Name)
	if repo.ExternalID != "" || known == nil || known.CloneURL == repo.Remote.URL || len(known.Connections) == 0 {
		return ""
	}
	return fmt.Sprintf("%s is the name of another repository of connection %s: %s is not indexed under it; give it a remote.origin.url or move it to a directory of another name", repo.Name, known.Connections[0].Name, repo.Remote.URL)
}

// listed is a repository of a listing as the catalog has it. What a host does
// not know stays as the last index job found it.
func listed(view *catalog.View, repo host.Repo) catalog.ListedRepo {
	facts := catalog.RepoFacts{
		DisplayName: repo.DisplayName,
		HostKind:    repo.HostType,
		ExternalID:  repo.ExternalID,
		CloneURL:    repo.Remote.URL,
		WebURL:      repo.WebURL,
		Topics:      repo.Topics,

		Fork:          repo.Fork,
		Archived:      repo.Archived,
		Public:        repo.Visibility == host.Public,
		Visibility:    catalog.Visibility(repo.Visibility),
		Description:   repo.Description,
		DefaultBranch: repo.DefaultBranch,
		Stars:         repo.Stars,
		PushedAt:      repo.PushedAt,
		SizeBytes:     uint64(max(0, repo.SizeBytes)),

		Empty:       repo.Empty,
		Unfetchable: repo.Unfetchable,
	}

	// A host without ids knows a repository by its name alone.
	old := view.RepoByExternalID(repo.ExternalID)
	if repo.ExternalID == "" {
		facts.ExternalID = repo.Name
		old = view.RepoByName(repo.Name)
	}

	if old != nil {
		if old.Indexed() {
			facts.PushedAt = old.PushedAt
		}
		if facts.DefaultBranch == "" {
			facts.DefaultBranch = old.DefaultBranch
		}
		if facts.SizeBytes == 0 {
			facts.SizeBytes = old.SizeBytes
		}
	}
	return catalog.ListedRepo{Name: repo.Name, RepoFacts: facts, Target: repo.Target}
}
