package search

import (
	"encoding/binary"
	"errors"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/lru"
	"github.com/shoalsearch/shoal/shard"
)

// leafGroup is one shard of a request, for some of the repositories in it. A pack has thousands of
// repositories. Between nodes they travel as numbers of a few bytes each, and the receiver
// recognises a group that it has seen before.
type leafGroup struct {
	Shard, Symbols string
	Repos          []byte            // for each: the distance to the id before it, and its recency
	Dead           map[uint32]string // by repository: name of its .dead file
	BuiltFor       uint32            // as in shard.Part; such a group has one repository

	group *shard.Group
	rank  map[uint32]rank
}

// pack fills the fields that travel from the group.
func (g *leafGroup) pack() {
	first := g.group.Parts[0]
	g.Shard = first.Shard.Name(shard.KindShard)
	g.Symbols = first.Symbols.Name(shard.KindSymbols)
	g.BuiltFor = first.BuiltFor

	// A repository takes about three bytes: ids are in order, so the distance to the one before is
	// small.
	g.Repos = make([]byte, 0, 3*len(g.group.Parts))
	g.Dead = map[uint32]string{}
	last := uint32(0)
	for _, p := range g.group.Parts {
		g.Repos = binary.AppendVarint(g.Repos, int64(p.Repo)-int64(last))
		g.Repos = append(g.Repos, g.rank[p.Repo].recency)

		last = p.Repo
		if !p.Dead.IsZero() {
			g.Dead[p.Repo] = p.Dead.Name(shard.KindDead)
		}
	}
}

var errGroup = errors.New("a shard of a search is malformed")

// unpack is the inverse of pack. It adds the recency of the repositories to ranks.
func (g *leafGroup) unpack(ranks map[uint32]rank) ([]shard.Part, error) {
	file, err := idOf(g.Shard, shard.KindShard)
	if err != nil {
		return nil, err
	}
	symbols, err := idOf(g.Symbols, shard.KindSymbols)
	if err != nil {
		return nil, err
	}

	// Each repository is a distance as a varint, and a byte of recency.
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

		dead, err := idOf(g.Dead[repo], shard.KindDead)
		if err != nil {
			return nil, err
		}

		parts = append(parts, shard.Part{Repo: repo, Shard: file, Dead: dead, Symbols: symbols, BuiltFor: g.BuiltFor})
		b = b[w+1:]
	}

	if len(parts) == 0 || g.BuiltFor != 0 && len(parts) > 1 {
		return nil, errGroup
	}
	return parts, nil
}

// idOf returns the id of a file of this kind from its name; the zero id for an empty name.
func idOf(name string, kind shard.FileKind) (shard.FileID, error) {
	if name == "" {
		return shard.FileID{}, nil
	}
	id, is, ok := shard.ParseFileName(name)
	if !ok || is != kind {
		return shard.FileID{}, errGroup
	}
	return id, nil
}

// groups caches the groups that other nodes asked for. What a shard knows about a group serves the
// next request with the same parts. It is safe for concurrent use.
type groups struct {
	cache *lru.Cache[uint64, *shard.Group]
}

// groupBytes is the memory for groups. Only packs are cached: other groups cost nothing to make.
const groupBytes = 16 << 20

func newGroups() *groups {
	return &groups{lru.New[uint64, *shard.Group](groupBytes)}
}

// unpack sets the groups and ranks of a request from another node.
func (s *groups) unpack(view *catalog.View, req *leafRequest) error {
	ranks := map[uint32]rank{}
	for i := range req.Groups {
		g := &req.Groups[i]
		parts, err := g.unpack(ranks)
		if err != nil {
			return err
		}
		g.rank, g.group = ranks, s.get(parts)
	}

	// Names do not travel: this node's catalog has them.
	for id, r := range ranks {
		if repo := view.Repo(id); repo != nil {
			r.name = repo.Name
			ranks[id] = r
		}
	}
	return nil
}

// get returns the group of some parts of one shard, from the cache if it is there.
func (s *groups) get(parts []shard.Part) *shard.Group {
	g := shard.Groups(parts)[0]
	if len(parts) == 1 {
		return g
	}

	// Return the same object for the same parts.
	key := sumOf(parts)
	if old, ok := s.cache.Get(key); ok && old.Same(g) {
		return old
	}
	s.cache.Put(key, g, g.Bytes()+lru.Cost)
	return g
}

// sumOf returns a hash of parts, which different parts hardly share. The name of a file is a hash
// already, so its first bytes are enough.
func sumOf(parts []shard.Part) uint64 {
	const prime = 0x9e3779b97f4a7c15
	sum := binary.LittleEndian.Uint64(parts[0].Shard[:]) ^ binary.LittleEndian.Uint64(parts[0].Symbols[:])
	for i := range parts {
		sum = (sum ^ uint64(parts[i].Repo)) * prime
		sum = (sum ^ sum>>32 ^ binary.LittleEndian.Uint64(parts[i].Dead[:])) * prime
	}
	return sum
}
