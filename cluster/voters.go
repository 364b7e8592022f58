package cluster

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// Times of choosing voters, at Timing 1.
const (
	voterPause   = time.Second
	healthyTime  = 3 * time.Second  // how long a node must be healthy before it votes
	replaceTime  = 60 * time.Second // after which a voter that is not alive loses its vote
	strangerTime = 10 * time.Minute // after which a server that never announced itself is forgotten
	maxLag       = 250              // entries that a healthy node may be behind
)

// candidate is a server of raft as the choice of voters sees it.
type candidate struct {
	id       string
	zone     string
	voter    bool
	leader   bool
	removed  bool // the catalog says so, or it was never heard of for long
	draining bool
	healthy  time.Duration // for how long; 0 when it is not
	dead     time.Duration // for how long it has not been alive; 0 when it is
}

// change is one step towards the right voters.
type change struct {
	kind changeKind
	id   string
}

type changeKind int

const (
	noChange changeKind = iota
	promote             // a non-voter votes
	demote              // a voter votes no more
	forget              // leaves raft
	transfer            // the leader gives its leadership away
)

// wantedVoters is how many voters there should be among so many nodes that
// could vote: an odd number.
func wantedVoters(nodes int) int {
	switch {
	case nodes < 3:
		return 1
	case nodes < 10:
		return 3
	}
	return 5
}

// planVoters is the next step towards voters that are healthy, of the wanted
// number, and spread over the zones. It is pure; healthyFor and deadFor are the
// times after which a state is believed.
func planVoters(servers []candidate, healthyFor, deadFor time.Duration) change {
	slices.SortFunc(servers, func(a, b candidate) int { return cmp.Compare(a.id, b.id) })
	var voters []candidate
	for _, s := range servers {
		if s.voter {
			voters = append(voters, s)
		}
	}
	for _, s := range servers {
		if s.removed && !s.leader && (!s.voter || spareable(voters, s)) {
			return change{forget, s.id}
		}
	}
	for _, s := range servers {
		if s.removed && s.leader && slices.ContainsFunc(voters, func(v candidate) bool { return !v.removed && v.dead == 0 }) {
			return change{transfer, s.id}
		}
	}
	// Nodes that are away for a while still count: they will be back, and a
	// cluster that shrank to one voter would have one disk to lose.
	staying := 0
	for _, s := range servers {
		if !s.draining {
			staying++
		}
	}
	want := wantedVoters(staying)
	zones := map[string]int{}
	for _, v := range voters {
		zones[v.zone]++
	}
	spare := bestSpare(servers, zones, healthyFor)
	unfit := worstVoter(voters, zones, func(v candidate) bool { return v.removed || v.draining || v.dead >= deadFor })
	worst := worstVoter(voters, zones, func(candidate) bool { return true })
	switch {
	case unfit != nil && (len(voters) > want || spare != nil && len(voters)%2 == 0):
		return unfit.demoted()
	case unfit != nil && spare != nil:
		return change{promote, spare.id}
	case unfit != nil:
		return change{}
	case len(voters) == 1 && voters[0].draining && spare != nil:
		return change{promote, spare.id} // the only voter needs a successor
	case len(voters) < want && spare != nil:
		return change{promote, spare.id}
	case len(voters) > want && worst != nil:
		return worst.demoted()
	case len(voters) == want && spare != nil && zones[spare.zone] == 0 && len(zones) < len(voters):
		return change{promote, spare.id} // a zone without a voter; one too many is demoted next
	}
	return change{}
}

// spareable tells whether the voters have a quorum without one of them.
func spareable(voters []candidate, without candidate) bool {
	alive, n := 0, 0
	for _, v := range voters {
		if v.id == without.id {
			continue
		}
		n++
		if v.dead == 0 {
			alive++
		}
	}
	return alive > n/2
}

// demoted is how a voter loses its vote. A leader gives the lead away first.
func (c candidate) demoted() change {
	if c.leader {
		return change{transfer, c.id}
	}
	return change{demote, c.id}
}

// bestSpare is the healthy non-voter in the zone with the fewest voters.
func bestSpare(servers []candidate, zones map[string]int, healthyFor time.Duration) *candidate {
	var best *candidate
	for i, s := range servers {
		if s.voter || s.draining || s.removed || s.healthy < healthyFor {
			continue
		}
		if best == nil || zones[s.zone] < zones[best.zone] {
			best = &servers[i]
		}
	}
	return best
}

// worstVoter is, of those that the others have a quorum without, one that is
// dead, else one in the zone with the most voters; the leader only when there
// is no other.
func worstVoter(voters []candidate, zones map[string]int, which func(candidate) bool) *candidate {
	var worst *candidate
	rank := func(v candidate) int {
		switch {
		case v.leader:
			return 0
		case v.dead == 0:
			return 1
		}
		return 2
	}
	for i, v := range voters {
		if !which(v) || !spareable(voters, v) {
			continue
		}
		if worst == nil || cmp.Or(cmp.Compare(rank(v), rank(*worst)), cmp.Compare(zones[v.zone], zones[worst.zone]), cmp.Compare(v.id, worst.id)) > 0 {
			worst = &voters[i]
		}
	}
	return worst
}

// electorate remembers since when servers are healthy or dead. It begins anew
// with each leadership.
type electorate struct {
	healthy, dead map[string]time.Time
}

// chooseVoters lets this node, while it leads, bring about the right voters,
// one change at a time.
func (c *Cluster) chooseVoters(ctx context.Context) {
	var e *electorate
	for c.pause(ctx, c.scaled(voterPause)) {
		if !c.Leading() {
			e = nil
			continue
		}
		if e == nil {
			e = &electorate{map[string]time.Time{}, map[string]time.Time{}}
		}
		f := c.raft.GetConfiguration()
		if f.Error() != nil {
			continue
		}
		step := planVoters(c.candidates(e, f.Configuration().Servers), c.scaled(healthyTime), c.scaled(replaceTime))
		if err := c.change(step, f.Index()); err != nil {
			c.log.Info("voters were not changed", "error", err)
		}
	}
}

// candidates looks at the servers of raft.
func (c *Cluster) candidates(e *electorate, servers []raft.Server) []candidate {
	view, now, applied := c.View(), time.Now(), c.machine.applied.Load()
	since := func(m map[string]time.Time, id string, holds bool) time.Duration {
		if !holds {
			delete(m, id)
			return 0
		}
		if m[id].IsZero() {
			m[id] = now
		}
		return now.Sub(m[id])
	}
	var out []candidate
	for _, s := range servers {
		id := string(s.ID)
		self := id == c.id.NodeID
		p, _ := c.lookup(id)
		x := candidate{id: id, voter: s.Suffrage == raft.Voter, leader: self}
		alive := self || p.Alive
		x.dead = since(e.dead, id, !alive)
		m := view.Member(id)
		if m == nil {
			x.removed = x.dead > c.scaled(strangerTime)
			out = append(out, x)
			continue
		}
		x.zone, x.draining, x.removed = m.Zone, m.State == catalog.MemberDraining, m.State == catalog.MemberRemoved
		// What gossip says of the catalog there is a little old.
		x.healthy = since(e.healthy, id, self || alive && p.Epoch == m.Epoch && p.Load.Applied+maxLag >= applied)
		out = append(out, x)
	}
	return out
}

// change carries out one step, if the membership is still as it was.
func (c *Cluster) change(step change, prev uint64) error {
	id := raft.ServerID(step.id)
	var f raft.Future
	switch step.kind {
	case noChange:
		return nil
	case promote:
		f = c.raft.AddVoter(id, raft.ServerAddress(step.id), prev, c.scaled(joinTime))
	case demote:
		f = c.raft.DemoteVoter(id, prev, c.scaled(joinTime))
	case forget:
		f = c.raft.RemoveServer(id, prev, c.scaled(joinTime))
	case transfer:
		f = c.raft.LeadershipTransfer()
	}
	c.log.Info("voters change", "step", step.kind.String(), "peer", step.id)
	err := f.Error()
	if err == nil && step.kind == forget {
		c.port.Drop(step.id)
	}
	return err
}

// String names the step for the log.
func (k changeKind) String() string {
	return [...]string{"none", "promote", "demote", "forget", "transfer"}[k]
}
