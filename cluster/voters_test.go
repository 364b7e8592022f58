package cluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/wire"
)

// From any state with a quorum, the plan comes to an end, reaches the wanted number of voters if
// enough nodes exist, and never loses the quorum on the way.
func TestPlanVoters_reachesTheWantedNumberWithoutLosingQuorum(t *testing.T) {
	t.Parallel()
	for round := range uint64(50_000) {
		rng := rand.New(rand.NewPCG(round, 9))
		servers := randomServers(rng)
		start := fmt.Sprintf("round %d: %+v", round, servers)
		for steps := 0; ; steps++ {
			if steps > 60 {
				t.Fatalf("%s\ndoes not come to an end: %+v", start, servers)
			}
			s := planVoters(slices.Clone(servers), time.Second, time.Minute)
			if s.kind == noChange {
				break
			}
			i := slices.IndexFunc(servers, func(x candidate) bool { return x.id == s.id })
			switch s.kind {
			case promote:
				servers[i].voter = true
				if servers[i].healthy < time.Second || servers[i].removed || servers[i].draining {
					t.Fatalf("%s\npromotes %+v", start, servers[i])
				}
			case demote:
				servers[i].voter = false
			case forget:
				if !servers[i].removed {
					t.Fatalf("%s\nforgets %+v", start, servers[i])
				}
				servers = slices.Delete(servers, i, i+1)
			case transfer:
				old := slices.IndexFunc(servers, func(x candidate) bool { return x.leader })
				if to := servers[i]; !to.voter || to.dead > 0 || to.leader || to.leaves() && servers[old].leaves() {
					t.Fatalf("%s\nlets %+v lead after %+v", start, to, servers[old])
				}
				servers[old].leader, servers[i].leader = false, true
			}
			if alive, n := countVoters(servers); alive*2 <= n {
				t.Fatalf("%s\nloses the quorum by %v %s: %+v", start, s.kind, s.id, servers)
			}
		}
		checkVoters(t, start, servers)
	}
}

// A machine loses its disk again right after it returned empty. No quorum is lost: its old voter
// was removed before the new node got a vote.
func TestPlanVoters_survivesALostNewcomer(t *testing.T) {
	t.Parallel()
	servers := []candidate{
		{id: "a", zone: "z", voter: true, leader: true, healthy: time.Hour},
		{id: "b", zone: "z", voter: true, healthy: time.Hour},
		{id: "c", zone: "z", voter: true, dead: time.Hour},
		{id: "d", zone: "z", healthy: time.Hour},
	}
	for steps := 0; ; steps++ {
		s := planVoters(slices.Clone(servers), time.Second, time.Minute)
		if s.kind == noChange {
			if steps != 2 {
				t.Errorf("%d steps", steps)
			}
			return
		}
		i := slices.IndexFunc(servers, func(x candidate) bool { return x.id == s.id })
		servers[i].voter = s.kind == promote

		without := slices.Clone(servers)
		without[3].dead = time.Hour
		if alive, n := countVoters(without); alive*2 <= n {
			t.Errorf("after %v %s, the loss of the newcomer leaves %d of %d voters", s.kind, s.id, alive, n)
		}
	}
}

func TestPlanVoters_replacesASilentVoterWhoseAddressIsTaken(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		voter    candidate // beside two live voters
		newcomer candidate
		want     change
	}{
		{"a new machine at its address", candidate{dead: time.Second, replaced: true}, candidate{healthy: time.Hour}, change{demote, "c"}},
		{"a new machine elsewhere", candidate{dead: time.Second}, candidate{healthy: time.Hour}, change{}},
		{"a new machine that is not healthy for long", candidate{dead: time.Second, replaced: true}, candidate{healthy: time.Millisecond}, change{}},
		{"a new machine that drains", candidate{dead: time.Second, replaced: true}, candidate{healthy: time.Hour, draining: true}, change{}},
		{"a voter that answers", candidate{healthy: time.Hour, replaced: true}, candidate{healthy: time.Hour}, change{}},
	} {
		c.voter.id, c.voter.voter, c.newcomer.id = "c", true, "d"
		got := planVoters([]candidate{
			{id: "a", voter: true, leader: true, healthy: time.Hour},
			{id: "b", voter: true, healthy: time.Hour},
			c.voter, c.newcomer,
		}, time.Second, time.Minute)
		if got != c.want {
			t.Errorf("%s: %v %q, want %v %q", c.name, got.kind, got.id, c.want.kind, c.want.id)
		}
	}
}

// A leader that has just begun sees a dead voter for the first time.
func TestDeadVoter_seenFirstByANewLeaderCountsFromThen(t *testing.T) {
	t.Parallel()
	since := map[string]time.Time{}
	if d := trackDuration(since, "a", true); d <= 0 {
		t.Errorf("holds for %v", d)
	}
	if d := trackDuration(since, "a", false); d != 0 {
		t.Errorf("what does not hold, holds for %v", d)
	}
}

// randomServers returns a random state with a leader and a quorum.
func randomServers(rng *rand.Rand) []candidate {
	for {
		n := 1 + rng.IntN(14)
		servers := make([]candidate, n)
		for i := range servers {
			s := &servers[i]
			s.id, s.zone = string(rune('a'+i)), string(rune('1'+rng.IntN(3)))
			s.voter = rng.IntN(2) == 0
			switch rng.IntN(6) {
			case 0:
				s.dead = time.Hour
			case 1:
				s.dead = time.Second
			case 2:
			default:
				s.healthy = time.Hour
			}
			s.draining, s.removed = rng.IntN(8) == 0, rng.IntN(8) == 0
			s.replaced = s.dead > 0 && i%3 == 0
		}
		servers[0].leader, servers[0].voter, servers[0].dead, servers[0].healthy = true, true, 0, time.Hour
		if alive, n := countVoters(servers); alive*2 > n {
			return servers
		}
	}
}

func countVoters(servers []candidate) (alive, all int) {
	for _, s := range servers {
		if s.voter {
			all++
			if s.dead == 0 {
				alive++
			}
		}
	}
	return alive, all
}

// checkVoters fails if a final state is wrong.
func checkVoters(t *testing.T, start string, servers []candidate) {
	t.Helper()
	staying, spare := 0, 0
	for _, s := range servers {
		if !s.draining {
			staying++
		}
		if !s.voter && s.healthy > 0 && !s.draining && !s.removed {
			spare++
		}
	}
	_, n := countVoters(servers)
	if want := wantedVoters(staying); n < want && spare > 0 {
		t.Fatalf("%s\nends with %d of %d voters: %+v", start, n, want, servers)
	}
}

// A server that gossip still calls alive, but that does not answer, gets no vote: with the dead
// voter that it replaces, two of four voters would be dead.
func TestVoters_doNotIncludeAServerThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		answer error
		votes  bool
	}{
		{nil, true},
		{fmt.Errorf("call: %w", wire.ErrNoMethod), true}, // a node of another version
		{wire.ErrUnreachable, false},
		{context.DeadlineExceeded, false},
	} {
		e := &electorate{
			env:      &env{timing: 1},
			callNode: func(context.Context, string, string, []byte) ([]byte, error) { return nil, c.answer },
			healthy:  map[string]time.Time{"n4": time.Now()},
		}
		err := e.checkResponds("n4")
		if (err == nil) != c.votes || err != nil && !errors.Is(err, c.answer) {
			t.Errorf("%v: %v, want a vote: %v", c.answer, err, c.votes)
		}
		if _, known := e.healthy["n4"]; known != c.votes {
			t.Errorf("%v: it counts as healthy: %v", c.answer, known)
		}
	}
}
