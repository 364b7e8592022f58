package hold

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/cluster/catalog"
)

// How often placement balances.
const (
	balanceAfter = 10 * time.Minute // data moves for balance this often; sooner after members change or data grows
	grownBy      = 4                // data has grown if 1/grownBy was added since the last balancing, and no first index is under way
)

// Placer runs Place while this node is the leader. It belongs to one goroutine.
type Placer struct {
	cluster Cluster
	copies  int
	log     *slog.Logger
	now     func() time.Time

	last placerState
}

// placerState is what a Placer remembers about its work as leader.
type placerState struct {
	members string // fingerprint of the members at the last balancing
	at      time.Time
	bytes   int64     // bytes of all indexes at the last balancing
	index   uint64    // index of the view at the last look
	since   time.Time // when balancing was first postponed
}

// NewPlacer returns a Placer that wants that many copies of everything.
func NewPlacer(cluster Cluster, copies int, log *slog.Logger, now func() time.Time) *Placer {
	return &Placer{cluster: cluster, copies: copies, log: log, now: now}
}

// Forget resets the Placer. Call it while this node is not the leader.
func (p *Placer) Forget() { p.last = placerState{} }

// Place computes which nodes should hold what, and proposes the changes to the catalog. It balances
// the disks only now and then.
func (p *Placer) Place(ctx context.Context, view *catalog.View, nodes []Node) {
	now := p.now()
	fingerprint := Fingerprint(nodes)
	balance := fingerprint != p.last.members || now.Sub(p.last.at) >= balanceAfter

	if !balance && p.last.index == view.Index() {
		return
	}

	// Growth alone moves data only in quiet times. No balancing happens while it is postponed.
	balance = balance || FirstIndexesDone(view) && indexBytes(view) > p.last.bytes+p.last.bytes/grownBy
	balance = balance && !p.mustPostpone(view, nodes, now)

	cmds := Place(Placement{View: view, Nodes: nodes, Copies: p.copies, Balance: balance})
	for _, cmd := range cmds {
		if _, err := p.cluster.Propose(ctx, cmd); err != nil {
			if !errors.Is(err, cluster.ErrNoLeader) && ctx.Err() == nil {
				p.log.Error("placement was not accepted", "err", err)
			}
			return
		}
	}
	if len(cmds) > 0 {
		p.log.Info("placement changed", "commands", len(cmds), "balanced", balance)
	}

	// Remember the result only if all commands were accepted.
	p.last.index = view.Index()
	if balance {
		p.last.members, p.last.at, p.last.bytes = fingerprint, now, indexBytes(view)
	}
}

// mustPostpone reports whether balancing is postponed: a member is silent, or lost copies are not
// replaced yet. Missing copies come first, but for ten minutes at most: a copy that cannot be made
// must not keep a new member empty.
func (p *Placer) mustPostpone(view *catalog.View, nodes []Node, now time.Time) bool {
	if !anyMemberSilent(nodes) && !underReplicated(view, nodes, p.copies) {
		p.last.since = time.Time{}
		return false
	}
	if p.last.since.IsZero() {
		p.last.since = now
	}
	return now.Sub(p.last.since) < balanceAfter
}

// anyMemberSilent reports whether a member is silent that may be back soon.
func anyMemberSilent(nodes []Node) bool {
	return slices.ContainsFunc(nodes, func(n Node) bool { return !n.Alive && !n.Gone() })
}

// underReplicated reports whether a file has fewer live copies than wanted because a holder cannot
// be reached.
func underReplicated(view *catalog.View, nodes []Node, copies int) bool {
	alive, takers := map[string]bool{}, 0
	for _, n := range nodes {
		alive[n.ID] = n.Alive
		if n.Alive && !n.Closed {
			takers++
		}
	}

	wanted := min(copies, takers)

	for h := range view.Holdings() {
		live := 0
		for _, number := range h.Nodes {
			if m := view.MemberNumber(number); m != nil && alive[m.ID] {
				live++
			}
		}
		// If every holder is alive, copying is still under way: no alarm.
		if live < wanted && live < len(h.Nodes) {
			return true
		}
	}
	return false
}

// FirstIndexesDone reports whether no repository is about to get its first index.
func FirstIndexesDone(view *catalog.View) bool {
	for j := range view.JobsOfKind(catalog.JobIndex, catalog.JobRunning, catalog.JobWaiting) {
		if r := view.Repo(catalog.SubjectRepo(j.Subject)); r != nil && !r.Indexed() {
			return false
		}
	}
	return true
}

// indexBytes returns the size of all indexes. Each counts once.
func indexBytes(view *catalog.View) (sum int64) {
	for repo := range view.Repos() {
		for _, s := range repo.Shards {
			sum += s.OwnBytes()
		}
	}
	return sum
}

// Fingerprint returns a string of what placement depends on: the members, their zones, and which of
// them are full or closed. Equal strings mean that placement has no reason to move data.
func Fingerprint(nodes []Node) string {
	sorted := slices.SortedFunc(slices.Values(nodes), func(a, b Node) int { return cmp.Compare(a.ID, b.ID) })

	// No id and no zone contains these separators, so different states have different texts.
	out := ""
	for _, n := range sorted {
		out += n.ID + "\x00" + n.Zone

		if n.Closed || n.Gone() {
			out += "\x00gone"
		}
		if n.Disk >= DiskFull {
			out += "\x00full"
		}

		out += "\x01"
	}
	return out
}
