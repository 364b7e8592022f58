package chaostest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"time"
)

// nemesis breaks one thing at a time and mends it.
type nemesis struct {
	ctx context.Context
	c   *cluster
	w   *workload
	rng *rand.Rand

	hit       *process // the one node that the fault takes from the others
	hitAt     time.Time
	able      map[string]bool // faults that there was an occasion for
	count     map[string]int
	recovered []time.Duration // from the start of all nodes until all answer
	blows     []lost
}

// lost is a fault that may have taken the leader from the others.
type lost struct {
	at, until time.Time
	leader    string // node id
}

// fault breaks something and returns how to mend it.
type fault struct {
	name string
	run  func(n *nemesis) (mend func() error, err error)
	can  func(n *nemesis) bool // nil: always
}

// errSkipped: there is nothing here that the fault could break.
var errSkipped = errors.New("nothing to break")

func allFaults() []fault {
	link := func(k damageKind) func(n *nemesis) bool {
		return func(n *nemesis) bool { return n.c.net.can(k) }
	}
	whole := func(n *nemesis) bool { return n.healthy() }
	return []fault{
		{"kill", (*nemesis).killOne, nil},
		{"kill-leader", (*nemesis).killLeader, nil},
		{"kill-two", (*nemesis).killTwo, nil},
		{"kill-all", (*nemesis).killAll, nil},
		{"stop", (*nemesis).stopOne, nil},
		{"stop-two", (*nemesis).stopTwo, nil},
		{"isolate", func(n *nemesis) (func() error, error) { return n.isolate(damage{kind: drop}) }, link(drop)},
		{"reject", func(n *nemesis) (func() error, error) { return n.isolate(damage{kind: reject}) }, link(reject)},
		{"one-way-out", func(n *nemesis) (func() error, error) { return n.oneWay(true) }, link(drop)},
		{"one-way-in", func(n *nemesis) (func() error, error) { return n.oneWay(false) }, link(drop)},
		{"bridge", (*nemesis).bridge, link(drop)},
		{"flap", (*nemesis).flap, link(drop)},
		{"lose", func(n *nemesis) (func() error, error) {
			return n.everywhere(damage{kind: lose, percent: []int{1, 10, 30}[n.rng.IntN(3)]})
		}, link(lose)},
		{"quiet", func(n *nemesis) (func() error, error) { return n.everywhere(damage{kind: quiet}) }, link(quiet)},
		{"slow", func(n *nemesis) (func() error, error) {
			return n.everywhere(damage{kind: slow, delay: time.Duration(10+n.rng.IntN(120)) * time.Millisecond})
		}, link(slow)},
		{"flip-shard", func(n *nemesis) (func() error, error) { return n.flip("shards", "*") }, nil},
		{"flip-mirror", func(n *nemesis) (func() error, error) { return n.flip("mirrors", "*") }, nil},
		{"flip-log", func(n *nemesis) (func() error, error) { return n.flip("raft", "raft.db") }, whole},
		{"flip-snapshot", func(n *nemesis) (func() error, error) { return n.flip("raft", "state.bin") }, whole},
		{"wipe-shards", func(n *nemesis) (func() error, error) { return n.wipe("shards") }, nil},
		{"wipe-mirrors", func(n *nemesis) (func() error, error) { return n.wipe("mirrors") }, nil},
		{"rollback", (*nemesis).rollback, whole},
		{"clone-leader", (*nemesis).cloneLeader, whole},
		{"clone-follower", (*nemesis).cloneFollower, whole},
		{"image-back", (*nemesis).imageBack, whole},
		{"forget", (*nemesis).forget, whole},
		{"full", func(n *nemesis) (func() error, error) { return n.fill("") }, func(n *nemesis) bool { return n.c.volumes }},
		{"full-raft", func(n *nemesis) (func() error, error) { return n.fill("raft") }, func(n *nemesis) bool { return n.c.volumes }},
		{"member", (*nemesis).changeMember, whole},
		{"recovered", (*nemesis).startOver, func(n *nemesis) bool { return len(n.c.members()) == 3 && n.healthy() && !n.short() }},
		{"replace-same", (*nemesis).replaceSame, func(n *nemesis) bool { return n.healthy() && !n.short() }},
		{"foreign-config", (*nemesis).foreignConfig, nil},
		{"descriptors", (*nemesis).descriptors, nil},
		{"swap", (*nemesis).swap, func(n *nemesis) bool { return *other != "" }},
	}
}

// run breaks and mends until the context ends.
func (n *nemesis) run() {
	all := allFaults()
	if chosen := chosenFaults(); len(chosen) > 0 {
		all = slices.DeleteFunc(all, func(f fault) bool { return !slices.Contains(chosen, f.name) })
	}
	n.able, n.count = map[string]bool{}, map[string]int{}
	defer func() { <-n.ctx.Done() }()
	for pause(n.ctx, time.Duration(2000+n.rng.IntN(4000))*time.Millisecond) && len(all) > 0 {
		f := all[n.rng.IntN(len(all))]
		if f.can != nil && !f.can(n) {
			continue
		}
		n.able[f.name] = true
		n.one(f)
	}
}

func (n *nemesis) one(f fault) {
	began, leader := time.Now(), n.leaderID()
	// Right after a node was replaced there are two voters, until the new one has
	// been well for a while: without one of them the other cannot lead.
	enough := n.c.voters(n.ctx, n.c.members()) == nil
	during := f.name
	if (f.name == "kill" || f.name == "kill-leader") && n.short() {
		during = "kill-short" // said before the node is gone, since searches begin at any time
	}
	n.w.setDuring(during)
	n.hit = nil
	defer n.w.setDuring(calm)
	mend, err := f.run(n)
	if errors.Is(err, errSkipped) {
		return
	}
	n.count[f.name]++
	if err != nil {
		n.c.violation("fault %s: %v", f.name, err)
	}
	hold := time.Duration(1000+n.rng.IntN(11000)) * time.Millisecond
	blow := enough && n.hit != nil && n.hit == n.c.byID(leader)
	if blow {
		hold = max(hold, leaderLimit) // a new leader must come
	}
	pause(n.ctx, hold)
	if blow {
		n.blows = append(n.blows, lost{n.hitAt, time.Now(), leader})
	}
	if mend == nil {
		return
	}
	if err := mend(); err != nil {
		n.c.violation("mend %s: %v", f.name, err)
	}
	n.c.t.Logf("%s to %s: %s", began.Format("15:04:05.000"), time.Now().Format("15:04:05.000"), f.name)
}

// pick is any member.
func (n *nemesis) pick() *process {
	in := n.c.members()
	return in[n.rng.IntN(len(in))]
}

func (n *nemesis) others(p *process) []*process {
	return slices.DeleteFunc(n.c.members(), func(o *process) bool { return o == p })
}

// leaderID is the id of the leader, if a node tells one.
func (n *nemesis) leaderID() string {
	for _, p := range n.c.members() {
		if s, err := n.c.status(n.ctx, p); err == nil && s.Leader != "" {
			return s.Leader
		}
	}
	return ""
}

// leader is the node that leads, or any.
func (n *nemesis) leader() *process {
	if p := n.c.byID(n.leaderID()); p != nil {
		return p
	}
	return n.pick()
}

// healthy reports whether all members have caught up and there are enough voters:
// one of them may be lost for good.
func (n *nemesis) healthy() bool {
	in := n.c.members()
	for _, p := range in {
		s, err := n.c.status(n.ctx, p)
		if err != nil || s.Leader == "" || len(s.Members) != len(in) {
			return false
		}
		for _, m := range s.Members {
			if m.Health != "alive" || m.Lag > 200 {
				return false
			}
		}
		if s.voters() < 3 {
			return false
		}
	}
	return true
}

// victim is the leader half of the time.
func (n *nemesis) victim() *process {
	if n.rng.IntN(2) == 0 {
		return n.leader()
	}
	return n.pick()
}

// short reports whether some repository has fewer copies than it should, because of
// a fault before: then the loss of a node may take the last one away.
func (n *nemesis) short() bool {
	for _, p := range n.c.members() {
		if s, err := n.c.status(n.ctx, p); err != nil || s.Placement.UnderReplicated > 0 {
			return true
		}
	}
	return false
}

func (n *nemesis) killOne() (func() error, error) { return n.killThese(n.pick()) }

func (n *nemesis) killLeader() (func() error, error) { return n.killThese(n.leader()) }

func (n *nemesis) killTwo() (func() error, error) {
	p := n.pick()
	return n.killThese(p, n.others(p)[0])
}

func (n *nemesis) killThese(list ...*process) (func() error, error) {
	if len(list) == 1 {
		n.hit, n.hitAt = list[0], time.Now()
	}
	n.c.kill(list...)
	return func() error { return n.c.startAll(list) }, nil
}

// swap brings a node to the other program, as an upgrade or the way back does. Some node
// runs each of them afterwards.
func (n *nemesis) swap() (func() error, error) {
	p := n.pick()
	if !slices.ContainsFunc(n.others(p), func(o *process) bool { return o.other == p.other }) {
		return nil, errSkipped
	}
	n.hit, n.hitAt = p, time.Now()
	p.end(syscall.SIGTERM)
	p.mu.Lock()
	p.other = !p.other
	p.mu.Unlock()
	return nil, n.c.start(p)
}

// servingLimit is how long a cluster may take to serve after it lost power.
const servingLimit = 30 * time.Second

func (n *nemesis) killAll() (func() error, error) {
	in := n.c.members()
	n.c.kill(in...)
	return func() error {
		began := time.Now()
		if err := n.c.startAll(in); err != nil {
			return err
		}
		ctx := context.WithoutCancel(n.ctx)
		for _, p := range in {
			err := until(ctx, time.Until(began.Add(servingLimit)), func() error {
				a, err := n.w.ask(ctx, p, query{text: token})
				if err == nil && len(a.Cluster.ShardsMissing) > 0 {
					err = fmt.Errorf("missing: %v", a.Cluster.ShardsMissing)
				}
				return err
			})
			if err != nil {
				return fmt.Errorf("node %d does not serve after all were killed: %w", p.index+1, err)
			}
		}
		n.recovered = append(n.recovered, time.Since(began))
		return nil
	}, nil
}

func (n *nemesis) stopOne() (func() error, error) { return n.stopThese(n.victim()) }

func (n *nemesis) stopTwo() (func() error, error) {
	p := n.pick()
	return n.stopThese(p, n.others(p)[0])
}

// stopThese lets processes sleep. One whose disk seemed to hang for so long
// may end when it wakes up.
func (n *nemesis) stopThese(list ...*process) (func() error, error) {
	if len(list) == 1 {
		n.hit, n.hitAt = list[0], time.Now()
	}
	for _, p := range list {
		p.allowEnd(true)
		p.signal(syscall.SIGSTOP)
	}
	return func() error {
		for _, p := range list {
			p.signal(syscall.SIGCONT)
		}
		pause(context.WithoutCancel(n.ctx), time.Second)
		for _, p := range list {
			p.allowEnd(false)
		}
		return n.c.startAll(list)
	}, nil
}

func (n *nemesis) hurt(from, to *process, d damage) error {
	return n.c.net.hurt(from.index, to.index, d)
}

func (n *nemesis) isolate(d damage) (func() error, error) {
	p := n.victim()
	var errs []error
	for _, o := range n.others(p) {
		errs = append(errs, n.hurt(p, o, d), n.hurt(o, p, d))
	}
	n.hit, n.hitAt = p, time.Now()
	return n.c.net.heal, errors.Join(errs...)
}

func (n *nemesis) oneWay(out bool) (func() error, error) {
	p := n.victim()
	var errs []error
	for _, o := range n.others(p) {
		if out {
			errs = append(errs, n.hurt(p, o, damage{kind: drop}))
		} else {
			errs = append(errs, n.hurt(o, p, damage{kind: drop}))
		}
	}
	return n.c.net.heal, errors.Join(errs...)
}

// bridge cuts one link; both its ends still reach the others.
func (n *nemesis) bridge() (func() error, error) {
	p := n.victim()
	others := n.others(p)
	o := others[n.rng.IntN(len(others))]
	return n.c.net.heal, errors.Join(n.hurt(p, o, damage{kind: drop}), n.hurt(o, p, damage{kind: drop}))
}

// flap isolates a node again and again for moments.
func (n *nemesis) flap() (func() error, error) {
	for range 5 {
		_, err := n.isolate(damage{kind: drop})
		n.hit = nil // not for long
		if err != nil {
			return n.c.net.heal, err
		}
		pause(n.ctx, time.Duration(200+n.rng.IntN(1200))*time.Millisecond)
		if err := n.c.net.heal(); err != nil {
			return nil, err
		}
		pause(n.ctx, time.Duration(200+n.rng.IntN(1200))*time.Millisecond)
	}
	return n.c.net.heal, nil
}

// everywhere damages all links.
func (n *nemesis) everywhere(d damage) (func() error, error) {
	var errs []error
	for _, p := range n.c.members() {
		for _, o := range n.others(p) {
			errs = append(errs, n.hurt(p, o, d))
		}
	}
	return n.c.net.heal, errors.Join(errs...)
}

// changeMember lets the spare node join, or leave when it is there.
func (n *nemesis) changeMember() (func() error, error) {
	if len(n.c.nodes) == n.c.expect {
		return nil, errSkipped
	}
	p := n.c.nodes[n.c.expect]
	if slices.Contains(n.c.members(), p) {
		return nil, n.leave(p)
	}
	if err := p.empty(); err != nil {
		return nil, err
	}
	if err := n.c.start(p); err != nil {
		return nil, err
	}
	ctx := context.WithoutCancel(n.ctx)
	if err := until(ctx, 30*time.Second, func() error { return n.working(ctx, p) }); err != nil {
		return nil, fmt.Errorf("a new node does not join: %w", err)
	}
	p.setMember(true)
	return nil, nil
}

// leave drains a node and removes it.
func (n *nemesis) leave(p *process) error {
	ctx := context.WithoutCancel(n.ctx)
	id := n.idOf(p)
	others := n.others(p)
	err := until(ctx, 90*time.Second, func() error {
		var out struct {
			Done      bool
			Remaining int
		}
		tryCtx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		if err := n.c.call(tryCtx, others[n.rng.IntN(len(others))], "POST", "/api/nodes/"+id+"/drain", map[string]any{}, &out); err != nil {
			return err
		}
		if !out.Done {
			return fmt.Errorf("%d things are left on it", out.Remaining)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("a node is not drained: %w", err)
	}
	p.setMember(false)
	p.allowEnd(true) // the others refuse it from now on
	defer p.allowEnd(false)
	if err := n.remove(id, p); err != nil {
		return err
	}
	n.c.kill(p)
	return nil
}
