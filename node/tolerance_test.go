package node

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/hold"
)

func TestFaultTolerance_countsCopiesAndVoters(t *testing.T) {
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
		{2, 1, 2, "a", 1, 0},  // one failed already: no other voter may fail
		{1, 2, 1, "", 0, -1},  // most voters are down
		{3, 0, 0, "a", -1, 1}, // some data has no live copy
		{1, 0, 1, "a", 0, 0},
		{3, 0, 2, "", 1, -1}, // between two leaders
	} {
		got := tolerance(voters(c.alive, c.dead), hold.Shortage{Fewest: c.fewest}, c.leader)
		if got != (Tolerance{Searches: Spare(c.searches), Writes: c.writes}) {
			t.Errorf("%d of %d voters, %d copies: %+v, want searches %d, writes %d", c.alive, c.alive+c.dead, c.fewest, got, c.searches, c.writes)
		}
	}
}

// What needs care stands in the first sentence, unless a loss would hurt more.
func TestStatusVerdict_addsProblemsUnlessTheStateSaysWorse(t *testing.T) {
	t.Parallel()
	for state, want := range map[VerdictState]Verdict{
		VerdictGood:    {VerdictWeak, "Any 1 node may fail now; the key differs; the back-up is old."},
		VerdictSmall:   {VerdictWeak, "Any 1 node may fail now; the key differs; the back-up is old."},
		VerdictWeak:    {VerdictWeak, "Any 1 node may fail now."},
		VerdictFailing: {VerdictFailing, "Any 1 node may fail now."},
	} {
		v := Verdict{state, "Any 1 node may fail now."}
		if got := v.With("the key differs", "the back-up is old"); got != want {
			t.Errorf("%s: %+v", state, got)
		}
		if got := v.With(); got != v {
			t.Errorf("%s without care: %+v", state, got)
		}
	}
}

// Somebody has to remove the member of a machine that came back empty, or that is gone.
func TestDeadMembers_sayWhatToDo(t *testing.T) {
	t.Parallel()
	ago := func(d time.Duration) time.Time { return clock.Now().Add(-d) }
	member := func(id, name, addr string, number uint32, alive bool, since time.Time) cluster.Member {
		return cluster.Member{Member: catalog.Member{ID: id, Addr: addr, Number: number, Version: "0.1.0"}, Name: name, Alive: alive, Since: since}
	}
	members := []cluster.Member{
		member("m1", "a", "a:1", 1, true, ago(time.Hour)),
		member("m2", "b", "b:1", 2, false, ago(3*time.Minute)),
		member("m3", "c", "c:1", 3, false, ago(3*time.Minute)),
		member("m4", "", "d:1", 4, false, ago(3*time.Minute)),
		member("m5", "e", "e:1", 5, false, ago(50*time.Second)), // restarts
		member("m6", "b", "f:1", 6, true, ago(time.Minute)),     // the name of m2
		member("m7", "", "d:1", 7, true, ago(time.Minute)),      // the address of m4
	}
	want := []string{
		"node b (m2) has been dead for 3m0s and was replaced by b (m6): `shoal remove m2`",
		"node c (m3) has been dead for 3m0s: start it, or `shoal remove m3` if its machine is gone for good",
		"node m4 has been dead for 3m0s and was replaced by m7: `shoal remove m4`",
	}
	if got := deadMemberWarnings(members); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}

	if got := differentVersionsText(members); got != "" {
		t.Error(got)
	}
	members[5].Version, members[4].Version = "0.2.0", "0.0.9" // a dead one does not count
	if got := differentVersionsText(members); got != "the upgrade is not finished, nodes run 0.1.0 and 0.2.0" {
		t.Error(got)
	}
}

// Two versions do not hide what is missing, and what is missing stops an upgrade.
func TestStatusVerdict_twoVersionsDoNotStopAnUpgrade(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		before   VerdictState
		versions string
		want     VerdictState
	}{
		{VerdictGood, "", VerdictGood}, {VerdictGood, "two", VerdictUpgrading}, {VerdictSmall, "two", VerdictUpgrading},
		{VerdictWeak, "two", VerdictWeak}, {VerdictFailing, "two", VerdictFailing},
	} {
		v := Verdict{c.before, "A sentence."}.upgrading(c.versions)
		said := strings.Contains(v.Sentence, "; two.")
		if v.State != c.want || said != (c.want == VerdictUpgrading) || v.State.NeedsCare() != (c.want != VerdictGood && c.want != VerdictSmall) {
			t.Errorf("%+v of %q: %+v", c.before, c.versions, v)
		}
	}
}

func TestStatusVerdict_dependsOnCopiesAndLiveNodes(t *testing.T) {
	t.Parallel()
	// A letter is a node: V a voter, v a dead one, N a node without a vote, n a dead one.
	for _, c := range []struct {
		nodes             string
		replicas          int
		fewest, few       int // least number of live copies; repositories with fewer than wanted
		blind, leaderless bool
		state             VerdictState
		want              string
	}{
		{nodes: "VVV", replicas: 2, fewest: 2, state: VerdictGood, want: "Any 1 node may fail now; searches stay complete."},
		{nodes: "VVVVV", replicas: 3, fewest: 3, state: VerdictGood, want: "Any 2 nodes may fail now"},
		{nodes: "VVV", replicas: 2, blind: true, state: VerdictGood, want: "Any 1 node may fail now; changes go on."},

		// As expected for this size.
		{nodes: "V", replicas: 2, fewest: 1, state: VerdictSmall, want: "One node: it must not fail."},
		{nodes: "VN", replicas: 2, fewest: 2, state: VerdictSmall, want: "changes would wait for it; changes survive one with three nodes."},
		{nodes: "VN", replicas: 1, fewest: 1, state: VerdictSmall, want: "changes wait and searches incomplete"},
		{nodes: "VN", replicas: 2, blind: true, state: VerdictSmall, want: "would make changes wait;"},
		{nodes: "VVV", replicas: 1, fewest: 1, state: VerdictSmall, want: "searches incomplete; searches survive one with two copies"},

		// The next loss is one too many.
		{nodes: "VVv", replicas: 2, fewest: 2, state: VerdictWeak, want: "changes would wait for it: 1 of 3 voters does not answer."},
		{nodes: "VVvN", replicas: 2, fewest: 2, state: VerdictWeak, want: "1 of 3 voters does not answer"},
		{nodes: "VVv", replicas: 2, fewest: 1, few: 4, state: VerdictWeak, want: "changes wait and searches incomplete: 1 of 3 voters does not answer; 4 repositories have fewer copies than wanted."},
		{nodes: "VNN", replicas: 2, fewest: 2, state: VerdictWeak, want: "1 voter of 3 nodes"},
		{nodes: "VVv", replicas: 2, blind: true, state: VerdictWeak, want: "The failure of a node would make changes wait: 1 of 3 voters"},
		{nodes: "Vn", replicas: 2, fewest: 1, state: VerdictWeak, want: "1 of 2 nodes does not answer"},
		{nodes: "VVV", replicas: 2, fewest: 1, few: 1, state: VerdictWeak, want: "searches incomplete: 1 repository has fewer copies"},
		{nodes: "VVV", replicas: 3, fewest: 2, few: 3, state: VerdictWeak, want: "Any 1 node may fail now; searches stay complete: 3 repositories have fewer copies"},
		{nodes: "VVVVv", replicas: 3, fewest: 3, state: VerdictWeak, want: "Any 1 node may fail now; searches stay complete: 1 of 5 voters"},

		// It has failed.
		{nodes: "Vvv", replicas: 2, fewest: 1, leaderless: true, state: VerdictFailing, want: "changes wait: most voters do not answer"},
		{nodes: "", replicas: 2, fewest: 1, leaderless: true, state: VerdictFailing, want: "not part of a cluster yet"}, // `shoal recover` would be wrong
		{nodes: "VVV", replicas: 2, fewest: 0, state: VerdictFailing, want: "1 repository has no live copy"},
	} {
		s := &StatusResponse{Leader: "n1", Placement: PlacementStatus{UnderReplicated: c.few}}
		if c.leaderless {
			s.Leader = ""
		}
		for _, letter := range c.nodes {
			m := MemberStatus{Role: "voter", Health: "alive"}
			if strings.ContainsRune("Nn", letter) {
				m.Role = "nonvoter"
			}
			if strings.ContainsRune("vn", letter) {
				m.Health = "dead"
			}
			s.Members = append(s.Members, m)
		}
		s.Tolerates = tolerance(s.Members, hold.Shortage{Fewest: c.fewest}, s.Leader)
		if c.fewest == 0 {
			s.Placement.NoLiveCopy = 1
		}
		if c.blind {
			s.hideTotals()
		}
		if got := verdictOf(s, c.replicas); got.State != c.state || !strings.Contains(got.Sentence, c.want) {
			t.Errorf("%s with %d copies, %d live: %+v, want %s: %q", c.nodes, c.replicas, c.fewest, got, c.state, c.want)
		}
	}
}
