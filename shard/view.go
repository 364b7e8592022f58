package shard

import (
	"sync"
	"sync/atomic"
)

// View is a fixed list of parts to search. It is safe for concurrent use.
type View struct {
	set     *Set
	held    []*entry
	members []*member
	once    sync.Once // of Release
}

// Group is the parts of one shard file with the same symbols: a single one
// for a file of one repository, one for each repository of a pack. Groups
// makes them. They are immutable; whoever searches the same parts again
// should use the same group, since what was worked out for the last one is
// kept beside the file.
type Group struct {
	Parts []Part // not empty

	sides []int // those with a side file of dead occurrences
}

// Groups puts parts together, in the order in which their files first come.
func Groups(parts []Part) []*Group {
	type files struct{ shard, symbols string }
	at := make(map[files]*Group)
	var groups []*Group
	for _, p := range parts {
		key := files{p.Shard, p.Symbols}
		g := at[key]
		if g == nil {
			g = &Group{}
			at[key] = g
			groups = append(groups, g)
		}
		if p.Dead != "" {
			g.sides = append(g.sides, len(g.Parts))
		}
		g.Parts = append(g.Parts, p)
	}
	return groups
}

// member is one shard file of a view, with what the side files say.
type member struct {
	entry *entry
	sh    *shard
	parts []Part   // of the group, those that are here
	dead  []*entry // of each part, nil where there is none; nil where no part has one
	sym   *entry   // nil where there are no symbols yet

	once sync.Once // guards the fields below
	err  error
	bad  *entry // the file that err speaks of
	*joined
}

// joined is the repositories of a group as its shard has them.
type joined struct {
	group *Group      // nil where not all of its parts are here
	repos []*repoView // by the repository's place in the shard; nil: not part of the group
	full  bool        // every repository of the shard is here and nothing in it is dead

	once   sync.Once // guards the fields below
	living docSet    // documents that a repository of the group has
	count  int       // of them

	last atomic.Pointer[repoMasks] // of the revisions that were asked for last: nearly always the same
}

// repoMasks is what a node about repositories or revisions says of each
// repository of a group. It is immutable.
type repoMasks struct {
	name      string   // of the revisions
	bits      []uint64 // by the repository's place in the shard: the revisions it says yes of
	all, none bool     // it says yes, or no, of every occurrence
}

// masksOf works them out; a pack has thousands of repositories, so those of
// revisions are kept.
func (j *joined) masksOf(n *node) *repoMasks {
	if n.op == opRev {
		if known := j.last.Load(); known != nil && known.name == n.name {
			return known
		}
	}
	m := &repoMasks{name: n.name, bits: make([]uint64, len(j.repos)), all: true, none: true}
	for i, r := range j.repos {
		if r == nil {
			continue
		}
		if n.op == opRev {
			m.bits[i] = revisionBits(r.revisions, n.name)
		} else if n.repos.Contains(r.id) {
			m.bits[i] = ^uint64(0)
		}
		if r.ever != 0 {
			m.all = m.all && m.bits[i]&r.always != 0
			m.none = m.none && m.bits[i]&r.ever == 0
		}
	}
	if n.op == opRev {
		j.last.Store(m)
	}
	return m
}

// repoView is how one repository in a shard is to be read. It is immutable.
type repoView struct {
	id        uint32
	revisions []Revision
	masks     []uint64          // by mask number, in bits of revisions
	changed   map[uint32]uint64 // occurrences whose mask is another one
	always    uint64            // revisions that hold every occurrence that is not dead
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
	return s.AcquireGroups(Groups(parts))
}

// AcquireGroups is Acquire for parts that are grouped already.
func (s *Set) AcquireGroups(groups []*Group) (v *View, missing []Part) {
	v = &View{set: s}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range groups {
		missing = append(missing, v.join(g)...)
	}
	return v, missing
}

// join adds the parts of a group of which every file is here, and gives the
// others. The mutex of the set is held.
func (v *View) join(g *Group) (missing []Part) {
	s, first := v.set, g.Parts[0]
	e, sym := s.files[first.Shard], s.files[first.Symbols]
	if s.closed || e == nil || e.sh == nil || first.Symbols != "" && (sym == nil || sym.sym == nil) {
		return g.Parts
	}
	m := &member{entry: e, sh: e.sh, sym: sym, joined: &joined{group: g}, parts: g.Parts}
	if len(g.sides) > 0 {
		m.dead = make([]*entry, len(g.Parts))
	}
	for _, i := range g.sides {
		if m.dead[i] = s.files[g.Parts[i].Dead]; m.dead[i] == nil || m.dead[i].dead == nil {
			missing = append(missing, g.Parts[i])
		}
	}
	if len(missing) > 0 {
		m.group = nil // what is read is less than the group
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
		if p.Dead == "" || dead[i] != nil && dead[i].dead != nil {
			have, sides = append(have, p), append(sides, dead[i])
		}
	}
	return have, sides
}

// hold takes references on the files of a member. The mutex of the set is held.
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
	for _, e := range v.held[from:] {
		e.refs++
	}
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
	if last := m.sh.last.Load(); last != nil && m.group != nil && last.group == m.group {
		m.joined = last
	} else {
		if err := m.join(); err != nil {
			return err
		}
		if m.group != nil {
			m.sh.last.Store(m.joined)
		}
	}
	if m.sym != nil {
		m.bad = m.sym
		return m.sym.sym.ready(m.sh)
	}
	return nil
}

// join finds the repositories of the parts.
func (m *member) join() error {
	s := m.sh
	m.repos = make([]*repoView, len(s.m.repos))
	m.full = true
	for k, p := range m.parts {
		i, ok := s.place(p.Repo)
		if !ok {
			continue
		}
		m.repos[i] = &s.base[i]
		if p.Dead != "" {
			m.bad, m.full = m.dead[k], false
			v, err := m.dead[k].dead.view(s, i)
			if err != nil {
				return err
			}
			m.repos[i] = v
		}
	}
	for i, r := range m.repos {
		if r == nil && s.base[i].ever != 0 {
			m.full = false
		}
	}
	return nil
}

// alive gives the documents that a repository of the group has; the set is
// shared. It is nil where that is all of them. few tells that it is less than
// half of them.
func (m *member) alive() (set docSet, few bool) {
	if m.full {
		return nil, false
	}
	j, s := m.joined, m.sh
	j.once.Do(func() {
		j.living = newDocSet(s.m.documents)
		for d := range s.m.documents {
			for o := int(s.docOccur.at(d)); o < int(s.docOccur.at(d+1)); o++ {
				if r := j.repos[s.occRepo.at(o)]; r != nil && r.mask(s, o) != 0 {
					j.living.add(d)
					j.count++
					break
				}
			}
		}
	})
	return j.living, 2*j.count < s.m.documents
}
