package chaostest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
)

// refusedLimit is how long the copy of a node that runs may take to end.
const refusedLimit = 10 * time.Second

// snap copies the data directory of a node that runs, all of it as it is at
// one moment.
func (n *nemesis) snap(p *process, to string) error {
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	p.signal(syscall.SIGSTOP)
	defer p.signal(syscall.SIGCONT)
	return copyDir(p.dir, to)
}

// logged is what a node has written to its log so far.
func logged(p *process) string {
	data, _ := os.ReadFile(p.log()) // none before the first start
	return string(data)
}

// clone starts a copy of a running node's data directory on another host. The
// copy must end by itself and the original must not notice.
func (n *nemesis) clone(p *process) (func() error, error) {
	if len(n.c.nodes) == n.c.expect {
		return nil, errSkipped
	}
	host := n.c.nodes[n.c.expect]
	if host.running() || p == host {
		return nil, errSkipped
	}
	image := p.dir + ".image"
	defer os.RemoveAll(image)
	if err := errors.Join(n.snap(p, image), host.empty(), copyDir(image, host.dir)); err != nil {
		return nil, err
	}

	before := logged(host)
	host.allowEnd(true)
	if err := n.c.start(host); err != nil {
		return nil, err
	}
	ctx := context.WithoutCancel(n.ctx)
	err := until(ctx, refusedLimit, func() error {
		if host.running() {
			return fmt.Errorf("the copy of node %d, which runs, is not refused", p.index+1)
		}
		return nil
	})
	n.c.kill(host)
	host.allowEnd(false)
	if text := logged(host)[len(before):]; err == nil && !strings.Contains(text, "the data directory was copied") {
		err = fmt.Errorf("the copy of node %d has ended without a sentence:\n%s", p.index+1, text)
	}
	if !p.running() {
		err = errors.Join(err, fmt.Errorf("node %d has ended because of its copy", p.index+1))
	}
	return nil, errors.Join(err, host.empty())
}

func (n *nemesis) cloneLeader() (func() error, error) { return n.clone(n.leader()) }

func (n *nemesis) cloneFollower() (func() error, error) {
	others := n.others(n.leader())
	return n.clone(others[n.rng.IntN(len(others))])
}

// imageBack puts an image of a node that was taken while it ran back into its
// directory, after more was written. The node may end with a sentence, and
// then joins as a new one; or it has what it forgot again before it votes.
func (n *nemesis) imageBack() (func() error, error) {
	p := n.pick()
	old, image := n.idOf(p), p.dir+".image"
	if err := n.snap(p, image); err != nil {
		return nil, err
	}
	pause(n.ctx, time.Duration(1000+n.rng.IntN(4000))*time.Millisecond)
	n.c.kill(p)
	err := errors.Join(p.empty(), copyDir(image, p.dir), os.RemoveAll(image))
	p.allowEnd(true)
	return func() error { return n.comeBack(p, old) }, errors.Join(err, n.c.start(p))
}

// forget is the same while another node is away, and the leader too when it is
// started: nobody who is left knows what it forgot.
func (n *nemesis) forget() (func() error, error) {
	leader := n.leader()
	others := n.others(leader)
	if len(others) < 2 {
		return nil, errSkipped
	}
	i := n.rng.IntN(len(others))
	p, away := others[i], others[(i+1)%len(others)]
	old, image := n.idOf(p), p.dir+".image"
	if err := n.snap(p, image); err != nil {
		return nil, err
	}
	n.c.kill(away)
	pause(n.ctx, time.Duration(1000+n.rng.IntN(4000))*time.Millisecond)
	n.c.kill(p, leader)
	err := errors.Join(p.empty(), copyDir(image, p.dir), os.RemoveAll(image))
	p.allowEnd(true)
	return func() error {
		err := n.c.start(leader)
		return errors.Join(err, n.comeBack(p, old))
	}, errors.Join(err, n.c.start(p), n.c.start(away))
}

// comeBack waits until a node whose image was put back works, or has ended
// with a sentence and was replaced.
func (n *nemesis) comeBack(p *process, old string) error {
	defer p.allowEnd(false)
	ctx := context.WithoutCancel(n.ctx)
	if err := n.c.start(p); err != nil && p.running() {
		return err
	}
	back := until(ctx, 40*time.Second, func() error {
		if !p.running() {
			return nil
		}
		return n.working(ctx, p)
	})
	switch {
	case p.running() && back != nil:
		return fmt.Errorf("node %d, whose image was put back, neither works nor ends: %w", p.index+1, back)
	case p.running():
		return nil
	case !strings.Contains(tail(p.log()), "away"):
		return fmt.Errorf("node %d, whose image was put back, has ended without a sentence:\n%s", p.index+1, tail(p.log()))
	}
	return n.replace(p, old)
}
