package chaostest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
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
		{"full", func(n *nemesis) (func() error, error) { return n.fill("") }, func(n *nemesis) bool { return n.c.volumes }},
		{"full-raft", func(n *nemesis) (func() error, error) { return n.fill("raft") }, func(n *nemesis) bool { return n.c.volumes }},
		{"member", (*nemesis).changeMember, whole},
	}
}

// run breaks and mends until the context ends.
func (n *nemesis) run() {
	all := allFaults()
	if *faults != "" {
		all = slices.DeleteFunc(all, func(f fault) bool { return !slices.Contains(strings.Split(*faults, ","), f.name) })
	}
	n.count = map[string]int{}
	defer func() { <-n.ctx.Done() }()
	for pause(n.ctx, time.Duration(2000+n.rng.IntN(4000))*time.Millisecond) && len(all) > 0 {
		f := all[n.rng.IntN(len(all))]
		if f.can != nil && !f.can(n) {
			continue
		}
		n.one(f)
	}
}

func (n *nemesis) one(f fault) {
	began, leader := time.Now(), n.leaderID()
	n.w.setDuring(f.name)
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
	blow := n.hit != nil && n.hit == n.c.byID(leader)
	if blow {
		hold = max(hold, leaderLimit) // a new leader must come
	}
	pause(n.ctx, hold)
	if blow {
		n.blows = append(n.blows, lost{began, time.Now(), leader})
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

// healthy tells that all members have caught up and there are enough voters:
// one of them may be lost for good.
func (n *nemesis) healthy() bool {
	in := n.c.members()
	for _, p := range in {
		s, err := n.c.status(n.ctx, p)
		if err != nil || s.Leader == "" || len(s.Members) != len(in) {
			return false
		}
		voters := 0
		for _, m := range s.Members {
			if m.Health != "alive" || m.Lag > 200 {
				return false
			}
			if m.Role != "nonvoter" {
				voters++
			}
		}
		if voters < 3 {
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

func (n *nemesis) killOne() (func() error, error) { return n.killThese(n.pick()) }

func (n *nemesis) killLeader() (func() error, error) { return n.killThese(n.leader()) }

func (n *nemesis) killTwo() (func() error, error) {
	p := n.pick()
	return n.killThese(p, n.others(p)[0])
}

func (n *nemesis) killThese(list ...*process) (func() error, error) {
	if len(list) == 1 {
		n.hit = list[0]
	}
	n.c.kill(list...)
	return func() error { return n.c.startAll(list) }, nil
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
		n.hit = list[0]
	}
	for _, p := range list {
		p.allowEnd(true)
		p.signal(syscall.SIGSTOP)
	}
	return func() error {
		for _, p := range list {
			p.signal(syscall.SIGCONT)
		}
		pause(n.ctx, time.Second)
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
	n.hit = p
	var errs []error
	for _, o := range n.others(p) {
		errs = append(errs, n.hurt(p, o, d), n.hurt(o, p, d))
	}
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

// flip kills a node and flips bits in one of its files. A node that then
// refuses to work is emptied and comes back as another one.
func (n *nemesis) flip(part, pattern string) (func() error, error) {
	p := n.pick()
	var files []string
	err := filepath.WalkDir(filepath.Join(p.dir, part), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // it went while we looked
		}
		if ok, _ := filepath.Match(pattern, d.Name()); ok && d.Type().IsRegular() {
			files = append(files, path)
		}
		return nil
	})
	if err != nil || len(files) == 0 {
		return nil, errSkipped
	}
	old := n.idOf(p)
	n.c.kill(p)
	err = flipBits(files[n.rng.IntN(len(files))], n.rng)
	return func() error {
		p.allowEnd(true)
		if err := n.c.start(p); err != nil {
			return err
		}
		ready := until(n.ctx, 15*time.Second, func() error {
			if !p.running() {
				return nil
			}
			_, err := n.w.ask(n.ctx, p, query{text: token})
			return err
		})
		p.allowEnd(false)
		switch {
		case p.running() && ready != nil && n.ctx.Err() == nil:
			return fmt.Errorf("node %d neither works nor ends: %w", p.index+1, ready)
		case p.running():
			return nil
		case part != "raft":
			return fmt.Errorf("node %d ended because of a damaged file in %s:\n%s", p.index+1, part, tail(p.log()))
		}
		return n.replace(p, old)
	}, err
}

func flipBits(path string, rng *rand.Rand) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return err
	}
	for range 1 + rng.IntN(20) {
		at, b := rng.Int64N(info.Size()), make([]byte, 1)
		if _, err := f.ReadAt(b, at); err != nil {
			return err
		}
		b[0] ^= 1 << rng.IntN(8)
		if _, err := f.WriteAt(b, at); err != nil {
			return err
		}
	}
	return nil
}

func (n *nemesis) idOf(p *process) string {
	if s, err := n.c.status(n.ctx, p); err == nil {
		return s.Node
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.id
}

// replace empties a node that refuses to work, starts it as a new one and
// removes the old one.
func (n *nemesis) replace(p *process, old string) error {
	n.count["replaced"]++
	if err := p.empty(); err != nil {
		return err
	}
	p.setMember(true)
	if err := n.c.start(p); err != nil {
		return err
	}
	return n.remove(old, p)
}

// remove takes a node that is gone out of the cluster.
func (n *nemesis) remove(id string, p *process) error {
	ctx := context.WithoutCancel(n.ctx)
	others := n.others(p)
	err := until(ctx, 60*time.Second, func() error {
		o := others[n.rng.IntN(len(others))]
		tryCtx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		_, err := n.c.raw(tryCtx, o, "POST", "/api/nodes/"+id+"/remove?accept_loss=true", map[string]any{})
		if codeOf(err) == 404 {
			return nil // it was removed by the attempt before
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("node %d is not removed: %w", p.index+1, err)
	}
	return nil
}

func (n *nemesis) wipe(part string) (func() error, error) {
	p := n.pick()
	n.c.kill(p)
	err := os.RemoveAll(filepath.Join(p.dir, part))
	return func() error { return n.c.start(p) }, err
}

// rollback puts an old copy of a data directory back, which the node must
// refuse to work with.
func (n *nemesis) rollback() (func() error, error) {
	p := n.pick()
	n.c.kill(p)
	older, newer := p.dir+".older", p.dir+".newer"
	defer os.RemoveAll(older)
	if err := copyDir(p.dir, older); err != nil {
		return nil, err
	}
	life := func() error { return n.working(p) }
	if err := errors.Join(n.c.start(p), until(n.ctx, 20*time.Second, life)); err != nil {
		return nil, skipEnded(n.ctx, err)
	}
	n.c.kill(p)
	if err := errors.Join(copyDir(p.dir, newer), p.empty(), copyDir(older, p.dir)); err != nil {
		return nil, err
	}
	p.allowEnd(true)
	if err := n.c.start(p); err != nil {
		return nil, err
	}
	ctx := context.WithoutCancel(n.ctx)
	err := until(ctx, 30*time.Second, func() error {
		if p.running() {
			return errors.New("a node with an old data directory is not refused")
		}
		return nil
	})
	p.allowEnd(false)
	return func() error {
		defer os.RemoveAll(newer)
		n.c.kill(p)
		if err := errors.Join(p.empty(), copyDir(newer, p.dir)); err != nil {
			return err
		}
		return n.c.start(p)
	}, err
}

func skipEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// working tells that a node is a member of a cluster with a leader.
func (n *nemesis) working(p *process) error {
	s, err := n.c.status(n.ctx, p)
	if err != nil {
		return err
	}
	for _, m := range s.Members {
		if m.ID == s.Node && s.Leader != "" && m.Lag == 0 {
			_, err := n.c.raw(n.ctx, p, "GET", "/readyz", nil)
			return err
		}
	}
	return errors.New("it is no member yet")
}

func copyDir(from, to string) error {
	out, err := exec.Command("cp", "-a", from+"/.", to).CombinedOutput()
	if err != nil {
		if mkErr := os.MkdirAll(to, 0o700); mkErr == nil {
			out, err = exec.Command("cp", "-a", from+"/.", to).CombinedOutput()
		}
	}
	if err != nil {
		return fmt.Errorf("copy %s: %w: %s", from, err, out)
	}
	return nil
}

// fill fills a volume of a node. It may end; it must work again once there is
// room.
func (n *nemesis) fill(part string) (func() error, error) {
	p := n.victim()
	ballast := filepath.Join(p.dir, part, "ballast")
	p.allowEnd(part == "raft")
	f, err := os.Create(ballast)
	if err != nil {
		return nil, err
	}
	block := make([]byte, 1<<20)
	for size := len(block); size >= 4096; {
		if _, err := f.Write(block[:size]); err != nil {
			size /= 2
		}
	}
	f.Close()
	return func() error {
		if err := os.Remove(ballast); err != nil {
			return err
		}
		pause(n.ctx, time.Second)
		p.allowEnd(false)
		return n.c.start(p)
	}, nil
}

// changeMember lets the spare node join, or leave when it is there.
func (n *nemesis) changeMember() (func() error, error) {
	for _, p := range n.c.nodes[n.c.expect:] {
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
		if err := until(ctx, 30*time.Second, func() error { return n.working(p) }); err != nil {
			return nil, fmt.Errorf("a new node does not join: %w", err)
		}
		p.setMember(true)
		return nil, nil
	}
	return nil, errSkipped
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
