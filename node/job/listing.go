package job

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/heap"
	"github.com/shoalsearch/shoal/node/host"
)

// listing receives what a host lists, and writes it to the catalog in pages.
type listing struct {
	view     func() *catalog.View
	propose  func(context.Context, catalog.Command) error
	job      *catalog.Job
	progress func(done, total int64)

	mu          sync.Mutex // guards the fields below
	restoreHeap func()     // ends the settings of the garbage collector for a large listing; nil: not set
	page        []catalog.ListedRepo
	count       int                     // number of repositories so far
	written     int                     // number of new or changed ones
	unchanged   map[catalog.RepoID]bool // the unchanged ones
	leftOut     map[string]bool         // external ids that the connection leaves out
	excluded    map[host.Reason]uint32
	issues      []host.Issue
	shadowed    []string
	renamed     []string
}

func newListing(view func() *catalog.View, propose func(context.Context, catalog.Command) error, j *catalog.Job) *listing {
	return &listing{
		view:      view,
		propose:   propose,
		job:       j,
		progress:  func(int64, int64) {},
		leftOut:   map[string]bool{},
		excluded:  map[host.Reason]uint32{},
		unchanged: map[catalog.RepoID]bool{},
	}
}

// largeListing is the number of repositories from which on a listing is large.
const largeListing = 5000

// resetGC resets the garbage collector.
func (l *listing) resetGC() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.restoreHeap != nil {
		l.restoreHeap()
	}
}

// Repo implements host.Sink. It writes a full page before it returns.
func (l *listing) Repo(ctx context.Context, repo host.Repo) error {
	view := l.view()

	l.mu.Lock()
	defer l.mu.Unlock()
	l.useOwnName(view, &repo)
	l.noteProblems(view, &repo)

	// Listed repositories become garbage at once, so keep the heap small.
	if l.count++; l.count == largeListing {
		l.restoreHeap = heap.Small()
	}

	// An unchanged repository needs no log entry.
	entry := toListedRepo(view, repo)
	if known := view.Listed(l.job.Subject, &entry); known != nil {
		l.unchanged[known.ID] = true
		return nil
	}
	l.page = append(l.page, entry)
	l.written++
	if len(l.page) < catalog.MaxPage {
		return nil
	}
	return l.writePage(ctx)
}

// noteProblems records that a repository cannot be fetched, or that another connection has its name.
func (l *listing) noteProblems(view *catalog.View, repo *host.Repo) {
	if repo.Unfetchable != "" {
		l.issues = append(l.issues, host.Issue{Code: host.NotFetchable, Target: repo.Name, Text: repo.Unfetchable})
	}
	if w := shadowWarning(view, repo); w != "" {
		l.shadowed = append(l.shadowed, w)
	}
}

// writePage proposes the collected page. The caller holds the mutex.
func (l *listing) writePage(ctx context.Context) error {
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

// flush writes the last page.
func (l *listing) flush(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.writePage(ctx)
}

// Issue implements host.Sink.
func (l *listing) Issue(i host.Issue) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.issues = append(l.issues, i)
}

// Skip implements host.Sink. The connection leaves the repository out.
func (l *listing) Skip(externalID string, why host.Reason) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leftOut[externalID] = true
	l.excluded[why]++
}

// Progress implements host.Sink.
func (l *listing) Progress(done, total int) { l.progress(int64(done), int64(total)) }

// finishCommand returns the command that ends the listing of a connection. known is the
// connection's record from before.
func (l *listing) finishCommand(ctx context.Context, h host.Host, known *catalog.Connection, now time.Time) (*catalog.FinishListing, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fin := &catalog.FinishListing{Total: uint32(l.count), FinishSync: catalog.FinishSync{
		Connection: l.job.Subject,
		Fence:      l.job.Fence,
		Hash:       known.Hash,
		Complete:   true,
		Listed:     uint32(l.written),
	}}

	l.issues = append(l.issues, expiryWarning(allowanceOf(h).Expires, now)...)

	// Issues decide what the listing may remove: nothing at all, or nothing of a target.
	lost := l.recordIncomplete(fin, known, now)

	// An incomplete listing does not tell what is gone.
	if fin.Complete {
		if err := l.decideMissing(ctx, h, known, lost, now, fin); err != nil {
			return nil, err
		}
		fin.Gone = l.findGone(fin)
	}

	fin.Again = whenToRepeat(l.issues, heldSince(known, fin, now), now)
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

// useOwnName renames a local repository after its directory if another connection lists the name that
// it claims, so that a claim never hides a listed repository. It adds a warning.
func (l *listing) useOwnName(view *catalog.View, repo *host.Repo) {
	known := view.RepoByName(repo.Name)
	if repo.OwnName == "" || known == nil || known.CloneURL == repo.Remote.URL {
		return
	}

	// If only this connection lists the name, there is no clash.
	other := slices.IndexFunc(known.Connections, func(c catalog.RepoConnection) bool { return c.Name != l.job.Subject })
	if other < 0 {
		return
	}

	l.renamed = append(l.renamed, fmt.Sprintf("%s says that it is %s, which connection %s lists: it is listed as %s",
		repo.Remote.URL, repo.Name, known.Connections[other].Name, repo.OwnName))
	repo.Name, repo.DisplayName, repo.OwnName = repo.OwnName, repo.OwnName, ""
}

// maxShadowed limits the warnings about names that another connection has.
const maxShadowed = 20

// warnings returns the issues as sentences.
func (l *listing) warnings() []string {
	var out []string
	for _, i := range l.issues {
		text := i.Text
		if i.Target != "" {
			text = i.Target + ": " + text
		}
		out = append(out, text)
	}

	// Thousands of local clones may clash: name some of them.
	for _, clashes := range [][]string{l.renamed, l.shadowed} {
		out = append(out, clashes[:min(len(clashes), maxShadowed)]...)
		if more := len(clashes) - maxShadowed; more > 0 {
			out = append(out, fmt.Sprintf("and %d more local repositories have names that other connections list", more))
		}
	}
	return out
}

// shadowWarning returns a warning if a repository without an external id has the name of another
// connection's repository with another URL. It is then not indexed under that name.
func shadowWarning(view *catalog.View, repo *host.Repo) string {
	known := view.RepoByName(repo.Name)
	if repo.ExternalID != "" || known == nil || known.CloneURL == repo.Remote.URL || len(known.Connections) == 0 {
		return ""
	}
	return fmt.Sprintf("%s is the name of another repository of connection %s: %s is not indexed under it; give it a remote.origin.url or move it to a directory of another name", repo.Name, known.Connections[0].Name, repo.Remote.URL)
}

// toListedRepo converts a listed repository to the catalog's form. It takes facts that the host does
// not tell from the catalog, where the last index job has put them.
func toListedRepo(view *catalog.View, repo host.Repo) catalog.ListedRepo {
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

	// A host without ids identifies a repository by name.
	old := view.RepoByExternalID(repo.ExternalID)
	if repo.ExternalID == "" {
		facts.ExternalID = repo.Name
		old = view.RepoByName(repo.Name)
	}

	if old != nil {
		// Once it is indexed, its commits tell when it was pushed to.
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
