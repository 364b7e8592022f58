package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/raft"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/wire"
)

// How a node without a cluster comes into one.
//
// It looks at the others that gossip shows. Is one of them in a cluster, it
// asks to be let in. Are there BootstrapExpect nodes without one, the lowest
// id founds a cluster, with itself as the only voter, and the others join:
//
//	lowest                           others
//	choose an id, in memory only
//	promise? ----------------------> not promised: write the promise down
//	all N-1 promised:
//	write the id down, bootstrap
//	gossip tells the id -----------> join
//
// A node promises to one founder at a time, and its promise outlives a crash,
// so no two founders of the same N nodes can both succeed. A founder that
// gives up, or starts again before it wrote the id down, never uses that
// id; whoever promised asks it and is then free. A founder that is gone for
// good while the others are bound to it leaves no cluster rather than two:
// the log says what to do.

// Methods of calls from and to nodes that are in no cluster.
const (
	methodPromise = "cluster.promise"
	methodAttempt = "cluster.attempt"
	methodJoin    = "cluster.join"
)

// Methods among members.
const (
	methodAdmit    = "cluster.admit"
	methodAnnounce = "cluster.announce"
	methodLeader   = "cluster.leader"
	methodEpoch    = "cluster.epoch"
)

// Times of forming, at Timing 1.
const (
	formPause  = 500 * time.Millisecond
	formTime   = 5 * time.Second  // for one call
	settleTime = 2 * time.Second  // how long the same nodes must be seen before one founds
	sayTime    = 10 * time.Second // between log lines that say what is waited for
	joinTime   = 30 * time.Second
)

type promiseRequest struct {
	Cluster, Founder string
	Expect           int
}

// former is the attempt of this node to found or join a cluster.
type former struct {
	c       *Cluster
	attempt string // id of the cluster that this node tries to found; empty when it does not
	seen    string // the nodes seen at the last look
	since   time.Time
	said    time.Time
}

// handleForming answers what nodes without a cluster ask.
func (c *Cluster) handleForming() {
	c.port.HandleJoin(methodPromise, c.servePromise)
	c.port.HandleJoin(methodAttempt, c.serveAttempt)
	c.port.HandleJoin(methodJoin, c.serveJoin)
	c.Handle(methodAdmit, c.serveAdmit)
	c.Handle(methodAnnounce, c.serveAnnounce)
	c.Handle(methodEpoch, func(context.Context, Peer, []byte) ([]byte, error) { return fmt.Append(nil, c.id.epoch()), nil })
	c.Handle(methodLeader, func(context.Context, Peer, []byte) ([]byte, error) { return []byte(c.Leader()), nil })
}

// form brings the node into a cluster, if it is in none.
func (c *Cluster) form(ctx context.Context) {
	f := &former{c: c}
	for c.clusterID() == "" {
		if err := f.step(ctx); err != nil {
			f.say(err)
		}
		if !c.pause(ctx, c.scaled(formPause)) {
			return
		}
	}
}

// say logs what is waited for, now and then.
func (f *former) say(err error) {
	if time.Since(f.said) < f.c.scaled(sayTime) {
		return
	}
	f.said = time.Now()
	f.c.log.Info("not part of a cluster yet", "reason", err)
}

// step looks once, and does what can be done.
func (f *former) step(ctx context.Context) error {
	var members, loose []peer
	for _, p := range f.c.peers() {
		switch {
		case !p.Alive:
		case p.Cluster != "":
			members = append(members, p)
		default:
			loose = append(loose, p)
		}
	}
	promise := f.c.promised()
	if len(members) > 0 {
		f.setAttempt("")
		return f.join(ctx, members, promise)
	}
	if promise.Cluster != "" && promise.Founder != f.c.id.NodeID {
		return f.recheck(ctx, loose, promise)
	}
	return f.found(ctx, loose)
}

func (f *former) setAttempt(id string) {
	f.c.idMu.Lock()
	defer f.c.idMu.Unlock()
	f.c.attempt = id
	f.attempt = id
}

func (c *Cluster) promised() promise {
	c.idMu.Lock()
	defer c.idMu.Unlock()
	return c.id.Promise
}

// join asks one of the members after the other to be let in.
func (f *former) join(ctx context.Context, members []peer, p promise) error {
	c := f.c
	for _, m := range members[1:] {
		if m.Cluster != members[0].Cluster {
			return fmt.Errorf("there are two clusters under this cluster key, %s of node %s and %s of node %s: give each its own key", members[0].Cluster, members[0].Node, m.Cluster, m.Node)
		}
	}
	if p.Cluster != "" && p.Cluster != members[0].Cluster {
		return fmt.Errorf("this node promised node %s to join cluster %s, but %s is here: empty the data directory to join it", p.Founder, p.Cluster, members[0].Cluster)
	}
	in, err := json.Marshal(c.memberRecord())
	if err != nil {
		return err
	}
	var last error
	for _, m := range members {
		ctx, cancel := context.WithTimeout(ctx, c.scaled(joinTime))
		out, err := c.port.CallJoin(ctx, wire.Target{Node: m.Node, Addr: m.meta.Addr}, methodJoin, in)
		cancel()
		if err != nil {
			last = err
			if no := refusalIn(err); no != nil {
				c.fail(no)
			}
			continue
		}
		return c.enter(string(out))
	}
	return fmt.Errorf("no member of cluster %s lets this node in: %w", members[0].Cluster, last)
}

// enter writes down that this node belongs to a cluster, and says so.
func (c *Cluster) enter(cluster string) error {
	c.idMu.Lock()
	c.id.ClusterID, c.id.Promise = cluster, promise{}
	err := c.id.save()
	c.idMu.Unlock()
	if err != nil {
		c.fail(err)
		return err
	}
	if err := c.port.SetCluster(cluster); err != nil {
		c.fail(err)
		return err
	}
	c.gossip.SetMeta(c.ownMeta())
	c.log.Info("joined the cluster", "cluster", cluster)
	return nil
}

// recheck asks the founder that this node is bound to how it goes.
func (f *former) recheck(ctx context.Context, loose []peer, p promise) error {
	c := f.c
	i := slices.IndexFunc(loose, func(o peer) bool { return o.Node == p.Founder })
	if i < 0 {
		return fmt.Errorf("this node promised node %s to join the cluster that it founds, and that node is not there: start it; if it is lost for good, empty this data directory", p.Founder)
	}
	ctx, cancel := context.WithTimeout(ctx, c.scaled(formTime))
	defer cancel()
	out, err := c.port.CallJoin(ctx, wire.Target{Node: p.Founder, Addr: loose[i].meta.Addr}, methodAttempt, []byte(p.Cluster))
	if err != nil {
		return fmt.Errorf("ask the founder: %w", err)
	}
	if string(out) == "given up" {
		return c.setPromise(promise{})
	}
	return nil
}

func (c *Cluster) setPromise(p promise) error {
	c.idMu.Lock()
	defer c.idMu.Unlock()
	c.id.Promise = p
	return c.id.save()
}

// serveAttempt tells whether this node still means to found a cluster.
func (c *Cluster) serveAttempt(_ context.Context, _ Peer, in []byte) ([]byte, error) {
	c.idMu.Lock()
	defer c.idMu.Unlock()
	if id := string(in); id != "" && (id == c.attempt || id == c.id.ClusterID) {
		return []byte("stands"), nil
	}
	return []byte("given up"), nil
}

// found founds a cluster when this node is the one to do it.
func (f *former) found(ctx context.Context, loose []peer) error {
	c := f.c
	expect := c.o.BootstrapExpect
	if expect == 1 {
		return errors.New("no member of a cluster is there to join")
	}
	// Nodes that expect none but themselves only join.
	loose = slices.DeleteFunc(slices.Clone(loose), func(p peer) bool { return p.Expect <= 1 })
	ids := []string{c.id.NodeID}
	for _, p := range loose {
		if p.Expect != expect {
			return fmt.Errorf("node %s expects %d nodes and this one %d: start both with the same --bootstrap-expect", p.Node, p.Expect, expect)
		}
		ids = append(ids, p.Node)
	}
	slices.Sort(ids)
	if now := strings.Join(ids, " "); now != f.seen {
		f.seen, f.since = now, time.Now()
	}
	if len(ids) < expect {
		f.setAttempt("")
		return fmt.Errorf("%d of %d nodes are there", len(ids), expect)
	}
	if ids[0] != c.id.NodeID {
		f.setAttempt("")
		return fmt.Errorf("node %s is to found the cluster", ids[0])
	}
	if time.Since(f.since) < c.scaled(settleTime) {
		return errors.New("all nodes are there; waiting a moment for others")
	}
	if f.attempt == "" {
		f.setAttempt(randomID())
	}
	if err := f.collect(ctx, loose); err != nil {
		f.setAttempt("") // never used again: whoever promised is free
		return err
	}
	return c.foundNow(f.attempt)
}

// collect gets the promises of enough others, by id.
func (f *former) collect(ctx context.Context, loose []peer) error {
	c := f.c
	in, err := json.Marshal(promiseRequest{f.attempt, c.id.NodeID, c.o.BootstrapExpect})
	if err != nil {
		return err
	}
	slices.SortFunc(loose, func(a, b peer) int { return strings.Compare(a.Node, b.Node) })
	for _, p := range loose[:max(0, c.o.BootstrapExpect-1)] {
		ctx, cancel := context.WithTimeout(ctx, c.scaled(formTime))
		_, err := c.port.CallJoin(ctx, wire.Target{Node: p.Node, Addr: p.meta.Addr}, methodPromise, in)
		cancel()
		if err != nil {
			return fmt.Errorf("node %s does not promise to join: %w", p.Node, err)
		}
	}
	return nil
}

// servePromise binds this node to a founder.
func (c *Cluster) servePromise(_ context.Context, from Peer, in []byte) ([]byte, error) {
	var r promiseRequest
	if err := json.Unmarshal(in, &r); err != nil || r.Cluster == "" || r.Founder != from.Node {
		return nil, errors.New("cluster: malformed promise")
	}
	c.idMu.Lock()
	defer c.idMu.Unlock()
	p := promise{Founder: r.Founder, Cluster: r.Cluster}
	switch {
	case c.id.ClusterID != "":
		return nil, fmt.Errorf("node %s is part of cluster %s already", c.id.NodeID, c.id.ClusterID)
	case r.Expect != c.o.BootstrapExpect:
		return nil, fmt.Errorf("node %s expects %d nodes, not %d", c.id.NodeID, c.o.BootstrapExpect, r.Expect)
	case c.id.Promise == p:
		return nil, nil
	case c.id.Promise.Cluster != "":
		return nil, fmt.Errorf("node %s is bound to node %s", c.id.NodeID, c.id.Promise.Founder)
	case c.attempt != "":
		return nil, fmt.Errorf("node %s founds a cluster itself", c.id.NodeID)
	}
	c.id.Promise = p
	return nil, c.id.save()
}

// foundNow makes the cluster. From here on a crash is finished by the next
// start of this node.
func (c *Cluster) foundNow(cluster string) error {
	c.idMu.Lock()
	if c.id.Promise.Cluster != "" || c.id.ClusterID != "" {
		c.idMu.Unlock()
		return errors.New("this node was bound to another founder")
	}
	c.id.ClusterID, c.id.Founding = cluster, true
	err := c.id.save()
	c.idMu.Unlock()
	if err == nil {
		err = c.raft.BootstrapCluster(c.onlySelf()).Error()
	}
	if err == nil {
		err = c.port.SetCluster(cluster)
	}
	if err != nil {
		c.fail(fmt.Errorf("cluster: make a new cluster: %w", err))
		return err
	}
	c.log.Info("founded the cluster", "cluster", cluster)
	c.trans.electSelf(c.id.NodeID)
	c.gossip.SetMeta(c.ownMeta())
	return nil
}

// memberRecord is this node as the catalog shall have it.
func (c *Cluster) memberRecord() catalog.Member {
	return catalog.Member{ID: c.id.NodeID, Epoch: c.id.epoch(), Addr: c.ClusterAddr(), Gossip: c.GossipAddr(), API: c.o.API,
		Zone: c.o.Zone, Weight: uint32(c.o.Weight * 100), Version: c.o.Version}
}

// serveJoin lets a node in, by way of the leader.
func (c *Cluster) serveJoin(ctx context.Context, from Peer, in []byte) ([]byte, error) {
	var m catalog.Member
	if err := json.Unmarshal(in, &m); err != nil || m.ID != from.Node {
		return nil, errors.New("cluster: malformed request to join")
	}
	cluster := c.clusterID()
	if cluster == "" || from.Cluster != "" && from.Cluster != cluster {
		return nil, fmt.Errorf("node %s cannot let in node %s of cluster %q", c.id.NodeID, from.Node, from.Cluster)
	}
	leader, err := c.findLeader(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := c.Call(ctx, leader, methodAdmit, in); err != nil {
		return nil, err
	}
	return []byte(cluster), nil
}

// serveAdmit makes a node a non-voter. It gets the log from then on.
func (c *Cluster) serveAdmit(ctx context.Context, _ Peer, in []byte) ([]byte, error) {
	var m catalog.Member
	if err := json.Unmarshal(in, &m); err != nil || m.ID == "" {
		return nil, errors.New("cluster: malformed request to join")
	}
	if !c.Leading() {
		return nil, errNotLeader
	}
	if old := c.View().Member(m.ID); old != nil {
		if err := c.admit(Peer{Node: m.ID, Epoch: m.Epoch}, wire.Call); err != nil {
			return nil, err
		}
	}
	if slices.ContainsFunc(c.servers(), func(s raft.Server) bool { return string(s.ID) == m.ID }) {
		return nil, nil
	}
	f := c.raft.AddNonvoter(raft.ServerID(m.ID), raft.ServerAddress(m.ID), 0, timeLeft(ctx))
	if err := wait(ctx, f); err != nil {
		return nil, raftError(err)
	}
	c.log.Info("a node joins", "peer", m.ID, "addr", m.Addr)
	return nil, nil
}

// announce brings this start of the node into the catalog, and again
// whenever what the catalog has of it is no longer true.
func (c *Cluster) announce(ctx context.Context) {
	wait := announceSoon
	for {
		changed := c.Changed()
		if err := c.announceOnce(ctx); err != nil {
			if no := refusalIn(err); no != nil {
				c.fail(no)
				return
			}
			c.log.Debug("not announced yet", "error", err)
			if !c.pause(ctx, c.scaled(wait)) {
				return
			}
			// A cluster that is being founded has its leader in a moment, and
			// no job is granted to a node that is not announced.
			if c.clusterID() != "" {
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

// announceOnce does nothing while the catalog is right.
func (c *Cluster) announceOnce(ctx context.Context) error {
	cluster := c.clusterID()
	if cluster == "" {
		return errors.New("not part of a cluster yet")
	}
	v := c.View()
	want := c.memberRecord()
	if m := v.Member(want.ID); m != nil && v.ClusterID() == cluster {
		if err := c.admit(c.port.Self(), wire.Call); err != nil {
			return err
		}
		have := *m
		have.Number, have.Session, have.State, have.Since, have.Joined = 0, 0, 0, time.Time{}, time.Time{}
		if have == want {
			return c.founded()
		}
	}
	ctx, cancel := context.WithTimeout(ctx, c.scaled(joinTime))
	defer cancel()
	in, err := json.Marshal(want)
	if err != nil {
		return err
	}
	leader, err := c.findLeader(ctx)
	if err != nil {
		return err
	}
	_, err = c.Call(ctx, leader, methodAnnounce, in)
	return err
}

// founded notes that the cluster that this node founds stands.
func (c *Cluster) founded() error {
	c.idMu.Lock()
	defer c.idMu.Unlock()
	if !c.id.Founding {
		return nil
	}
	c.id.Founding = false
	return c.id.save()
}

// serveAnnounce brings a start of a node into the catalog, as the leader.
func (c *Cluster) serveAnnounce(ctx context.Context, from Peer, in []byte) ([]byte, error) {
	var m catalog.Member
	if err := json.Unmarshal(in, &m); err != nil || m.ID != from.Node || m.Epoch != from.Epoch {
		return nil, errors.New("cluster: malformed announcement")
	}
	if !c.Leading() {
		return nil, errNotLeader
	}
	if err := c.refuseTwin(ctx, &m); err != nil {
		return nil, err
	}
	if _, err := c.serveAdmit(ctx, from, in); err != nil {
		return nil, err
	}
	_, err := c.Propose(ctx, &catalog.InitCluster{ID: c.clusterID()}, &catalog.PutMember{Member: m})
	if no, ok := catalog.Refused(err); ok {
		return nil, fmt.Errorf(refusal+"%w", no)
	}
	return nil, err
}

// refuseTwin keeps a copy of a data directory from taking over from the
// original: a start at another address is only believed when the one before
// does not answer any more.
func (c *Cluster) refuseTwin(ctx context.Context, m *catalog.Member) error {
	old := c.View().Member(m.ID)
	if old == nil || old.Addr == m.Addr || old.Epoch == m.Epoch || old.Addr == "" || m.ID == c.id.NodeID {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.scaled(formTime))
	defer cancel()
	out, err := c.port.Call(ctx, wire.Target{Node: m.ID, Addr: old.Addr}, methodEpoch, nil)
	if err != nil || string(out) == fmt.Sprint(m.Epoch) {
		return nil
	}
	return fmt.Errorf(refusal+"node %s runs already, at %s: the data directory was copied; empty one of the two", m.ID, old.Addr)
}

// findLeader is the leader as raft knows it, or as another member does: a
// node that raft does not feed any more hears of no leader itself.
func (c *Cluster) findLeader(ctx context.Context) (string, error) {
	if leader := c.Leader(); leader != "" {
		return leader, nil
	}
	return c.askForLeader(ctx)
}

// askForLeader asks all members at once who leads: one that does not answer
// must not hold up those that know.
func (c *Cluster) askForLeader(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.scaled(formTime))
	defer cancel()
	type said struct {
		leader string
		err    error
	}
	var asked []string
	for _, p := range c.peers() {
		if p.Alive && p.Cluster == c.clusterID() {
			asked = append(asked, p.Node)
		}
	}
	answers := make(chan said, len(asked))
	for _, node := range asked {
		go func() {
			out, err := c.Call(ctx, node, methodLeader, nil)
			answers <- said{string(out), err}
		}()
	}
	last := ErrNoLeader
	for range asked {
		switch a := <-answers; {
		case a.err != nil:
			last = a.err
		case a.leader != "":
			return a.leader, nil
		}
	}
	return "", last
}
