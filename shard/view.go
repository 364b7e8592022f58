package shard

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/shoalsearch/shoal/shard/file"
	"github.com/shoalsearch/shoal/shard/symbols"
)

// View is a fixed list of parts to search. It is safe for concurrent use.
type View struct {
	set     *resources
	entries []*entry
	members []*member
	once    sync.Once // guards Release
}

// Group is the parts with the same [Part.GroupKey]: one part for a shard of one repository, one for
// each repository of a pack. [Groups] makes groups, and they are immutable.
// Searches of the same parts should use the same group, because each file caches how to read its
// latest groups.
type Group struct {
	Parts []Part // not empty

	sides []int // indexes of the parts with a .dead file

	once  sync.Once // guards the field below
	repos *roaring.Bitmap
}

// Repos returns the repositories of the group. The set is shared: nobody may change it.
func (g *Group) Repos() *roaring.Bitmap {
	g.once.Do(func() {
		g.repos = roaring.New()
		for i := range g.Parts {
			g.repos.Add(g.Parts[i].Repo)
		}
		g.repos.RunOptimize()
	})
	return g.repos
}

// Same reports whether two groups have the same parts.
func (g *Group) Same(o *Group) bool { return g == o || slices.Equal(g.Parts, o.Parts) }

// Bytes returns about how much memory the group takes.
func (g *Group) Bytes() int64 { return int64(len(g.Parts))*partBytes + groupCost }

// About the bytes of a part, and of a group without its parts.
const (
	partBytes = 100
	groupCost = 256
)

// Groups groups parts by their keys, in the order in which the keys first occur.
func Groups(parts []Part) []*Group {
	at := make(map[GroupKey]*Group)
	var groups []*Group

	// Parts of one file are searched together, however many repositories it has.
	for _, p := range parts {
		key := p.GroupKey()
		g := at[key]
		if g == nil {
			g = &Group{}
			at[key] = g
			groups = append(groups, g)
		}

		if !p.Dead.IsZero() {
			g.sides = append(g.sides, len(g.Parts))
		}
		g.Parts = append(g.Parts, p)
	}
	return groups
}

// Within returns a new group of the parts for whose repositories wanted returns true; nil if there
// are none.
func (g *Group) Within(wanted func(repo uint32) bool) *Group {
	in := &Group{}
	for _, p := range g.Parts {
		if !wanted(p.Repo) {
			continue
		}
		if !p.Dead.IsZero() {
			in.sides = append(in.sides, len(in.Parts))
		}
		in.Parts = append(in.Parts, p)
	}

	if len(in.Parts) == 0 {
		return nil
	}
	return in
}

// entry is an open file of the set.
type entry struct {
	size int64
	f    *file.File
	sh   *shard        // for KindShard
	dead *deadFile     // for KindDead
	sym  *symbols.File // for KindSymbols

	refs   int       // readers; guarded by Set.mu
	gone   bool      // it has left Set.files; its last reader unmaps it
	unused time.Time // since when Retain finds it unused; zero while it is used
}

// member is one shard file of a view with the side files that change how it is read.
type member struct {
	entry *entry
	sh    *shard
	parts []Part   // the parts of the group whose files are all in the set
	dead  []*entry // by part: its .dead file, nil if it has none; nil if no part has one
	sym   *entry   // nil if there is no symbols file

	once sync.Once // guards the fields below
	err  error
	*groupView
}

// groupView says how to read each repository of a group in the shard of the group.
type groupView struct {
	group *Group      // nil if some of its parts are not in the set
	repos []*repoView // by index of the repository in the shard; nil if the group does not have it
	full  bool        // the group has every repository of the shard, and no occurrence is dead

	documents int // number of documents in the shard

	once   sync.Once // guards the fields below
	living docSet    // documents with a live occurrence
	count  int       // number of documents in living

	skipOnce     sync.Once // guards the fields below, for changedSkips
	changedRows  docSet
	changedAlive []changedSkip

	last  atomic.Pointer[repoMasks] // the latest result for an opRev node: most queries have the same node
	skips atomic.Pointer[skipCount] // the latest result of countSkipped for an opRev node
}

// Limits of the caches of group views. Several are cached, because users with access to different
// repositories search different groups of the same file.
const (
	maxGroupViews     = 64       // views for one file
	maxGroupViewBytes = 64 << 20 // bytes for all files; above that a file still caches its latest view
)

// groupViewCache caches the group views of a file that were used last. It is safe for concurrent
// use.
type groupViewCache struct {
	mu   sync.Mutex   // guards the field below
	last []*groupView // the newest comes first
}

// get returns the cached view of a group; nil if there is none. The group may be another one with
// the same parts, because each state of the catalog has its own groups.
func (c *groupViewCache) get(g *Group) *groupView {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.last, func(j *groupView) bool { return j.group == g })
	if i < 0 {
		i = slices.IndexFunc(c.last, func(j *groupView) bool { return j.group.Same(g) })
	}
	if i < 0 {
		return nil
	}

	j := c.last[i]
	copy(c.last[1:i+1], c.last[:i])
	c.last[0] = j
	return j
}

// put adds a view to the cache, and drops those that were used longest ago while there are too
// many. total is the number of bytes of the cached views of all files.
func (c *groupViewCache) put(j *groupView, total *atomic.Int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = slices.Insert(c.last, 0, j)
	total.Add(j.bytes())
	for len(c.last) > maxGroupViews || len(c.last) > 1 && total.Load() > maxGroupViewBytes {
		total.Add(-c.last[len(c.last)-1].bytes())
		c.last = slices.Delete(c.last, len(c.last)-1, len(c.last))
	}
}

// drop empties the cache when the file is closed.
func (c *groupViewCache) drop(total *atomic.Int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, j := range c.last {
		total.Add(-j.bytes())
	}
	c.last = nil
}

// bytes returns about how much memory a group view takes: its parts, a view and a mask for each
// repository, and a bit for each document.
func (j *groupView) bytes() int64 {
	const perRepo = 8 + 8
	return j.group.Bytes() + int64(len(j.repos))*perRepo + int64(j.documents)/8
}

// repoView says how to read one repository in a shard. It is immutable.
type repoView struct {
	id        uint32
	name      string // when the shard or the .dead file was written
	revisions []Revision
	masks     []uint64          // by number of a mask in the shard: the mask in this generation
	changed   map[uint32]uint64 // by occurrence: its mask, if that in masks is wrong
	always    uint64            // revisions that every live occurrence has
	ever      uint64            // revisions that any occurrence has
}

// mask returns the revisions that have occurrence o of the shard; 0 means that it is dead.
func (r *repoView) mask(s *shard, o int) uint64 {
	if len(r.changed) > 0 {
		if m, ok := r.changed[uint32(o)]; ok {
			return m
		}
	}
	return r.masks[s.occMask.At(o)]
}

// Release ends the use of the files. The view must not be used afterwards, but the results of its
// searches stay valid.
func (v *View) Release() {
	v.once.Do(func() { v.set.release(v.entries) })
}

// ready reads the columns and the side files once. Every use of the member calls it first.
func (m *member) ready() error {
	m.once.Do(func() { m.err = file.Guard(m.prepare) })
	return m.err
}

// prepare reads the shard and the symbols of the member, and sets m.groupView, from the cache if it
// is there. Only ready calls it, once.
func (m *member) prepare() error {
	if err := m.sh.ready(); err != nil {
		return err
	}

	var cached *groupView
	if m.group != nil {
		cached = m.sh.groupViews.get(m.group)
	}
	if cached != nil {
		m.groupView = cached
	} else {
		if err := m.buildGroupView(); err != nil {
			return err
		}
		if m.group != nil {
			m.sh.groupViews.put(m.groupView, m.sh.groupViewBytes)
		}
	}

	if m.sym != nil {
		return m.sym.sym.Ready(m.sh.f.Name(), m.sh.m.documents)
	}
	return nil
}

// openSymbols reads the shard and the symbols, once, without making the group view. The member
// must have a symbols file.
func (m *member) openSymbols() error {
	return file.Guard(func() error {
		if err := m.sh.ready(); err != nil {
			return err
		}
		return m.sym.sym.Ready(m.sh.f.Name(), m.sh.m.documents)
	})
}

// buildGroupView sets the fields of the group view: how to read each repository of the parts.
func (m *member) buildGroupView() error {
	s := m.sh
	m.repos = make([]*repoView, len(s.m.repos))
	m.documents = s.m.documents
	m.full = true
	for k, p := range m.parts {
		i, ok := s.repoIndex(p.ownerInShard())
		if !ok {
			continue
		}

		m.repos[i] = &s.base[i]
		if !p.Dead.IsZero() {
			m.full = false
			v, err := m.dead[k].dead.viewOf(s, i, p.Repo)
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

// alive returns the documents with a live occurrence; nil means all of the shard. The caller must
// not change the set. isMinority reports whether they are less than half of the shard.
func (m *member) alive() (set docSet, isMinority bool) {
	if m.full {
		return nil, false
	}

	j, s := m.groupView, m.sh
	j.once.Do(func() {
		j.living = newDocSet(s.m.documents)

		// A document is alive if one of its occurrences is alive.
		for d := range s.m.documents {
			for o := int(s.docOccur.At(d)); o < int(s.docOccur.At(d+1)); o++ {
				if r := j.repos[s.occRepo.At(o)]; r != nil && r.mask(s, o) != 0 {
					j.living.add(d)
					j.count++
					break
				}
			}
		}
	})
	return j.living, 2*j.count < s.m.documents
}

// damagedEntry returns the entry of the damaged file for an error: the file that the error names,
// or the one whose memory could not be read; nil if the error shows no damage of a file.
func (m *member) damagedEntry(err error) *entry {
	named, fault := (*file.DamagedError)(nil), (*file.FaultError)(nil)
	byName, byPlace := errors.As(err, &named), errors.As(err, &fault)

	for _, e := range append([]*entry{m.entry, m.sym}, m.dead...) {
		if e != nil && (byName && e.f.Name() == named.File || byPlace && e.f.Holds(fault.Address)) {
			return e
		}
	}
	if byPlace || !errors.Is(err, ErrDamaged) {
		return nil
	}
	return m.entry
}

// changedSkip is a row of a skipList whose revisions a later generation has changed.
type changedSkip struct {
	bit, repo int
	mask      uint64
}

// skipCount is how many files of a group have no content in the index in a revision. It is
// immutable.
type skipCount struct {
	revision string
	files    int
}

// repoMasks is the result of an opRepos or opRev node for each repository of a group. It is
// immutable.
type repoMasks struct {
	name      string   // pattern of revisions
	bits      []uint64 // by index of the repository in the shard: revisions for which the node holds
	all, none bool     // the node holds for every occurrence, or for none
}
