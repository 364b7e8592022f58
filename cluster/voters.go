package cluster

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"github.com/shoalsearch/shoal/clock"
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
	replaced bool          // a later member is alive at its address
}

// change is one step towards the right voters.
type change struct {
	kind changeKind
	id   string // of a transfer, who leads next
}

type changeKind int

const (
	noChange changeKind = iota
	promote             // a non-voter votes
	demote              // a voter votes no more
	forget              // leaves raft
	transfer            // another voter leads
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
// number, and spread over the zones; it does nothing when there is none. It is
// pure; healthyFor and deadFor are the times after which a state is believed.
//
// The steps are tried in the order of what they put right. Each leaves the
// voters a quorum of live ones.
func planVoters(servers []candidate, healthyFor, deadFor time.Duration) change {
	p := newVoterPlan(servers, healthyFor, deadFor)
	for _, step := range []func() change{p.forgetRemoved, p.leaveLead, p.replaceUnfit, p.reachNumber, p.reachZone} {
		if next := step(); next.kind != noChange {
			return next
		}
	}
	return change{}
}

// voterPlan is what the steps of a plan are chosen by.
type voterPlan struct {
	servers []candidate // by id
	voters  []candidate // of servers
	want    int         // voters
	zones   map[string]int
	spare   *candidate // who is to vote next; nil where nobody can
	deadFor time.Duration
}

func newVoterPlan(servers []candidate, healthyFor, deadFor time.Duration) *voterPlan {
	slices.SortFunc(servers, func(a, b candidate) int { return cmp.Compare(a.id, b.id) })
	p := &voterPlan{servers: servers, zones: map[string]int{}, deadFor: deadFor}

	// Nodes that are away for a while still count: they will be back, and a
	// cluster that shrank to one voter would have one disk to lose.
	staying := 0
	for _, s := range servers {
		if s.voter {
			p.voters = append(p.voters, s)
			p.zones[s.zone]++
		}
		if !s.draining {
			staying++
		}
	}

	p.want = wantedVoters(staying)
	p.spare = bestSpare(servers, p.zones, healthyFor)
	return p
}

// forgetRemoved lets a server go that left the cluster.
func (p *voterPlan) forgetRemoved() change {
	for _, s := range p.servers {
		if s.removed && !s.leader && (!s.voter || spareable(p.voters, s)) {
			return change{forget, s.id}
		}
	}
	return change{}
}

// leaveLead lets a leader that leaves the cluster give the lead to a voter that stays.
// It waits for one: to pass the lead from one that leaves to another costs two elections.
func (p *voterPlan) leaveLead() change {
	leaves := slices.ContainsFunc(p.servers, func(s candidate) bool { return s.leader && s.leaves() })
	if to := p.heir(); leaves && to != nil && !to.leaves() {
		return change{transfer, to.id}
	}
	return change{}
}

// leaves reports whether a server is not to stay in the cluster.
func (c candidate) leaves() bool { return c.removed || c.draining }

// heir is the voter that is to lead next: alive, and staying where one stays; nil where
// nobody can.
func (p *voterPlan) heir() *candidate {
	rank := func(v candidate) int {
		switch {
		case v.leaves():
			return 0
		case v.healthy == 0:
			return 1
		}
		return 2
	}
	var best *candidate
	for i, v := range p.voters {
		if !v.leader && v.dead == 0 && (best == nil || rank(v) > rank(*best)) {
			best = &p.voters[i]
		}
	}
	return best
}

// replaceUnfit takes the vote from one who should have none and gives it to
// another. Among an odd number of voters the other comes first, so that the
// number in between is not one less.
func (p *voterPlan) replaceUnfit() change {
	unfit := worstVoter(p.voters, p.zones, func(v candidate) bool {
		return v.removed || v.draining || v.dead >= p.deadFor || v.dead > 0 && v.replaced
	})
	switch {
	case unfit == nil:
		return change{}

	// A dead one goes first. Neither order leaves three voters a failure to spare, but
	// with four of which one is dead the quorum needs the new one too: should that
	// lose its disk before the dead one has gone, there would never be a leader again.
	case len(p.voters) > p.want, p.spare != nil && (len(p.voters)%2 == 0 || unfit.dead > 0):
		return p.demoted(unfit)
	}
	return p.promoted()
}

// reachNumber makes the voters as many as wanted. The only voter is never
// spareable, so when it drains its successor is promoted beside it.
func (p *voterPlan) reachNumber() change {
	lone := len(p.voters) == 1 && p.voters[0].draining
	if len(p.voters) < p.want || lone {
		return p.promoted()
	}
	if len(p.voters) > p.want {
		if worst := worstVoter(p.voters, p.zones, func(candidate) bool { return true }); worst != nil {
			return p.demoted(worst)
		}
	}
	return change{}
}

// reachZone gives a vote to a zone that has none, where another zone has two.
// One voter too many is demoted next.
func (p *voterPlan) reachZone() change {
	if p.spare != nil && len(p.voters) == p.want && p.zones[p.spare.zone] == 0 && len(p.zones) < len(p.voters) {
		return p.promoted()
	}
	return change{}
}

// promoted is how the spare server gets its vote.
func (p *voterPlan) promoted() change {
	if p.spare == nil {
		return change{}
	}
	return change{promote, p.spare.id}
}

// spareable reports whether the voters have a quorum without one of them.
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
func (p *voterPlan) demoted(v *candidate) change {
	if !v.leader {
		return change{demote, v.id}
	}
	if to := p.heir(); to != nil {
		return change{transfer, to.id}
	}
	return change{}
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

	// Dead goes before alive, and the leader last: with it an election goes, too.
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

// electorate lets this node, while it leads, bring about the right voters, one
// change at a time.
type electorate struct {
	*env
	network *network
	replica *replica

	// Since when servers are healthy or dead. It begins anew with each
	// leadership.
	healthy, dead map[string]time.Time
}

// run looks until the context ends.
func (e *electorate) run(ctx context.Context) {
	for e.pause(ctx, e.scaled(voterPause)) {
		if !e.replica.leading.Load() {
			// Another leader watches now; if this one leads again it begins anew.
			e.healthy, e.dead = nil, nil
			continue
		}
		if e.healthy == nil {
			e.healthy, e.dead = map[string]time.Time{}, map[string]time.Time{}
		}

		f := e.replica.raft.GetConfiguration()
		if f.Error() != nil {
			continue
		}
		step := planVoters(e.candidates(f.Configuration().Servers), e.scaled(healthyTime), e.scaled(replaceTime))
		if err := e.change(step, f.Index()); err != nil {
			e.log.Info("voters were not changed", "error", err)
		}
	}
}

// candidates looks at the servers of raft.
func (e *electorate) candidates(servers []raft.Server) []candidate {
	view, applied := e.replica.view(), e.replica.machine.applied.Load()
	var out []candidate
	for _, s := range servers {
		id := string(s.ID)
		self := id == e.network.self.node
		p, _ := e.network.lookup(id)
		alive := self || p.Alive
		x := candidate{id: id, voter: s.Suffrage == raft.Voter, leader: self, dead: lasting(e.dead, id, !alive)}

		m := view.Member(id)
		if m == nil {
			x.removed = x.dead > e.scaled(strangerTime)
			out = append(out, x)
			continue
		}
		// Nothing can come back at an address that another machine has.
		x.replaced = x.dead > 0 && e.replacedBy(view, m)
		x.zone, x.draining, x.removed = m.Zone, m.State == catalog.MemberDraining, m.State == catalog.MemberRemoved
		// What gossip says of the catalog there is a little old.
		x.healthy = lasting(e.healthy, id, self || alive && p.Epoch == m.Epoch && p.Load.Applied+maxLag >= applied)
		out = append(out, x)
	}
	return out
}

// replacedBy reports whether a later member is alive at the address of m.
func (e *electorate) replacedBy(view *catalog.View, m *catalog.Member) bool {
	for other := range view.Members() {
		if other.Addr == m.Addr && other.Number > m.Number && other.State != catalog.MemberRemoved && e.network.alive(other.ID) {
			return true
		}
	}
	return false
}

// lasting is for how long something holds of a server, given since when it did
// at the last look; 0 when it does not, and never when it does: a voter that was
// only now seen to be dead must not pass for a live one.
func lasting(since map[string]time.Time, id string, holds bool) time.Duration {
	if !holds {
		delete(since, id)
		return 0
	}
	now := clock.Now()
	if since[id].IsZero() {
		since[id] = now
	}
	return max(now.Sub(since[id]), 1)
}

// change carries out one step, if the membership is still as it was.
func (e *electorate) change(step change, prev uint64) error {
	id := raft.ServerID(step.id)
	var f raft.Future
	switch r := e.replica.raft; step.kind {
	case noChange:
		return nil

	// prev is the index of the membership that the step was planned on: raft refuses it if another came meanwhile.
	case promote:
		f = r.AddVoter(id, raft.ServerAddress(step.id), prev, e.scaled(joinTime))
	case demote:
		f = r.DemoteVoter(id, prev, e.scaled(joinTime))
	case forget:
		f = r.RemoveServer(id, prev, e.scaled(joinTime))

	case transfer:
		f = r.LeadershipTransferToServer(id, raft.ServerAddress(step.id))
	}

	e.log.Info("voters change", "step", step.kind.String(), "peer", step.id)

	err := f.Error()
	if err == nil && step.kind == forget {
		e.network.port.Drop(step.id)
	}
	return err
}

// String names the step for the log.
func (k changeKind) String() string {
	return [...]string{"none", "promote", "demote", "forget", "transfer"}[k]
}
