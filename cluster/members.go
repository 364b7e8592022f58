package cluster

import (
	"errors"
	"time"

	"github.com/hashicorp/raft"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster/catalog"
)

// Members are all that are not removed, by id.
func (c *Cluster) Members() []Member {
	voters := map[raft.ServerID]bool{}
	for _, s := range c.replica.servers() {
		voters[s.ID] = s.Suffrage == raft.Voter
	}

	// Gossip may hear of another cluster under the same key.
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

		out = append(out, Member{
			Member: *m,
			Name:   known[m.ID].meta.Name,
			Self:   m.ID == c.self.node,
			Leader: m.ID == leader,
			Voter:  voters[raft.ServerID(m.ID)],
			Alive:  m.ID == c.self.node || known[m.ID].Alive,
			Load:   known[m.ID].Load,
			Ahead:  ahead[m.ID],
		})
	}
	return out
}

// AliveIDs are the ids of those members that can be reached.
func AliveIDs(members []Member) (ids []string) {
	for _, m := range members {
		if m.Alive {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// Alive reports whether a member can be reached, as far as gossip knows.
func (c *Cluster) Alive(node string) bool { return c.network.alive(node) }

// NameOf is how people call a member; "" where gossip told none.
func (c *Cluster) NameOf(node string) string {
	if node == c.self.node {
		return c.o.Name
	}
	p, _ := c.network.lookup(node)
	return p.meta.Name
}

// Outlived says why this node must not answer any more: an operator has given up its
// cluster and made another one of it. It is nil while it may.
func (c *Cluster) Outlived() error { return c.succession.reason() }

// readyPatience is how long a node that knows its catalog waits for the
// cluster before it serves what it has.
const readyPatience = 15 * time.Second

// Ready returns nil where the node has a catalog to serve, else why not. A
// missing leader is no reason once the node has been ready.
func (c *Cluster) Ready() error {
	if why := c.succession.reason(); why != nil {
		return why
	}

	if c.ready.Load() {
		return nil
	}

	v := c.View()
	if c.self.cluster() == "" || v.ClusterID() == "" {
		return errors.New("the node is not part of a cluster yet")
	}

	// It has caught up when it sees its own start. Patience: a leader may be long in coming.
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

// votesPatience is how long a node of a cluster that forms waits for the votes.
const votesPatience = time.Minute

// votesMissing reports whether fewer nodes vote than should of those that are there. A new
// cluster has one voter, and the others get their votes one after the other.
func (c *Cluster) votesMissing() bool {
	there := 1
	for _, p := range c.network.peers() {
		if p.Alive && (p.Cluster == c.self.cluster() || p.Cluster == "") {
			there++
		}
	}
	return len(c.replica.voters()) < wantedVoters(there)
}
