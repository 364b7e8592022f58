package catalog

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// maxName bounds names of repositories, in bytes.
const maxName = 1024

// maxWarnings bounds the warnings of a connection.
const maxWarnings = 100

// setRepo stores a repository whose name is not taken by another.
func (t *txn) setRepo(r *Repo) {
	t.repos.set(r.ID, r)
	t.sets = &sets{}
}

func (c *SyncPage) apply(t *txn) Result {
	old, no := t.held(JobSync, c.Connection, c.Fence)
	if old == nil {
		return no
	}
	conn := t.connections.get(c.Connection)
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
	j := *old
	for i := range c.Repos {
		if t.list(conn, &c.Repos[i], c.Fence) {
			j.Seen++
		}
	}
	t.setJob(&j)
	return Result{ID: uint64(j.Seen)}
}

// list makes a repository or brings it up to date, and tells whether it was
// not yet listed under this fence.
func (t *txn) list(conn *Connection, l *ListedRepo, fence uint64) bool {
	id, known := t.names.get(l.Name)
	if !known {
		t.meta.LastRepo++
		id = t.meta.LastRepo
		facts := l.RepoFacts
		facts.Topics = sortedSet(facts.Topics)
		t.setRepo(&Repo{ID: id, Name: l.Name, RepoFacts: facts, CreatedAt: t.now,
			Connections: []RepoConnection{{conn.Name, fence}}})
		t.names.set(l.Name, id)
		t.enqueue(JobIndex, RepoSubject(id), false, time.Time{})
		return true
	}
	r := *t.repos.get(id)
	wasOrphaned := r.Orphaned()
	if r.CloneURL == l.CloneURL || !r.listedBefore(conn.Name) {
		r.takeFacts(l.RepoFacts)
	}
	fresh := r.listedBy(conn.Name, fence)
	r.OrphanedAt = time.Time{}
	t.setRepo(&r)
	if wasOrphaned {
		t.dropJob(JobCollect, RepoSubject(id))
		t.enqueue(JobIndex, RepoSubject(id), false, time.Time{})
	}
	return fresh
}

// listedBefore tells whether a connection with a lesser name lists the
// repository. Of connections that list different repositories under one name
// the first by name has it: whose sync came last must not decide what is
// indexed.
func (r *Repo) listedBefore(connection string) bool {
	return len(r.Connections) > 0 && r.Connections[0].Name < connection
}

// takeFacts replaces the facts, but keeps what a host that does not know
// left empty.
func (r *Repo) takeFacts(f RepoFacts) {
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
func (r *Repo) listedBy(name string, fence uint64) bool {
	r.Connections = slices.Clone(r.Connections)
	i, found := slices.BinarySearchFunc(r.Connections, name, func(c RepoConnection, n string) int { return strings.Compare(c.Name, n) })
	if !found {
		r.Connections = slices.Insert(r.Connections, i, RepoConnection{name, fence})
		return true
	}
	fresh := r.Connections[i].Seen != fence
	r.Connections[i].Seen = fence
	return fresh
}

func (c *FinishSync) apply(t *txn) Result {
	old, no := t.held(JobSync, c.Connection, c.Fence)
	if old == nil {
		return no
	}
	conn := t.connections.get(c.Connection)
	if conn == nil {
		return refuse(NotFound, "there is no such connection")
	}
	if c.Complete && c.Listed != old.Seen {
		return refuse(Conflict, fmt.Sprintf("%d repositories were listed, but %d have arrived", c.Listed, old.Seen))
	}
	n := *conn
	n.Synced, n.SyncedAt, n.Error = c.Hash, t.now, ""
	n.Warnings = nil
	for _, w := range c.Warnings[:min(len(c.Warnings), maxWarnings)] {
		n.Warnings = append(n.Warnings, clip(w))
	}
	if c.Complete {
		n.Sync, n.Repos = c.Fence, c.Listed
		t.unlist(c.Connection, c.Fence)
	}
	t.connections.set(n.Name, &n)
	t.finish(old)
	return Result{}
}

// unlist takes a connection from the repositories that it did not list
// under a fence.
func (t *txn) unlist(connection string, fence uint64) {
	var gone []*Repo
	for r := range t.repos.records() {
		for _, c := range r.Connections {
			if c.Name == connection && c.Seen != fence {
				gone = append(gone, r)
			}
		}
	}
	for _, old := range gone {
		r := *old
		r.Connections = slices.DeleteFunc(slices.Clone(r.Connections), func(c RepoConnection) bool { return c.Name == connection })
		if r.Orphaned() {
			r.OrphanedAt = t.now
			if j := t.jobs.get(jobKey(JobIndex, RepoSubject(r.ID))); j != nil && j.State != JobRunning {
				t.dropJob(JobIndex, RepoSubject(r.ID))
			}
		}
		t.setRepo(&r)
	}
}

// maxRevisions is how many revisions a generation may have: HEAD and 64 more.
const maxRevisions = 65

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

func isHash(s string) bool { return len(s) == 64 && packable(s) }

func (c *FinishIndex) apply(t *txn) Result {
	job, no := t.held(JobIndex, RepoSubject(c.Repo), c.Fence)
	if job == nil {
		return no
	}
	old := t.repos.get(c.Repo)
	if old == nil {
		return refuse(NotFound, "there is no such repository")
	}
	if problem := c.check(); problem != "" {
		return refuse(Invalid, problem)
	}
	r := *old
	r.IndexedAt = t.now
	if c.DefaultBranch != "" {
		r.DefaultBranch = c.DefaultBranch
	}
	if !c.PushedAt.IsZero() {
		r.PushedAt = fromMillis(toMillis(c.PushedAt))
	}
	if !c.Unchanged {
		r.Generation++
		r.GenerationAt, r.InputKey = t.index, c.InputKey
		r.Revisions, r.Shards = c.Revisions, c.Shards
	}
	// Facts that make up sets do not change here: the sets stay.
	t.repos.set(r.ID, &r)
	if !c.Unchanged {
		t.reference(&r, 1)
		t.reference(old, -1)
	}
	if m := t.members.get(c.Holder); m != nil {
		t.hold(MirrorKey(r.ID), m.Number)
		t.holdFiles(&r, m)
	}
	if m := t.members.get(c.Second); m != nil && m.State != MemberRemoved {
		t.holdFiles(&r, m)
	}
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
		n, _ := s.refs.get(id)
		n = uint32(int(n) + by)
		if n > 0 {
			s.refs.set(id, n)
			continue
		}
		s.refs.delete(id)
		s.holdings.delete(ShardKey(id))
	}
}

func (c *FinishCollect) apply(t *txn) Result {
	job, no := t.held(JobCollect, RepoSubject(c.Repo), c.Fence)
	if job == nil {
		return no
	}
	r := t.repos.get(c.Repo)
	if r == nil {
		return refuse(NotFound, "there is no such repository")
	}
	if !r.Orphaned() {
		return refuse(Conflict, "a connection lists the repository again")
	}
	for _, kind := range []JobKind{JobIndex, JobCollect, JobRepoSync} {
		t.dropJob(kind, RepoSubject(r.ID))
	}
	t.reference(r, -1)
	t.holdings.delete(MirrorKey(r.ID))
	t.names.delete(r.Name)
	t.repos.delete(r.ID)
	t.sets = &sets{}
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
