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
		missing = append(missing, s.join(v, g)...)
	}
	return v, missing
}

// join adds to a view the parts of a group whose files are all in the set, and returns the other
// parts. The caller must hold Set.mu.
func (s *Set) join(v *View, g *Group) (missing []Part) {
	first := g.Parts[0]
	e, sym := s.files[fileKey{first.Shard, KindShard}], s.files[fileKey{first.Symbols, KindSymbols}]
	// Without the shard or its symbols no part can be searched.
	if s.closed || e == nil || sym == nil && !first.Symbols.IsZero() {
		return g.Parts
	}

	m := &member{entry: e, sh: e.sh, sym: sym, joined: &joined{group: g}, parts: g.Parts}
	if len(g.sides) > 0 {
		m.dead = make([]*entry, len(g.Parts))
	}

	for _, i := range g.sides {
		if m.dead[i] = s.files[fileKey{g.Parts[i].Dead, KindDead}]; m.dead[i] == nil {
			missing = append(missing, g.Parts[i])
		}
	}

	if len(missing) > 0 {
		m.group = nil // a part of the group must not pass for the whole
		m.parts, m.dead = present(g.Parts, m.dead)
		if len(m.parts) == 0 {
			return missing
		}
	}

	v.hold(m)
	return missing
}

// present returns the parts whose side files are in the set, with those side files.
func present(parts []Part, dead []*entry) (have []Part, sides []*entry) {
	for i, p := range parts {
		if p.Dead.IsZero() || dead[i] != nil {
			have, sides = append(have, p), append(sides, dead[i])
		}
	}
	return have, sides
}

// hold adds a member to a view with a reference to each of its files. The caller must hold Set.mu.
func (v *View) hold(m *member) {
	v.members = append(v.members, m)

	from := len(v.held)
	v.held = append(v.held, m.entry)
	if m.sym != nil {
		v.held = append(v.held, m.sym)
	}

	for _, e := range m.dead {
		if e != nil {
			v.held = append(v.held, e)
		}
	}

	// An entry with references stays open.
	for _, e := range v.held[from:] {
		e.refs++
	}
}
