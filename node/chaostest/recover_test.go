package chaostest

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// The times that a way back after a disaster may take.
const (
	recoverLimit = 40 * time.Second
	givenUpLimit = 40 * time.Second
)

// startOver loses the majority of three, makes the node that is left a cluster of
// its own, and lets one of the lost ones come back as it was: that one must say
// that its cluster was given up, answer nobody, and keep nobody out. Emptied,
// both join as new nodes.
func (n *nemesis) startOver() (func() error, error) {
	leader, ctx := n.leader(), context.WithoutCancel(n.ctx)
	others := n.others(leader)
	i := n.rng.IntN(2)
	back, left := others[i], others[1-i]

	// From here on whatever is acknowledged is on the node that will be left, and
	// what was before it has seen.
	n.c.kill(back)
	err := until(ctx, leaderLimit, func() error {
		_, err := n.c.raw(ctx, left, "GET", "/api/keys?consistent=true", nil)
		return err
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("two of three do not go on: %w", err), n.c.start(back))
	}
	n.c.kill(leader)
	n.c.kill(left)

	left.mu.Lock()
	program := n.c.program(left)
	left.mu.Unlock()
	out, err := exec.Command(program, "recover", "--accept-loss", "--data-dir", left.dir).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("recover: %w: %s", err, out)
	}
	if err := n.comes(ctx, left); err != nil {
		return nil, err
	}
	left.setMember(true) // what it was called by may be another

	return func() error { return n.rejoin(ctx, leader, back) }, n.givenUp(ctx, back)
}

// comes starts a node and waits until it works.
func (n *nemesis) comes(ctx context.Context, p *process) error {
	if err := n.c.start(p); err != nil {
		return err
	}
	if err := until(ctx, recoverLimit, func() error { return n.working(ctx, p) }); err != nil {
		return fmt.Errorf("node %d does not work after the recovery: %w", p.index+1, err)
	}
	return nil
}

// givenUp starts a node of the cluster that is no more, and waits until it says so.
func (n *nemesis) givenUp(ctx context.Context, p *process) error {
	if err := n.c.start(p); err != nil {
		return err
	}
	err := until(ctx, givenUpLimit, func() error {
		body, err := n.c.raw(ctx, p, "GET", "/readyz", nil)
		if text := fmt.Sprint(string(body), err); codeOf(err) != 503 || !strings.Contains(text, "move its data directory away") {
			return fmt.Errorf("ready: %s", text)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("node %d, whose cluster was given up, does not say so: %w", p.index+1, err)
	}
	if _, err := n.c.raw(ctx, p, "POST", "/api/search", map[string]any{"query": token}); codeOf(err) != 503 {
		return fmt.Errorf("node %d, whose cluster was given up, answers a search: %v", p.index+1, err)
	}
	return nil
}

// rejoin empties lost nodes, one of which may run, and lets them join.
func (n *nemesis) rejoin(ctx context.Context, lost ...*process) error {
	n.c.kill(lost...)
	for _, p := range lost {
		if err := p.empty(); err != nil {
			return err
		}
		p.setMember(true)
		if err := n.comes(ctx, p); err != nil {
			return err
		}
	}
	return nil
}
