package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/wire"
)

// Times of choosing voters, at Timing 1.
const (
	voterPause   = time.Second
	healthyTime  = 3 * time.Second  // how long a node must be healthy before it votes
	replaceTime  = 60 * time.Second // how long a voter must be dead before it loses its vote
	strangerTime = 10 * time.Minute // how long a server that never announced itself stays
	maxLag       = 250              // entries that a healthy node may lag behind
)

// candidate is a server of raft, as the choice of voters sees it.
type candidate struct {
	id       string
	zone     string
	voter    bool
	leader   bool
	removed  bool // by the catalog, or because it was absent for long without a record
	draining bool
	healthy  time.Duration // for how long; 0: it is not healthy
	dead     time.Duration // for how long; 0: it is alive
	replaced bool          // a later member is alive at its address
}

// change is one step towards the right voters.
type change struct {
	kind changeKind
	id   string // the server; for a transfer, the next leader
}

type changeKind int

const (
	noChange changeKind = iota
	promote             // a non-voter gets a vote
	demote              // a voter loses its vote
	forget              // a server leaves raft
	transfer            // another voter leads
)

// wantedVoters returns the wanted number of voters, always odd, for a number of nodes.
func wantedVoters(nodes int) int {
	switch {
	case nodes < 3:
		return 1
	case nodes < 10:
		return 3
	}
	return 5
}

// planVoters returns the next step towards the right voters: healthy, of the wanted number, and
// spread over zones. It returns noChange if nothing is to do. It is a pure function; healthyFor and
// deadFor are the times after which a state counts.
//
// The steps are tried in order of importance. Each keeps a quorum of live voters.
func planVoters(servers []candidate, healthyFor, deadFor time.Duration) change {
	p := newVoterPlan(servers, healthyFor, deadFor)
	for _, step := range []func() change{p.forgetRemoved, p.handOverIfLeaving, p.replaceUnfit, p.reachNumber, p.reachZone} {
		if next := step(); next.kind != noChange {
			return next
		}
	}
	return change{}
}

// voterPlan is the input for the steps of a plan.
type voterPlan struct {
	servers []candidate // sorted by id
	voters  []candidate // the voters among servers
	want    int         // wanted number of voters
	zones   map[string]int
	spare   *candidate // the next server to get a vote; nil: none can
	deadFor time.Duration
}

// newVoterPlan counts the voters and zones, and chooses the number of voters to reach.
func newVoterPlan(servers []candidate, healthyFor, deadFor time.Duration) *voterPlan {
	slices.SortFunc(servers, func(a, b candidate) int { return cmp.Compare(a.id, b.id) })
	p := &voterPlan{servers: servers, zones: map[string]int{}, deadFor: deadFor}

	// Count absent nodes, too, because they may come back. A cluster that shrank to one voter would
	// lose everything with one disk.
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

// forgetRemoved removes a server that left the cluster.
func (p *voterPlan) forgetRemoved() change {
	for _, s := range p.servers {
		if s.removed && !s.leader && (!s.voter || canSpare(p.voters, s)) {
			return change{forget, s.id}
		}
	}
	return change{}
}

// handOverIfLeaving lets a leader that leaves the cluster hand over to a voter that stays. It waits
// for such a voter: handing over to another leaving one would cost two elections.
func (p *voterPlan) handOverIfLeaving() change {
	leaves := slices.ContainsFunc(p.servers, func(s candidate) bool { return s.leader && s.leaves() })
	if to := p.nextLeader(); leaves && to != nil && !to.leaves() {
		return change{transfer, to.id}
	}
	return change{}
}

// leaves reports whether a server is about to leave the cluster.
func (c candidate) leaves() bool { return c.removed || c.draining }

func (c candidate) isHealthy() bool { return c.healthy > 0 }

func (c candidate) isAlive() bool { return c.dead == 0 }

// nextLeader returns the best living voter other than the leader, or nil. Healthy voters that stay
// come first, then unhealthy ones that stay, then those that leave.
func (p *voterPlan) nextLeader() *candidate {
	rank := func(v candidate) int {
		switch {
		case v.leaves():
			return 0
		case !v.isHealthy():
			return 1
		}
		return 2
	}
	var best *candidate
	for i, v := range p.voters {
		if !v.leader && v.isAlive() && (best == nil || rank(v) > rank(*best)) {
			best = &p.voters[i]
		}
	}
	return best
}

// replaceUnfit moves the vote of an unfit voter to another server. With an odd number of voters it
// adds the new vote first, so that their number does not drop in between.
func (p *voterPlan) replaceUnfit() change {
	unfit := worstVoter(p.voters, p.zones, func(v candidate) bool {
		return v.removed || v.draining || v.dead >= p.deadFor || v.dead > 0 && v.replaced
	})
	switch {
	case unfit == nil:
		return change{}

	// Demote a dead voter first. Either way three voters have no failure to spare. But with four
	// voters, one of them dead, the quorum needs the new voter, too. If that one lost its disk
	// before the dead one is demoted, there would never be a leader again.
	case len(p.voters) > p.want, p.spare != nil && (len(p.voters)%2 == 0 || unfit.dead > 0):
		return p.demoteVoter(unfit)
	}
	return p.promoteSpare()
}

// reachNumber moves towards the wanted number of voters. The only voter can never be demoted
// directly, so when it drains, its successor is promoted first.
func (p *voterPlan) reachNumber() change {
	lone := len(p.voters) == 1 && p.voters[0].draining
	if len(p.voters) < p.want || lone {
		return p.promoteSpare()
	}
	if len(p.voters) > p.want {
		if worst := worstVoter(p.voters, p.zones, func(candidate) bool { return true }); worst != nil {
			return p.demoteVoter(worst)
		}
	}
	return change{}
}

// reachZone gives a vote to a zone without one, if another zone has two. The surplus voter is
// demoted next.
func (p *voterPlan) reachZone() change {
	if p.spare != nil && len(p.voters) == p.want && p.zones[p.spare.zone] == 0 && len(p.zones) < len(p.voters) {
		return p.promoteSpare()
	}
	return change{}
}

// promoteSpare returns the step that gives the spare server a vote.
func (p *voterPlan) promoteSpare() change {
	if p.spare == nil {
		return change{}
	}
	return change{promote, p.spare.id}
}

// canSpare reports whether the other voters that live are a majority of the other voters.
func canSpare(voters []candidate, without candidate) bool {
	alive, n := 0, 0
	for _, v := range voters {
		if v.id == without.id {
			continue
		}
		n++
		if v.isAlive() {
			alive++
		}
	}
	return alive > n/2
}

// demoteVoter returns the step that makes a voter a non-voter. For the leader the step is to hand
// over, because only another leader can demote it.
func (p *voterPlan) demoteVoter(v *candidate) change {
	if !v.leader {
		return change{demote, v.id}
	}
	if to := p.nextLeader(); to != nil {
		return change{transfer, to.id}
	}
	return change{}
}

// bestSpare returns the healthy non-voter in the zone with the fewest voters, or nil.
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

// worstVoter returns the voter to demote among the eligible ones, or nil. The remaining
// voters must keep a quorum. It prefers dead voters, then the zone with the most voters; the leader comes last.
func worstVoter(voters []candidate, zones map[string]int, eligible func(candidate) bool) *candidate {
	var worst *candidate

	// The leader comes last, because demoting it costs an election.
	rank := func(v candidate) int {
		switch {
		case v.leader:
			return 0
		case v.isAlive():
			return 1
		}
		return 2
	}

	for i, v := range voters {
		if !eligible(v) || !canSpare(voters, v) {
			continue
		}

		if worst == nil || cmp.Or(cmp.Compare(rank(v), rank(*worst)), cmp.Compare(zones[v.zone], zones[worst.zone]), cmp.Compare(v.id, worst.id)) > 0 {
			worst = &voters[i]
		}
	}
	return worst
}

// electorate changes the voters step by step, while this node leads.
type electorate struct {
	*env
	network  *network
	replica  *replica
	callNode func(ctx context.Context, node, method string, in []byte) ([]byte, error)

	// Since when servers are healthy or dead; reset with each leadership.
	healthy, dead map[string]time.Time
}

// run checks the voters until the context ends.
func (e *electorate) run(ctx context.Context) {
	for e.pause(ctx, e.scaled(voterPause)) {
		if !e.replica.leading.Load() {
			// Another leader watches now. Start afresh when this node leads again.
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
		if err := e.applyStep(step, f.Index()); err != nil {
			e.log.Info("voters were not changed", "error", err)
		}
	}
}

// candidates describes the servers of raft.
func (e *electorate) candidates(servers []raft.Server) []candidate {
	view, applied := e.replica.view(), e.replica.machine.applied.Load()
	var out []candidate
	for _, s := range servers {
		id := string(s.ID)
		self := id == e.network.self.node
		p, _ := e.network.findPeer(id)
		alive := self || p.Alive
		x := candidate{id: id, voter: s.Suffrage == raft.Voter, leader: self, dead: trackDuration(e.dead, id, !alive)}

		m := view.Member(id)
		if m == nil {
			x.removed = x.dead > e.scaled(strangerTime)
			out = append(out, x)
			continue
		}
		// A dead node cannot return at an address that another machine has.
		x.replaced = x.dead > 0 && e.hasLaterMemberAtAddress(view, m)
		x.zone, x.draining, x.removed = m.Zone, m.State == catalog.MemberDraining, m.State == catalog.MemberRemoved
		// Gossip's report of its catalog is slightly old, so allow a lag.
		x.healthy = trackDuration(e.healthy, id, self || alive && p.Epoch == m.Epoch && p.Load.Applied+maxLag >= applied)
		out = append(out, x)
	}
	return out
}

// hasLaterMemberAtAddress reports whether a later member is alive at the address of m.
func (e *electorate) hasLaterMemberAtAddress(view *catalog.View, m *catalog.Member) bool {
	for other := range view.Members() {
		if other.Addr == m.Addr && other.Number > m.Number && other.State != catalog.MemberRemoved && e.network.alive(other.ID) {
			return true
		}
	}
	return false
}

// trackDuration returns for how long a condition has held for a server; 0 if it does not hold now.
// It keeps the times since which the condition holds, by id, in since. A condition that holds gives
// at least 1, so that a voter that just died does not count as live.
func trackDuration(since map[string]time.Time, id string, holds bool) time.Duration {
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

// checkResponds returns an error unless a server answers now. Gossip notices a death seconds later.
// If a server that just died got a vote, beside the dead voter that it replaces, the quorum could
// be lost for good.
func (e *electorate) checkResponds(id string) error {
	ctx, cancel := context.WithTimeout(context.Background(), e.scaled(time.Second))
	defer cancel()
	_, err := e.callNode(ctx, id, methodEpoch, nil)
	if err != nil && !errors.Is(err, wire.ErrNoMethod) {
		delete(e.healthy, id) // the time for which it must be healthy starts again
		return fmt.Errorf("cluster: node %s does not answer, so it gets no vote: %w", id, err)
	}
	return nil
}

// applyStep carries out a step, if the membership has not changed since prev.
func (e *electorate) applyStep(step change, prev uint64) error {
	id := raft.ServerID(step.id)
	var f raft.Future
	switch r := e.replica.raft; step.kind {
	case noChange:
		return nil

	// prev is the index of the planned-on membership. Raft refuses the step if it changed.
	case promote:
		if err := e.checkResponds(step.id); err != nil {
			return err
		}
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
