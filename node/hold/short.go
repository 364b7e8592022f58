package hold

import (
	"slices"

	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/cluster/catalog"
)

// Shortage is which repositories lack live copies, by name.
type Shortage struct {
	Few  []string // something of them has fewer live holders than copies are wanted, or than there are live members
	None []string // of these: something of them has no live holder at all

	Fewest int // live holders of what has the fewest of them; all that live where there is nothing to hold
}

// Live is the members that can be reached, by number.
type Live map[uint32]bool

// LiveOf picks the members that can be reached.
func LiveOf(members []cluster.Member) Live {
	live := Live{}
	for _, m := range members {
		if m.Alive {
			live[m.Number] = true
		}
	}
	return live
}

// Copies is how many of those who hold what a key names can be reached.
func (l Live) Copies(view *catalog.View, key string) int {
	n := 0
	for _, number := range view.HolderNumbers(key) {
		if l[number] {
			n++
		}
	}
	return n
}

// Searchable reports whether each shard of a repository can be had from somebody.
// Nobody has them after a catalog was restored, or while the last holders are
// away, until the repository is indexed again.
func (l Live) Searchable(view *catalog.View, repo *catalog.Repo) bool {
	return repo.Indexed() && !slices.ContainsFunc(repo.Shards, func(s catalog.ShardRef) bool {
		return l.Copies(view, catalog.ShardKey(s.ID)) == 0
	})
}

// ShortageOf looks for repositories that lack live copies, among those that
// anybody is shown: a search lacks nothing of the others.
func ShortageOf(view *catalog.View, live Live, copies int) Shortage {
	wanted := min(copies, len(live))

	s := Shortage{Fewest: len(live)}
	shown := view.Shown()
	for repo := range view.ReposByName() {
		if !repo.Indexed() || !shown(repo) {
			continue
		}

		// What a repository lacks is what its worst file lacks.
		fewest := len(live)
		for key := range KeysOf(repo) {
			fewest = min(fewest, live.Copies(view, key))
		}

		s.Fewest = min(s.Fewest, fewest)
		if fewest < wanted {
			s.Few = append(s.Few, repo.Name)
		}
		if fewest == 0 {
			s.None = append(s.None, repo.Name)
		}
	}
	return s
}
