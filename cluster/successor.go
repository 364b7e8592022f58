package cluster

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// A cluster that lost its majority is made a new one by Recover or Restore,
// with another id. Nodes of the old one can come back: they would serve and
// take writes for a cluster that an operator has given up. By gossip each node
// tells of which clusters its own was made, so that those nodes learn of it.

// How many former ids a node tells, and how much of each. Ids are random: 48
// bits do not meet by chance.
const (
	formerTold  = 4
	formerDigit = 12
)

// formerOf is the ids of the clusters that one was made of, as gossip tells
// them: the newest first.
func formerOf(v *catalog.View) string {
	var out []string
	ids := v.Former()
	for _, id := range slices.Backward(ids[max(0, len(ids)-formerTold):]) {
		out = append(out, shortID(id))
	}
	return strings.Join(out, ",")
}

func shortID(cluster string) string { return cluster[:min(len(cluster), formerDigit)] }

// succeeds reports whether the cluster of a peer was made of the one with an id.
func (p peer) succeeds(cluster string) bool {
	return cluster != "" && p.Cluster != "" && p.Cluster != cluster && slices.Contains(strings.Split(p.Former, ","), shortID(cluster))
}

// succession is what a node knows of a cluster that took the place of its own.
type succession struct {
	*env
	network *network
	why     atomic.Pointer[error]
}

// reason says why this node must not serve any more, nil while it may.
func (s *succession) reason() error {
	if why := s.why.Load(); why != nil {
		return *why
	}
	return nil
}

// look notes a node of a cluster that was made of this one's.
func (s *succession) look() {
	cluster := s.network.self.cluster()
	for _, p := range s.network.peers() {
		if !p.Alive || !p.succeeds(cluster) || s.reason() != nil {
			continue
		}
		why := fmt.Errorf("this node belongs to cluster %s, which was given up: an operator has made cluster %s of it, with node %s. Stop this node and move its data directory away; started again it joins the new cluster", shortID(cluster), shortID(p.Cluster), p.Node)
		s.why.Store(&why)
		s.log.Error("the cluster of this node was recovered elsewhere: it answers no more", "reason", why)
	}
}

// current are those of the members of clusters whose cluster none of the
// others was made of.
func current(members []peer) []peer {
	return slices.DeleteFunc(slices.Clone(members), func(m peer) bool {
		return slices.ContainsFunc(members, func(p peer) bool { return p.succeeds(m.Cluster) })
	})
}
