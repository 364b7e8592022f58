package catalog

import (
	"slices"
	"time"
)

// maxMembers is how many members, removed ones included, there may be.
const maxMembers = 100000

func (c *PutMember) apply(t *txn) Result {
	in := c.Member
	if in.ID == "" || EpochStart(in.Epoch) == 0 {
		return refuse(Invalid, "the member has no id or epoch")
	}

	// A member that comes back keeps its number, which its holdings are written by.
	if no := t.Excludes(&in); no != nil {
		return Result{Err: no}
	}
	m := Member{ID: in.ID, State: MemberAlive, Since: t.now, Joined: t.now, Session: t.index}
	old := t.members.Get(in.ID)
	if old != nil {
		if no := old.refuses(&in); no != nil {
			return Result{Err: no}
		}

		m = *old
		if in.Epoch > old.Epoch {
			m.Session = t.index
		}
	} else {
		if t.members.Len() >= maxMembers {
			return refuse(Conflict, "there are too many members")
		}
		t.meta.LastMember++
		m.Number = t.meta.LastMember
		t.numbers.Set(m.Number, m.ID)
	}

	m.Epoch, m.Addr, m.Gossip, m.API = in.Epoch, in.Addr, in.Gossip, in.API
	m.Zone, m.Weight, m.Version = in.Zone, in.Weight, in.Version
	m.Lowest, m.Highest = in.Lowest, in.Highest
	t.members.Set(m.ID, &m)

	// Its jobs ended with the process that ran them.
	if old != nil && in.Epoch > old.Epoch {
		t.revokeAll(m.ID, "the node was started again")
	}
	return Result{ID: uint64(m.Number)}
}

// refuses says why a member cannot be what in says, or returns nil.
func (m *Member) refuses(in *Member) *Refusal {
	if m.State == MemberRemoved {
		return &Refusal{Conflict, "the node was removed from the cluster: move its data directory away to let it join as a new one"}
	}
	return m.RefusesEpoch(in.Epoch)
}

// RefusesEpoch says why the node of this member cannot have an epoch, or
// returns nil.
func (m *Member) RefusesEpoch(epoch uint64) *Refusal {
	const older = "the data directory is older than what the cluster knows of this node: it was rolled back or is a copy. Move it away to let the node join as a new one, and `shoal remove` the old one"

	switch {
	case EpochStart(epoch) < EpochStart(m.Epoch):
		return &Refusal{Stale, older}

	// Another process has begun the same start: from a copy, or before the
	// directory was rolled back to where it was then.
	case EpochStart(epoch) == EpochStart(m.Epoch) && epoch != m.Epoch:
		return &Refusal{Conflict, older}
	}
	return nil
}

// revokeAll takes all jobs from a node that was lost.
func (t *txn) revokeAll(node, reason string) {
	for _, j := range t.runningOn(node) {
		t.revoke(j, reason, time.Time{})
	}
}

func (c *SetMemberState) apply(t *txn) Result {
	old := t.members.Get(c.ID)
	if old == nil {
		return refuse(NotFound, "there is no such member")
	}

	if c.State != MemberAlive && c.State != MemberDraining {
		return refuse(Invalid, "a member can be alive or draining")
	}

	if old.State == MemberRemoved {
		return refuse(Conflict, "the member was removed")
	}

	// Said again, as by a drain that is watched, it changes nothing and is no failure.
	if old.State == c.State {
		return Result{}
	}

	m := *old
	m.State, m.Since = c.State, t.now
	t.members.Set(m.ID, &m)
	return Result{}
}

func (c *RemoveMember) apply(t *txn) Result {
	old := t.members.Get(c.ID)
	if old == nil {
		return refuse(NotFound, "there is no such member")
	}
	if old.State == MemberRemoved {
		return Result{}
	}

	// The record stays: a node that comes back with this id must find that it was removed.
	m := *old
	m.State, m.Since = MemberRemoved, t.now
	t.members.Set(m.ID, &m)

	t.revokeAll(m.ID, "the node was removed")
	t.unholdAll(m.Number)
	return Result{}
}

// unholdAll forgets what a member holds.
func (t *txn) unholdAll(number uint32) {
	// Gathered first: a table must not change while somebody goes through it.
	var keys []string
	for h := range t.holdings.Records() {
		if slices.Contains(h.Nodes, number) {
			keys = append(keys, h.Key)
		}
	}
	for _, key := range keys {
		t.unhold(key, number)
	}
}

// hold notes that a member has what a key names. Nodes are sorted.
func (s *State) hold(key string, number uint32) {
	old := s.holdings.Get(key)
	h := Holding{Key: key}
	if old != nil {
		h.Nodes = old.Nodes
	}
	i, found := slices.BinarySearch(h.Nodes, number)
	if found {
		return
	}
	h.Nodes = slices.Insert(slices.Clone(h.Nodes), i, number)
	s.holdings.Set(key, &h)
}

// unhold notes that a member does not have it any more.
func (s *State) unhold(key string, number uint32) {
	old := s.holdings.Get(key)
	if old == nil {
		return
	}
	i, found := slices.BinarySearch(old.Nodes, number)
	if !found {
		return
	}

	// A record is shared with the views that were given out: it is replaced, never changed.
	h := Holding{Key: key, Nodes: slices.Delete(slices.Clone(old.Nodes), i, i+1)}
	if len(h.Nodes) == 0 {
		s.holdings.Delete(key)
		return
	}
	s.holdings.Set(key, &h)
}

func (c *Place) apply(t *txn) Result {
	// All or nothing: a refused command changes nothing.
	for _, g := range c.Groups {
		for _, n := range g.Nodes {
			if _, ok := t.numbers.Get(n); !ok {
				return refuse(Invalid, "a group is placed on a member that does not exist")
			}
		}
	}

	// A group without members is one that is not placed.
	for _, g := range c.Groups {
		if len(g.Nodes) == 0 {
			t.groups.Delete(g.Number)
			continue
		}
		t.groups.Set(g.Number, &Group{Number: g.Number, Epoch: t.index, Nodes: g.Nodes})
	}
	return Result{}
}

func (c *Confirm) apply(t *txn) Result {
	m := t.members.Get(c.Node)
	if m == nil || m.State == MemberRemoved {
		return refuse(NotFound, "there is no such member")
	}
	if m.Epoch != c.Epoch {
		return refuse(Stale, "the node was started again since")
	}

	// A key that is in both lists is held: it was lost and copied again since.
	for _, key := range c.Lost {
		t.unhold(key, m.Number)
	}

	// What left the catalog meanwhile is not held: nobody would ever let go of it.
	for _, key := range c.Held {
		if t.live(key) {
			t.hold(key, m.Number)
		}
	}
	return Result{}
}

// live reports whether anything needs what a key of a holding names.
func (t *txn) live(key string) bool {
	if key == "" {
		return false
	}
	if key[0] == 's' {
		_, ok := t.refs.Get(key[1:])
		return ok
	}
	id, ok := MirrorRepo(key)
	return ok && t.repos.Get(id) != nil && MirrorKey(id) == key // a number has one spelling
}
