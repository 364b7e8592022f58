package hold

import (
	"slices"

	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/cluster/catalog"
)

// Live is the set of members that can be reached, by number.
type Live map[uint32]bool

// LiveOf returns the members that can be reached.
func LiveOf(members []cluster.Member) Live {
	live := Live{}
	for _, m := range members {
		if m.Alive {
			live[m.Number] = true
		}
	}
	return live
}

// Copies returns how many holders of a key can be reached.
func (l Live) Copies(view *catalog.View, key string) int {
	n := 0
	for _, number := range view.HolderNumbers(key) {
		if l[number] {
			n++
		}
	}
	return n
}

// Searchable reports whether each shard of a repository has a live holder. That is not so while all
// holders of a shard are away. After a catalog was restored, it is not so until the repository is
// indexed again.
func (l Live) Searchable(view *catalog.View, repo *catalog.Repo) bool {
	return repo.Indexed() && !slices.ContainsFunc(repo.Shards, func(s catalog.ShardRef) bool {
		return l.Copies(view, catalog.ShardKey(s.ID)) == 0
	})
}
