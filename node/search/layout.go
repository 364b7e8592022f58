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

// layout says which files hold the repositories of a view. Thousands of repositories share few
// files, and a search must not pay for each repository. So a layout is made once and serves all
// searches until a repository changes.
type layout struct {
	view      *catalog.View // it was made from this view; the newest view knows who holds the files
	files     []*layoutFile // in the order of each file's first repository
	unindexed *roaring.Bitmap
	rank      map[uint32]rank

	mu     sync.Mutex // guards the field below
	states []scoped   // the newest comes first
}

// scoped is a cached state of some repositories.
type scoped struct {
	repos *roaring.Bitmap
	state []byte
}

// state returns a digest of the names, ranks and generations of some repositories. It takes
// milliseconds for many of them, so the next search for the same repositories uses the cached
// digest.
//
// Index files are not part of it: a pack holds other repositories too, which the viewer may not
// see. The order depends on the generation, and on whether its symbols are known.
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

	fresh := scoped{repos.Clone(), digest(parts...)}
	l.states = slices.Insert(l.states, 0, fresh)
	l.states = slices.Delete(l.states, min(len(l.states), narrowKept), len(l.states))
	return fresh.state
}

// rank decides the position of a repository among others.
type rank struct {
	name    string
	recency uint8
}

// layoutFile is a shard file with the group of its repositories.
type layoutFile struct {
	group *shard.Group
	ids   []string // files that every repository of the group needs: the shard and its symbols
	extra bool     // some repositories need a .dead file too

	mu   sync.Mutex // guards the field below
	last []narrow   // cached groups, newest first
}

// narrow is the group of some of a file's repositories.
type narrow struct {
	repos *roaring.Bitmap
	group *shard.Group
}

// narrowKept is how many narrow groups a file caches. A viewer who may not see all of a pack asks
// for the same repositories again and again, and a shard caches what it knows about a group.
const narrowKept = 8

// among returns the group of the file's repositories that are in a set; nil if there are none.
func (f *layoutFile) among(repos *roaring.Bitmap) *shard.Group {
	switch shared := f.group.Repos().AndCardinality(repos); {
	case shared == 0:
		return nil
	case shared == f.group.Repos().GetCardinality():
		return f.group
	}

	// Some repositories of the file are not in the set.
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

// layouts caches the newest layout of a node.
type layouts struct {
	mu   sync.Mutex // guards the field below, and makes concurrent searches share one layout
	last *layout
}

// get returns the layout of a view.
func (l *layouts) get(view *catalog.View) *layout {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last != nil && l.last.view.SameRepos(view) {
		return l.last
	}

	fresh := newLayout(view, l.last)
	// An older search may hold an older view than the cached layout: keep the newer.
	if l.last == nil || l.last.view.Index() <= view.Index() {
		l.last = fresh
	}
	return fresh
}

// newLayout makes the layout of a view. It reuses the files of the last layout whose repositories
// are the same: a change touches few of them.
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

	// Repositories of one pack are in one group.
	known := map[shard.GroupKey]*layoutFile{}
	if last != nil {
		for _, f := range last.files {
			known[f.group.Parts[0].GroupKey()] = f
		}
	}
	for _, g := range shard.Groups(parts) {
		f := known[g.Parts[0].GroupKey()]
		if f == nil || !f.group.Same(g) {
			f = newLayoutFile(g)
		}
		l.files = append(l.files, f)
	}
	return l
}

// commonFiles returns the ids of the files that all repositories of a group need: the shard and its
// symbols.
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

// target is one shard that must answer, for some of its repositories, and the nodes that can
// answer.
type target struct {
	group   *shard.Group
	holders []string // live ones, the preferred one first
	rank    map[uint32]rank
}

// recencyOf returns how recent a repository is. It counts from the time of the newest
// configuration, so that all nodes agree.
func recencyOf(view *catalog.View, repo *catalog.Repo) uint8 {
	if repo.PushedAt.IsZero() {
		return 0
	}
	return recency(view.Config().At.Sub(repo.PushedAt))
}

// recency returns 255 for a new push, half of that at eight weeks, a third at sixteen, and so on
// down to 0.
func recency(age time.Duration) uint8 {
	weeks := max(age, 0).Hours() / (24 * 7)

	// Rounding makes a second more or less not matter.
	return uint8(math.Round(255 / (1 + weeks/8)))
}

// targets returns the shards that must answer for some repositories, with their holders in a view.
// Files move between members without a change of any repository, so the holders come from the given
// view.
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

// split makes targets of a group: one for all repositories that the same members can answer for.
// That is usually one target.
func (l *layout) split(view *catalog.View, peers *call.Peers, ranks map[uint32]rank, g *shard.Group, f *layoutFile) []*target {
	common := holders(view, peers, f.ids)
	if !f.extra {
		return []*target{{group: g, holders: common, rank: ranks}}
	}

	return splitBy(g, ranks, common, func(p shard.Part) []string {
		return holders(view, peers, append(slices.Clone(f.ids), p.Dead.String()))
	})
}

// splitBy splits a group into targets, each for the repositories that the same members can answer
// for. common are the holders of the files that all repositories need; who returns the holders for
// a part with a side file. The targets are in the order of the group.
func splitBy(g *shard.Group, ranks map[uint32]rank, common []string, who func(shard.Part) []string) []*target {
	var others []*target // for parts that not all of common can answer for
	parts := map[*target][]shard.Part{}
	separate := map[uint32]bool{}

	// Only a part with a side file can have fewer holders than the shard itself.
	for _, p := range g.Parts {
		if p.Dead.IsZero() {
			continue
		}
		holders := who(p)
		if slices.Equal(holders, common) {
			continue
		}

		separate[p.Repo] = true
		i := slices.IndexFunc(others, func(t *target) bool { return slices.Equal(t.holders, holders) })
		if i < 0 {
			i = len(others)
			others = append(others, &target{holders: holders, rank: ranks})
		}
		parts[others[i]] = append(parts[others[i]], p)
	}
	if len(separate) == 0 {
		return []*target{{group: g, holders: common, rank: ranks}}
	}

	// One target for the rest makes fewer calls.
	var list []*target
	if rest := g.Within(func(repo uint32) bool { return !separate[repo] }); rest != nil {
		list = append(list, &target{group: rest, holders: common, rank: ranks})
	}

	for _, t := range others {
		t.group = shard.Groups(parts[t])[0]
		list = append(list, t)
	}
	return list
}

// holders returns the live members that have all of some files: this node first, the others in an
// order that spreads shards over them.
func holders(view *catalog.View, peers *call.Peers, files []string) []string {
	return peers.Prefer(having(view, files), files[0])
}

// having returns the members that have all of some files, also those that gossip calls dead.
func having(view *catalog.View, files []string) []string {
	ids := view.Holders(catalog.ShardKey(files[0]))

	// Keep the members that have each of the other files too.
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
