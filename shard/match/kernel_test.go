package match

import (
	"math/rand/v2"
	"testing"
)

func TestAssembly_agreesWithPortableCode(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		blocks := 1 + rng.IntN(64)
		src := make([]byte, 64*blocks+2)
		few := 2 + rng.IntN(254)
		for i := range src {
			src[i] = byte(rng.IntN(few))
		}
		var a, b [64]uint64
		var tables [3]nibbles
		for i := range 3 * (1 + rng.IntN(8)) {
			tables[i%3].add(byte(rng.IntN(few)), 1<<rng.IntN(8))
		}
		if x, y := findTriples(&a, src, blocks, &tables), findTriplesPortable(&b, src, blocks, &tables); x != y || a != b {
			t.Fatal("triples differ")
		}
		set := &byteSet{}
		for range 1 + rng.IntN(200) {
			set.add(byte(rng.IntN(128 + 10*rng.IntN(2))))
		}
		if x, y := findSet(&a, src, blocks, set), findSetPortable(&b, src, blocks, set); x != y || a != b {
			t.Fatal("sets differ")
		}
		p := &pair{b1: byte(rng.IntN(few)), b2: byte(rng.IntN(few))}
		if rng.IntN(2) == 0 {
			p = &pair{b1: 'a' + byte(rng.IntN(26)), f1: 0x20, b2: 'a' + byte(rng.IntN(26)), f2: 0x20}
		}
		if x, y := findPairs(&a, src, src[2:], blocks, p), findPairsPortable(&b, src, src[2:], blocks, p); x != y || a != b {
			t.Fatal("pairs differ")
		}
	}
}
