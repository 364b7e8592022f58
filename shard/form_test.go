package shard

import (
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
)

// The same documents always give the same files, byte for byte. Nodes compare the names of files,
// and later releases read files of this one. A change of the form needs a new version of that kind
// of file, and new names here.
func TestIndexFiles_bytesAreStable(t *testing.T) {
	t.Parallel()
	var got []string
	var calls atomic.Int64
	for seed := range uint64(3) {
		w := symbolWorld()
		if seed > 0 {
			w = randomWorld(rand.New(rand.NewPCG(seed, seed)))
		}
		set, parts := w.built(t, t.TempDir(), true, BuildOptions{Workers: 2})
		part, err := symbolize(set, parts[0], nil, tagLines(&calls))
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, part.Shard.String()[:16]+" "+part.Symbols.String()[:16])
	}
	if want := "5456f38c2be6adaa 957634ae1e136ae9, 066ca8afc735639c 558313dd6510c631, 207d1bcaa265e3a2 1de72cc59b064988"; strings.Join(got, ", ") != want {
		t.Errorf("files are called %s, want %s", strings.Join(got, ", "), want)
	}
}
