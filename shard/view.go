package shard

import (
	"sync"
)

// View is a fixed list of parts to search. It is safe for concurrent use.
type View struct {
	set     *Set
	held    []*entry
	members []*member
	once    sync.Once // of Release
}

// member is one shard file of a view, with what the side files say.
type member struct {
	entry *entry
	sh    *shard
	parts []Part
	dead  []*entry // of each part, nil where there is none
	sym   *entry   // nil where there are no symbols yet

	once  sync.Once // guards the fields below
	err   error
	bad   *entry      // the file that err speaks of
	repos []*repoView // by the repository's place in the shard; nil: not part of the view
	full  bool        // every repository of the shard is here and nothing in it is dead
}

// repoView is how one repository in a shard is to be read.
type repoView struct {
	id        uint32
	revisions []Revision
	masks     []uint64          // by mask number, in bits of revisions
	changed   map[uint32]uint64 // occurrences whose mask is another one
	always    uint64            // revisions that hold every occurrence
	ever      uint64            // revisions that hold any
}

// mask gives the revisions that hold occurrence o of the shard.
func (r *repoView) mask(s *shard, o int) uint64 {
	if len(r.changed) > 0 {
		if m, ok := r.changed[uint32(o)]; ok {
			return m
		}
	}
	return r.masks[s.occMask.at(o)]
}

// Acquire gives a view of exactly the parts that the set holds, and the parts
// of which a file is missing. The view must be released.
func (s *Set) Acquire(parts []Part) (v *View, missing []Part) {
	v = &View{set: s}
	byShard := map[string]*member{}
	for _, p := range parts {
		held, ok := s.hold(p.Files())
		if !ok || held[0].sh == nil {
			if ok {
				s.release(held)
			}
			missing = append(missing, p)
			continue
		}
		v.held = append(v.held, held...)
		m := byShard[p.Shard]
		if m == nil {
			m = &member{entry: held[0], sh: held[0].sh}
			byShard[p.Shard] = m
			v.members = append(v.members, m)
		}
		m.parts = append(m.parts, p)
		m.dead = append(m.dead, nil)
		for _, e := range held[1:] {
			if e.dead != nil {
				m.dead[len(m.dead)-1] = e
			}
			if e.sym != nil {
				m.sym = e
			}
		}
	}
	return v, missing
}

// Release gives the files back. The view must not be used afterwards; what
// its searches returned stays valid.
func (v *View) Release() {
	v.once.Do(func() { v.set.release(v.held) })
}

// ready reads the columns and the side files.
func (m *member) ready() error {
	m.once.Do(func() { m.err = guarded(m.load) })
	return m.err
}

func (m *member) load() error {
	m.bad = m.entry
	if err := m.sh.ready(); err != nil {
		return err
	}
	m.repos = make([]*repoView, len(m.sh.m.repos))
	m.full = true
	for i, p := range m.parts {
		if err := m.join(p, m.dead[i]); err != nil {
			return err
		}
	}
	for i, r := range m.repos {
		if r == nil && m.sh.ever[i] != 0 {
			m.full = false
		}
	}
	if m.sym != nil {
		m.bad = m.sym
		return m.sym.sym.ready(m.sh)
	}
	return nil
}

// join adds the repository of a part.
func (m *member) join(p Part, dead *entry) error {
	s := m.sh
	for i, r := range s.m.repos {
		if r.ID != p.Repo {
			continue
		}
		if dead != nil {
			m.bad, m.full = dead, false
			v, err := dead.dead.view(s, i)
			m.repos[i] = v
			return err
		}
		v := &repoView{id: r.ID, revisions: r.Revisions, always: s.always[i], ever: s.ever[i]}
		v.masks = make([]uint64, s.masks.len())
		for k := range v.masks {
			v.masks[k] = s.masks.at(k)
		}
		m.repos[i] = v
	}
	return nil
}
