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
	held    []*entry
	members []*member
	once    sync.Once // guards Release
}

// Group is the parts of one shard file with the same symbols file: one part for a shard of one
// repository, one for each repository of a pack. [Groups] makes groups, and they are immutable.
// Searches of the same parts should use the same group, because results for the latest groups are
// cached with the file.
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

// Groups groups parts by their files, in the order in which the files first occur.
func Groups(parts []Part) []*Group {
	type files struct{ shard, symbols FileID }
	at := make(map[files]*Group)
	var groups []*Group

	// Parts of one file are searched together, however many repositories it has.
	for _, p := range parts {
		key := files{p.Shard, p.Symbols}
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

// Within returns the group of the parts with wanted repositories; nil if there are none.
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
	gone   bool      // it has left Set.files, and is unmapped after its last reader
	unused time.Time // since when Retain finds it unused; zero while it is used
}

// member is one shard file of a view with the side files that change how it is read.
type member struct {
	entry *entry
	sh    *shard
	parts []Part   // parts of the group whose files are all here
	dead  []*entry // by part, nil for none; nil if no part has one
	sym   *entry   // nil while there are no symbols

	once sync.Once // guards the fields below
	err  error
	*joined
}

// joined is a group applied to its shard: how to read each repository.
type joined struct {
	group *Group      // nil if some of its parts are not here
	repos []*repoView // by index of the repository in the shard; nil if the group does not have it
	full  bool        // every repository of the shard is in the group and nothing in it is dead

	documents int // number of documents in the shard

	once   sync.Once // guards the fields below
	living docSet    // documents with a live occurrence
	count  int       // number of documents in living

	skipOnce     sync.Once // guards the fields below, for changedSkips
	changedRows  docSet
	changedAlive []changedSkip

	last  atomic.Pointer[repoMasks] // the latest answer about revisions: the next query nearly always asks for the same
	skips atomic.Pointer[skipCount] // the latest count, for the same reason
}

// Joins are cached, because people who see different repositories search in turn. A file caches the
// last groupsKept joins, and all files together joinedBytes. Beyond that each file still caches its
// last join, which the next search needs.
const (
	groupsKept  = 8
	joinedBytes = 64 << 20
)

// joins caches the latest joins of a file. It is safe for concurrent use.
type joins struct {
	mu   sync.Mutex // guards the field below
	last []*joined  // the newest comes first
}

// get returns the join of a group; nil if it is not cached. A group with the same parts counts as
// the same, because each state of the catalog makes new groups.
func (c *joins) get(g *Group) *joined {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.last, func(j *joined) bool { return j.group == g })
	if i < 0 {
		i = slices.IndexFunc(c.last, func(j *joined) bool { return j.group.Same(g) })
	}
	if i < 0 {
		return nil
	}

	j := c.last[i]
	copy(c.last[1:i+1], c.last[:i])
	c.last[0] = j
	return j
}

// put caches a join in place of the one that was searched longest ago. total counts the bytes of
// all files.
func (c *joins) put(j *joined, total *atomic.Int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = slices.Insert(c.last, 0, j)
	total.Add(j.bytes())
	for len(c.last) > groupsKept || len(c.last) > 1 && total.Load() > joinedBytes {
		total.Add(-c.last[len(c.last)-1].bytes())
		c.last = slices.Delete(c.last, len(c.last)-1, len(c.last))
	}
}

// drop empties the cache when the file is closed.
func (c *joins) drop(total *atomic.Int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, j := range c.last {
		total.Add(-j.bytes())
	}
	c.last = nil
}

// bytes returns about how much memory a join takes: its parts, how each repository is read, the
// masks of the last revisions, and a bit for each document.
func (j *joined) bytes() int64 {
	const perRepo = 8 + 8 // its view and its mask
	return j.group.Bytes() + int64(len(j.repos))*perRepo + int64(j.documents)/8
}

// repoView says how to read one repository in a shard. It is immutable.
type repoView struct {
	id        uint32
	revisions []Revision
	masks     []uint64          // by mask number: the revisions of this generation
	changed   map[uint32]uint64 // by occurrence: its mask, where masks is wrong
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

// Release gives the files back. The view must not be used afterwards, but the results of its
// searches stay valid.
func (v *View) Release() {
	v.once.Do(func() { v.set.release(v.held) })
}

// ready reads the columns and the side files once. Every use of the member calls it first.
func (m *member) ready() error {
	m.once.Do(func() { m.err = file.Guard(m.load) })
	return m.err
}

// load prepares the shard and its symbols for a search. Callers use ready, which loads only once.
func (m *member) load() error {
	if err := m.sh.ready(); err != nil {
		return err
	}

	// An earlier search may have joined this group already.
	known := (*joined)(nil)
	if m.group != nil {
		known = m.sh.joins.get(m.group)
	}
	if known != nil {
		m.joined = known
	} else {
		if err := m.join(); err != nil {
			return err
		}
		if m.group != nil {
			m.sh.joins.put(m.joined, m.sh.joinBytes)
		}
	}

	if m.sym != nil {
		return m.sym.sym.Ready(m.sh.f.Name(), m.sh.m.documents)
	}
	return nil
}

// symbolsReady reads the shard and the symbols once, without the parts. It is for a member with
// symbols.
func (m *member) symbolsReady() error {
	return file.Guard(func() error {
		if err := m.sh.ready(); err != nil {
			return err
		}
		return m.sym.sym.Ready(m.sh.f.Name(), m.sh.m.documents)
	})
}

// join finds out how to read each repository of the parts.
func (m *member) join() error {
	s := m.sh
	m.repos = make([]*repoView, len(s.m.repos))
	m.documents = s.m.documents
	m.full = true
	for k, p := range m.parts {
		i, ok := s.repoIndex(p.Repo)
		if !ok {
			continue
		}

		m.repos[i] = &s.base[i]
		if !p.Dead.IsZero() {
			m.full = false
			v, err := m.dead[k].dead.view(s, i)
			if err != nil {
				return err
			}
			m.repos[i] = v
		}
	}

	// Another repository with occurrences in the shard makes the join less than full.
	for i, r := range m.repos {
		if r == nil && s.base[i].ever != 0 {
			m.full = false
		}
	}
	return nil
}

// alive returns the documents with a live occurrence; nil means all of the shard. The set is
// shared. few reports that they are less than half of the shard.
func (m *member) alive() (set docSet, few bool) {
	if m.full {
		return nil, false
	}

	j, s := m.joined, m.sh
	j.once.Do(func() {
		j.living = newDocSet(s.m.documents)

		// A document is alive if one of its occurrences is.
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

// culprit returns the file that an error of damage is about: the file that the error names, or the
// one in which a fault happened. Otherwise it is the shard, because all other files are read
// through it.
func (m *member) culprit(err error) *entry {
	named, fault := (*file.DamagedError)(nil), (*file.FaultError)(nil)
	byName, byPlace := errors.As(err, &named), errors.As(err, &fault)

	// A fault has no file name, only the address that could not be read.
	for _, e := range append([]*entry{m.sym}, m.dead...) {
		if e != nil && (byName && e.f.Name() == named.File || byPlace && e.f.Holds(fault.Address)) {
			return e
		}
	}
	return m.entry
}

// changedSkip is a row whose revisions a later generation changed.
type changedSkip struct {
	bit, repo int
	mask      uint64
}

// skipCount is how many files of a group are kept by name only in a revision. It is immutable.
type skipCount struct {
	revision string
	files    int
}

// repoMasks is the answer of an opRepos or opRev node for each repository of a group. It is
// immutable.
type repoMasks struct {
	name      string   // pattern of revisions
	bits      []uint64 // by index of the repository in the shard: revisions for which the node holds
	all, none bool     // the node holds for every occurrence, or for none
}
