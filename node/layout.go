package node

import (
	"slices"
	"strings"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/job"
	"github.com/shoalsearch/shoal/shard"
)

// layout says in which files the repositories of a view are. A search of
// thousands of repositories must not pay for each of them: they share few
// files, and what can be said of them before the query is known is said here,
// once for all searches until a repository changes.
type layout struct {
	view      *catalog.View // that it was made from
	files     []*layoutFile // in the order of the first repository of each
	unindexed *roaring.Bitmap
	rank      map[uint32]rank
}

// rank is what orders a repository among others.
type rank struct {
	name    string
	recency uint8
}

// layoutFile is one shard file.
type layoutFile struct {
	group *shard.Group
	repos *roaring.Bitmap // of the group
	ids   []string        // of the files that each of them needs: the shard and its symbols
	sided bool            // some of them need a file of their own beside these
}

// layouts keeps the newest layout of a node.
type layouts struct {
	mu   sync.Mutex // guards the field below, and keeps a crowd from making the same one
	last *layout
}

// of gives the layout of a view.
func (l *layouts) of(view *catalog.View) *layout {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last != nil && l.last.view.SameRepos(view) {
		return l.last
	}
	made := newLayout(view)
	if l.last == nil || l.last.view.Index() <= view.Index() {
		l.last = made
	}
	return made
}

func newLayout(view *catalog.View) *layout {
	l := &layout{view: view, unindexed: roaring.New(), rank: make(map[uint32]rank, view.RepoCount())}
	var parts []shard.Part
	for repo := range view.Repos() {
		l.rank[repo.ID] = rank{repo.Name, recencyOf(view, repo)}
		if !repo.Indexed() {
			l.unindexed.Add(repo.ID)
			continue
		}
		for _, s := range repo.Shards {
			parts = append(parts, job.PartOf(repo.ID, s))
		}
	}
	for _, g := range shard.Groups(parts) {
		l.files = append(l.files, newLayoutFile(g))
	}
	return l
}

func newLayoutFile(g *shard.Group) *layoutFile {
	first := g.Parts[0]
	f := &layoutFile{group: g, repos: roaring.New(), ids: []string{fileID(first.Shard)}}
	if first.Symbols != "" {
		f.ids = append(f.ids, fileID(first.Symbols))
	}
	for _, p := range g.Parts {
		f.repos.Add(p.Repo)
		f.sided = f.sided || p.Dead != ""
	}
	return f
}

// fileID is the id in the catalog of a file.
func fileID(name string) string {
	id, _, _ := strings.Cut(name, ".")
	return id
}

// targetsOf is what has to be asked for some repositories, and who can be.
func (n *Node) targetsOf(view *catalog.View, l *layout, repos *roaring.Bitmap, ranks map[uint32]rank) []*target {
	var list []*target
	for _, f := range l.files {
		group := f.group
		switch shared := f.repos.AndCardinality(repos); {
		case shared == 0:
			continue
		case shared < f.repos.GetCardinality():
			group = within(group, repos.Contains)
		}
		list = append(list, n.split(view, ranks, group, f)...)
	}
	return list
}

// within is the part of a group that concerns some repositories; nil when
// nothing is left.
func within(g *shard.Group, has func(repo uint32) bool) *shard.Group {
	var parts []shard.Part
	for _, p := range g.Parts {
		if has(p.Repo) {
			parts = append(parts, p)
		}
	}
	if len(parts) == 0 {
		return nil
	}
	return shard.Groups(parts)[0]
}

// split makes targets of a group: one for all repositories that the same
// members can answer for, usually for all.
func (n *Node) split(view *catalog.View, ranks map[uint32]rank, g *shard.Group, f *layoutFile) []*target {
	common := n.holders(view, f.ids)
	if !f.sided {
		return []*target{{group: g, holders: common, rank: ranks}}
	}
	return splitBy(g, ranks, common, func(p shard.Part) []string {
		return n.holders(view, append(slices.Clone(f.ids), fileID(p.Dead)))
	})
}

// splitBy is split, given who has the files of all and who has those of a
// repository with a side file. The order of the targets is that of the group.
func splitBy(g *shard.Group, ranks map[uint32]rank, common []string, who func(shard.Part) []string) []*target {
	var others []*target // of those that not all of common can answer for
	parts := map[*target][]shard.Part{}
	apart := map[uint32]bool{}
	for _, p := range g.Parts {
		if p.Dead == "" {
			continue
		}
		holders := who(p)
		if slices.Equal(holders, common) {
			continue
		}
		apart[p.Repo] = true
		i := slices.IndexFunc(others, func(t *target) bool { return slices.Equal(t.holders, holders) })
		if i < 0 {
			i, others = len(others), append(others, &target{holders: holders, rank: ranks})
		}
		parts[others[i]] = append(parts[others[i]], p)
	}
	if len(apart) == 0 {
		return []*target{{group: g, holders: common, rank: ranks}}
	}
	var list []*target
	if rest := within(g, func(repo uint32) bool { return !apart[repo] }); rest != nil {
		list = append(list, &target{group: rest, holders: common, rank: ranks})
	}
	for _, t := range others {
		t.group = shard.Groups(parts[t])[0]
		list = append(list, t)
	}
	return list
}

// holders lists the live members that have all of some files, this node
// first, the others in an order that spreads shards over them.
func (n *Node) holders(view *catalog.View, files []string) []string {
	ids := view.Holders(catalog.ShardKey(files[0]))
	for _, id := range files[1:] {
		also := view.Holders(catalog.ShardKey(id))
		both := make([]string, 0, len(ids))
		for _, id := range ids {
			if slices.Contains(also, id) {
				both = append(both, id)
			}
		}
		ids = both
	}
	return n.prefer(ids, files[0])
}
