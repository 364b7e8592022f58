package node

import (
	"testing"

	"github.com/shoalsearch/shoal/node/hold"
)

func TestToleranceCountsCopiesAndVoters(t *testing.T) {
	t.Parallel()
	voters := func(alive, dead int) (list []MemberStatus) {
		for range alive {
			list = append(list, MemberStatus{Role: "voter", Health: "alive"})
		}
		for range dead {
			list = append(list, MemberStatus{Role: "voter", Health: "dead"})
		}
		return append(list, MemberStatus{Role: "nonvoter", Health: "alive"})
	}
	for _, c := range []struct {
		alive, dead, fewest int
		leader              string
		searches, writes    int
	}{
		{3, 0, 2, "a", 1, 1},
		{5, 0, 3, "a", 2, 2},
		{2, 1, 2, "a", 1, 0},  // one failed already: no other voter may
		{1, 2, 1, "", 0, -1},  // most voters are away
		{3, 0, 0, "a", -1, 1}, // something has no live copy
		{1, 0, 1, "a", 0, 0},
		{3, 0, 2, "", 1, -1}, // between two leaders
	} {
		got := tolerance(voters(c.alive, c.dead), hold.Shortage{Fewest: c.fewest}, c.leader)
		if got != (Tolerance{Searches: c.searches, Known: true, Writes: c.writes}) {
			t.Errorf("%d of %d voters, %d copies: %+v, want searches %d, writes %d", c.alive, c.alive+c.dead, c.fewest, got, c.searches, c.writes)
		}
	}
}
