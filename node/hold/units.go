package hold

import (
	"crypto/sha256"
	"iter"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/place"
	"github.com/shoalsearch/shoal/shard"
)

// UnitOf is the number of the unit of placement that a shard belongs to: the
// group of its repository, or a unit of its own for the slice of a large one.
func UnitOf(repo catalog.RepoID, s catalog.ShardRef) uint64 {
	if s.Slice == 0 {
		return place.GroupOf(repo)
	}
	return place.UnitOf(repo, s.Slice)
}

// TargetsOf is the ids of the members that should hold a unit; empty while
// it is not placed.
func TargetsOf(view *catalog.View, unit uint64) []string {
	g := view.Group(unit)
	if g == nil {
		return nil
	}
	return idsOf(view, g)
}

// RepoTargets is the ids of the members that should hold the mirror of a
// repository, and its shards but for slices.
func RepoTargets(view *catalog.View, repo catalog.RepoID) []string {
	return TargetsOf(view, place.GroupOf(repo))
}

// idsOf is the members of a group that have not been removed.
func idsOf(view *catalog.View, g *catalog.Group) []string {
	var ids []string
	for _, number := range g.Nodes {
		if m := view.MemberNumber(number); m != nil && m.State != catalog.MemberRemoved {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// Parts is the live generation of a repository as package shard has it.
func Parts(repo *catalog.Repo) []shard.Part {
	parts := make([]shard.Part, len(repo.Shards))
	for i, s := range repo.Shards {
		parts[i] = PartOf(repo.ID, s)
	}
	return parts
}

// PartOf is one shard of a repository as package shard has it.
func PartOf(repo catalog.RepoID, s catalog.ShardRef) shard.Part {
	return shard.Part{Repo: repo, Shard: fileID(s.ID), Dead: fileID(s.Dead), Symbols: fileID(s.Symbols)}
}

// RefOf is a shard that was built as the catalog has it: the inverse of PartOf.
func RefOf(b shard.Built) catalog.ShardRef {
	return catalog.ShardRef{
		ID:      b.Shard.String(),
		Dead:    b.Dead.String(),
		Symbols: b.Symbols.String(),
		Bytes:   b.Bytes,
		Docs:    uint32(b.Documents),
		Text:    b.TextBytes,
		Pack:    b.Pack,
	}
}

// fileID is an id of the catalog as package shard has it. One that is none,
// which no node writes, is the id of a file that nobody has.
func fileID(digits string) shard.FileID {
	id, err := shard.ParseFileID(digits)
	if err != nil {
		return sha256.Sum256([]byte(digits))
	}
	return id
}

// FilesOf is the names of the files of a shard by the keys of their holdings.
func FilesOf(repo catalog.RepoID, s catalog.ShardRef) iter.Seq2[string, string] {
	return func(yield func(key, file string) bool) {
		p := PartOf(repo, s)
		_ = yield(catalog.ShardKey(s.ID), p.Shard.Name(shard.KindShard)) &&
			(s.Dead == "" || yield(catalog.ShardKey(s.Dead), p.Dead.Name(shard.KindDead))) &&
			(s.Symbols == "" || yield(catalog.ShardKey(s.Symbols), p.Symbols.Name(shard.KindSymbols)))
	}
}

// KeysOf goes through the keys of everything that a repository needs: its
// mirror and every file of its live generation.
func KeysOf(repo *catalog.Repo) iter.Seq[string] {
	return func(yield func(key string) bool) {
		for _, key := range Pieces(repo) {
			if !yield(key) {
				return
			}
		}
	}
}

// Pieces is KeysOf with the unit of placement that each is in.
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
