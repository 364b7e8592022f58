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
	"time"
)

// flip kills a node and flips bits in one of its files. A node that then
// refuses to work is emptied and comes back as another one.
func (n *nemesis) flip(part, pattern string) (func() error, error) {
	p := n.pick()
	old := n.idOf(p)
	n.c.kill(p)
	again := func() error { return n.c.start(p) }
	var files []string
	err := filepath.WalkDir(filepath.Join(p.dir, part), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if ok, _ := filepath.Match(pattern, d.Name()); ok && d.Type().IsRegular() {
			files = append(files, path)
		}
		return nil
	})
	if err != nil || len(files) == 0 {
		return again, err
	}
	err = flipBits(files[n.rng.IntN(len(files))], n.rng)
	return func() error {
		p.allowEnd(true)
		if err := n.c.start(p); err != nil {
			return err
		}
		ctx := context.WithoutCancel(n.ctx) // also at the end of the run
		ready := until(ctx, 20*time.Second, func() error {
			if !p.running() {
				return nil
			}
			_, err := n.w.ask(ctx, p, query{text: token})
			return err
		})
		p.allowEnd(false)
		switch {
		case p.running() && ready != nil:
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
// refuse to work with. The newer one is put in its place then. Where a leader had fed
// the old one before it was refused, that one is the older of the two by now, and is
// refused as well.
func (n *nemesis) rollback() (func() error, error) {
	p := n.pick()
	old := n.idOf(p)
	n.c.kill(p)
	older, newer := p.dir+".older", p.dir+".newer"
	defer os.RemoveAll(older)
	if err := copyDir(p.dir, older); err != nil {
		return nil, err
	}
	life := func() error { return n.working(n.ctx, p) }
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
		p.allowEnd(true)
		return n.comeBack(p, old)
	}, err
}

func skipEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// working reports that a node is a member of a cluster with a leader.
func (n *nemesis) working(ctx context.Context, p *process) error {
	s, err := n.c.status(ctx, p)
	if err != nil {
		return err
	}
	for _, m := range s.Members {
		if m.ID == s.Node && s.Leader != "" && m.Lag == 0 {
			_, err := n.c.raw(ctx, p, "GET", "/readyz", nil)
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
		pause(context.WithoutCancel(n.ctx), time.Second)
		p.allowEnd(false)
		return n.c.start(p)
	}, nil
}
