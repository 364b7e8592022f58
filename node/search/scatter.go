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

// asked is one request to one node for some shards.
type asked struct {
	node    string
	targets []*target
	hedge   bool
	hedged  bool
	began   time.Time
	cancel  context.CancelCauseFunc
}

// event is the end of a call, or what came of hellos where call is nil.
type event struct {
	call   *asked
	res    *leafResponse
	err    error
	silent map[string]bool
}

// errSilent ends a call to a node that gives no sign of life.
var errSilent = errors.New("the node is silent")

// round is one fan-out: every shard of a list is asked of its first
// holder, of the next when that fails, of two when the first is slow. A
// response counts as a whole or not at all, so no match is counted twice.
type round struct {
	d      *Deps
	leaves *leaves
	q      *question
	a      *answer // which takes what comes back
	leaf   leafRequest

	ctx    context.Context // of the search
	cancel context.CancelFunc
	hellos context.Context

	events  chan event
	running map[*asked]bool
	done    map[*target]bool
	tried   map[*target]int   // holders tried so far
	refused map[*target]error // by a holder that has too much to do
	lost    []*target         // no holder answered
	silent  map[string]bool   // nodes: whether the last hello of this search was in vain
	greets  time.Time         // the next hello, zero while one is on its way
	newer   uint64            // the newest catalog by which a holder lacks a file; 0 for none
	wg      sync.WaitGroup
}

// newRound makes a fan-out of a search.
func newRound(r *root, leaf leafRequest) *round {
	return &round{
		d:      r.d,
		leaves: r.leaves,
		q:      r.q,
		a:      r.a,
		leaf:   leaf,
		ctx:    r.ctx,
		cancel: r.cancel,

		events:  make(chan event),
		running: map[*asked]bool{},
		done:    map[*target]bool{},
		tried:   map[*target]int{},
		refused: map[*target]error{},
		silent:  map[string]bool{},
		greets:  clock.In(call.StallTime / 2),
	}
}

// run asks for all targets and takes in what comes back.
func (r *round) run(targets []*target) {
	ctx, end := context.WithCancel(r.ctx)
	r.hellos = ctx
	defer r.stop()
	defer end()

	r.ask(targets, false)
	r.collect()

	// The view that the search stands on may be older than a move of its files.
	for range maxTries {
		moved := r.moved()
		if len(moved) == 0 {
			break
		}
		r.ask(moved, false)
		r.collect()
	}

	// What gossip tells of their holders may be wrong.
	if found := r.unheard(); len(found) > 0 {
		r.ask(found, false)
		r.collect()
	}

	r.a.lost = append(r.a.lost, r.lost...)
}

// collect takes in what comes back until no call runs.
func (r *round) collect() {
	for len(r.running) > 0 {
		// Wait for an answer, but no longer than until a call is overdue.
		timer := time.NewTimer(r.patience())
		select {
		case e := <-r.events:
			if e.call != nil {
				r.end(e)
				break
			}
			r.silent = e.silent
			r.greets = clock.In(call.StallTime / 2)
			r.hedge()
		case <-timer.C:
			r.greet()
			r.hedge()
		}
		timer.Stop()
	}
}

// moved takes those of the lost targets back whose files are by now with members
// that were not asked. A holder that lacks a file has given it up by a catalog
// that this node may not have yet: that one is waited for.
func (r *round) moved() (moved []*target) {
	if len(r.lost) == 0 || r.ctx.Err() != nil {
		return nil
	}

	// Only a newer view tells where the files are now: with this one the same would be asked.
	if r.newer > r.d.Cluster.View().Index() {
		ctx, cancel := context.WithTimeout(r.ctx, catchUpTime)
		defer cancel()
		_ = r.d.Cluster.Await(ctx, r.newer) // in vain, the newest view there is has to do
	}

	view, missed := r.d.Cluster.View(), r.missed()
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

// unheard takes those of the lost targets back that a member has which was passed
// over and answers all the same: gossip calls it dead, or it gave no answer a moment
// ago. All such members are asked at once, so it takes call.StallTime at most.
func (r *round) unheard() (found []*target) {
	if len(r.lost) == 0 || r.ctx.Err() != nil {
		return nil
	}

	// Those that a target was already asked of have failed, whatever they say now.
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

// filesOf names the files of a group that its holders have to have all.
func filesOf(g *shard.Group) []string {
	ids := commonFiles(g)
	for _, p := range g.Parts {
		if !p.Dead.IsZero() {
			ids = append(ids, p.Dead.String())
		}
	}
	return ids
}

// stop cancels what still runs and waits for it.
func (r *round) stop() {
	if len(r.running) == 0 && !r.greets.IsZero() {
		return // all have said what came of them
	}

	// Without the cancel, the wait would last as long as the slowest leaf.
	for c := range r.running {
		c.cancel(nil)
	}

	// The calls that end now still want to send: their events are thrown away.
	go func() {
		r.wg.Wait()
		close(r.events)
	}()
	for range r.events {
	}
}

// ask groups targets by their next holder and sends the calls. Those without
// a further holder are lost.
func (r *round) ask(targets []*target, hedge bool) {
	byNode := map[string][]*target{}
	missed := r.missed()
	for _, t := range targets {
		n := r.tried[t]
		for n < len(t.holders) && missed(t.holders[n]) {
			t.holders = slices.Concat(t.holders[:n], t.holders[n+1:]) // unheard looks at it
		}
		if n >= len(t.holders) || r.ctx.Err() != nil {
			// A hedge asks in addition: the call that it doubles may still answer.
			if !hedge {
				r.lose(t)
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

// missed returns what tells which nodes gave no answer a moment ago: a search would
// wait for them in vain.
func (r *round) missed() func(node string) bool {
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

func (r *round) lose(t *target) {
	if !slices.Contains(r.lost, t) {
		r.lost = append(r.lost, t)
	}

	if err := r.refused[t]; err != nil {
		r.a.overload = err
	}
}

// send asks a node. alone says that no other call runs or is about to.
func (r *round) send(node string, targets []*target, hedge, alone bool) {
	ctx, cancel := context.WithCancelCause(r.ctx)
	c := &asked{node: node, targets: targets, hedge: hedge, began: clock.Now(), cancel: cancel}
	r.running[c] = true

	// Each call has a request of its own: the groups differ.
	req := r.leaf
	req.Groups = make([]leafGroup, len(targets))
	for i, t := range targets {
		req.Groups[i] = leafGroup{group: t.group, rank: t.rank}
	}

	r.d.Peers.Begin(node)
	run := func() event {
		defer cancel(nil)
		res, err := r.leaves.ask(ctx, node, &req)
		r.d.Peers.Observe(node, clock.Since(c.began), err)
		return event{call: c, res: res, err: err}
	}

	// Nobody else is asked, and a call to this node is never doubled: nothing to wait for
	// meanwhile.
	if alone && node == r.d.Cluster.Self() {
		r.end(run())
		return
	}
	r.wg.Go(func() { r.events <- run() })
}

// end takes in the end of a call.
func (r *round) end(e event) {
	delete(r.running, e.call)

	var again []*target
	switch {
	case slices.ContainsFunc(e.call.targets, func(t *target) bool { return r.done[t] }):
		// The twin of this call was faster.
		again = r.idle(e.call.targets)
	case errors.Is(e.err, call.ErrOverloaded):
		// A node that refuses for now has not failed. Its shards are asked of
		// their next holders; where none is left, the search is refused too.
		for _, t := range e.call.targets {
			r.refused[t] = e.err
		}
		again = r.idle(e.call.targets)
	case e.err != nil:
		r.callFailed(e.call.node, e.err)
		again = r.idle(e.call.targets)
	default:
		again = r.accept(e)
	}

	r.ask(again, false)
}

// accept takes a response in and returns the targets that it does not answer.
func (r *round) accept(e event) (again []*target) {
	if len(e.res.Hidden) > 0 {
		r.a.refused = max(r.a.refused, e.res.Index)
		r.cancel()
		return nil
	}
	again = r.verdicts(e)
	r.a.take(e.res)
	r.tell(e.call.node, &e.res.Stats)

	// A call is not needed any longer when all of it is answered by its twin.
	for c := range r.running {
		if !slices.ContainsFunc(c.targets, func(t *target) bool { return !r.done[t] }) {
			c.cancel(nil)
		}
	}

	return r.idle(again)
}

// verdicts counts what came of each target, and returns those that the next
// holder is to be asked for.
func (r *round) verdicts(e event) (again []*target) {
	for i, t := range e.call.targets {
		switch e.res.Verdicts[i] {
		case verdictDone:
			r.done[t] = true
			r.a.stats.ShardsAnswered++
			if rest := r.without(t, e.res.Without); rest != nil {
				r.newer = max(r.newer, e.res.Index)
				again = append(again, rest)
			}
		case verdictLate:
			// There is no time left to ask anybody else.
			r.done[t] = true
			r.a.timeout, r.a.cut = true, true
		case verdictDamaged:
			r.a.stats.Crashes++
			again = append(again, t)
		default:
			r.newer = max(r.newer, e.res.Index)
			again = append(again, t)
		}
	}
	return again
}

// without is the target of the repositories that an answered one left out,
// since the node lacks a file of theirs; nil when there are none.
func (r *round) without(t *target, repos []uint32) *target {
	if len(repos) == 0 {
		return nil
	}
	rest := t.group.Within(func(repo uint32) bool { return slices.Contains(repos, repo) })
	if rest == nil {
		return nil
	}

	// It begins where the answered one stood: the holders before it have failed,
	// and the one that answered lacks the file.
	left := &target{group: rest, holders: t.holders, rank: t.rank}
	r.tried[left] = r.tried[t]
	r.a.stats.ShardsRequired++
	return left
}

// idle is those of the targets that are not answered and not being asked.
func (r *round) idle(targets []*target) []*target {
	var out []*target
	for _, t := range targets {
		if r.done[t] {
			continue
		}

		// It may be asked for twice at once, by its call and by a hedge.
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

// patience is the time to the next moment at which a call should be doubled, or
// nodes be greeted.
func (r *round) patience() time.Duration {
	next := time.Hour
	if !r.greets.IsZero() {
		next = r.greets.Sub(clock.Now())
	}
	for c := range r.running {
		if c.hedge || c.hedged {
			continue
		}
		next = min(next, r.d.Peers.Patience(c.node)-clock.Since(c.began))
	}

	return max(next, time.Millisecond)
}

// greet says hello to all nodes that are asked, and to those that would be next.
// However long a node works on a search, it answers that at once.
func (r *round) greet() {
	if r.greets.IsZero() || clock.Now().Before(r.greets) {
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

	r.greets = time.Time{}
	r.wg.Go(func() {
		there := r.d.Peers.There(r.hellos, slices.Sorted(maps.Keys(nodes)))
		for _, id := range there {
			delete(nodes, id)
		}
		r.events <- event{silent: nodes}
	})
}

// hedge sends the calls that are overdue to the next holders too, and ends those to
// silent nodes when no other call is left to hope for.
func (r *round) hedge() {
	for c := range maps.Clone(r.running) {
		age, silent := clock.Since(c.began), r.silent[c.node]
		if c.hedge || c.hedged || !silent && age < r.d.Peers.Patience(c.node) {
			continue
		}

		if !silent && age < call.StallTime && !r.d.Peers.AllowHedge() {
			// Look again when the call counts as stalled.
			continue
		}

		// This node is busy, not silent: more work does not help.
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

// callFailed notes that a node did not answer.
func (r *round) callFailed(node string, err error) {
	if r.ctx.Err() != nil {
		// The end of the search is not the fault of the node.
		r.a.timeout = errors.Is(r.ctx.Err(), context.DeadlineExceeded)
		return
	}
	if errors.Is(err, context.Canceled) && !errors.Is(err, errSilent) {
		return // the twin was faster
	}

	r.a.stats.Crashes++
	if !slices.Contains(r.a.failed, node) {
		r.a.failed = append(r.a.failed, node)
	}

	r.d.lost.note(call.RequestOf(r.ctx), node, err)
}

// tell counts an answer for whoever looks on: its shards, and the work of another node.
// This node counts its own while it goes on.
func (r *round) tell(node string, s *shard.Stats) {
	r.a.tellProgress()
	if r.leaf.progress != nil && node != r.d.Cluster.Self() {
		considered := int64(s.FilesConsidered)
		r.leaf.progress.Add(considered, considered, int64(s.TotalMatches), int64(s.ContentBytes))
	}
}
