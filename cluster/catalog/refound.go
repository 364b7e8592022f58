package catalog

import (
	"fmt"
	"slices"
	"time"
)

// Successor is the new cluster that replaces one that was given up.
type Successor struct {
	Cluster string // its id
	Node    string // its only member
	// Restored means that the state comes from a snapshot, which may be old.
	Restored bool
}

// Refounded counts what the new cluster lacks of the old one.
type Refounded struct {
	Removed  []string // ids of members, in order
	Sessions int      // ended
	Consents int      // of agents, ended
	Links    int      // invitations and other links, ended
}

// Refound turns the catalog of an old cluster into that of a new one with one member. It deletes
// the jobs and holdings of the other members. The state must come from a snapshot, or from a
// cluster that lost its majority; raft must not apply entries to it anymore.
//
// Rights that were revoked after the state was written would be valid again. So sessions, consents,
// links and pending codes end. For a snapshot, the permissions from code hosts are deleted too:
// private repositories stay closed until the hosts answer again. Accounts, passwords, keys and
// owners' grants stay as they are in the state.
func (s *State) Refound(to Successor) *Refounded {
	t := &txn{State: s, index: s.meta.Index, now: s.meta.Clock}

	r := &Refounded{Removed: t.refoundMembers(to.Node)}
	t.endAllSignIns(r)
	if to.Restored {
		t.forgetHostAnswers()
	}
	t.noteRefounding(to, r)

	// Nodes of the old cluster name its id, and so differ from strangers.
	if s.meta.ClusterID != "" {
		s.meta.Former = append(slices.Clone(s.meta.Former), s.meta.ClusterID)
	}
	s.meta.ClusterID = to.Cluster
	s.allChanged()
	s.rehashMeta()
	return r
}

// refoundMembers removes all members but one, and adds that one if it is new.
func (t *txn) refoundMembers(node string) (removed []string) {
	// The new member has the cluster's permission setting until it reports its own. Otherwise
	// closed repositories would be open for a moment.
	protection := t.State.View().PermissionSync()

	for m := range t.members.Records() {
		if m.ID != node && m.State != MemberRemoved {
			removed = append(removed, m.ID)
		}
	}
	// Removing them also revokes their jobs and deletes their holdings.
	for _, id := range removed {
		(&RemoveMember{ID: id}).apply(t)
	}

	if t.members.Get(node) == nil {
		// The new member was never started. Its first start has a later epoch than this one.
		(&PutMember{Member{ID: node, Epoch: NewEpoch(1, 0), Lowest: t.build.Lowest, Highest: t.build.Highest()}}).apply(t)
		m := *t.members.Get(node)
		m.Permissions = protection
		t.members.Set(m.ID, &m)
	}
	return removed
}

// endAllSignIns ends everything that signs in without a password or key.
func (t *txn) endAllSignIns(r *Refounded) {
	r.Sessions = t.sessions.Len()
	t.endSessions(func(*Session) bool { return true })

	r.Consents = len(t.consents.Where(func(c *Consent) bool { return c.Ended.IsZero() }))
	t.endConsents(func(*Consent) bool { return true })

	r.Links = t.links.Len()
	for _, l := range slices.Collect(t.links.Records()) {
		t.links.Delete(l.ID)
	}

	// A pending code names the account's old Changed, so it becomes invalid.
	for _, old := range slices.Collect(t.accounts.Records()) {
		a := *old
		a.Changed = t.index
		t.setAccount(&a)
	}
}

// forgetHostAnswers deletes what code hosts let people see, and queues the questions again. A host's
// refusal of a person stays, because it only closes.
func (t *txn) forgetHostAnswers() {
	for _, r := range slices.Collect(t.readers.Records()) {
		if r.Issue == "" {
			t.readers.Delete(r.Key())
		}
	}
	for _, a := range slices.Collect(t.access.Records()) {
		t.access.Delete(a.Repo)
		t.enqueue(JobRepoSync, RepoSubject(a.Repo), false, time.Time{})
	}
	for _, s := range slices.Collect(t.sites.Records()) {
		t.sites.Delete(s.Name)
	}
	for x := range t.hostTokens.Records() {
		t.enqueue(JobAccountSync, ReaderKey(x.Site, x.Subject), true, time.Time{})
	}

	// A repository that was public may be private now.
	for _, old := range slices.Collect(t.repos.Records()) {
		if r := *old; r.Public || r.Visibility != VisibilityUnknown {
			r.Public, r.Visibility = false, VisibilityUnknown
			t.setRepo(&r)
		}
	}
	for c := range t.connections.Records() {
		t.enqueue(JobSync, c.Name, true, time.Time{})
	}
}

// noteRefounding leaves an event, unless the catalog has no events at all.
func (t *txn) noteRefounding(to Successor, r *Refounded) {
	if t.events.Len() == 0 {
		return
	}

	action := "cluster.recovered"
	if to.Restored {
		action = "cluster.restored"
	}

	// Whoever could reach the files counts as the operator. The event gets the last position in the
	// entry, which no command uses.
	t.by, t.node = &Actor{Type: ActorOperator, Name: "operator"}, to.Node
	message := fmt.Sprintf("%s, %s and %s ended", Counted(r.Sessions, "session", "sessions"), Counted(r.Consents, "consent", "consents"), Counted(r.Links, "link", "links"))
	t.record(&Event{Action: action, TargetType: "catalog", Target: to.Cluster, Message: message}, MaxCommands-1)
}
