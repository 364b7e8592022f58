package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/raft"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/wire"
)

// How a node is admitted: any member forwards its request to the leader. The leader makes the node
// a non-voter, so that it receives the log. The node then announces itself, and so enters the
// catalog.

const methodJoin = "cluster.join" // called by a node without a cluster

// Methods that members call.
const (
	methodAdmit    = "cluster.admit"
	methodAnnounce = "cluster.announce"
)

// admission admits other nodes, and keeps this node's own record in the catalog up to date. Every
// member refuses a node that runs on a copied data directory.
type admission struct {
	*env
	network    *network
	replica    *replica
	proposer   *proposer
	twins      *twins
	succession *succession
}

// registerHandlers registers the handlers for other nodes.
func (a *admission) registerHandlers() {
	a.network.port.HandleJoin(methodJoin, a.serveJoin)
	a.network.handle(methodAdmit, a.serveAdmit)
	a.network.handle(methodAnnounce, a.serveAnnounce)
}

// memberRecord returns this node's record for the catalog.
func (n *network) memberRecord() catalog.Member {
	return catalog.Member{
		ID:      n.self.node,
		Epoch:   n.self.epoch,
		Addr:    n.clusterAddr(),
		Gossip:  n.gossip.Addr(),
		API:     n.o.API,
		Zone:    n.o.Zone,
		Weight:  uint32(n.o.Weight * 100),
		Version: n.o.Version,
		Lowest:  n.o.Build.Lowest,
		Highest: n.o.Build.Highest(),
	}
}

// serveJoin admits a node, with the help of the leader.
func (a *admission) serveJoin(ctx context.Context, from Peer, in []byte) ([]byte, error) {
	var m catalog.Member
	// A node can only join under the name in its certificate.
	if err := json.Unmarshal(in, &m); err != nil || m.ID != from.Node {
		return nil, errors.New("cluster: malformed request to join")
	}
	if why := a.succession.stopReason(); why != nil {
		return nil, why
	}

	cluster := a.network.self.cluster()
	if cluster == "" || from.Cluster != "" && from.Cluster != cluster {
		return nil, fmt.Errorf("node %s cannot let in node %s of cluster %q", a.network.self.node, from.Node, from.Cluster)
	}

	// The leader decides: a follower may not know yet that the node was removed.
	leader, err := a.proposer.findLeader(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := a.network.call(ctx, leader, methodAdmit, in); err != nil {
		return nil, err
	}
	return []byte(cluster), nil
}

// serveAdmit makes a node a non-voter, so that it receives the log.
func (a *admission) serveAdmit(ctx context.Context, _ Peer, in []byte) ([]byte, error) {
	var m catalog.Member
	if err := json.Unmarshal(in, &m); err != nil || m.ID == "" {
		return nil, errors.New("cluster: malformed request to join")
	}

	if !a.replica.leading.Load() {
		return nil, errNotLeader
	}

	// Refuse a removed node, and an older start of a member.
	if old := a.replica.view().Member(m.ID); old != nil {
		if err := a.network.admit(Peer{Node: m.ID, Epoch: m.Epoch}, wire.Call); err != nil {
			return nil, err
		}
	}

	if refused := a.replica.view().Excludes(&m); refused != nil {
		return nil, fmt.Errorf(refusal+"%w", refused)
	}

	if slices.ContainsFunc(a.replica.servers(), func(s raft.Server) bool { return string(s.ID) == m.ID }) {
		return nil, nil
	}

	f := a.replica.raft.AddNonvoter(raft.ServerID(m.ID), raft.ServerAddress(m.ID), 0, timeLeft(ctx))
	if err := waitFuture(ctx, f); err != nil {
		return nil, translateRaftError(err)
	}
	a.log.Info("a node joins", "peer", m.ID, "addr", m.Addr)
	return nil, nil
}

// announce writes this start of the node into the catalog, and again whenever the record there is
// outdated.
func (a *admission) announce(ctx context.Context) {
	wait := announceSoon
	for {
		changed := a.replica.machine.nextChange()
		if err := a.announceOnce(ctx); err != nil {
			if refusal := refusalIn(err); refusal != nil {
				a.fail(refusal)
				return
			}
			a.log.Debug("not announced yet", "error", err)
			if !a.pause(ctx, a.scaled(wait)) {
				return
			}

			// Keep the short wait while the cluster is being founded: its leader appears in a
			// moment, and jobs are only granted to announced nodes.
			if a.network.self.cluster() != "" {
				wait = min(2*wait, announcePause)
			}
			continue
		}

		wait = announceSoon
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// announceOnce announces this node unless its record in the catalog is right.
func (a *admission) announceOnce(ctx context.Context) error {
	cluster := a.network.self.cluster()
	if cluster == "" {
		return errors.New("not part of a cluster yet")
	}

	// The record may be from another start of this node, so that this start is refused.
	v := a.replica.view()
	want := a.network.memberRecord()
	if m := v.Member(want.ID); m != nil && v.ClusterID() == cluster {
		if err := a.network.admit(a.network.port.Self(), wire.Call); err != nil {
			return err
		}

		if ownFields(m) == want {
			return a.network.self.endFounding()
		}
	}

	// Call the leader: a node that is not admitted yet cannot propose by itself.
	ctx, cancel := context.WithTimeout(ctx, a.scaled(joinTime))
	defer cancel()
	in, err := json.Marshal(want)
	if err != nil {
		return err
	}
	leader, err := a.proposer.findLeader(ctx)
	if err != nil {
		return err
	}
	_, err = a.network.call(ctx, leader, methodAnnounce, in)
	return err
}

// ownFields returns the part of a record that the node itself sets when it announces itself. If
// other fields counted as a difference, the node would announce itself endlessly.
func ownFields(m *catalog.Member) catalog.Member {
	return catalog.Member{ID: m.ID, Epoch: m.Epoch, Addr: m.Addr, Gossip: m.Gossip, API: m.API, Zone: m.Zone, Weight: m.Weight, Version: m.Version, Lowest: m.Lowest, Highest: m.Highest}
}

// serveAnnounce writes a start of a node into the catalog, as the leader.
func (a *admission) serveAnnounce(ctx context.Context, from Peer, in []byte) ([]byte, error) {
	var m catalog.Member
	if err := json.Unmarshal(in, &m); err != nil || m.ID != from.Node || m.Epoch != from.Epoch {
		return nil, errors.New("cluster: malformed announcement")
	}

	if !a.replica.leading.Load() {
		return nil, errNotLeader
	}

	// Detect a copy of a running node before writing anything about this one.
	if err := a.twins.refuseTwin(ctx, from, m.Addr); err != nil {
		return nil, err
	}
	if _, err := a.serveAdmit(ctx, from, in); err != nil {
		return nil, err
	}

	_, err := a.proposer.propose(ctx, &catalog.InitCluster{ID: a.network.self.cluster()}, &catalog.PutMember{Member: m})
	if refused, ok := catalog.Refused(err); ok {
		return nil, fmt.Errorf(refusal+"%w", refused)
	}
	return nil, err
}
