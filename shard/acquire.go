package shard

// Acquire returns a view of exactly the parts that the set holds, and the parts
// of which a file is missing. The view must be released.
func (s *Set) Acquire(parts []Part) (v *View, missing []Part) {
	return s.AcquireGroups(Groups(parts))
}

// AcquireGroups is Acquire for parts that are grouped already.
func (s *Set) AcquireGroups(groups []*Group) (v *View, missing []Part) {
	v = &View{set: s.resources}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range groups {
		missing = append(missing, s.join(v, g)...)
	}
	return v, missing
}

// join adds to a view those parts of a group of which every file is here, and returns the
// others. Set.mu is held.
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
		m.group = nil // it is less than the group, and may not be taken for it
		m.parts, m.dead = present(g.Parts, m.dead)
		if len(m.parts) == 0 {
			return missing
		}
	}

	v.hold(m)
	return missing
}

// present leaves out the parts whose side files are missing.
func present(parts []Part, dead []*entry) (have []Part, sides []*entry) {
	for i, p := range parts {
		if p.Dead.IsZero() || dead[i] != nil {
			have, sides = append(have, p), append(sides, dead[i])
		}
	}
	return have, sides
}

// hold references the files of a member. Set.mu is held.
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

	// While an entry has references it is not closed.
	for _, e := range v.held[from:] {
		e.refs++
	}
}
