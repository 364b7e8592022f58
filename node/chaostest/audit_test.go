package chaostest

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// The times that a healed cluster has.
const (
	convergeLimit = 2 * time.Minute
	gossipLimit   = 60 * time.Second
	repairLimit   = 90 * time.Second
	leaderLimit   = 10 * time.Second
)

// audit looks at a cluster that has healed and that nobody changes any more.
func (w *workload) audit(ctx context.Context) (gossip time.Duration) {
	c, began := w.c, time.Now()
	if err := until(ctx, gossipLimit, func() error { return c.sameViews(ctx) }); err != nil {
		c.violation("gossip: %v", err)
	}
	gossip = time.Since(began)
	if err := w.converged(ctx, convergeLimit); err != nil {
		c.violation("after the cluster has healed: %v", err)
		return gossip
	}
	for _, check := range []func(context.Context) error{w.keysAreThere, c.sameState, c.bytesAreThere, c.noOrphans} {
		if err := until(ctx, repairLimit, func() error { return check(ctx) }); err != nil {
			c.violation("after the cluster has healed: %v", err)
		}
	}
	for _, err := range []error{w.history.check(), w.keys.check()} {
		if err != nil {
			c.violation("%v", err)
		}
	}
	return gossip
}

// voters reports that every one of some nodes sees three voters, or as many as
// they are.
func (c *cluster) voters(ctx context.Context, nodes []*process) error {
	for _, p := range nodes {
		s, err := c.status(ctx, p)
		if err != nil {
			return err
		}
		if voters := s.voters(); voters < min(3, len(nodes)) {
			return fmt.Errorf("node %d sees %d voters", p.index+1, voters)
		}
	}
	return nil
}

// sameViews reports that every member sees all members alive and no other.
func (c *cluster) sameViews(ctx context.Context) error {
	in := c.members()
	for _, p := range in {
		s, err := c.status(ctx, p)
		if err != nil {
			return err
		}
		alive := 0
		for _, m := range s.Members {
			if m.Health == "alive" {
				alive++
			}
		}
		if alive != len(in) || len(s.Members) != len(in) {
			return fmt.Errorf("node %d sees %d of %d members alive, there are %d", p.index+1, alive, len(s.Members), len(in))
		}
	}
	return nil
}

// keysAreThere reports that every node has every key whose making was confirmed.
func (w *workload) keysAreThere(ctx context.Context) error {
	for _, p := range w.c.members() {
		var out []struct{ Name string }
		if err := w.c.call(ctx, p, "GET", "/api/keys", nil, &out); err != nil {
			return err
		}
		there := map[string]bool{}
		for _, k := range out {
			there[k.Name] = true
		}
		w.mu.Lock()
		names := w.acked
		w.mu.Unlock()
		for name := range names {
			if !there[name] {
				return fmt.Errorf("node %d lost the acknowledged key %s", p.index+1, name)
			}
		}
	}
	return nil
}

// catalogOf is the catalog of a node.
func (c *cluster) catalogOf(ctx context.Context, p *process) (*catalog.View, error) {
	data, err := c.raw(ctx, p, "GET", "/api/snapshot", nil)
	if err != nil {
		return nil, err
	}
	s, err := catalog.Load(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return s.View(), nil
}

// sameState reports that all nodes have the same catalog at the same index, and
// the configuration of the file.
func (c *cluster) sameState(ctx context.Context) error {
	views := map[*process]*catalog.View{}
	for _, p := range c.members() {
		v, err := c.catalogOf(ctx, p)
		if err != nil {
			return err
		}
		views[p] = v
	}
	raw, err := os.ReadFile(c.configFile())
	if err != nil {
		return err
	}
	sum := sha256.Sum256(raw)
	var first *process
	for p, v := range views {
		if got := v.Config().Hash; got != hex.EncodeToString(sum[:]) {
			return fmt.Errorf("node %d has not the configuration of the file", p.index+1)
		}
		if first == nil {
			first = p
		}
		if a, b := views[first].Index(), v.Index(); a != b {
			return fmt.Errorf("nodes %d and %d are at indices %d and %d", first.index+1, p.index+1, a, b)
		}
		if a, b := views[first].Hash(), v.Hash(); a != b {
			c.violation("nodes %d and %d have other catalogs at index %d", first.index+1, p.index+1, v.Index())
		}
	}
	return nil
}

var shardName = regexp.MustCompile(`^[0-9a-f]{64}\.(shard|dead|symbols)$`)

// bytesAreThere reports whether whoever confirmed a file has it, with the bytes of
// its name, and that everything has its two holders.
func (c *cluster) bytesAreThere(ctx context.Context) error {
	v, err := c.catalogOf(ctx, c.members()[0])
	if err != nil {
		return err
	}
	sums := map[string]bool{} // files that are good
	for repo := range v.Repos() {
		for _, s := range repo.Shards {
			for id, ending := range map[string]string{s.ID: ".shard", s.Dead: ".dead", s.Symbols: ".symbols"} {
				if id == "" {
					continue
				}
				holders := v.Holders(catalog.ShardKey(id))
				if len(holders) < min(2, len(c.members())) && !repo.Orphaned() {
					return fmt.Errorf("a shard of %s has %d holders", repo.Name, len(holders))
				}
				for _, node := range holders {
					p := c.byID(node)
					if p == nil {
						return fmt.Errorf("a shard of %s is held by node %s, which is no member", repo.Name, node)
					}
					path := filepath.Join(p.dir, "shards", id+ending)
					if !sums[path] && !goodFile(path) {
						return fmt.Errorf("node %d confirmed %s of %s and has not its bytes", p.index+1, id[:12]+ending, repo.Name)
					}
					sums[path] = true
				}
			}
		}
	}
	return nil
}

func goodFile(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return false
	}
	name, _, _ := strings.Cut(filepath.Base(path), ".")
	return hex.EncodeToString(sum.Sum(nil)) == name
}

// noOrphans reports whether no node keeps a file or mirror that nothing names.
func (c *cluster) noOrphans(ctx context.Context) error {
	v, err := c.catalogOf(ctx, c.members()[0])
	if err != nil {
		return err
	}
	live := map[string]bool{}
	repos := 0
	for repo := range v.Repos() {
		repos++
		if repo.Orphaned() && repo.KeptUntil.IsZero() { // what a configuration dropped stays for a day
			return fmt.Errorf("%s was left by its connection and is not collected", repo.Name)
		}
		for _, s := range repo.Shards {
			live[s.ID+".shard"], live[s.Dead+".dead"], live[s.Symbols+".symbols"] = true, true, true
		}
	}
	for _, p := range c.members() {
		entries, err := os.ReadDir(filepath.Join(p.dir, "shards"))
		if err != nil {
			return err
		}
		for _, e := range entries {
			if shardName.MatchString(e.Name()) && !live[e.Name()] {
				return fmt.Errorf("node %d keeps %s, which nothing names", p.index+1, e.Name())
			}
		}
		mirrors, err := os.ReadDir(filepath.Join(p.dir, "mirrors"))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if len(mirrors) > repos {
			return fmt.Errorf("node %d has %d mirrors of %d repositories", p.index+1, len(mirrors), repos)
		}
	}
	return nil
}

// leadership is a line of a log: a node leads in a term.
type leadership struct {
	at   time.Time
	node string
	term uint64
}

var leads = regexp.MustCompile(`^time=(\S+) .*msg="this node leads" node=(\S+) (?:name=.* )?term=(\d+)`)

// leaderships reads who led when from the logs, and notes what no log may say.
func (c *cluster) leaderships() []leadership {
	var all []leadership
	by := map[uint64]string{}
	for _, p := range c.nodes {
		f, err := os.Open(p.log())
		if err != nil {
			continue
		}
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			text := lines.Text()
			if strings.Contains(text, "BUG") || strings.Contains(text, "DATA RACE") || strings.HasPrefix(text, "panic:") || strings.HasPrefix(text, "fatal error:") {
				c.violation("log of node %d: %s", p.index+1, text)
			}
			if !strings.Contains(text, "this node leads") {
				continue
			}
			m := leads.FindStringSubmatch(text)
			if m == nil {
				c.t.Fatalf("a line of a leader is not as expected: %s", text)
			}
			at, err := time.Parse(time.RFC3339Nano, m[1])
			term, termErr := strconv.ParseUint(m[3], 10, 64)
			if err != nil || termErr != nil {
				continue
			}
			if by[term] != "" && by[term] != m[2] {
				c.violation("nodes %s and %s both led in term %d", by[term], m[2], term)
			}
			by[term] = m[2]
			all = append(all, leadership{at, m[2], term})
		}
		f.Close()
	}
	if len(all) == 0 {
		c.violation("no log says who led")
	}
	slices.SortFunc(all, func(a, b leadership) int { return a.at.Compare(b.at) })
	return all
}

// elections is how long it took until another node led, for each fault that
// took the leader from the others for long enough.
func (n *nemesis) elections(all []leadership) (took []time.Duration) {
	for _, b := range n.blows {
		i := slices.IndexFunc(all, func(l leadership) bool { return l.at.After(b.at) && l.node != b.leader })
		switch {
		case i >= 0 && all[i].at.Before(b.until):
			took = append(took, all[i].at.Sub(b.at))
		case b.until.Sub(b.at) > leaderLimit && !n.ledAlready(all, b):
			n.c.violation("no new leader from %s to %s, after node %s was lost", b.at.Format("15:04:05.000"), b.until.Format("15:04:05.000"), b.leader)
		}
	}
	return took
}

// ledAlready reports whether the fault missed the leader: another node led when it
// began.
func (n *nemesis) ledAlready(all []leadership, b lost) bool {
	last := ""
	for _, l := range all {
		if l.at.Before(b.at) {
			last = l.node
		}
	}
	return last != b.leader
}
