package node

import (
	"encoding/binary"
	"errors"
	"slices"
	"sync"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/shard"
)

// leafGroup is one shard of a request, for some of the repositories in it. A
// pack has thousands: between nodes they travel as numbers, a few bytes each,
// and the receiver knows a group that it has seen before.
type leafGroup struct {
	Shard, Symbols string
	Repos          []byte            // for each the distance to the one before, and its recency
	Dead           map[uint32]string // by repository

	group *shard.Group
	rank  map[uint32]rank
}

// pack fills what is sent from what is searched.
func (g *leafGroup) pack() {
	first := g.group.Parts[0]
	g.Shard, g.Symbols, g.Repos, g.Dead = first.Shard, first.Symbols, make([]byte, 0, 3*len(g.group.Parts)), map[uint32]string{}
	last := uint32(0)
	for _, p := range g.group.Parts {
		g.Repos = binary.AppendVarint(g.Repos, int64(p.Repo)-int64(last))
		g.Repos = append(g.Repos, g.rank[p.Repo].recency)
		last = p.Repo
		if p.Dead != "" {
			g.Dead[p.Repo] = p.Dead
		}
	}
}

var errGroup = errors.New("a shard of a search is malformed")

// unpack is the inverse; it adds the recency of the repositories to ranks.
func (g *leafGroup) unpack(ranks map[uint32]rank) ([]shard.Part, error) {
	var parts []shard.Part
	last := int64(0)
	for b := g.Repos; len(b) > 0; {
		step, w := binary.Varint(b)
		if w <= 0 || len(b) == w {
			return nil, errGroup
		}
		last += step
		repo := uint32(last)
		ranks[repo] = rank{recency: b[w]}
		parts = append(parts, shard.Part{Repo: repo, Shard: g.Shard, Dead: g.Dead[repo], Symbols: g.Symbols})
		b = b[w+1:]
	}
	if len(parts) == 0 {
		return nil, errGroup
	}
	return parts, nil
}

// groups keeps the groups that other nodes asked for, so that the same one is
// the same pointer: what was worked out for it stays of use.
type groups struct {
	mu   sync.Mutex // guards the field below
	seen map[string]*shard.Group
}

// mostGroups is how many are kept. Only packs are: others cost nothing to make.
const mostGroups = 64

// unpack finds the groups and ranks of a request that came from elsewhere.
func (s *groups) unpack(view *catalog.View, req *leafRequest) error {
	ranks := map[uint32]rank{}
	for i := range req.Groups {
		g := &req.Groups[i]
		parts, err := g.unpack(ranks)
		if err != nil {
			return err
		}
		g.rank, g.group = ranks, s.of(parts)
	}
	for id, r := range ranks {
		if repo := view.Repo(id); repo != nil {
			r.name = repo.Name
			ranks[id] = r
		}
	}
	return nil
}

// of gives a group of parts of one shard.
func (s *groups) of(parts []shard.Part) *shard.Group {
	g := shard.Groups(parts)[0]
	if len(parts) == 1 {
		return g
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := parts[0].Shard
	if old := s.seen[key]; old != nil && slices.Equal(old.Parts, parts) {
		return old
	}
	if s.seen == nil || len(s.seen) >= mostGroups {
		s.seen = map[string]*shard.Group{}
	}
	s.seen[key] = g
	return g
}
