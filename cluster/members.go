package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"

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
			Alive:  c.Alive(m.ID),
		})
	}
	return out
}

// Alive tells whether a member can be reached, as far as gossip knows.
func (c *Cluster) Alive(node string) bool { return node == c.id.NodeID }

// Ready tells whether the node has a catalog to serve, and if not, why.
func (c *Cluster) Ready() error {
	if c.View().ClusterID() == "" {
		return errors.New("cluster: the node is not part of a cluster yet")
	}
	return nil
}

// Call asks a member. A call to Self is answered without the network.
func (c *Cluster) Call(ctx context.Context, node, method string, in []byte) ([]byte, error) {
	if node == c.id.NodeID {
		h := c.handlers[method]
		if h == nil {
			return nil, fmt.Errorf("cluster: no method %s", method)
		}
		return h(ctx, c.self(), in)
	}
	return nil, fmt.Errorf("cluster: node %s cannot be reached", node)
}

func (c *Cluster) self() Peer {
	return Peer{Cluster: c.clusterID(), Node: c.id.NodeID, Epoch: c.id.epoch()}
}

// Stream is Call with a long answer, on a connection of its own. The error
// of a broken stream comes from Read.
func (c *Cluster) Stream(ctx context.Context, node, method string, in []byte) (io.ReadCloser, error) {
	if node != c.id.NodeID {
		return nil, fmt.Errorf("cluster: node %s cannot be reached", node)
	}
	h := c.streams[method]
	if h == nil {
		return nil, fmt.Errorf("cluster: no method %s", method)
	}
	r, w := io.Pipe()
	go func() { w.CloseWithError(h(ctx, c.self(), in, w)) }()
	return r, nil
}

// SetLoad sets what gossip tells the others of this node.
func (c *Cluster) SetLoad(Load) {}
