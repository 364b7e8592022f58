package hold

import (
	"crypto/sha256"
	"iter"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/place"
	"github.com/shoalsearch/shoal/shard"
)

// UnitOf returns the number of the placement unit that a shard belongs to: the group of its
// repository, or a unit of its own for a slice of a large repository.
func UnitOf(repo catalog.RepoID, s catalog.ShardRef) uint64 {
	if s.Slice == 0 {
		return place.GroupOf(repo)
	}
	return place.UnitOf(repo, s.Slice)
}

// TargetsOf returns the ids of the members that should hold a unit; nil while it is not placed.
func TargetsOf(view *catalog.View, unit uint64) []string {
	g := view.Group(unit)
	if g == nil {
		return nil
	}
	return idsOf(view, g)
}

// RepoTargets returns the ids of the members that should hold the mirror of a repository and its
// shards, except for slices.
func RepoTargets(view *catalog.View, repo catalog.RepoID) []string {
	return TargetsOf(view, place.GroupOf(repo))
}

// idsOf returns the ids of the members of a group that have not been removed.
func idsOf(view *catalog.View, g *catalog.Group) []string {
	var ids []string
	for _, number := range g.Nodes {
		if m := view.MemberNumber(number); m != nil && m.State != catalog.MemberRemoved {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// Parts returns the live generation of a repository in the types of package shard.
func Parts(repo *catalog.Repo) []shard.Part {
	parts := make([]shard.Part, len(repo.Shards))
	for i, s := range repo.Shards {
		parts[i] = PartOf(repo.ID, s)
	}
	return parts
}

// PartOf returns one shard of a repository in the type of package shard.
func PartOf(repo catalog.RepoID, s catalog.ShardRef) shard.Part {
	return shard.Part{Repo: repo, Shard: fileID(s.ID), Dead: fileID(s.Dead), Symbols: fileID(s.Symbols), BuiltFor: s.BuiltFor}
}

// RefOf returns a built shard in the type of the catalog: the inverse of PartOf.
func RefOf(b shard.Built) catalog.ShardRef {
	return catalog.ShardRef{
		ID:      b.Shard.String(),
		Dead:    b.Dead.String(),
		Symbols: b.Symbols.String(),
		Bytes:   b.Bytes,
		Docs:    uint32(b.Documents),
		Text:    b.TextBytes,
		Pack:    b.Pack,

		BuiltFor: b.BuiltFor,
	}
}

// fileID converts an id of the catalog. An invalid id, which no node writes, becomes the id of a
// file that nobody has.
func fileID(digits string) shard.FileID {
	id, err := shard.ParseFileID(digits)
	if err != nil {
		return sha256.Sum256([]byte(digits))
	}
	return id
}

// FilesOf returns the names of the files of a shard, by the keys of their holders.
func FilesOf(repo catalog.RepoID, s catalog.ShardRef) iter.Seq2[string, string] {
	return func(yield func(key, file string) bool) {
		p := PartOf(repo, s)
		_ = yield(catalog.ShardKey(s.ID), p.Shard.Name(shard.KindShard)) &&
			(s.Dead == "" || yield(catalog.ShardKey(s.Dead), p.Dead.Name(shard.KindDead))) &&
			(s.Symbols == "" || yield(catalog.ShardKey(s.Symbols), p.Symbols.Name(shard.KindSymbols)))
	}
}

// KeysOf returns the keys of everything that a repository needs: its mirror and every file of its
// live generation.
func KeysOf(repo *catalog.Repo) iter.Seq[string] {
	return func(yield func(key string) bool) {
		for _, key := range Pieces(repo) {
			if !yield(key) {
				return
			}
		}
	}
}

// Pieces returns the keys of everything that a repository needs, each with its placement unit.
func Pieces(repo *catalog.Repo) iter.Seq2[uint64, string] {
	return func(yield func(unit uint64, key string) bool) {
		if !yield(place.GroupOf(repo.ID), catalog.MirrorKey(repo.ID)) {
			return
		}
		for _, s := range repo.Shards {
			unit := UnitOf(repo.ID, s)
			for key := range FilesOf(repo.ID, s) {
				if !yield(unit, key) {
					return
				}
			}
		}
	}
}
