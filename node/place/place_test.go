package place

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// cluster returns n members in z zones.
func cluster(n, z int) []Member {
	var ms []Member
	for i := range n {
		ms = append(ms, Member{ID: fmt.Sprintf("n%03d", i), Zone: fmt.Sprintf("z%d", i%z), Weight: 1})
	}
	return ms
}

// data returns units with realistic sizes: many small, few large.
func data(n int, seed uint64) []Unit {
	rng := rand.New(rand.NewPCG(seed, 1))
	var us []Unit
	for i := range n {
		us = append(us, Unit{Key: uint64(i), Bytes: int64(1000 + rng.ExpFloat64()*100_000)})
	}
	return us
}

// apply makes the result of a plan the present targets.
func apply(units []Unit, targets [][]string) []Unit {
	out := slices.Clone(units)
	for i := range out {
		out[i].Targets = targets[i]
	}
	return out
}

// loads returns the bytes on each member.
func loads(units []Unit) map[string]int64 {
	l := map[string]int64{}
	for _, u := range units {
		for _, id := range u.Targets {
			l[id] += u.Bytes
		}
	}
	return l
}

func TestPlacementPlan_usesDifferentNodesAndZones(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ nodes, zones, copies, want int }{
		{1, 1, 2, 1}, {2, 1, 2, 2}, {3, 3, 2, 2}, {5, 3, 3, 3}, {6, 2, 2, 2}, {4, 1, 3, 3}, {5, 2, 3, 3},
	} {
		members := cluster(c.nodes, c.zones)
		zone := map[string]string{}
		for _, m := range members {
			zone[m.ID] = m.Zone
		}
		for i, ts := range Plan(members, data(400, 1), c.copies, true) {
			seen, zones := map[string]bool{}, map[string]bool{}
			for _, id := range ts {
				seen[id], zones[zone[id]] = true, true
			}
			if len(ts) != c.want || len(seen) != c.want {
				t.Fatalf("%+v: unit %d is on %q, want %d nodes", c, i, ts, c.want)
			}
			if want := min(c.want, c.zones); c.zones >= c.copies && len(zones) != want {
				t.Fatalf("%+v: unit %d is in %d zones, want %d", c, i, len(zones), want)
			}
		}
	}
}

func TestPlacementPlan_balancesLoad(t *testing.T) {
	t.Parallel()
	for _, nodes := range []int{3, 5, 9, 40} {
		members := cluster(nodes, 3)
		units := apply(data(Groups, uint64(nodes)), Plan(members, data(Groups, uint64(nodes)), 2, true))
		var sum, top int64
		for _, l := range loads(units) {
			sum, top = sum+l, max(top, l)
		}
		if ratio := float64(top) * float64(nodes) / float64(sum); ratio > 1.15 {
			t.Errorf("%d nodes: the fullest has %.3f of the mean, want at most 1.15", nodes, ratio)
		}
	}
}

func TestPlacementPlan_madeAgainChangesNothing(t *testing.T) {
	t.Parallel()
	for _, nodes := range []int{2, 3, 7} {
		members := cluster(nodes, 2)
		first := Plan(members, data(1000, 3), 2, true)
		second := Plan(members, apply(data(1000, 3), first), 2, true)
		for i := range first {
			if !slices.Equal(first[i], second[i]) {
				t.Fatalf("%d nodes: unit %d moves from %q to %q though nothing changed", nodes, i, first[i], second[i])
			}
		}
	}
}

// bytesToCopy returns how many bytes must be copied from one state to the next.
func bytesToCopy(from, to []Unit) int64 {
	var n int64
	for i := range to {
		for _, id := range to[i].Targets {
			if !slices.Contains(from[i].Targets, id) {
				n += to[i].Bytes
			}
		}
	}
	return n
}

func TestPlacementPlan_movesLittleWhenANodeJoinsOrLeaves(t *testing.T) {
	t.Parallel()
	for _, nodes := range []int{3, 5, 9} {
		members := cluster(nodes+1, 1)
		before := apply(data(Groups, 7), Plan(members[:nodes], data(Groups, 7), 2, true))
		var total int64
		for _, u := range before {
			total += 2 * u.Bytes
		}
		after := apply(before, Plan(members, before, 2, true))
		ideal := total / int64(nodes+1)
		if got := bytesToCopy(before, after); float64(got) > 1.3*float64(ideal) {
			t.Errorf("%d nodes and one joins: %d bytes move, the ideal is %d", nodes, got, ideal)
		}
		gone := loads(after)[members[0].ID]
		left := slices.Clone(members)
		left[0].Leaving = true
		last := apply(after, Plan(left, after, 2, true))
		if got := bytesToCopy(after, last); float64(got) > 1.3*float64(gone) {
			t.Errorf("%d nodes and one leaves: %d bytes move, it had %d", nodes+1, got, gone)
		}
		if n := loads(last)[members[0].ID]; n != 0 {
			t.Errorf("the node that leaves is still to have %d bytes", n)
		}
	}
}

func TestPlacementPlan_ignoresTheOrderOfMembers(t *testing.T) {
	t.Parallel()
	members := cluster(6, 3)
	want := Plan(members, data(500, 9), 2, true)
	slices.Reverse(members)
	for i, got := range Plan(members, data(500, 9), 2, true) {
		if !slices.Equal(got, want[i]) {
			t.Fatalf("unit %d is on %q or on %q", i, want[i], got)
		}
	}
}

func TestPlacementPlan_givesFullMembersNothingNew(t *testing.T) {
	t.Parallel()
	members := cluster(4, 1)
	members[2].Full = true
	for i, ts := range Plan(members, data(300, 2), 2, true) {
		if slices.Contains(ts, members[2].ID) {
			t.Fatalf("unit %d is to go to a full member", i)
		}
	}
}

func TestPlacementPlan_placesEachUnitTwiceOnAThousandNodes(t *testing.T) {
	t.Parallel()
	members := cluster(1000, 5)
	units := data(Groups, 11)
	for i, ts := range Plan(members, units, 2, false) {
		if len(ts) != 2 || ts[0] == ts[1] {
			t.Fatalf("unit %d is on %q", i, ts)
		}
	}
}

func TestUnitOf_aRepositoryNeverEqualsAGroup(t *testing.T) {
	t.Parallel()
	for repo := range uint32(1000) {
		if g := GroupOf(repo); g >= Groups {
			t.Fatalf("group of %d is %d", repo, g)
		}
		if u := UnitOf(repo, 1); u < Groups {
			t.Fatalf("slice of %d is %d", repo, u)
		}
	}
}

// million returns a million shards: those of small repositories are in the groups, those of large
// repositories are units of their own.
func million() []Unit {
	rng := rand.New(rand.NewPCG(3, 1))
	groups := make([]Unit, Groups)
	for i := range groups {
		groups[i].Key = uint64(i)
	}
	shards := 0
	for repo := uint32(1); shards < 990_000; repo++ {
		for range 1 + rng.IntN(3) {
			groups[GroupOf(repo)].Bytes += int64(1 + rng.ExpFloat64()*1e6)
			shards++
		}
	}
	units := groups
	for repo := uint32(1 << 24); shards < 1_000_000; repo++ {
		for slice := uint16(1); slice <= 100; slice++ {
			units = append(units, Unit{Key: UnitOf(repo, slice), Bytes: 400e6 + rng.Int64N(100e6)})
			shards++
		}
	}
	return units
}

func TestPlacementPlan_balancesAMillionShardsOverAThousandNodes(t *testing.T) {
	t.Parallel()
	const nodes, copies = 1000, 2
	members := cluster(nodes+1, 5)
	units := million()
	before := apply(units, Plan(members[:nodes], units, copies, true))
	zone := map[string]string{}
	for _, m := range members {
		zone[m.ID] = m.Zone
	}
	for _, u := range before {
		if len(u.Targets) != copies || zone[u.Targets[0]] == zone[u.Targets[1]] {
			t.Fatalf("unit %d is on %q", u.Key, u.Targets)
		}
	}
	var sum, top int64
	for _, l := range loads(before) {
		sum, top = sum+l, max(top, l)
	}
	if ratio := float64(top) * nodes / float64(sum); ratio > 1.15 {
		t.Errorf("the fullest node has %.3f of the mean, want at most 1.15", ratio)
	}
	after := apply(before, Plan(members, before, copies, true))
	if got, ideal := bytesToCopy(before, after), sum/(nodes+1); float64(got) > 1.3*float64(ideal) {
		t.Errorf("a node joins: %d bytes move, the ideal is %d", got, ideal)
	}
	gone := loads(after)[members[7].ID]
	members[7].Leaving = true
	last := apply(after, Plan(members, after, copies, true))
	if got := bytesToCopy(after, last); float64(got) > 1.3*float64(gone) {
		t.Errorf("a node leaves: %d bytes move, it had %d", got, gone)
	}
}
