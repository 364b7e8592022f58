package search

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/node/hold"
	"github.com/shoalsearch/shoal/shard"
)

// layout says in which files the repositories of a view are. A search of
// thousands of repositories must not pay for each of them: they share few
// files, and what can be said of them before the query is known is said here,
// once for all searches until a repository changes.
type layout struct {
	view      *catalog.View // that it was made from; who holds the files has to be asked of the newest
	files     []*layoutFile // in the order of the first repository of each
	unindexed *roaring.Bitmap
	rank      map[uint32]rank

	mu     sync.Mutex // guards the field below
	states []scoped   // the newest first
}

// scoped is a digest of what some repositories are found by.
type scoped struct {
	repos *roaring.Bitmap
	state []byte
}

// state stands for the names, ranks and generations of some repositories. It takes
// milliseconds for many of them, so it is kept for the next search of the same.
//
// Index files do not matter: a pack holds other repositories too, which the viewer may not
// see. The order depends on a generation, and on whether its symbols are known.
func (l *layout) state(repos *roaring.Bitmap) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.states {
		if s.repos.Equals(repos) {
			return s.state
		}
	}

	var parts []string
	for it := repos.Iterator(); it.HasNext(); {
		id := it.Next()
		repo := l.view.Repo(id)
		if repo == nil {
			continue
		}

		untagged := slices.ContainsFunc(repo.Shards, func(s catalog.ShardRef) bool { return s.Symbols == "" })
		parts = append(parts, fmt.Sprint(id, l.rank[id].recency, repo.Generation, untagged), repo.Name)
	}

	made := scoped{repos.Clone(), digest(parts...)}
	l.states = slices.Insert(l.states, 0, made)
	l.states = slices.Delete(l.states, min(len(l.states), narrowKept), len(l.states))
	return made.state
}

// rank is what orders a repository among others.
type rank struct {
	name    string
	recency uint8
}

// layoutFile is one shard file.
type layoutFile struct {
	group *shard.Group
	ids   []string // of the files that each of them needs: the shard and its symbols
	extra bool     // some of them need a file of their own beside these

	mu   sync.Mutex // guards the field below
	last []narrow   // the newest first
}

// narrow is a group of some of the repositories of a file.
type narrow struct {
	repos *roaring.Bitmap
	group *shard.Group
}

// narrowKept is how many narrow groups a file keeps. Who may not see all of a pack
// asks for the same repositories again and again, and of the same group a shard
// knows what it comes to.
const narrowKept = 8

// among is the group of those repositories of the file that are asked for; nil for none.
func (f *layoutFile) among(repos *roaring.Bitmap) *shard.Group {
	switch shared := f.group.Repos().AndCardinality(repos); {
	case shared == 0:
		return nil
	case shared == f.group.Repos().GetCardinality():
		return f.group
	}

	// Others of the group are not asked for, or may not be seen.
	wanted := roaring.And(f.group.Repos(), repos)
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.IndexFunc(f.last, func(n narrow) bool { return n.repos.Equals(wanted) })
	n := narrow{wanted, nil}
	if i >= 0 {
		n = f.last[i]
		f.last = slices.Delete(f.last, i, i+1)
	} else {
		n.group = f.group.Within(wanted.Contains)
	}

	f.last = slices.Insert(f.last, 0, n)
	f.last = slices.Delete(f.last, min(len(f.last), narrowKept), len(f.last))
	return n.group
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

	made := newLayout(view, l.last)
	// A search that began earlier may hold an older view than the last one.
	if l.last == nil || l.last.view.Index() <= view.Index() {
		l.last = made
	}
	return made
}

// newLayout makes the layout of a view. A file whose repositories are the same as in the
// last layout is the same object: a change touches few of them.
func newLayout(view *catalog.View, last *layout) *layout {
	l := &layout{
		view:      view,
		unindexed: roaring.New(),
		rank:      make(map[uint32]rank, view.RepoCount()),
	}

	var parts []shard.Part
	for repo := range view.Repos() {
		l.rank[repo.ID] = rank{repo.Name, recencyOf(view, repo)}
		if !repo.Indexed() {
			l.unindexed.Add(repo.ID)
			continue
		}

		for _, s := range repo.Shards {
			parts = append(parts, hold.PartOf(repo.ID, s))
		}
	}

	// Repositories of one pack are asked about together.
	known := map[groupKey]*layoutFile{}
	if last != nil {
		for _, f := range last.files {
			known[groupKeyOf(f.group)] = f
		}
	}
	for _, g := range shard.Groups(parts) {
		f := known[groupKeyOf(g)]
		if f == nil || !f.group.Same(g) {
			f = newLayoutFile(g)
		}
		l.files = append(l.files, f)
	}
	return l
}

// groupKey is what a group is of: a shard and its symbols.
type groupKey struct{ shard, symbols shard.FileID }

func groupKeyOf(g *shard.Group) groupKey { return groupKey{g.Parts[0].Shard, g.Parts[0].Symbols} }

// commonFiles names the files that all repositories of a group need: the shard
// and its symbols.
func commonFiles(g *shard.Group) []string {
	first := g.Parts[0]
	ids := []string{first.Shard.String()}
	if !first.Symbols.IsZero() {
		ids = append(ids, first.Symbols.String())
	}
	return ids
}

func newLayoutFile(g *shard.Group) *layoutFile {
	f := &layoutFile{group: g, ids: commonFiles(g)}
	for _, p := range g.Parts {
		f.extra = f.extra || !p.Dead.IsZero()
	}
	return f
}

// target is one shard that has to answer, for some of the repositories in it,
// and who can.
type target struct {
	group   *shard.Group
	holders []string // live ones, the preferred first
	rank    map[uint32]rank
}

// recencyOf says how recent a repository is, counted from the newest configuration,
// so that all nodes agree.
func recencyOf(view *catalog.View, repo *catalog.Repo) uint8 {
	if repo.PushedAt.IsZero() {
		return 0
	}
	return recency(view.Config().At.Sub(repo.PushedAt))
}

// recency is 255 for what is new, half of that at eight weeks, a third at sixteen, and
// so on down to 0.
func recency(age time.Duration) uint8 {
	weeks := max(age, 0).Hours() / (24 * 7)

	// Rounded, so that of what is new a second more or less is no rank.
	return uint8(math.Round(255 / (1 + weeks/8)))
}

// targets is what has to be asked for some repositories, and who can be at a
// view: files move from member to member without a change of any repository.
func (l *layout) targets(view *catalog.View, peers *call.Peers, repos *roaring.Bitmap, ranks map[uint32]rank) []*target {
	var list []*target
	for _, f := range l.files {
		group := f.among(repos)
		if group == nil {
			continue
		}

		list = append(list, l.split(view, peers, ranks, group, f)...)
	}
	return list
}

// split makes targets of a group: one for all repositories that the same
// members can answer for, usually for all.
func (l *layout) split(view *catalog.View, peers *call.Peers, ranks map[uint32]rank, g *shard.Group, f *layoutFile) []*target {
	common := holders(view, peers, f.ids)
	if !f.extra {
		return []*target{{group: g, holders: common, rank: ranks}}
	}

	return splitBy(g, ranks, common, func(p shard.Part) []string {
		return holders(view, peers, append(slices.Clone(f.ids), p.Dead.String()))
	})
}

// splitBy is split, given who has the files of all and who has those of a
// repository with a side file. The order of the targets is that of the group.
func splitBy(g *shard.Group, ranks map[uint32]rank, common []string, who func(shard.Part) []string) []*target {
	var others []*target // of those that not all of common can answer for
	parts := map[*target][]shard.Part{}
	apart := map[uint32]bool{}

	// Only a part with a side file can be held by fewer than the shard itself.
	for _, p := range g.Parts {
		if p.Dead.IsZero() {
			continue
		}
		holders := who(p)
		if slices.Equal(holders, common) {
			continue
		}

		apart[p.Repo] = true
		i := slices.IndexFunc(others, func(t *target) bool { return slices.Equal(t.holders, holders) })
		if i < 0 {
			i = len(others)
			others = append(others, &target{holders: holders, rank: ranks})
		}
		parts[others[i]] = append(parts[others[i]], p)
	}
	if len(apart) == 0 {
		return []*target{{group: g, holders: common, rank: ranks}}
	}

	// What all of common can answer for stays one target: fewer calls.
	var list []*target
	if rest := g.Within(func(repo uint32) bool { return !apart[repo] }); rest != nil {
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
func holders(view *catalog.View, peers *call.Peers, files []string) []string {
	return peers.Prefer(having(view, files), files[0])
}

// having lists the members that have all of some files, those that gossip calls
// dead too.
func having(view *catalog.View, files []string) []string {
	ids := view.Holders(catalog.ShardKey(files[0]))

	// Whoever lacks one of the files holds none of the rest.
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
	return ids
}
