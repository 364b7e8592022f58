package search

import (
	"reflect"
	"testing"

	"github.com/shoalsearch/shoal/shard"
)

func TestLeafGroup_survivesTheWayToAnotherNode(t *testing.T) {
	t.Parallel()
	id := func(b byte) shard.FileID { return shard.FileID{b} }
	for name, parts := range map[string][]shard.Part{
		"one repository": {{Repo: 7, Shard: id(1)}},
		"with symbols":   {{Repo: 7, Shard: id(1), Dead: id(2), Symbols: id(3)}},
		"a pack":         {{Repo: 3, Shard: id(1)}, {Repo: 9, Shard: id(1), Dead: id(2)}, {Repo: 4000, Shard: id(1)}},
		"a copy":         {{Repo: 7, Shard: id(1), Dead: id(2), BuiltFor: 5}},
	} {
		ranks := map[uint32]rank{}
		for _, p := range parts {
			ranks[p.Repo] = rank{recency: uint8(p.Repo)}
		}
		g := leafGroup{group: shard.Groups(parts)[0], rank: ranks}
		g.pack()

		received := leafGroup{Shard: g.Shard, Symbols: g.Symbols, Repos: g.Repos, Dead: g.Dead, BuiltFor: g.BuiltFor}
		known := map[uint32]rank{}
		if got, err := received.unpack(known); err != nil || !reflect.DeepEqual(got, parts) || !reflect.DeepEqual(known, ranks) {
			t.Errorf("%s: %+v with %+v arrives as %+v with %+v, %v", name, parts, ranks, got, known, err)
		}
	}

	// Two repositories cannot both be copies in one group.
	two := leafGroup{Shard: id(1).Name(shard.KindShard), Repos: []byte{2, 0, 2, 0}, BuiltFor: 5}
	if _, err := two.unpack(map[uint32]rank{}); err == nil {
		t.Error("a group of two copies is accepted")
	}
}
