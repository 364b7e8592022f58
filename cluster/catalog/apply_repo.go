package catalog

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/shoalsearch/shoal/cluster/catalog/codec"
)

// maxName bounds names of repositories, in bytes.
const maxName = 1024

// maxWarnings bounds the warnings of a connection.
const maxWarnings = 100

// setRepo stores a repository. The caller must make sure that its name is free.
func (t *txn) setRepo(r *Repo) {
	t.repos.Set(r.ID, r)
	t.repoChanged(r.ID)
}

func (c *SyncPage) apply(t *txn) Result {
	old, refusal := t.runningJob(JobSync, c.Connection, c.Fence)
	if old == nil {
		return refusal
	}

	conn := t.connections.Get(c.Connection)
	if conn == nil {
		return refuse(NotFound, "there is no such connection")
	}
	if len(c.Repos) > MaxPage {
		return refuse(Invalid, fmt.Sprintf("a page lists %d repositories, at most %d are allowed", len(c.Repos), MaxPage))
	}
	for _, l := range c.Repos {
		if l.Name == "" || len(l.Name) > maxName || strings.ContainsRune(l.Name, 0) {
			return refuse(Invalid, "a repository without a usable name is listed")
		}
	}

	// Free the names first: two repositories of the page may have swapped theirs.
	t.freeNames(c.Repos)

	j := *old
	for i := range c.Repos {
		if t.putListed(conn, &c.Repos[i], c.Fence) {
			j.Seen++
		}
	}
	t.setJob(&j)
	return Result{ID: uint64(j.Seen)}
}

// putListed adds or updates a repository of a listing. It reports whether the repository was not yet
// listed under this fence.
func (t *txn) putListed(conn *Connection, l *ListedRepo, fence uint64) bool {
	id, known := t.findListed(l)
	if !known {
		t.addRepo(conn, l, fence)
		return true
	}

	// Take the facts of this listing, unless another connection knows better.
	r := *t.repos.Get(id)
	wasOrphaned := r.Orphaned()
	claimed := r.claims(l.CloneURL, conn.Name)

	if claimed || l.mayDescribe(&r) && l.decides(&r, conn.Name) {
		t.rename(&r, l.Name)
		r.takeFacts(l.RepoFacts)
	}

	first := r.recordListed(conn.Name, l.Target, fence)
	r.OrphanedAt, r.KeptUntil = time.Time{}, time.Time{}
	t.setRepo(&r)
	t.indexIdentity(&r)

	if wasOrphaned {
		t.dropJob(JobCollect, RepoSubject(id))
	}
	// An orphan has no index job. A claimed name has the index of the directory that claimed it.
	if wasOrphaned || claimed {
		t.enqueue(JobIndex, RepoSubject(id), false, time.Time{})
	}
	return first
}

// decides reports whether this listing's facts count more than those of other connections that list
// r: it has the same URL, it identifies r by the host's id, or its connection sorts first. So the
// order in which connections are listed does not matter.
func (l *ListedRepo) decides(r *Repo, connection string) bool {
	return r.CloneURL == l.CloneURL || l.sameAs(r) || !r.listedBefore(connection) && !r.shadows(l.CloneURL, connection)
}

// addRepo adds a repository that is listed for the first time.
func (t *txn) addRepo(conn *Connection, l *ListedRepo, fence uint64) {
	t.meta.LastRepo++

	facts := l.RepoFacts
	facts.Topics = sortedSet(facts.Topics)
	r := &Repo{
		ID:          t.meta.LastRepo,
		Name:        l.Name,
		RepoFacts:   facts,
		CreatedAt:   t.now,
		Connections: []RepoConnection{{Name: conn.Name, Seen: fence, Target: l.Target}},
	}

	// Register the name and the host's id, and queue the first index job.
	t.setRepo(r)
	t.names.Set(r.Name, r.ID)
	t.indexIdentity(r)
	t.enqueue(JobIndex, RepoSubject(r.ID), false, time.Time{})
}

// isLocal reports whether a clone URL is a directory. A directory chooses its own name, so the name
// proves nothing.
func isLocal(cloneURL string) bool { return strings.HasPrefix(cloneURL, "file:") }

// claims reports whether a connection lists the true owner of a name that only a directory has
// claimed until now.
func (r *Repo) claims(cloneURL, connection string) bool {
	return isLocal(r.CloneURL) && !isLocal(cloneURL) && r.listedByOther(connection)
}

// shadows reports whether a directory claims the name of a repository that another connection lists
// from a host.
func (r *Repo) shadows(cloneURL, connection string) bool {
	return !isLocal(r.CloneURL) && isLocal(cloneURL) && r.listedByOther(connection)
}

func (r *Repo) listedByOther(connection string) bool {
	return slices.ContainsFunc(r.Connections, func(c RepoConnection) bool { return c.Name != connection })
}

// listedBefore reports whether a connection that sorts before this one lists the repository. The
// first connection by name decides about a shared name, so that the order of syncs does not matter.
func (r *Repo) listedBefore(connection string) bool {
	return len(r.Connections) > 0 && r.Connections[0].Name < connection
}

// takeFacts replaces the facts. It keeps the old value of facts that the host does not know.
func (r *Repo) takeFacts(f RepoFacts) {
	// Plain git hosts report neither of these two facts. Index jobs find both.
	if f.PushedAt.IsZero() {
		f.PushedAt = r.PushedAt
	}
	if f.DefaultBranch == "" {
		f.DefaultBranch = r.DefaultBranch
	}
	f.Topics = sortedSet(f.Topics)
	r.RepoFacts = f
}

// recordListed records that a connection listed the repository. first reports whether that was the
// first time under this fence.
func (r *Repo) recordListed(name, target string, fence uint64) (first bool) {
	// Keep the list sorted by name: the record must not depend on the order of listings.
	r.Connections = slices.Clone(r.Connections)
	i, found := slices.BinarySearchFunc(r.Connections, name, func(c RepoConnection, n string) int { return strings.Compare(c.Name, n) })
	if !found {
		r.Connections = slices.Insert(r.Connections, i, RepoConnection{name, fence, target})
		return true
	}
	first = r.Connections[i].Seen != fence
	r.Connections[i].Seen, r.Connections[i].Target = fence, target
	return first
}

func (c *FinishSync) apply(t *txn) Result {
	return c.finishListing(t, c.Listed, func() { t.unlinkMissing(c, 0) })
}

func (c *FinishListing) apply(t *txn) Result {
	return c.finishListing(t, c.Total, func() {
		var missing []*Repo
		for _, id := range c.Gone {
			if r := t.repos.Get(id); r != nil && r.linkOf(c.Connection) != nil {
				missing = append(missing, r)
			}
		}
		t.unlinkRepos(c.Connection, missing, 0)
	})
}

// finishListing ends a listing of total repositories. drop removes the connection from the
// repositories that the listing misses.
func (c *FinishSync) finishListing(t *txn, total uint32, drop func()) Result {
	old, refusal := t.runningJob(JobSync, c.Connection, c.Fence)
	if old == nil {
		return refusal
	}
	conn := t.connections.Get(c.Connection)
	if conn == nil {
		return refuse(NotFound, "there is no such connection")
	}
	// If a page was lost, its repositories would look deleted.
	if c.Complete && c.Listed != old.Seen {
		return refuse(Conflict, fmt.Sprintf("%d repositories were listed, but %d have arrived", c.Listed, old.Seen))
	}

	n := *conn
	n.takeListing(c, t.now)
	// Only a complete listing proves that a repository is missing.
	if c.Complete {
		n.Sync, n.Repos = c.Fence, total+uint32(len(c.Kept))
		drop()
	}

	t.putConnection(conn, &n)
	t.finishJob(old)
	return Result{}
}

// putConnection stores a connection after an attempt to list it.
func (t *txn) putConnection(old, n *Connection) {
	t.connections.Set(n.Name, n)

	// Its repositories vanish or come back, so cached sets are no longer valid.
	if old.HiddenAt.IsZero() != n.HiddenAt.IsZero() {
		t.allChanged()
	}
}

// takeRefusal records that the host refuses the token. After ServeRefused the repositories of the
// connection are hidden. Only a refusal does that: an unreachable host hides nothing.
func (n *Connection) takeRefusal(now time.Time) {
	if n.RefusedAt.IsZero() {
		n.RefusedAt = now
	}
	if n.HiddenAt.IsZero() && now.Sub(n.RefusedAt) >= ServeRefused {
		n.HiddenAt = now
	}
}

// linkOf returns a connection's link to the repository, or nil if the connection does not list it.
func (r *Repo) linkOf(connection string) *RepoConnection {
	i, found := slices.BinarySearchFunc(r.Connections, connection, func(c RepoConnection, n string) int { return strings.Compare(c.Name, n) })
	if !found {
		return nil
	}
	return &r.Connections[i]
}

// Listed returns the repository that a connection lists if the catalog already has it exactly so,
// and writing it would change nothing. Otherwise it returns nil.
func (v *View) Listed(connection string, l *ListedRepo) *Repo {
	r := v.RepoByExternalID(l.ExternalID)
	if !identified(l.Name, &l.RepoFacts) {
		r = v.RepoByName(l.Name)
	}
	if r == nil || r.Name != l.Name || r.ExternalID != l.ExternalID {
		return nil
	}
	if link := r.linkOf(connection); link == nil || link.Target != l.Target {
		return nil
	}

	// Merge the facts as putListed would, so that a fact that the host left out is no difference.
	same := *r
	same.takeFacts(l.RepoFacts)
	if !reflect.DeepEqual(same.RepoFacts.withStoredTimes(), r.RepoFacts.withStoredTimes()) {
		return nil
	}
	return r
}

// withStoredTimes returns the facts as a record keeps them: times in whole milliseconds.
func (f RepoFacts) withStoredTimes() RepoFacts {
	f.PushedAt = codec.FromMillis(codec.ToMillis(f.PushedAt))
	if len(f.Topics) == 0 {
		f.Topics = nil
	}
	return f
}

// takeListing records at a connection how its last listing went.
func (n *Connection) takeListing(c *FinishSync, now time.Time) {
	n.Synced, n.SyncedAt, n.Error = c.Hash, now, ""
	n.Excluded, n.Account, n.Again = c.Excluded, c.Account, c.Again

	// The host accepted the token.
	if !c.Nothing {
		n.RefusedAt, n.HiddenAt = time.Time{}, time.Time{}
	}

	n.Warnings = nil
	for _, w := range c.Warnings[:min(len(c.Warnings), maxWarnings)] {
		n.Warnings = append(n.Warnings, clipText(w))
	}
	n.takeIssues(c.Issues, now)
	if c.Complete && len(c.Partial) == 0 {
		n.WholeAt = now
	}

	// Kept counts missing repositories that stay. Those that only wait for a second listing, or for
	// an owner to accept their loss, count as Held instead.
	n.Kept = uint32(len(c.Kept)) - min(c.Held, uint32(len(c.Kept)))
	n.takeHeld(c.HeldRepos, now)
	n.Held = c.Held
}

// takeIssues replaces the issues of a connection. An issue that was there before keeps its time.
func (n *Connection) takeIssues(issues []ListingIssue, now time.Time) {
	before := n.Issues
	n.Issues = nil
	for _, i := range issues[:min(len(issues), maxWarnings)] {
		i.Target, i.Text, i.Since = clipText(i.Target), clipText(i.Text), now
		if k := slices.IndexFunc(before, func(old ListingIssue) bool { return old.Code == i.Code && old.Target == i.Target }); k >= 0 && !before[k].Since.IsZero() {
			i.Since = before[k].Since
		}
		n.Issues = append(n.Issues, i)
	}
}

// takeHeld replaces the missing repositories that are held. If a new one is among them, the wait
// for a second listing starts again.
func (n *Connection) takeHeld(held []RepoID, now time.Time) {
	before := n.HeldRepos
	n.HeldRepos = slices.Sorted(slices.Values(held))

	isNew := func(id RepoID) bool {
		_, was := slices.BinarySearch(before, id)
		return !was
	}
	switch {
	case len(held) == 0:
		n.HeldAt, n.Accepted = time.Time{}, false
	case slices.ContainsFunc(held, isNew):
		n.HeldAt = now
	}
}

func (c *AcceptListing) apply(t *txn) Result {
	conn := t.connections.Get(c.Connection)
	if conn == nil {
		return refuse(NotFound, "there is no such connection")
	}

	if conn.Held == 0 {
		return refuse(Conflict, "nothing is held: the last listing of the connection missed too few repositories for that")
	}

	// List the connection again at once. That listing may drop what it misses.
	n := *conn
	n.Accepted = true
	t.connections.Set(n.Name, &n)
	t.enqueue(JobSync, n.Name, true, time.Time{})
	return Result{}
}

// unlinkMissing removes a connection from the repositories that its listing missed, except those in
// f.Kept and f.Partial. keep is the least time that the data of repositories stays which no
// connection lists any more.
func (t *txn) unlinkMissing(f *FinishSync, keep time.Duration) {
	// A repository that was not seen under this fence was not in the listing.
	kept := roaring.BitmapOf(f.Kept...)
	var missing []*Repo
	for r := range t.repos.Records() {
		for _, c := range r.Connections {
			if c.Name == f.Connection && c.Seen != f.Fence && !kept.Contains(r.ID) && !slices.Contains(f.Partial, c.Target) {
				missing = append(missing, r)
			}
		}
	}
	t.unlinkRepos(f.Connection, missing, keep)
}

// unlinkRepos removes a connection from repositories. For keep see unlinkMissing.
func (t *txn) unlinkRepos(connection string, repos []*Repo, keep time.Duration) {
	for _, old := range repos {
		r := *old
		r.Connections = slices.DeleteFunc(slices.Clone(r.Connections), func(c RepoConnection) bool { return c.Name == connection })

		if r.Orphaned() {
			r.OrphanedAt = t.now
			if keep > 0 {
				r.KeptUntil = t.now.Add(keep)
			}

			// The repository needs no index anymore. A running attempt ends by itself.
			if j := t.jobs.Get(jobKey(JobIndex, RepoSubject(r.ID))); j != nil && j.State != JobRunning {
				t.dropJob(JobIndex, RepoSubject(r.ID))
			}
		}

		t.setRepo(&r)
	}
}

// maxRevisions bounds the revisions of a generation: HEAD, its branch, and 64 more.
const maxRevisions = 66

// malformedReason returns what is malformed in the command, or "".
func (c *FinishIndex) malformedReason() string {
	if len(c.Revisions) > maxRevisions {
		return fmt.Sprintf("%d revisions, at most %d are allowed", len(c.Revisions), maxRevisions)
	}
	for _, s := range c.Shards {
		if !isHash(s.ID) || s.Dead != "" && !isHash(s.Dead) || s.Symbols != "" && !isHash(s.Symbols) {
			return "a file is not named by a SHA-256"
		}
	}
	return ""
}

func isHash(s string) bool { return len(s) == 64 && codec.Packable(s) }

func (c *FinishIndex) apply(t *txn) Result {
	job, refusal := t.runningJob(JobIndex, RepoSubject(c.Repo), c.Fence)
	if job == nil {
		return refusal
	}
	old := t.repos.Get(c.Repo)
	if old == nil {
		return refuse(NotFound, "there is no such repository")
	}
	if problem := c.malformedReason(); problem != "" {
		return refuse(Invalid, problem)
	}

	r := *old
	r.IndexedAt, r.LeftOut = t.now, c.LeftOut
	if c.DefaultBranch != "" {
		r.DefaultBranch = c.DefaultBranch
	}
	if !c.PushedAt.IsZero() {
		r.PushedAt = codec.FromMillis(codec.ToMillis(c.PushedAt))
	}

	// Switch the generation that is searched, all at once.
	if !c.Unchanged {
		r.Generation++
		r.GenerationAt, r.InputKey = t.index, c.InputKey
		r.Revisions, r.Shards = c.Revisions, c.Shards
	}

	// Store without repoChanged: no fact changed that cached sets depend on.
	t.repos.Set(r.ID, &r)

	// Count up before down: a file of both generations must never become unreferenced.
	if !c.Unchanged {
		t.countReferences(&r, 1)
		t.countReferences(old, -1)
		t.noteBacklog(old, &r)
	}

	// The holder runs the job, so it was not removed. The second node may have been.
	if m := t.members.Get(c.Holder); m != nil {
		t.addHolder(MirrorKey(r.ID), m.Number)
		t.holdFiles(&r, m)
	}
	if m := t.members.Get(c.Second); m != nil && m.State != MemberRemoved {
		t.holdFiles(&r, m)
	}

	// With Continue the job keeps running, to find symbols.
	if !c.Continue {
		t.finishJob(job)
	}
	return Result{ID: r.Generation}
}

// holdFiles records that a member has all files of the live generation.
func (t *txn) holdFiles(r *Repo, m *Member) {
	for _, key := range fileIDs(r.Shards) {
		t.addHolder(ShardKey(key), m.Number)
	}
}

// fileIDs returns the ids of all files of a generation.
func fileIDs(shards []ShardRef) []string {
	var ids []string
	for _, s := range shards {
		ids = append(ids, s.ID)
		if s.Dead != "" {
			ids = append(ids, s.Dead)
		}
		if s.Symbols != "" {
			ids = append(ids, s.Symbols)
		}
	}
	return ids
}

// countReferences adds by to the reference count of each file of a generation. A file without
// references loses its holding.
func (s *State) countReferences(r *Repo, by int) {
	for _, id := range fileIDs(r.Shards) {
		n, _ := s.refs.Get(id)
		n = uint32(int(n) + by)
		if n > 0 {
			s.refs.Set(id, n)
			continue
		}
		s.refs.Delete(id)
		s.holdings.Delete(ShardKey(id))
	}
}

func (c *FinishCollect) apply(t *txn) Result {
	job, refusal := t.runningJob(JobCollect, RepoSubject(c.Repo), c.Fence)
	if job == nil {
		return refusal
	}

	r := t.repos.Get(c.Repo)
	if r == nil {
		return refuse(NotFound, "there is no such repository")
	}

	if !r.Orphaned() {
		return refuse(Conflict, "a connection lists the repository again")
	}

	// Remove everything that names the repository, and the repository last.
	for _, row := range t.kinds {
		if row.OfRepo {
			t.dropJob(row.Kind, RepoSubject(r.ID))
		}
	}

	// Update the reference counts while the record is still there.
	t.countReferences(r, -1)
	t.holdings.Delete(MirrorKey(r.ID))
	t.forgetAccess(r)
	t.backlogs.Delete(r.ID)
	t.unindexRepo(r)

	t.repos.Delete(r.ID)
	t.repoChanged(r.ID)
	return Result{}
}

// sortedSet returns the distinct strings, sorted.
func sortedSet(in []string) []string {
	if len(in) == 0 {
		return nil
	}
	out := slices.Clone(in)
	slices.Sort(out)
	return slices.Compact(out)
}
