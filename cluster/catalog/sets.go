package catalog

import (
	"sync"

	"github.com/RoaringBitmap/roaring/v2"
)

// sets are cached sets of repositories. Views share them until names, facts, connections or the
// configuration change. Index jobs, the usual changes, do not invalidate them.
type sets struct {
	current *setGeneration

	mu      sync.Mutex             // guards the field below
	viewers map[string]*accountSet // by account; at most maxAccountSets
}

func newSets() *sets { return &sets{current: &setGeneration{}} }

// setGeneration is one generation of cached sets, each defined by a condition on repositories. When
// repositories change, the next generation starts from this one and the changed ids:
//
//	listed ◀── listed before, and the 3 repositories that changed
//
// So an update costs what changed, not a walk over 100,000 repositories.
type setGeneration struct {
	mu    sync.Mutex                 // guards the fields below
	byKey map[setKey]*roaring.Bitmap // shared: read-only

	// before is the previous generation; changed holds the repositories that differ from it. before
	// is nil if there is none or too much has changed. Only the applying goroutine writes changed,
	// and only before the first view sees it.
	before  *setGeneration
	changed *roaring.Bitmap
}

// setKey identifies a set. The permission setting depends on members, so each setting has its own
// sets.
type setKey struct {
	name string
	sync PermissionSync
}

// maxGenerations bounds the chain of generations. A set that nobody used for that many generations is
// computed from scratch.
const maxGenerations = 8

// nextGeneration returns the generation after this one, without changes yet.
func (x *sets) nextGeneration() *sets {
	old := x.current
	m := &setGeneration{before: old, changed: roaring.New()}

	// If this generation has no set of its own, link to the one before it.
	before, changed, empty := old.previous()
	if empty {
		m.before = before
		if before != nil {
			m.changed = changed.Clone()
		}
	}

	m.cutChain()
	return &sets{current: m}
}

// previous returns the previous generation, the changes since, and whether m has no set.
func (m *setGeneration) previous() (before *setGeneration, changed *roaring.Bitmap, empty bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.before, m.changed, len(m.byKey) == 0
}

// cutChain cuts the chain of generations at maxGenerations.
func (m *setGeneration) cutChain() {
	at := m
	for range maxGenerations {
		before, _, _ := at.previous()
		if before == nil {
			return
		}
		at = before
	}

	at.mu.Lock()
	defer at.mu.Unlock()
	at.before = nil
}

// repoChanged notes that a repository was added, changed or deleted, so that the cached sets are
// corrected before their next use.
func (s *State) repoChanged(id RepoID) {
	if s.shared {
		s.sets, s.shared = s.sets.nextGeneration(), false
	}
	m := s.sets.current
	if m.before == nil {
		return // everything is computed from scratch anyway
	}

	// If many changed, one walk over all repositories is cheaper than single look-ups.
	m.changed.Add(id)
	if m.changed.GetCardinality() > uint64(s.repos.Len()/4)+100 {
		m.before, m.changed = nil, nil
	}
}

// allChanged invalidates all cached sets.
func (s *State) allChanged() { s.sets, s.shared = newSets(), false }

// CachedSet returns the set of repositories for which a condition holds, from the cache if it is there.
// So the condition may depend only on the repository, the configuration, hidden connections, and
// the permission setting. The function condition is called if the set must be computed, and must
// not call Kept. The caller must not change the set.
func (v *View) CachedSet(name string, condition func() func(*Repo) bool) *roaring.Bitmap {
	return v.sets.current.getOrCompute(v, setKey{name, v.PermissionSync()}, condition)
}

// getOrCompute returns a cached set, or computes it.
func (m *setGeneration) getOrCompute(v *View, k setKey, condition func() func(*Repo) bool) *roaring.Bitmap {
	m.mu.Lock()
	defer m.mu.Unlock()
	if set := m.byKey[k]; set != nil {
		return set
	}

	holds := condition()
	set := m.updateFromEarlier(v, k, holds)
	if set == nil {
		set = v.reposWhere(holds)
	}

	if m.byKey == nil {
		m.byKey = map[setKey]*roaring.Bitmap{}
	}
	m.byKey[k] = set
	return set
}

// updateFromEarlier computes a set from the newest earlier generation that has it, or returns nil. The
// caller holds the lock; generations are locked from newest to oldest.
func (m *setGeneration) updateFromEarlier(v *View, k setKey, holds func(*Repo) bool) *roaring.Bitmap {
	changed := roaring.New()
	for before, more := m.before, m.changed; before != nil; {
		changed.Or(more)
		var old *roaring.Bitmap
		before, more, old = before.find(k)
		if old == nil {
			continue
		}

		set := old.Clone()
		for it := changed.Iterator(); it.HasNext(); {
			id := it.Next()
			if r := v.Repo(id); r != nil && holds(r) {
				set.Add(id)
			} else {
				set.Remove(id)
			}
		}
		return set
	}
	return nil
}

// find returns the set with a key, if any, and the previous generation.
func (m *setGeneration) find(k setKey) (before *setGeneration, changed, set *roaring.Bitmap) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.before, m.changed, m.byKey[k]
}
