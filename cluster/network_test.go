package cluster

import "testing"

// A call to a node that is away lasts as long as that, so that raft counts one
// failure and not a thousand.
func TestAnAbsenceIsOutlasted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name                      string
		alive, useless, reachable int // from which wait on
		want                      int // waits
		back                      bool
	}{
		{"it comes back", 7, 1000, 1000, 7, true},
		{"it is there", 0, 1000, 1000, 0, false},
		{"this node leads no more", 1000, 5, 1000, 5, false},
		{"gossip is wrong", 1000, 1000, 150, 2 * reachEvery, true},
	} {
		waits := 0
		back := absence{
			alive: func() bool { return waits >= c.alive },
			wait:  func() bool { waits++; return waits < c.useless },
			reach: func() bool { return waits >= c.reachable },
		}.outlast()
		if waits != c.want || back != c.back {
			t.Errorf("%s: %d waits, back %t, want %d, %t", c.name, waits, back, c.want, c.back)
		}
	}
}
