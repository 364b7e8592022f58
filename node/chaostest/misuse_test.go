package chaostest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// replaceLimit is how long the copies of a node that was replaced may be short.
const replaceLimit = 60 * time.Second

// replaceSame loses the disk of one machine three times: each time it comes
// back empty, as a new node, and gets the copies that it had.
func (n *nemesis) replaceSame() (func() error, error) {
	p, ctx := n.pick(), context.WithoutCancel(n.ctx)
	for range 3 {
		old := n.idOf(p)
		n.c.kill(p)
		if err := errors.Join(p.empty(), n.c.start(p)); err != nil {
			return nil, err
		}
		p.setMember(true)

		err := until(ctx, replaceLimit, func() error {
			s, err := n.c.status(ctx, p)
			if err != nil {
				return err
			}
			if s.Node == old || s.Placement.UnderReplicated > 0 {
				return fmt.Errorf("node %s has taken the place of %s, and %d repositories are short of copies", s.Node, old, s.Placement.UnderReplicated)
			}
			return n.working(ctx, p)
		})
		if err == nil {
			err = n.remove(old, p)
		}
		if err != nil {
			return nil, fmt.Errorf("node %d, which comes back empty: %w", p.index+1, err)
		}
		if n.ctx.Err() != nil {
			break
		}
	}
	return nil, nil
}

// remember keeps the text of a configuration file by its hash.
func (w *workload) remember(text []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	sum := sha256.Sum256(text)
	w.texts[hex.EncodeToString(sum[:])] = text
}

// outdated is a configuration that a node has once read, and not last.
func (w *workload) outdated(p *process) []byte {
	var memory struct{ Seen []string }
	data, err := os.ReadFile(filepath.Join(p.dir, "config-file.json"))
	if err != nil || json.Unmarshal(data, &memory) != nil || len(memory.Seen) < 2 {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.texts[memory.Seen[0]]
}

// foreignConfig starts a node with a configuration file of long ago, as an
// image of the machine brings it. It must change nothing.
func (n *nemesis) foreignConfig() (func() error, error) {
	p := n.pick()
	text := n.w.outdated(p)
	if text == nil {
		return nil, errSkipped
	}
	path := p.dir + ".outdated.json"
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return nil, err
	}
	restart := func(config string) error {
		n.c.kill(p)
		p.mu.Lock()
		p.config = config
		p.mu.Unlock()
		return n.c.start(p)
	}

	from := len(logged(p))
	return func() error {
		if text := logged(p)[from:]; strings.Contains(text, `msg="configuration accepted" path=`+path) {
			return fmt.Errorf("node %d has brought a configuration of long ago into force:\n%s", p.index+1, text)
		}
		return restart("")
	}, restart(path)
}

// What idle clients take from a node that may open few files.
const (
	fewFiles    = 256
	idleClients = 600
)

// descriptors lets clients that say nothing take all connections of a node that
// may open few files. It must not end, and work again once they are gone.
func (n *nemesis) descriptors() (func() error, error) {
	p, ctx := n.pick(), context.WithoutCancel(n.ctx)
	restart := func(files int) error {
		n.c.kill(p)
		p.mu.Lock()
		p.files = files
		p.mu.Unlock()
		return n.c.start(p)
	}
	if err := restart(fewFiles); err != nil {
		return nil, err
	}

	var conns []net.Conn
	err := until(ctx, 20*time.Second, func() error { return n.working(ctx, p) })
	for i := range idleClients {
		port := []string{portAPI, portCalls}[i%2]
		conn, dialErr := net.DialTimeout("tcp", net.JoinHostPort(n.c.net.listen(p.index), port), time.Second)
		if dialErr == nil {
			conns = append(conns, conn)
		}
	}
	return func() error {
		for _, conn := range conns {
			conn.Close()
		}
		if !p.running() {
			return fmt.Errorf("node %d has ended because %d clients took its connections:\n%s", p.index+1, len(conns), tail(p.log()))
		}
		if err := until(ctx, 20*time.Second, func() error { return n.working(ctx, p) }); err != nil {
			return fmt.Errorf("node %d does not work after idle clients have gone: %w", p.index+1, err)
		}
		return restart(0)
	}, err
}
