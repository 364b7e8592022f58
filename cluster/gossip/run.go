package gossip

import (
	"context"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/shoalsearch/shoal/clock"
)

const (
	lookupTime = 5 * time.Second  // for a name
	aloneTime  = time.Second      // between looking for others, while there is none
	rejoinTime = 20 * time.Second // between looking for lost ones
	metaTime   = time.Second      // at least, between telling of two changes
	leaveTime  = 2 * time.Second  // to say goodbye
	maxTargets = 3                // addresses tried at a time, when not alone
)

// Run takes part until the context ends. Then it tells the others that the node
// leaves, so that they need not find out, closes everything and returns nil.
func (g *Gossip) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	wg.Go(func() { g.tell(ctx) })
	wg.Go(func() { g.search(ctx) })
	<-ctx.Done()
	wg.Wait()

	// Best effort: the others find out without it, some seconds later.
	if err := g.list.Leave(leaveTime); err != nil {
		g.o.Log.Debug("leave gossip", "err", err)
	}
	return g.list.Shutdown()
}

// scaled is an interval of this node, a third more or less, so that many
// nodes do not all act at once.
func (g *Gossip) scaled(d time.Duration) time.Duration {
	return time.Duration(float64(d) * g.o.Timing * (0.7 + 0.6*rand.Float64()))
}

// tell spreads changes of the meta data, not too often.
func (g *Gossip) tell(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-g.wakeup:
		}

		// It waits for a while until somebody has taken it, and fails where nobody is.
		if err := g.list.UpdateNode(metaTime); err != nil {
			g.o.Log.Debug("tell meta data", "err", err)
		}
		if !clock.Wait(ctx, g.scaled(metaTime)) {
			return
		}
	}
}

// search looks for others: at once and often while this node is alone, and
// now and then for those that are known but not alive. memberlist itself
// forgets a node that was lost for a while.
func (g *Gossip) search(ctx context.Context) {
	for {
		targets, alone := g.targets(ctx)

		// One by one: the library tries all of a list, and one that does not answer costs seconds.
		for _, t := range targets {
			if ctx.Err() != nil {
				return
			}
			if _, err := g.list.Join([]string{t}); err != nil {
				g.o.Log.Debug("join", "addr", t, "err", err)
			}
		}

		// Alone it matters at once; otherwise halves of a partition find each other in half a minute.
		wait := rejoinTime
		if alone {
			wait = aloneTime
		}
		if !clock.Wait(ctx, g.scaled(wait)) {
			return
		}
	}
}

// targets are the addresses to try now, in random order: those of lost nodes and
// those that the configuration and the catalog name, without the ones of nodes
// that are alive.
func (g *Gossip) targets(ctx context.Context) (addrs []string, alone bool) {
	g.mu.Lock()
	addrs = slices.Clone(g.known)
	var alive []string
	for _, p := range g.best() {
		if p.Alive {
			alive = append(alive, p.Addr)
		} else {
			addrs = append(addrs, p.Addr)
		}
	}
	g.mu.Unlock()

	for _, j := range g.o.Join {
		addrs = append(addrs, g.lookup(ctx, j)...)
	}

	// Names and addresses of nodes that are alive are left out: to join them again is noise.
	alone = len(alive) <= 1 // this node is among them
	slices.Sort(addrs)
	addrs = slices.Compact(addrs)
	addrs = slices.DeleteFunc(addrs, func(a string) bool { return a == g.addr || slices.Contains(alive, a) })

	rand.Shuffle(len(addrs), func(i, j int) { addrs[i], addrs[j] = addrs[j], addrs[i] })
	if !alone && len(addrs) > maxTargets {
		addrs = addrs[:maxTargets]
	}
	return addrs, alone
}

// lookup finds the addresses behind an entry of Join: those of a service record,
// as _shoal._tcp.example.org, or of a host with or without a port.
func (g *Gossip) lookup(ctx context.Context, entry string) []string {
	ctx, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()

	if strings.HasPrefix(entry, "_") {
		_, records, err := net.DefaultResolver.LookupSRV(ctx, "", "", entry)
		g.found(entry, err)

		var out []string
		for _, r := range records {
			out = append(out, g.hosts(ctx, strings.TrimSuffix(r.Target, "."), strconv.Itoa(int(r.Port)))...)
		}
		return out
	}

	// Without a port it is that of this node: nodes of a cluster mostly share one.
	host, port, err := net.SplitHostPort(entry)
	if err != nil {
		_, port, _ = net.SplitHostPort(g.o.Listen)
		host = strings.Trim(entry, "[]")
	}
	return g.hosts(ctx, host, port)
}

// hosts finds the addresses of a host. What cannot be found now is asked for
// again at the next search.
func (g *Gossip) hosts(ctx context.Context, host, port string) []string {
	if net.ParseIP(host) != nil {
		return []string{net.JoinHostPort(host, port)}
	}
	ips, err := net.DefaultResolver.LookupHost(ctx, host)
	g.found(host, err)

	var out []string
	for _, ip := range ips {
		out = append(out, net.JoinHostPort(ip, port))
	}
	return out
}

// found tells the operator of a name that cannot be looked up: once, until it can
// be again. Only search looks names up, so that nothing guards unfound.
func (g *Gossip) found(name string, err error) {
	switch {
	case err == nil:
		delete(g.unfound, name)
	case !g.unfound[name]:
		g.unfound[name] = true
		g.o.Log.Warn("cannot look up a name of --join; it is tried again", "name", name, "err", err)
	}
}
