package catalog

import "slices"

// Refound makes of the catalog of a cluster that of a new one: with another
// id, and without the members except the one called keep, if any. What the
// others held, and the jobs that they ran, are forgotten with them. It is for
// a state that no raft applies to: what was saved, or what is left of a
// cluster that lost its majority. It returns the ids of the members that were
// removed, in order.
func (s *State) Refound(cluster, keep string) (removed []string) {
	t := &txn{State: s, index: s.meta.Index, now: s.meta.Clock}

	for m := range s.members.records() {
		if m.ID != keep && m.State != MemberRemoved {
			removed = append(removed, m.ID)
		}
	}

	// As if each had been removed: jobs are taken from them, and they hold nothing.
	for _, id := range removed {
		(&RemoveMember{ID: id}).apply(t)
	}

	// Old nodes of that cluster can be told from strangers by this.
	if s.meta.ClusterID != "" {
		s.meta.Former = append(slices.Clone(s.meta.Former), s.meta.ClusterID)
	}
	s.meta.ClusterID = cluster
	s.rehashMeta()
	return removed
}
