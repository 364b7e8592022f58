package search

import (
	"reflect"
	"testing"

	"github.com/shoalsearch/shoal/shard"
	"pgregory.net/rapid"
)

// A place is the same after a way through the hands of a client, whatever bytes its
// names have.
func TestAPlaceIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.Custom(func(t *rapid.T) string { return string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")) })
		mark := rapid.Custom(func(t *rapid.T) shard.Mark {
			return shard.Mark{
				Score:     rapid.Float64().Draw(t, "score"),
				Repo:      name.Draw(t, "repo"),
				Path:      name.Draw(t, "path"),
				OID:       name.Draw(t, "oid"),
				Revisions: rapid.SliceOfN(name, 1, 3).Draw(t, "revisions"),
				Shown:     rapid.Int().Draw(t, "shown"),
			}
		})

		p := &place{Query: []byte("q"), State: []byte("s"), Name: name.Draw(t, "name")}
		p.Shown = shard.Tally{Files: rapid.Int().Draw(t, "files"), Sum: rapid.Uint64().Draw(t, "sum")}
		if rapid.Bool().Draw(t, "stopped early") {
			p.First = &shard.First{MaxMatches: rapid.Int().Draw(t, "matches"), Last: mark.Draw(t, "last")}
		}
		if rapid.Bool().Draw(t, "went on") {
			after := mark.Draw(t, "after")
			p.After = &after
		}

		got, err := placeOf(p.encode())
		if err != nil || !reflect.DeepEqual(got, p) {
			t.Fatalf("%+v was read as %+v, %v", p, got, err)
		}
	})
}

func BenchmarkEncodePlace(b *testing.B) {
	mark := shard.Mark{Score: 8123.5, Repo: "github.com/torvalds/linux", Path: "drivers/net/ethernet/intel/e1000/e1000_main.c", OID: "0123456789012345678901234567890123456789", Revisions: []string{"HEAD"}, Shown: 3}
	p := &place{Query: make([]byte, 16), State: make([]byte, 16), First: &shard.First{MaxMatches: 50, Last: mark}}
	for b.Loop() {
		p.encode()
	}
}
