package search

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/shard"
)

// nodeCall is a running call to one node for some shards.
type nodeCall struct {
	node    string
	targets []*target
	hedge   bool
	hedged  bool
	began   time.Time
	cancel  context.CancelCauseFunc
}

// event says that a call ended or, if call is nil, which nodes did not answer a hello.
type event struct {
	call   *nodeCall
	res    *leafResponse
	err    error
	silent map[string]bool
}

// errSilent cancels a call to a node that gives no sign of life.
var errSilent = errors.New("the node is silent")

// round is one fan-out. Every shard is asked of its first holder, of the next one if that fails,
// and of two if the first is slow. A response counts as a whole or not at all, so no match counts
// twice.
type round struct {
	d      *Deps
	leaves *leaves
	q      *question
	a      *answer // merges the responses
	leaf   leafRequest

	ctx    context.Context // context of the search
	cancel context.CancelFunc
	hellos context.Context

	events     chan event
	running    map[*nodeCall]bool
	done       map[*target]bool
	tried      map[*target]int   // number of holders tried
	refused    map[*target]error // error of a holder that is overloaded
	lost       []*target         // targets that no holder answered
	silent     map[string]bool   // nodes that did not answer the last hello
	nextHello  time.Time         // time of the next hello; zero while one is on its way
	newerIndex uint64            // newest catalog index of a holder that lacks a file; 0 means none
	wg         sync.WaitGroup
}

// newRound makes a round of a search.
func newRound(r *root, leaf leafRequest) *round {
	return &round{
		d:      r.d,
		leaves: r.leaves,
		q:      r.q,
		a:      r.a,
		leaf:   leaf,
		ctx:    r.ctx,
		cancel: r.cancel,

		events:    make(chan event),
		running:   map[*nodeCall]bool{},
		done:      map[*target]bool{},
		tried:     map[*target]int{},
		refused:   map[*target]error{},
		silent:    map[string]bool{},
		nextHello: clock.In(call.StallTime / 2),
	}
}

// run asks for all targets and merges the responses.
func (r *round) run(targets []*target) {
	ctx, end := context.WithCancel(r.ctx)
	r.hellos = ctx
	defer r.stop()
	defer end()

	r.ask(targets, false)
	r.collect()

	// The view of the search may be older than a move of its files: ask the new holders.
	for range maxTries {
		moved := r.takeBackMoved()
		if len(moved) == 0 {
			break
		}
		r.ask(moved, false)
		r.collect()
	}

	// Gossip may be wrong about the holders: ask those that it calls dead.
	if found := r.takeBackUnheard(); len(found) > 0 {
		r.ask(found, false)
		r.collect()
	}

	r.a.lost = append(r.a.lost, r.lost...)
}

// collect handles the events until no call runs.
func (r *round) collect() {
	for len(r.running) > 0 {
		// Wait for an event, but not longer than until a call is overdue.
		timer := time.NewTimer(r.patience())
		select {
		case e := <-r.events:
			if e.call != nil {
				r.end(e)
				break
			}
			r.silent = e.silent
			r.nextHello = clock.In(call.StallTime / 2)
			r.hedge()
		case <-timer.C:
			r.sayHello()
			r.hedge()
		}
		timer.Stop()
	}
}

// takeBackMoved takes back lost targets whose files other members hold by now. A holder that lacks a file
// has given it up by a catalog that this node may not have yet, so moved waits for that catalog.
func (r *round) takeBackMoved() (moved []*target) {
	if len(r.lost) == 0 || r.ctx.Err() != nil {
		return nil
	}

	// Only a newer view tells where the files are now.
	if r.newerIndex > r.d.Cluster.View().Index() {
		ctx, cancel := context.WithTimeout(r.ctx, catchUpTime)
		defer cancel()
		_ = r.d.Cluster.Await(ctx, r.newerIndex) // if that fails, the newest view must do
	}

	view, missed := r.d.Cluster.View(), r.unresponsive()
	r.lost = slices.DeleteFunc(r.lost, func(t *target) bool {
		fresh := holders(view, r.d.Peers, filesOf(t.group))
		fresh = slices.DeleteFunc(fresh, func(id string) bool { return slices.Contains(t.holders, id) || missed(id) })
		if len(fresh) == 0 || r.refused[t] != nil {
			return false
		}

		t.holders = append(slices.Clone(t.holders), fresh...)
		moved = append(moved, t)
		return true
	})
	return moved
}

// takeBackUnheard takes back lost targets with a holder that was passed over but is alive: gossip calls it
// dead, or it did not answer a moment ago. It checks all such members at once, so it takes at most
// call.StallTime.
func (r *round) takeBackUnheard() (found []*target) {
	if len(r.lost) == 0 || r.ctx.Err() != nil {
		return nil
	}

	// A holder that was asked for a target already has failed.
	view := r.d.Cluster.View()
	others, all := map[*target][]string{}, map[string]bool{}
	for _, t := range r.lost {
		for _, id := range having(view, filesOf(t.group)) {
			if !slices.Contains(t.holders, id) && !r.silent[id] && r.refused[t] == nil {
				others[t] = append(others[t], id)
				all[id] = true
			}
		}
	}

	there := r.d.Peers.Answering(r.ctx, slices.Sorted(maps.Keys(all)))
	r.lost = slices.DeleteFunc(r.lost, func(t *target) bool {
		fresh := slices.DeleteFunc(others[t], func(id string) bool { return !slices.Contains(there, id) })
		if len(fresh) == 0 {
			return false
		}

		t.holders = append(slices.Clone(t.holders), fresh...)
		found = append(found, t)
		return true
	})
	return found
}

// filesOf returns the ids of all files of a group. A holder must have all of them.
func filesOf(g *shard.Group) []string {
	ids := commonFiles(g)
	for _, p := range g.Parts {
		if !p.Dead.IsZero() {
			ids = append(ids, p.Dead.String())
		}
	}
	return ids
}

// stop cancels the running calls and waits for them.
func (r *round) stop() {
	if len(r.running) == 0 && !r.nextHello.IsZero() {
		return // all calls and hellos have ended
	}

	// Without cancelling, the wait would take as long as the slowest leaf.
	for c := range r.running {
		c.cancel(nil)
	}

	// Calls that end now still send their events: drop them.
	go func() {
		r.wg.Wait()
		close(r.events)
	}()
	for range r.events {
	}
}

// ask groups targets by their next holder and sends the calls. Targets without another holder are
// lost.
func (r *round) ask(targets []*target, hedge bool) {
	byNode := map[string][]*target{}
	missed := r.unresponsive()
	for _, t := range targets {
		n := r.tried[t]
		for n < len(t.holders) && missed(t.holders[n]) {
			t.holders = slices.Concat(t.holders[:n], t.holders[n+1:]) // takeBackUnheard may ask it later
		}
		if n >= len(t.holders) || r.ctx.Err() != nil {
			// A hedge is an additional call: the first call may still answer.
			if !hedge {
				r.giveUp(t)
			}
			continue
		}
		r.tried[t] = n + 1

		next := t.holders[n]
		byNode[next] = append(byNode[next], t)
	}

	alone := len(byNode) == 1 && len(r.running) == 0
	for _, node := range slices.Sorted(maps.Keys(byNode)) {
		r.send(node, byNode[node], hedge, alone)
	}
}

// unresponsive returns a function that reports whether a node did not answer a moment ago. Waiting for
// such a node is useless.
func (r *round) unresponsive() func(node string) bool {
	known := map[string]bool{}
	return func(node string) bool {
		is, ok := known[node]
		if !ok {
			is = r.d.Peers.Misses(node)
			known[node] = is
		}
		return is
	}
}

// giveUp counts a shard as lost.
func (r *round) giveUp(t *target) {
	if !slices.Contains(r.lost, t) {
		r.lost = append(r.lost, t)
	}

	if err := r.refused[t]; err != nil {
		r.a.overload = err
	}
}

// send calls a node. alone reports that no other call is running or will be sent now.
func (r *round) send(node string, targets []*target, hedge, alone bool) {
	ctx, cancel := context.WithCancelCause(r.ctx)
	c := &nodeCall{node: node, targets: targets, hedge: hedge, began: clock.Now(), cancel: cancel}
	r.running[c] = true

	// Each call has its own request, because the groups differ.
	req := r.leaf
	req.Groups = make([]leafGroup, len(targets))
	for i, t := range targets {
		req.Groups[i] = leafGroup{group: t.group, rank: t.rank}
	}

	r.d.Peers.Begin(node)
	run := func() event {
		defer cancel(nil)
		ctx, span := r.d.Tracer.Start(ctx, "ask a node")
		span.Text("node", node)
		res, err := r.leaves.ask(ctx, node, &req)
		span.End(err)
		r.d.Peers.Observe(node, clock.Since(c.began), err)
		return event{call: c, res: res, err: err}
	}

	// Run the only call directly if it is to this node, which is never hedged.
	if alone && node == r.d.Cluster.Self() {
		r.end(run())
		return
	}
	r.wg.Go(func() { r.events <- run() })
}

// end handles the end of a call.
func (r *round) end(e event) {
	delete(r.running, e.call)

	var again []*target
	switch {
	case slices.ContainsFunc(e.call.targets, func(t *target) bool { return r.done[t] }):
		// A hedge of this call was faster.
		again = r.unassigned(e.call.targets)
	case errors.Is(e.err, call.ErrOverloaded):
		// An overloaded node has not failed. Ask the next holders of its shards. If there are none,
		// the search is refused too.
		for _, t := range e.call.targets {
			r.refused[t] = e.err
		}
		again = r.unassigned(e.call.targets)
	case e.err != nil:
		r.callFailed(e.call.node, e.err)
		again = r.unassigned(e.call.targets)
	default:
		again = r.accept(e)
	}

	r.ask(again, false)
}

// accept merges a response and returns the targets that it does not answer.
func (r *round) accept(e event) (again []*target) {
	if len(e.res.Hidden) > 0 {
		r.a.refused = max(r.a.refused, e.res.Index)
		r.cancel()
		return nil
	}
	again = r.verdicts(e)
	r.a.merge(e.res)
	r.reportProgress(e.call.node, &e.res.Stats)

	// Cancel a call if other calls have answered all of its targets.
	for c := range r.running {
		if !slices.ContainsFunc(c.targets, func(t *target) bool { return !r.done[t] }) {
			c.cancel(nil)
		}
	}

	return r.unassigned(again)
}

// verdicts handles the verdict of each target, and returns the targets that the next holder must
// answer.
func (r *round) verdicts(e event) (again []*target) {
	for i, t := range e.call.targets {
		switch e.res.Verdicts[i] {
		case verdictDone:
			r.done[t] = true
			r.a.stats.ShardsAnswered++
			if rest := r.targetOfSkipped(t, e.res.Without); rest != nil {
				r.newerIndex = max(r.newerIndex, e.res.Index)
				again = append(again, rest)
			}
		case verdictLate:
			// No time is left to ask another node.
			r.done[t] = true
			r.a.timeout, r.a.cut = true, true
		case verdictDamaged:
			r.a.stats.Crashes++
			again = append(again, t)
		default:
			r.newerIndex = max(r.newerIndex, e.res.Index)
			again = append(again, t)
		}
	}
	return again
}

// targetOfSkipped returns a target for the repositories that an answered target left out because the node
// lacks one of their files; nil if there are none.
func (r *round) targetOfSkipped(t *target, repos []uint32) *target {
	if len(repos) == 0 {
		return nil
	}
	rest := t.group.Within(func(repo uint32) bool { return slices.Contains(repos, repo) })
	if rest == nil {
		return nil
	}

	// Start with the next holder: the holders before it have failed, and this one lacks the file.
	left := &target{group: rest, holders: t.holders, rank: t.rank}
	r.tried[left] = r.tried[t]
	r.a.stats.ShardsRequired++
	return left
}

// unassigned returns those targets that are neither answered nor part of a running call.
func (r *round) unassigned(targets []*target) []*target {
	var out []*target
	for _, t := range targets {
		if r.done[t] {
			continue
		}

		// A target may be in two running calls: its own and a hedge.
		asked := false
		for c := range r.running {
			asked = asked || slices.Contains(c.targets, t)
		}

		if !asked {
			out = append(out, t)
		}
	}
	return out
}

// patience returns the time until a call should be hedged or nodes should get a hello.
func (r *round) patience() time.Duration {
	next := time.Hour
	if !r.nextHello.IsZero() {
		next = r.nextHello.Sub(clock.Now())
	}
	for c := range r.running {
		if c.hedge || c.hedged {
			continue
		}
		next = min(next, r.d.Peers.Patience(c.node)-clock.Since(c.began))
	}

	return max(next, time.Millisecond)
}

// sayHello says hello to all nodes with a running call, and to those that would be next. A node
// answers a hello at once, however long it works on a search.
func (r *round) sayHello() {
	if r.nextHello.IsZero() || clock.Now().Before(r.nextHello) {
		return
	}

	nodes := map[string]bool{}
	for c := range r.running {
		nodes[c.node] = true
		for _, t := range c.targets {
			for _, id := range t.holders[r.tried[t]:] {
				nodes[id] = true
			}
		}
	}
	delete(nodes, r.d.Cluster.Self())

	r.nextHello = time.Time{}
	r.wg.Go(func() {
		there := r.d.Peers.There(r.hellos, slices.Sorted(maps.Keys(nodes)))
		for _, id := range there {
			delete(nodes, id)
		}
		r.events <- event{silent: nodes}
	})
}

// hedge sends overdue calls to the next holders too. If all running calls are to silent nodes, it
// cancels them.
func (r *round) hedge() {
	for c := range maps.Clone(r.running) {
		age, silent := clock.Since(c.began), r.silent[c.node]
		if c.hedge || c.hedged || !silent && age < r.d.Peers.Patience(c.node) {
			continue
		}

		if !silent && age < call.StallTime && !r.d.Peers.AllowHedge() {
			// Check again when the call counts as stalled.
			continue
		}

		// This node is busy, not silent: another call would not help.
		c.hedged = true
		if c.node == r.d.Cluster.Self() {
			continue
		}

		before := len(r.running)
		r.ask(c.targets, true)
		r.a.hedged += len(r.running) - before
	}

	for c := range r.running {
		if !r.silent[c.node] {
			return
		}
	}
	for c := range r.running {
		c.cancel(errSilent)
	}
}

// callFailed records that a node did not answer.
func (r *round) callFailed(node string, err error) {
	if r.ctx.Err() != nil {
		// The search ended, which is not the node's fault.
		r.a.timeout = errors.Is(r.ctx.Err(), context.DeadlineExceeded)
		return
	}
	if errors.Is(err, context.Canceled) && !errors.Is(err, errSilent) {
		return // a hedge was faster
	}

	r.a.stats.Crashes++
	if !slices.Contains(r.a.failed, node) {
		r.a.failed = append(r.a.failed, node)
	}

	r.d.lost.note(call.RequestOf(r.ctx), node, err)
}

// reportProgress reports an answer to whoever watches the search: its shards, and the work if another node
// did it. This node's work is counted while it goes on.
func (r *round) reportProgress(node string, s *shard.Stats) {
	r.a.reportProgress()
	if r.leaf.progress != nil && node != r.d.Cluster.Self() {
		considered := int64(s.FilesConsidered)
		r.leaf.progress.Add(considered, considered, int64(s.TotalMatches), int64(s.ContentBytes))
	}
}
