package shard

// Acquire returns a view of the parts whose files are all in the set, and the missing parts. The
// caller must release the view.
func (s *Set) Acquire(parts []Part) (v *View, missing []Part) {
	return s.AcquireGroups(Groups(parts))
}

// AcquireGroups returns a view of the parts of groups whose files are all in the set, and the
// missing parts. The caller must release the view.
func (s *Set) AcquireGroups(groups []*Group) (v *View, missing []Part) {
	v = &View{set: s.resources}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range groups {
		missing = append(missing, s.addGroup(v, g)...)
	}
	return v, missing
}

// addGroup adds a member to a view with the parts of a group whose files are all in the set. It
// returns the other parts. The caller must hold Set.mu.
func (s *Set) addGroup(v *View, g *Group) (missing []Part) {
	first := g.Parts[0]
	e, sym := s.files[fileKey{first.Shard, KindShard}], s.files[fileKey{first.Symbols, KindSymbols}]
	// Without the shard or its symbols the view can read none of the parts.
	if s.closed || e == nil || sym == nil && !first.Symbols.IsZero() {
		return g.Parts
	}

	m := &member{entry: e, sh: e.sh, sym: sym, groupView: &groupView{group: g}, parts: g.Parts}
	if len(g.sides) > 0 {
		m.dead = make([]*entry, len(g.Parts))
	}

	for _, i := range g.sides {
		if m.dead[i] = s.files[fileKey{g.Parts[i].Dead, KindDead}]; m.dead[i] == nil {
			missing = append(missing, g.Parts[i])
		}
	}

	if len(missing) > 0 {
		m.group = nil // without all parts, the result must not be cached as that of the group
		m.parts, m.dead = partsWithDeadFiles(g.Parts, m.dead)
		if len(m.parts) == 0 {
			return missing
		}
	}

	v.addMember(m)
	return missing
}

// partsWithDeadFiles returns the parts that present no .dead file, or whose .dead file is in the set, with
// the entries of these files.
func partsWithDeadFiles(parts []Part, dead []*entry) (present []Part, presentDead []*entry) {
	for i, p := range parts {
		if p.Dead.IsZero() || dead[i] != nil {
			present, presentDead = append(present, p), append(presentDead, dead[i])
		}
	}
	return present, presentDead
}

// addMember adds a member to a view, and counts a reference to each of its files, so that they stay
// open. The caller must hold Set.mu.
func (v *View) addMember(m *member) {
	v.members = append(v.members, m)

	from := len(v.entries)
	v.entries = append(v.entries, m.entry)
	if m.sym != nil {
		v.entries = append(v.entries, m.sym)
	}

	for _, e := range m.dead {
		if e != nil {
			v.entries = append(v.entries, e)
		}
	}

	for _, e := range v.entries[from:] {
		e.refs++
	}
}
