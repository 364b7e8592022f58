package cluster

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// Recover and Restore make a new cluster, with a new id, from one that lost its majority. If nodes
// of the old cluster return, they would serve and take writes for a cluster that was given up. So
// each node reports by gossip which clusters its own has replaced.

// Number of former ids in gossip, and digits of each. Ids are random: 48 bits do not collide by
// chance.
const (
	maxFormer   = 4
	formerDigit = 12
)

// formerIDs returns the former cluster ids as gossip carries them, newest first.
func formerIDs(v *catalog.View) string {
	var out []string
	ids := v.Former()
	for _, id := range slices.Backward(ids[max(0, len(ids)-maxFormer):]) {
		out = append(out, shortID(id))
	}
	return strings.Join(out, ",")
}

func shortID(cluster string) string { return cluster[:min(len(cluster), formerDigit)] }

// hasReplaced reports whether the peer's cluster has replaced the cluster with an id.
func (p peer) hasReplaced(cluster string) bool {
	return cluster != "" && p.Cluster != "" && p.Cluster != cluster && slices.Contains(strings.Split(p.Former, ","), shortID(cluster))
}

// succession watches for a cluster that has replaced this node's own.
type succession struct {
	*env
	network *network
	why     atomic.Pointer[error]
}

// stopReason returns why this node must no longer serve, or nil.
func (s *succession) stopReason() error {
	if why := s.why.Load(); why != nil {
		return *why
	}
	return nil
}

// checkPeers looks for a reachable node whose cluster has replaced this one, and records the reason.
func (s *succession) checkPeers() {
	cluster := s.network.self.cluster()
	for _, p := range s.network.peers() {
		if !p.Alive || !p.hasReplaced(cluster) || s.stopReason() != nil {
			continue
		}
		why := fmt.Errorf("this node belongs to cluster %s, which was given up: an operator has made cluster %s of it, with node %s. Stop this node and move its data directory away; started again it joins the new cluster", shortID(cluster), shortID(p.Cluster), p.Node)
		s.why.Store(&why)
		s.log.Error("the cluster of this node was recovered elsewhere: it answers no more", "reason", why)
	}
}

// currentMembers returns the members whose cluster was not replaced by another member's cluster.
func currentMembers(members []peer) []peer {
	return slices.DeleteFunc(slices.Clone(members), func(m peer) bool {
		return slices.ContainsFunc(members, func(p peer) bool { return p.hasReplaced(m.Cluster) })
	})
}
