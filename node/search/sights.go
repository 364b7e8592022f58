package search

import (
	"sync"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/shoalsearch/shoal/shard"
)

// sights remembers which groups were looked through, repository by repository,
// and found to be in the set of a viewer. A pack has thousands of repositories, a
// group and a set are the same pointer from search to search, and neither
// changes: so a search pays for a look at the pack once.
type sights struct {
	mu   sync.Mutex // guards the field below
	seen map[sightKey]bool
}

type sightKey struct {
	set   *roaring.Bitmap
	group *shard.Group
}

const (
	mostSights = 4096 // groups remembered
	smallGroup = 16   // groups of fewer repositories are looked through each time
)

// all reports whether all repositories of some groups are in a set.
func (s *sights) all(set *roaring.Bitmap, groups []leafGroup) bool {
	for i := range groups {
		if !s.has(set, groups[i].group) {
			return false
		}
	}
	return true
}

func (s *sights) has(set *roaring.Bitmap, g *shard.Group) bool {
	// So few are compared sooner than found in a map.
	if len(g.Parts) < smallGroup {
		return contains(set, g)
	}
	key := sightKey{set, g}
	if s.known(key) {
		return true
	}

	if !contains(set, g) {
		return false
	}

	// Forgotten all at once when there are too many: what is still asked for is back soon.
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == nil || len(s.seen) >= mostSights {
		s.seen = map[sightKey]bool{}
	}
	s.seen[key] = true
	return true
}

func (s *sights) known(key sightKey) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[key]
}

// contains reports whether a set has all repositories of a group.
func contains(set *roaring.Bitmap, g *shard.Group) bool {
	for _, p := range g.Parts {
		if !set.Contains(p.Repo) {
			return false
		}
	}
	return true
}
