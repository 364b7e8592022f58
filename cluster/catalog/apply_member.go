package catalog

import (
	"slices"
	"time"
)

// maxMembers bounds the number of members, including removed ones.
const maxMembers = 100000

func (c *PutMember) apply(t *txn) Result {
	in := c.Member
	if in.ID == "" || EpochStart(in.Epoch) == 0 {
		return refuse(Invalid, "the member has no id or epoch")
	}

	if refusal := t.Excludes(&in); refusal != nil {
		return Result{Err: refusal}
	}
	m := Member{ID: in.ID, State: MemberAlive, Since: t.now, Joined: t.now, Session: t.index}
	old := t.members.Get(in.ID)
	if old != nil {
		if refusal := old.refuseState(&in); refusal != nil {
			return Result{Err: refusal}
		}

		// A member that returns keeps its number, because its holdings refer to it.
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

	// The old process is gone, and its jobs with it.
	if old != nil && in.Epoch > old.Epoch {
		t.revokeAll(m.ID, "the node was started again")
	}
	return Result{ID: uint64(m.Number)}
}

// refuseState returns why the member cannot report the state in, or nil.
func (m *Member) refuseState(in *Member) *Refusal {
	if m.State == MemberRemoved {
		return &Refusal{Conflict, "the node was removed from the cluster: move its data directory away to let it join as a new one"}
	}
	return m.RefusesEpoch(in.Epoch)
}

// RefusesEpoch returns why the node of this member cannot start with an epoch, or nil.
func (m *Member) RefusesEpoch(epoch uint64) *Refusal {
	const older = "the data directory is older than what the cluster knows of this node: it was rolled back or is a copy. Move it away to let the node join as a new one, and `shoal remove` the old one"

	switch {
	case EpochStart(epoch) < EpochStart(m.Epoch):
		return &Refusal{Stale, older}

	// Two processes began the same start: one runs on a copy of the data directory, or on one that
	// was rolled back.
	case EpochStart(epoch) == EpochStart(m.Epoch) && epoch != m.Epoch:
		return &Refusal{Conflict, older}
	}
	return nil
}

// revokeAll takes all jobs from a lost node.
func (t *txn) revokeAll(node, reason string) {
	for _, j := range t.runningOn(node) {
		t.revokeJob(j, reason, time.Time{})
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

	// Setting the same state twice is not an error. `shoal drain` does it while it waits.
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

	// Keep the record: a node that returns with this id must learn that it was removed.
	m := *old
	m.State, m.Since = MemberRemoved, t.now
	t.members.Set(m.ID, &m)

	t.revokeAll(m.ID, "the node was removed")
	t.removeHolderEverywhere(m.Number)
	return Result{}
}

// removeHolderEverywhere removes a member from all holdings.
func (t *txn) removeHolderEverywhere(number uint32) {
	// Collect the keys first: a table must not change during an iteration.
	var keys []string
	for h := range t.holdings.Records() {
		if slices.Contains(h.Nodes, number) {
			keys = append(keys, h.Key)
		}
	}
	for _, key := range keys {
		t.removeHolder(key, number)
	}
}

// addHolder records that the member with this number has the shard or mirror of key. Holding.Nodes stays
// sorted.
func (s *State) addHolder(key string, number uint32) {
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

// removeHolder records that the member with this number no longer has the shard or mirror of key.
func (s *State) removeHolder(key string, number uint32) {
	old := s.holdings.Get(key)
	if old == nil {
		return
	}
	i, found := slices.BinarySearch(old.Nodes, number)
	if !found {
		return
	}

	// Views share the record, so replace it.
	h := Holding{Key: key, Nodes: slices.Delete(slices.Clone(old.Nodes), i, i+1)}
	if len(h.Nodes) == 0 {
		s.holdings.Delete(key)
		return
	}
	s.holdings.Set(key, &h)
}

func (c *Place) apply(t *txn) Result {
	// Check all groups first: a refused command changes nothing.
	for _, g := range c.Groups {
		for _, n := range g.Nodes {
			if _, ok := t.numbers.Get(n); !ok {
				return refuse(Invalid, "a group is placed on a member that does not exist")
			}
		}
	}

	// A group without members is not placed.
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

	// Apply lost keys before held ones: a key in both lists was lost and copied again.
	for _, key := range c.Lost {
		t.removeHolder(key, m.Number)
	}

	// Ignore keys that left the catalog meanwhile: nothing would ever remove them again.
	for _, key := range c.Held {
		if t.isFileNeeded(key) {
			t.addHolder(key, m.Number)
		}
	}
	return Result{}
}

// isFileNeeded reports whether the file or mirror that a key of a holding names is still needed.
func (t *txn) isFileNeeded(key string) bool {
	if key == "" {
		return false
	}
	if key[0] == 's' {
		_, ok := t.refs.Get(key[1:])
		return ok
	}
	id, ok := MirrorRepo(key)
	return ok && t.repos.Get(id) != nil && MirrorKey(id) == key // refuse another spelling of the same number
}
