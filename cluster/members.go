package cluster

import (
	"errors"
	"time"

	"github.com/hashicorp/raft"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// Members are all that are not removed, by id.
func (c *Cluster) Members() []Member {
	voters := map[raft.ServerID]bool{}
	for _, s := range c.servers() {
		voters[s.ID] = s.Suffrage == raft.Voter
	}
	leader := c.Leader()
	known := map[string]peer{}
	cluster := c.clusterID()
	for _, p := range c.peers() {
		if p.Cluster == cluster {
			known[p.Node] = p
		}
	}
	known[c.id.NodeID] = peer{meta: meta{Load: c.ownLoad()}}
	var out []Member
	for m := range c.View().Members() {
		if m.State == catalog.MemberRemoved {
			continue
		}
		out = append(out, Member{
			Member: *m,
			Self:   m.ID == c.id.NodeID,
			Leader: m.ID == leader,
			Voter:  voters[raft.ServerID(m.ID)],
			Alive:  m.ID == c.id.NodeID || known[m.ID].Alive,
			Load:   known[m.ID].Load,
		})
	}
	return out
}

// Alive tells whether a member can be reached, as far as gossip knows.
func (c *Cluster) Alive(node string) bool {
	if node == c.id.NodeID {
		return true
	}
	p, ok := c.lookup(node)
	return ok && p.Alive
}

// readyPatience is how long a node that knows its catalog waits for the
// cluster before it serves what it has.
const readyPatience = 15 * time.Second

// Ready tells whether the node has a catalog to serve, and if not, why. A
// missing leader is no reason once the node has been ready.
func (c *Cluster) Ready() error {
	if c.ready.Load() {
		return nil
	}
	v := c.View()
	if c.clusterID() == "" || v.ClusterID() == "" {
		return errors.New("the node is not part of a cluster yet")
	}
	m := v.Member(c.id.NodeID)
	if (m == nil || m.Epoch != c.id.epoch()) && time.Since(c.started) < c.scaled(readyPatience) {
		return errors.New("the node has not yet caught up with the cluster")
	}
	c.ready.Store(true)
	return nil
}
