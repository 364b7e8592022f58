package cluster

import (
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster/catalog"
)

// Members returns all members that are not removed, by id.
func (c *Cluster) Members() []Member {
	voters := map[raft.ServerID]bool{}
	for _, s := range c.replica.servers() {
		voters[s.ID] = s.Suffrage == raft.Voter
	}

	// Gossip may also hear of another cluster with the same key. Ignore its nodes.
	known := map[string]peer{}
	cluster := c.self.cluster()
	for _, p := range c.network.peers() {
		if p.Cluster == cluster {
			known[p.Node] = p
		}
	}
	known[c.self.node] = peer{meta: meta{Load: c.network.ownLoad(), Name: c.o.Name}}

	leader, ahead := c.Leader(), c.network.gossip.Ahead()
	var out []Member
	for m := range c.View().Members() {
		if m.State == catalog.MemberRemoved {
			continue
		}
		since := known[m.ID].Since
		if since.IsZero() {
			since = c.started
		}

		out = append(out, Member{
			Member: *m,
			Name:   known[m.ID].meta.Name,
			Self:   m.ID == c.self.node,
			Leader: m.ID == leader,
			Voter:  voters[raft.ServerID(m.ID)],
			Alive:  m.ID == c.self.node || known[m.ID].Alive,
			Since:  since,
			Load:   known[m.ID].Load,
			Ahead:  ahead[m.ID],
		})
	}
	return out
}

// AliveIDs returns the ids of the reachable members.
func AliveIDs(members []Member) (ids []string) {
	for _, m := range members {
		if m.Alive {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// Alive reports whether a member is reachable, according to gossip.
func (c *Cluster) Alive(node string) bool { return c.network.alive(node) }

// NameOf returns the display name of a member, or "".
func (c *Cluster) NameOf(node string) string {
	if node == c.self.node {
		return c.o.Name
	}
	p, _ := c.network.findPeer(node)
	return p.meta.Name
}

// Outlived returns why this node must no longer answer: an operator has replaced its cluster by
// another one. It returns nil while the node may answer.
func (c *Cluster) Outlived() error { return c.succession.stopReason() }

// Faults returns what is wrong with this node and separates it from the others, one sentence each.
// Anybody may read it.
func (c *Cluster) Faults() (out []string) {
	if c.secrets.otherKey.Load() != nil {
		out = append(out, otherKeyText)
	}
	if lag := c.network.clockLag(); lag > 0 {
		out = append(out, fmt.Sprintf("the clock of this node is %s behind that of most nodes", lag.Round(time.Second)))
	} else if lag < 0 {
		out = append(out, fmt.Sprintf("the clock of this node is %s ahead of that of most nodes", -lag.Round(time.Second)))
	}
	return out
}

// OtherKey says that the other nodes have another cluster key, and what to do; "" if they have not. It
// names files and addresses.
func (c *Cluster) OtherKey() string {
	if text := c.secrets.otherKey.Load(); text != nil {
		return *text
	}
	return ""
}

// readyPatience is how long a restarted node waits for the cluster before it serves the catalog
// that it has.
const readyPatience = 15 * time.Second

// Ready returns nil if the node has a catalog to serve, and otherwise the reason. Losing the leader
// later does not make a node unready.
func (c *Cluster) Ready() error {
	if why := c.succession.stopReason(); why != nil {
		return why
	}

	if c.ready.Load() {
		return nil
	}

	if c.secrets.otherKey.Load() != nil {
		return errors.New(otherKeyText)
	}

	v := c.View()
	if c.self.cluster() == "" || v.ClusterID() == "" {
		return errors.New("the node is not part of a cluster yet")
	}

	// The node has caught up when it sees its own start. After readyPatience it stops waiting:
	// there may be no leader for long.
	m := v.Member(c.self.node)
	if (m == nil || m.Epoch != c.self.epoch) && clock.Since(c.started) < c.env.scaled(readyPatience) {
		return errors.New("the node has not yet caught up with the cluster")
	}

	if c.o.BootstrapExpect > 1 && clock.Since(c.started) < c.env.scaled(votesPatience) && c.votesMissing() {
		return errors.New("the nodes of this cluster do not have their votes yet: the loss of one could end it")
	}

	c.ready.Store(true)
	return nil
}

// votesPatience is how long a node of a new cluster waits for all votes.
const votesPatience = time.Minute

// votesMissing reports whether fewer nodes vote than should. A new cluster has one voter, and the
// others get their votes one by one.
func (c *Cluster) votesMissing() bool {
	there := 1
	for _, p := range c.network.peers() {
		if p.Alive && (p.Cluster == c.self.cluster() || p.Cluster == "") {
			there++
		}
	}
	return len(c.replica.voters()) < wantedVoters(there)
}
