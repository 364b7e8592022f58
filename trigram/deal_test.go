package trigram

import (
	"math/rand"
	"slices"
	"testing"
)

// A trigram with a row sets the bit of its unit in that row; others are logged.
func TestAddToRowsOrLog_setsBitsOrLogsTrigrams(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewSource(11))
	const ids, rows = 500, 40
	for range 2000 {
		hot := make([]uint16, ids)
		for id := range hot {
			if r.Intn(3) == 0 {
				hot[id] = uint16(r.Intn(rows))
			}
		}
		unit := make([]uint32, 1+r.Intn(ids))
		for i := range unit {
			unit[i] = uint32(r.Intn(ids))
		}
		before := make([]uint64, rows)
		for i := range before {
			before[i] = r.Uint64() & r.Uint64()
		}
		bit := uint64(1) << r.Intn(64)

		wantWord, wantLog := slices.Clone(before), []uint32(nil)
		for _, id := range unit {
			if wantWord[hot[id]] |= bit; hot[id] == 0 {
				wantLog = append(wantLog, id)
			}
		}
		word, log := slices.Clone(before), slices.Repeat([]uint32{7e8}, len(unit)+1)
		n := addToRowsOrLog(&unit[0], len(unit), &hot[0], &word[0], bit, &log[0])
		if !slices.Equal(word, wantWord) || !slices.Equal(log[:n], wantLog) || log[len(unit)] != 7e8 {
			t.Fatalf("%d logged, want %d; words %x, want %x", n, len(wantLog), word, wantWord)
		}
	}
}
