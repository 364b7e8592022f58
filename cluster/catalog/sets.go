package catalog

import (
	"sync"

	"github.com/RoaringBitmap/roaring/v2"
)

// sets are sets of repositories, made when first asked for. All views between two
// changes of names, facts, connections or configuration share them: indexing, which
// is what mostly happens, does not throw them away.
type sets struct {
	made *made

	mu      sync.Mutex        // guards the field below
	viewers map[string]*sight // by account; at most maxSights
}

func newSets() *sets { return &sets{made: &made{}} }

// made are the sets that a condition on each repository makes. When repositories
// change, the next ones are made of those before and of what has changed:
//
//	listed ◀── listed before, and the 3 repositories that changed
//
// so a change costs what it changes, not a walk over 100,000 repositories.
type made struct {
	mu    sync.Mutex              // guards the fields below
	byKey map[key]*roaring.Bitmap // shared: nobody changes them

	// before is what these differ from in changed alone; nil where there is none,
	// or too much has changed. Only the goroutine that applies writes changed, and
	// only before the first view has it.
	before  *made
	changed *roaring.Bitmap
}

// key is what a set is found by. What nodes are told of permissions changes with
// members: each setting has its own sets.
type key struct {
	name string
	sync PermissionSync
}

// mostBefore bounds how many generations of sets are kept for the next ones. Each has
// what somebody has asked for since: a set that nobody asks for for so long is made anew.
const mostBefore = 8

// next are the sets after these, which views have. Nothing has changed yet.
func (x *sets) next() *sets {
	old := x.made
	m := &made{before: old, changed: roaring.New()}

	// Nobody has asked for any of them: what stands before counts.
	before, changed, empty := old.behind()
	if empty {
		m.before = before
		if before != nil {
			m.changed = changed.Clone()
		}
	}

	m.forget()
	return &sets{made: m}
}

// behind is what a generation stands on, and whether it has no set itself.
func (m *made) behind() (before *made, changed *roaring.Bitmap, empty bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.before, m.changed, len(m.byKey) == 0
}

// forget lets go of the generations that are too far back.
func (m *made) forget() {
	at := m
	for range mostBefore {
		before, _, _ := at.behind()
		if before == nil {
			return
		}
		at = before
	}

	at.mu.Lock()
	defer at.mu.Unlock()
	at.before = nil
}

// repoChanged notes that a repository is new, gone, or has other facts.
func (s *State) repoChanged(id RepoID) {
	if s.shared {
		s.sets, s.shared = s.sets.next(), false
	}
	m := s.sets.made
	if m.before == nil {
		return // all is made anew anyway
	}

	// Where much has changed one walk over all is less than looking each of them up.
	m.changed.Add(id)
	if m.changed.GetCardinality() > uint64(s.repos.Len()/4)+100 {
		m.before, m.changed = nil, nil
	}
}

// allChanged notes that something has changed on which every set stands.
func (s *State) allChanged() { s.sets, s.shared = newSets(), false }

// Kept is the set of the repositories for which a condition holds. It is made once for
// its name until repositories change, and then of what has changed alone. So the
// condition may depend on the repository, the configuration, which connections are
// hidden, and on whether permissions are enforced, on nothing else. condition is called
// when the set has to be made, and must not ask for a kept set. The set is shared.
func (v *View) Kept(name string, condition func() func(*Repo) bool) *roaring.Bitmap {
	return v.sets.made.set(v, key{name, v.PermissionSync()}, condition)
}

func (m *made) set(v *View, k key, condition func() func(*Repo) bool) *roaring.Bitmap {
	m.mu.Lock()
	defer m.mu.Unlock()
	if set := m.byKey[k]; set != nil {
		return set
	}

	holds := condition()
	set := m.fromBefore(v, k, holds)
	if set == nil {
		set = v.where(holds)
	}

	if m.byKey == nil {
		m.byKey = map[key]*roaring.Bitmap{}
	}
	m.byKey[k] = set
	return set
}

// fromBefore makes a set of the last generation that has it, nil where none does. The
// caller has the lock; generations are locked from the newest to the oldest.
func (m *made) fromBefore(v *View, k key, holds func(*Repo) bool) *roaring.Bitmap {
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

// find looks for a set, and tells what is before.
func (m *made) find(k key) (before *made, changed, set *roaring.Bitmap) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.before, m.changed, m.byKey[k]
}
