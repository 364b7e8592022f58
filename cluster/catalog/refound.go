package catalog

import (
	"fmt"
	"slices"
	"time"
)

// Successor is the cluster that takes the place of one that was given up.
type Successor struct {
	Cluster string // its id
	Node    string // its only member
	// Restored says that the state is that of a snapshot, of whatever age.
	Restored bool
}

// Refounded is what of the old cluster is not in the new one.
type Refounded struct {
	Removed  []string // ids of members, in order
	Sessions int      // that ended
	Consents int      // of agents, that ended
	Links    int      // invitations and other links that ended
}

// Refound makes of the catalog of a cluster that of a new one, with one member.
// What the others held, and the jobs that they ran, are forgotten with them. It
// is for a state that no raft applies to: what was saved, or what is left of a
// cluster that lost its majority.
//
// Whatever was taken back after the state was written down is in force in it
// again. So nobody is signed in by it: sessions, consents, links, and codes that
// are under way end. Of a snapshot what code hosts have said is forgotten too:
// what they close stays closed until they have been asked anew. Accounts,
// passwords, keys and what owners granted are those of the state.
func (s *State) Refound(to Successor) *Refounded {
	t := &txn{State: s, index: s.meta.Index, now: s.meta.Clock}

	r := &Refounded{Removed: t.refoundMembers(to.Node)}
	t.endWhatWasGiven(r)
	if to.Restored {
		t.forgetAnswers()
	}
	t.noteRefounding(to, r)

	// Old nodes of that cluster can be told from strangers by this.
	if s.meta.ClusterID != "" {
		s.meta.Former = append(slices.Clone(s.meta.Former), s.meta.ClusterID)
	}
	s.meta.ClusterID = to.Cluster
	s.allChanged()
	s.rehashMeta()
	return r
}

// refoundMembers removes the members but one, which is added where it is new.
func (t *txn) refoundMembers(node string) (removed []string) {
	// What was protected is so from the first moment, before the node says what it was told.
	protection := t.State.View().PermissionSync()

	for m := range t.members.Records() {
		if m.ID != node && m.State != MemberRemoved {
			removed = append(removed, m.ID)
		}
	}
	// As if each had been removed: jobs are taken from them, and they hold nothing.
	for _, id := range removed {
		(&RemoveMember{ID: id}).apply(t)
	}

	if t.members.Get(node) == nil {
		// It was never started: its first start has the epoch after this one.
		(&PutMember{Member{ID: node, Epoch: NewEpoch(1, 0), Lowest: t.build.Lowest, Highest: t.build.Highest()}}).apply(t)
		m := *t.members.Get(node)
		m.Permissions = protection
		t.members.Set(m.ID, &m)
	}
	return removed
}

// endWhatWasGiven ends all that signs somebody in without a secret of their own.
func (t *txn) endWhatWasGiven(r *Refounded) {
	r.Sessions = t.sessions.Len()
	t.endSessions(func(*Session) bool { return true })

	r.Consents = len(t.consents.Where(func(c *Consent) bool { return c.Ended.IsZero() }))
	t.endConsents(func(*Consent) bool { return true })

	r.Links = t.links.Len()
	for _, l := range slices.Collect(t.links.Records()) {
		t.links.Delete(l.ID)
	}

	// A code that an agent has not shown yet names the account as it was.
	for _, old := range slices.Collect(t.accounts.Records()) {
		a := *old
		a.Changed = t.index
		t.setAccount(&a)
	}
}

// forgetAnswers forgets what code hosts let people see, and has them asked.
// That a host refuses somebody closes something, so it stays.
func (t *txn) forgetAnswers() {
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

	// What was public then may be private now.
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

// noteRefounding leaves an event where there are events.
func (t *txn) noteRefounding(to Successor, r *Refounded) {
	if t.events.Len() == 0 {
		return
	}

	action := "cluster.recovered"
	if to.Restored {
		action = "cluster.restored"
	}

	// By whoever could reach the files: no account was asked. At the end of the last entry,
	// where no command of an entry stands.
	t.by, t.node = &Actor{Type: ActorOperator, Name: "operator"}, to.Node
	message := fmt.Sprintf("%s, %s and %s ended", Counted(r.Sessions, "session", "sessions"), Counted(r.Consents, "consent", "consents"), Counted(r.Links, "link", "links"))
	t.record(&Event{Action: action, TargetType: "catalog", Target: to.Cluster, Message: message}, MaxCommands-1)
}
