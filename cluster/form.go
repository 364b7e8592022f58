package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster/wire"
)

// How a node without a cluster enters one.
//
// It watches the nodes that gossip shows. If one is in a cluster, it asks to join that. If
// BootstrapExpect nodes have no cluster, the one with the lowest id founds one, with itself as the
// only voter, and the others join:
//	lowest                           others
//	choose an id, in memory only
//	promise? ----------------------> not promised: write the promise down
//	all N-1 promised:
//	write the id down, bootstrap
//	gossip tells the id -----------> join
// A node promises to one founder only, and its promise survives a crash. So two founders among the
// same N nodes cannot both succeed. A founder that gives up, or restarts before it wrote the id
// down, never uses that id again. Nodes that promised ask the founder, and are then free. If a
// founder is lost for good, its promised nodes form no cluster rather than a second one; the log
// tells what to do.

// Methods between nodes without a cluster.
const (
	methodPromise = "cluster.promise"
	methodAttempt = "cluster.attempt"
)

// Times at Timing 1.
const (
	formPause  = 500 * time.Millisecond
	formTime   = 5 * time.Second  // for one call
	settleTime = 2 * time.Second  // how long the set of nodes must be stable before one founds
	sayTime    = 10 * time.Second // between log lines about what the node waits for
	joinTime   = 30 * time.Second
)

type promiseRequest struct {
	Cluster, Founder string
	Expect           int
}

// formation brings this node into a cluster.
type formation struct {
	*env
	self    *self
	network *network
	replica *replica

	alone  bool // expects no others
	expect int  // nodes that form a cluster together

	attempt   string // id of the cluster that this node tries to found; "": none
	lastNodes string // the nodes present at the last look
	since     time.Time
	lastLog   time.Time
}

// registerHandlers registers the handlers for nodes without a cluster.
func (f *formation) registerHandlers() {
	f.network.port.HandleJoin(methodPromise, f.servePromise)
	f.network.port.HandleJoin(methodAttempt, f.serveAttempt)
}

// foundsAlone reports whether this node should found a cluster of one, or was founding one when it
// stopped.
func (f *formation) foundsAlone() bool {
	return f.self.founding() || f.alone && f.self.cluster() == "" && f.self.promised().Cluster == ""
}

// foundAlone founds a cluster with this node as its only voter, before raft starts. The id is
// written first, so that the next start can finish after a crash.
func (f *formation) foundAlone(trans *transport) error {
	if !f.self.founding() {
		if err := f.self.recordFounding(randomID()); err != nil {
			return err
		}
	}
	if err := f.network.port.SetCluster(f.self.cluster()); err != nil {
		return err
	}
	return f.replica.bootstrap(trans)
}

// run brings the node into a cluster, unless it is in one.
func (f *formation) run(ctx context.Context) {
	// A member of a cluster does not join another one. Tell the operator who expects that.
	if cluster := f.self.cluster(); cluster != "" && len(f.network.o.Join) > 0 && len(f.replica.servers()) == 1 {
		f.log.Warn("--join has no effect: this node is the only one of its cluster. To join another cluster, start with an empty data directory and the key of that cluster", "cluster", cluster)
	}
	for f.self.cluster() == "" {
		if err := f.joinOrFound(ctx); err != nil {
			f.logReason(err)
		}
		if !f.pause(ctx, f.scaled(formPause)) {
			return
		}
	}
}

// logReason logs what the node waits for, from time to time.
func (f *formation) logReason(err error) {
	if clock.Since(f.lastLog) < f.scaled(sayTime) {
		return
	}
	f.lastLog = clock.Now()
	f.log.Info("not part of a cluster yet", "reason", err)
}

// joinOrFound looks at the other nodes once, and joins or founds a cluster if possible. The error
// tells what this node waits for.
func (f *formation) joinOrFound(ctx context.Context) error {
	var members, clusterless []peer
	for _, p := range f.network.peers() {
		switch {
		case !p.Alive:
		case p.Cluster != "":
			members = append(members, p)
		default:
			clusterless = append(clusterless, p)
		}
	}

	// An existing cluster is always joined, whatever was promised before.
	promise := f.self.promised()
	if len(members) > 0 {
		f.setAttempt("")
		return f.join(ctx, members, promise)
	}

	if promise.Cluster != "" && promise.Founder != f.self.node {
		return f.recheckPromise(ctx, clusterless, promise)
	}
	return f.tryToFound(ctx, clusterless)
}

func (f *formation) setAttempt(id string) {
	f.self.setAttempt(id)
	f.attempt = id
}

// join asks the members one by one to admit this node.
func (f *formation) join(ctx context.Context, members []peer, p promise) error {
	members = currentMembers(members)
	for _, m := range members[1:] {
		if m.Cluster != members[0].Cluster {
			return fmt.Errorf("there are two clusters under this cluster key, %s of node %s and %s of node %s: give each its own key", members[0].Cluster, members[0].Node, m.Cluster, m.Node)
		}
	}

	if p.Cluster != "" && p.Cluster != members[0].Cluster {
		return fmt.Errorf("this node promised node %s to join cluster %s, but %s is here: move the data directory away to join it", p.Founder, p.Cluster, members[0].Cluster)
	}

	in, err := json.Marshal(f.network.memberRecord())
	if err != nil {
		return err
	}

	var last error
	for _, m := range members {
		out, err := f.callNode(ctx, m, joinTime, methodJoin, in)
		if err == nil {
			return f.enterCluster(string(out))
		}

		// A refusal is final: every other member would decide the same.
		if refused := refusalIn(err); refused != nil {
			f.fail(refused)
		}
		last = err
	}
	return fmt.Errorf("no member of cluster %s lets this node in: %w", members[0].Cluster, last)
}

// callNode calls another node, which may be in no cluster.
func (f *formation) callNode(ctx context.Context, p peer, atMost time.Duration, method string, in []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, f.scaled(atMost))
	defer cancel()
	return f.network.port.CallJoin(ctx, wire.Target{Node: p.Node, Addr: p.meta.Addr}, method, in)
}

// enterCluster stores that this node belongs to a cluster, and gives the cluster's id to the network.
func (f *formation) enterCluster(cluster string) error {
	err := f.self.recordCluster(cluster)
	if err == nil {
		err = f.network.enterCluster(cluster)
	}
	if err != nil {
		f.fail(err)
		return err
	}
	f.log.Info("joined the cluster", "cluster", cluster)
	return nil
}

// recheckPromise asks the founder to whom this node has promised to join whether it gave up. If so,
// the promise ends.
func (f *formation) recheckPromise(ctx context.Context, clusterless []peer, p promise) error {
	// While the founder does not answer it may still succeed, so the promise stays.
	i := slices.IndexFunc(clusterless, func(o peer) bool { return o.Node == p.Founder })
	if i < 0 {
		return fmt.Errorf("this node promised node %s to join the cluster that it founds, and that node is not there: start it. If it is lost for good, move this data directory away", p.Founder)
	}

	out, err := f.callNode(ctx, clusterless[i], formTime, methodAttempt, []byte(p.Cluster))
	if err != nil {
		return fmt.Errorf("ask the founder: %w", err)
	}
	if string(out) == "given up" {
		return f.self.endPromise()
	}
	return nil
}

// serveAttempt answers whether this node still tries to found a cluster.
func (f *formation) serveAttempt(_ context.Context, _ Peer, in []byte) ([]byte, error) {
	if f.self.stillFounds(string(in)) {
		return []byte("stands"), nil
	}
	return []byte("given up"), nil
}

// tryToFound founds a cluster if this node has the lowest id and all the others promise to join.
func (f *formation) tryToFound(ctx context.Context, clusterless []peer) error {
	if f.expect == 1 {
		return errors.New("no member of a cluster is there to join: none runs at an address of --join, or its cluster key is another than this node's")
	}

	// Ignore nodes that expect only themselves: they just join.
	clusterless = slices.DeleteFunc(slices.Clone(clusterless), func(p peer) bool { return p.Expect <= 1 })
	if err := f.mayFound(clusterless); err != nil {
		return err
	}

	if f.attempt == "" {
		f.setAttempt(randomID())
	}
	if err := f.collectPromises(ctx, clusterless); err != nil {
		f.setAttempt("") // never used again, so nodes that promised become free
		return err
	}
	return f.foundCluster(f.attempt)
}

// mayFound returns why this node must not found a cluster with the others now, or nil. A change of the
// visible nodes restarts the time that it waits for others.
func (f *formation) mayFound(others []peer) error {
	ids := []string{f.self.node}
	for _, p := range others {
		if p.Expect != f.expect {
			return fmt.Errorf("node %s expects %d nodes and this one %d: start both with the same --bootstrap-expect", p.Node, p.Expect, f.expect)
		}
		ids = append(ids, p.Node)
	}
	slices.Sort(ids)
	// The set of nodes changed: restart the settle time.
	if now := strings.Join(ids, " "); now != f.lastNodes {
		f.lastNodes, f.since = now, clock.Now()
	}

	// All nodes expect the same number and see the same nodes. The lowest id founds.
	switch {
	case len(ids) < f.expect:
		f.setAttempt("")
		return fmt.Errorf("%d of %d nodes are there", len(ids), f.expect)
	case ids[0] != f.self.node:
		f.setAttempt("")
		return fmt.Errorf("node %s is to found the cluster", ids[0])
	case clock.Since(f.since) < f.scaled(settleTime):
		return errors.New("all nodes are there; waiting a moment for others")
	}
	return nil
}

// collectPromises gets the promises of the other nodes that are needed, those with the lowest ids.
func (f *formation) collectPromises(ctx context.Context, clusterless []peer) error {
	in, err := json.Marshal(promiseRequest{f.attempt, f.self.node, f.expect})
	if err != nil {
		return err
	}

	// Two founders must ask the same nodes if there are more than needed.
	slices.SortFunc(clusterless, func(a, b peer) int { return strings.Compare(a.Node, b.Node) })
	for _, p := range clusterless[:max(0, f.expect-1)] {
		if _, err := f.callNode(ctx, p, formTime, methodPromise, in); err != nil {
			return fmt.Errorf("node %s does not promise to join: %w", p.Node, err)
		}
	}
	return nil
}

// servePromise promises a founder that this node will join its cluster and no other.
func (f *formation) servePromise(_ context.Context, from Peer, in []byte) ([]byte, error) {
	var r promiseRequest
	if err := json.Unmarshal(in, &r); err != nil || r.Cluster == "" || r.Founder != from.Node {
		return nil, errors.New("cluster: malformed promise")
	}
	if r.Expect != f.expect {
		return nil, fmt.Errorf("node %s expects %d nodes, not %d", f.self.node, f.expect, r.Expect)
	}
	return nil, f.self.recordPromise(promise{Founder: r.Founder, Cluster: r.Cluster})
}

// foundCluster founds the cluster. After a crash, the next start of this node finishes it.
func (f *formation) foundCluster(cluster string) error {
	err := f.self.recordFounding(cluster)
	if errors.Is(err, errBound) {
		return err
	}

	if err == nil {
		// This node is the only voter at first. The others join one by one.
		err = f.replica.raft.BootstrapCluster(f.replica.onlySelf()).Error()
	}
	if err == nil {
		err = f.network.enterCluster(cluster)
	}
	if err != nil {
		f.fail(fmt.Errorf("cluster: make a new cluster: %w", err))
		return err
	}

	f.log.Info("founded the cluster", "cluster", cluster)
	f.replica.trans.electSelf(f.self.node)
	return nil
}
