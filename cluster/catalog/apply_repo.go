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

// setRepo stores a repository whose name is not taken by another.
func (t *txn) setRepo(r *Repo) {
	t.repos.Set(r.ID, r)
	t.repoChanged(r.ID)
}

func (c *SyncPage) apply(t *txn) Result {
	old, no := t.held(JobSync, c.Connection, c.Fence)
	if old == nil {
		return no
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

	// Names first, so that two repositories of the page may have exchanged theirs.
	t.freeNames(c.Repos)

	j := *old
	for i := range c.Repos {
		if t.list(conn, &c.Repos[i], c.Fence) {
			j.Seen++
		}
	}
	t.setJob(&j)
	return Result{ID: uint64(j.Seen)}
}

// list makes a repository or brings it up to date, and reports whether it was not
// yet listed under this fence.
func (t *txn) list(conn *Connection, l *ListedRepo, fence uint64) bool {
	id, known := t.whose(l)
	if !known {
		t.addRepo(conn, l, fence)
		return true
	}

	// The facts of this listing, unless another connection knows better.
	r := *t.repos.Get(id)
	wasOrphaned := r.Orphaned()
	claimed := r.claims(l.CloneURL, conn.Name)

	// A directory that claimed a name, one that this listing identifies, or the connection
	// that sorts first: so the facts do not depend on whose listing came last.
	if claimed || l.mayDescribe(&r) && (r.CloneURL == l.CloneURL || l.sameAs(&r) || !r.listedBefore(conn.Name) && !r.shadows(l.CloneURL, conn.Name)) {
		t.rename(&r, l.Name)
		r.takeFacts(l.RepoFacts)
	}

	fresh := r.listedBy(conn.Name, l.Target, fence)
	r.OrphanedAt, r.KeptUntil = time.Time{}, time.Time{}
	t.setRepo(&r)
	t.indexIdentity(&r)

	// It is back, or is another one than was indexed under this name.
	if wasOrphaned {
		t.dropJob(JobCollect, RepoSubject(id))
	}
	if wasOrphaned || claimed {
		t.enqueue(JobIndex, RepoSubject(id), false, time.Time{})
	}
	return fresh
}

// addRepo makes a repository that is listed for the first time.
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

	// Found by its name and by its host's id from now on, and indexed as soon as a node has time.
	t.setRepo(r)
	t.names.Set(r.Name, r.ID)
	t.indexIdentity(r)
	t.enqueue(JobIndex, RepoSubject(r.ID), false, time.Time{})
}

// local reports whether an address is that of a directory. A directory says itself
// what its name is, which proves nothing.
func local(cloneURL string) bool { return strings.HasPrefix(cloneURL, "file:") }

// claims reports whether the name of the repository was only the claim of a
// directory until now, and a connection lists what it is the name of.
func (r *Repo) claims(cloneURL, connection string) bool {
	return local(r.CloneURL) && !local(cloneURL) && r.listedByOther(connection)
}

// shadows reports whether a directory claims the name of what another
// connection lists.
func (r *Repo) shadows(cloneURL, connection string) bool {
	return !local(r.CloneURL) && local(cloneURL) && r.listedByOther(connection)
}

func (r *Repo) listedByOther(connection string) bool {
	return slices.ContainsFunc(r.Connections, func(c RepoConnection) bool { return c.Name != connection })
}

// listedBefore reports whether a connection whose name sorts first lists the
// repository. If connections list different repositories under one name, the first
// by name has it: what is indexed must not depend on whose sync came last.
func (r *Repo) listedBefore(connection string) bool {
	return len(r.Connections) > 0 && r.Connections[0].Name < connection
}

// takeFacts replaces the facts, but keeps what a host that does not know
// left empty.
func (r *Repo) takeFacts(f RepoFacts) {
	// Git hosts tell neither; indexing has found them out.
	if f.PushedAt.IsZero() {
		f.PushedAt = r.PushedAt
	}
	if f.DefaultBranch == "" {
		f.DefaultBranch = r.DefaultBranch
	}
	f.Topics = sortedSet(f.Topics)
	r.RepoFacts = f
}

// listedBy notes that a connection listed the repository, and tells whether
// it had not yet under this fence.
func (r *Repo) listedBy(name, target string, fence uint64) bool {
	// Sorted by name, whoever came first: the bytes of a record do not depend on it.
	r.Connections = slices.Clone(r.Connections)
	i, found := slices.BinarySearchFunc(r.Connections, name, func(c RepoConnection, n string) int { return strings.Compare(c.Name, n) })
	if !found {
		r.Connections = slices.Insert(r.Connections, i, RepoConnection{name, fence, target})
		return true
	}
	fresh := r.Connections[i].Seen != fence
	r.Connections[i].Seen, r.Connections[i].Target = fence, target
	return fresh
}

func (c *FinishSync) apply(t *txn) Result {
	return c.finish(t, c.Listed, func() { t.unlist(c, 0) })
}

func (c *FinishListing) apply(t *txn) Result {
	return c.finish(t, c.Total, func() {
		var gone []*Repo
		for _, id := range c.Gone {
			if r := t.repos.Get(id); r != nil && r.lists(c.Connection) != nil {
				gone = append(gone, r)
			}
		}
		t.leave(c.Connection, gone, 0)
	})
}

// finish ends a listing of so many repositories; drop takes the connection from
// those that it misses.
func (c *FinishSync) finish(t *txn, total uint32, drop func()) Result {
	old, no := t.held(JobSync, c.Connection, c.Fence)
	if old == nil {
		return no
	}
	conn := t.connections.Get(c.Connection)
	if conn == nil {
		return refuse(NotFound, "there is no such connection")
	}
	// A page that was lost would look like repositories that are gone.
	if c.Complete && c.Listed != old.Seen {
		return refuse(Conflict, fmt.Sprintf("%d repositories were listed, but %d have arrived", c.Listed, old.Seen))
	}

	n := *conn
	n.takeListing(c, t.now)
	// Only a whole listing tells what is missing.
	if c.Complete {
		n.Sync, n.Repos = c.Fence, total+uint32(len(c.Kept))
		drop()
	}

	t.putConnection(conn, &n)
	t.finish(old)
	return Result{}
}

// putConnection stores a connection after an attempt to list it.
func (t *txn) putConnection(old, n *Connection) {
	t.connections.Set(n.Name, n)

	// Who sees what is worked out anew where its repositories vanish or come back.
	if old.HiddenAt.IsZero() != n.HiddenAt.IsZero() {
		t.allChanged()
	}
}

// takeRefusal notes that the host refuses the token. What was listed is hidden
// once that has gone on for long and the host has just said so again: one that
// cannot be reached hides nothing.
func (n *Connection) takeRefusal(now time.Time) {
	if n.RefusedAt.IsZero() {
		n.RefusedAt = now
	}
	if n.HiddenAt.IsZero() && now.Sub(n.RefusedAt) >= ServeRefused {
		n.HiddenAt = now
	}
}

// lists is the link of a connection to the repository, nil where it does not
// list it.
func (r *Repo) lists(connection string) *RepoConnection {
	i, found := slices.BinarySearchFunc(r.Connections, connection, func(c RepoConnection, n string) int { return strings.Compare(c.Name, n) })
	if !found {
		return nil
	}
	return &r.Connections[i]
}

// Listed is the repository that a connection lists, where the catalog has it as
// it is listed now, so that writing it would change nothing; else nil.
func (v *View) Listed(connection string, l *ListedRepo) *Repo {
	r := v.RepoByExternalID(l.ExternalID)
	if !identified(l.Name, &l.RepoFacts) {
		r = v.RepoByName(l.Name)
	}
	if r == nil || r.Name != l.Name || r.ExternalID != l.ExternalID {
		return nil
	}
	if link := r.lists(connection); link == nil || link.Target != l.Target {
		return nil
	}

	// Facts are compared as they would be written: what is left out there is no difference.
	same := *r
	same.takeFacts(l.RepoFacts)
	if !reflect.DeepEqual(same.RepoFacts.stored(), r.RepoFacts.stored()) {
		return nil
	}
	return r
}

// stored is the facts as a record keeps them: times to the millisecond.
func (f RepoFacts) stored() RepoFacts {
	f.PushedAt = codec.FromMillis(codec.ToMillis(f.PushedAt))
	if len(f.Topics) == 0 {
		f.Topics = nil
	}
	return f
}

// takeListing notes at a connection how its last listing went.
func (n *Connection) takeListing(c *FinishSync, now time.Time) {
	n.Synced, n.SyncedAt, n.Error = c.Hash, now, ""
	n.Excluded, n.Account, n.Again = c.Excluded, c.Account, c.Again

	// The host took the token.
	if !c.Nothing {
		n.RefusedAt, n.HiddenAt = time.Time{}, time.Time{}
	}

	n.Warnings = nil
	for _, w := range c.Warnings[:min(len(c.Warnings), maxWarnings)] {
		n.Warnings = append(n.Warnings, clip(w))
	}
	n.takeIssues(c.Issues, now)
	if c.Complete && len(c.Partial) == 0 {
		n.WholeAt = now
	}

	// Of what it missed, some is kept for good reasons and the rest is held until
	// somebody says that it is gone, or another listing misses it too.
	n.Kept = uint32(len(c.Kept)) - min(c.Held, uint32(len(c.Kept)))
	n.takeHeld(c.HeldRepos, now)
	n.Held = c.Held
}

// takeIssues takes over what is wrong, and since when each of it is.
func (n *Connection) takeIssues(issues []ListingIssue, now time.Time) {
	before := n.Issues
	n.Issues = nil
	for _, i := range issues[:min(len(issues), maxWarnings)] {
		i.Target, i.Text, i.Since = clip(i.Target), clip(i.Text), now
		if k := slices.IndexFunc(before, func(old ListingIssue) bool { return old.Code == i.Code && old.Target == i.Target }); k >= 0 && !before[k].Since.IsZero() {
			i.Since = before[k].Since
		}
		n.Issues = append(n.Issues, i)
	}
}

// takeHeld takes over what is missing. With one that was not held before, the
// wait for a second listing begins anew.
func (n *Connection) takeHeld(held []RepoID, now time.Time) {
	before := n.HeldRepos
	n.HeldRepos = slices.Sorted(slices.Values(held))

	// A wait that had begun for others says nothing of what is missing only now.
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

	// The next listing is not held, and it comes at once.
	n := *conn
	n.Accepted = true
	t.connections.Set(n.Name, &n)
	t.enqueue(JobSync, n.Name, true, time.Time{})
	return Result{}
}

// unlist takes a connection from the repositories that a listing did not
// have, but for those that it says stay. The data of those that nobody lists then
// stays for at least as long as keep says.
func (t *txn) unlist(f *FinishSync, keep time.Duration) {
	// A repository not seen under this fence was not in the listing. Others say why they stay.
	kept := roaring.BitmapOf(f.Kept...)
	var gone []*Repo
	for r := range t.repos.Records() {
		for _, c := range r.Connections {
			if c.Name == f.Connection && c.Seen != f.Fence && !kept.Contains(r.ID) && !slices.Contains(f.Partial, c.Target) {
				gone = append(gone, r)
			}
		}
	}
	t.leave(f.Connection, gone, keep)
}

// leave takes a connection from repositories; keep is as of unlist.
func (t *txn) leave(connection string, gone []*Repo, keep time.Duration) {
	for _, old := range gone {
		r := *old
		r.Connections = slices.DeleteFunc(slices.Clone(r.Connections), func(c RepoConnection) bool { return c.Name == connection })

		if r.Orphaned() {
			r.OrphanedAt = t.now
			if keep > 0 {
				r.KeptUntil = t.now.Add(keep)
			}

			// Nobody is to fetch it any more; an attempt that runs ends by itself.
			if j := t.jobs.Get(jobKey(JobIndex, RepoSubject(r.ID))); j != nil && j.State != JobRunning {
				t.dropJob(JobIndex, RepoSubject(r.ID))
			}
		}

		t.setRepo(&r)
	}
}

// maxRevisions is how many revisions a generation may have: HEAD, its branch, and 64 more.
const maxRevisions = 66

func (c *FinishIndex) check() string {
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
	job, no := t.held(JobIndex, RepoSubject(c.Repo), c.Fence)
	if job == nil {
		return no
	}
	old := t.repos.Get(c.Repo)
	if old == nil {
		return refuse(NotFound, "there is no such repository")
	}
	if problem := c.check(); problem != "" {
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

	// The generation that is searched changes here, all of it at once.
	if !c.Unchanged {
		r.Generation++
		r.GenerationAt, r.InputKey = t.index, c.InputKey
		r.Revisions, r.Shards = c.Revisions, c.Shards
	}

	// No fact changes that sets of repositories are made from: the sets stay.
	t.repos.Set(r.ID, &r)

	// Up before down, so that a file of both generations is never unreferenced.
	if !c.Unchanged {
		t.reference(&r, 1)
		t.reference(old, -1)
	}

	// The first holds the job and so is no removed member; the second may have been removed since.
	if m := t.members.Get(c.Holder); m != nil {
		t.hold(MirrorKey(r.ID), m.Number)
		t.holdFiles(&r, m)
	}
	if m := t.members.Get(c.Second); m != nil && m.State != MemberRemoved {
		t.holdFiles(&r, m)
	}

	// With Continue the job goes on, to find symbols.
	if !c.Continue {
		t.finish(job)
	}
	return Result{ID: r.Generation}
}

// holdFiles notes that a member has all files of the live generation.
func (t *txn) holdFiles(r *Repo, m *Member) {
	for _, key := range files(r.Shards) {
		t.hold(ShardKey(key), m.Number)
	}
}

// files are the ids of the files of a generation.
func files(shards []ShardRef) []string {
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

// reference counts a generation's files up or down. A file that no live
// generation names is held by nobody.
func (s *State) reference(r *Repo, by int) {
	for _, id := range files(r.Shards) {
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
	job, no := t.held(JobCollect, RepoSubject(c.Repo), c.Fence)
	if job == nil {
		return no
	}

	r := t.repos.Get(c.Repo)
	if r == nil {
		return refuse(NotFound, "there is no such repository")
	}

	if !r.Orphaned() {
		return refuse(Conflict, "a connection lists the repository again")
	}

	// All that names the repository goes with it, itself last.
	for _, row := range t.kinds {
		if row.OfRepo {
			t.dropJob(row.Kind, RepoSubject(r.ID))
		}
	}

	// The files before the record: by it they are counted.
	t.reference(r, -1)
	t.holdings.Delete(MirrorKey(r.ID))
	t.forgetAccess(r)
	t.forget(r)

	t.repos.Delete(r.ID)
	t.repoChanged(r.ID)
	return Result{}
}

// sortedSet returns the strings sorted, each once.
func sortedSet(in []string) []string {
	if len(in) == 0 {
		return nil
	}
	out := slices.Clone(in)
	slices.Sort(out)
	return slices.Compact(out)
}
