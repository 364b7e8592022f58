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
	lookupTime = 5 * time.Second  // limit of a name lookup
	aloneTime  = time.Second      // between searches while this node is alone
	rejoinTime = 20 * time.Second // between searches for lost nodes
	metaTime   = time.Second      // least time between two updates of the meta data
	leaveTime  = 2 * time.Second  // limit for saying goodbye
	maxTargets = 3                // addresses per search, unless alone
)

// Run takes part until the context ends. Then it tells the other nodes that this one leaves, closes
// everything and returns nil.
func (g *Gossip) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	wg.Go(func() { g.spreadMeta(ctx) })
	wg.Go(func() { g.searchNodes(ctx) })
	<-ctx.Done()
	wg.Wait()

	// On failure the other nodes notice by themselves that this one is gone, some seconds later.
	if err := g.list.Leave(leaveTime); err != nil {
		g.o.Log.Debug("leave gossip", "err", err)
	}
	return g.list.Shutdown()
}

// scaled returns an interval with up to a third of random variation, so that many nodes do not act
// at once.
func (g *Gossip) scaled(d time.Duration) time.Duration {
	return time.Duration(float64(d) * g.o.Timing * (0.7 + 0.6*rand.Float64()))
}

// spreadMeta spreads changes of the meta data, with pauses.
func (g *Gossip) spreadMeta(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-g.wakeup:
		}

		// UpdateNode waits until some node has received the data. It fails if there is no other node.
		if err := g.list.UpdateNode(metaTime); err != nil {
			g.o.Log.Debug("tell meta data", "err", err)
		}
		if !clock.Wait(ctx, g.scaled(metaTime)) {
			return
		}
	}
}

// searchNodes looks for other nodes: often while this node is alone, and from time to time for lost
// ones. memberlist itself forgets a lost node after a while.
func (g *Gossip) searchNodes(ctx context.Context) {
	for {
		targets, alone := g.searchAddresses(ctx)

		// Try the addresses one by one: each one that does not answer costs seconds.
		for _, t := range targets {
			if ctx.Err() != nil {
				return
			}
			if _, err := g.list.Join([]string{t}); err != nil {
				g.o.Log.Debug("join", "addr", t, "err", err)
			}
		}

		// Alone, the node must find others quickly. Otherwise half a minute after a partition is
		// enough.
		wait := rejoinTime
		if alone {
			wait = aloneTime
		}
		if !clock.Wait(ctx, g.scaled(wait)) {
			return
		}
	}
}

// searchAddresses returns the addresses to try now, in random order: those of lost nodes, and those
// from the configuration and the catalog, without addresses of live nodes. alone reports that no other
// node is alive; otherwise there are at most maxTargets addresses.
func (g *Gossip) searchAddresses(ctx context.Context) (addrs []string, alone bool) {
	g.mu.Lock()
	addrs = slices.Clone(g.known)
	var alive []string
	for _, p := range g.bestStarts() {
		if p.Alive {
			alive = append(alive, p.Addr)
		} else {
			addrs = append(addrs, p.Addr)
		}
	}
	g.mu.Unlock()

	for _, j := range g.o.Join {
		addrs = append(addrs, g.addressesOf(ctx, j)...)
	}

	alone = len(alive) <= 1 // this node is one of them
	slices.Sort(addrs)
	addrs = slices.Compact(addrs)
	addrs = slices.DeleteFunc(addrs, func(a string) bool { return a == g.addr || slices.Contains(alive, a) })

	rand.Shuffle(len(addrs), func(i, j int) { addrs[i], addrs[j] = addrs[j], addrs[i] })
	if !alone && len(addrs) > maxTargets {
		addrs = addrs[:maxTargets]
	}
	return addrs, alone
}

// addressesOf returns the addresses of an entry of Join: a service record, as _shoal._tcp.example.org,
// or a host with or without a port.
func (g *Gossip) addressesOf(ctx context.Context, entry string) []string {
	ctx, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()

	if strings.HasPrefix(entry, "_") {
		_, records, err := net.DefaultResolver.LookupSRV(ctx, "", "", entry)
		g.noteLookup(entry, err)

		var out []string
		for _, r := range records {
			out = append(out, g.resolveHost(ctx, strings.TrimSuffix(r.Target, "."), strconv.Itoa(int(r.Port)))...)
		}
		return out
	}

	// The default port is that of this node: most clusters use one port.
	host, port, err := net.SplitHostPort(entry)
	if err != nil {
		_, port, _ = net.SplitHostPort(g.o.Listen)
		host = strings.Trim(entry, "[]")
	}
	return g.resolveHost(ctx, host, port)
}

// resolveHost returns the addresses of a host. If the lookup fails, the next search tries again.
func (g *Gossip) resolveHost(ctx context.Context, host, port string) []string {
	if net.ParseIP(host) != nil {
		return []string{net.JoinHostPort(host, port)}
	}
	ips, err := net.DefaultResolver.LookupHost(ctx, host)
	g.noteLookup(host, err)

	var out []string
	for _, ip := range ips {
		out = append(out, net.JoinHostPort(ip, port))
	}
	return out
}

// noteLookup logs a name that cannot be looked up, once until a lookup succeeds. Only search calls it,
// so unfound needs no lock.
func (g *Gossip) noteLookup(name string, err error) {
	switch {
	case err == nil:
		delete(g.unfound, name)
	case !g.unfound[name]:
		g.unfound[name] = true
		g.o.Log.Warn("cannot look up a name of --join; it is tried again", "name", name, "err", err)
	}
}
