package search

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster/catalog"
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

// scatterer is one fan-out: every shard of a list is asked of its first
// holder, of the next when that fails, of two when the first is slow. A
// response counts as a whole or not at all, so no match is counted twice.
type scatterer struct {
	r       *root
	ctx     context.Context // of the hellos
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

// scatter asks for all targets and takes in what comes back.
func (r *root) scatter(targets []*target) {
	s := &scatterer{
		r:       r,
		events:  make(chan event),
		running: map[*asked]bool{},
		done:    map[*target]bool{},
		tried:   map[*target]int{},
		refused: map[*target]error{},
		silent:  map[string]bool{},
		greets:  clock.In(call.StallTime / 2),
	}
	ctx, end := context.WithCancel(r.ctx)
	s.ctx = ctx
	defer s.stop()
	defer end()

	s.ask(targets, false)
	s.collect()

	// The view that the search stands on may be older than a move of its files.
	for range maxTries {
		moved := s.moved()
		if len(moved) == 0 {
			break
		}
		s.ask(moved, false)
		s.collect()
	}

	// What gossip tells of their holders may be wrong.
	if found := s.unheard(); len(found) > 0 {
		s.ask(found, false)
		s.collect()
	}

	r.lost = append(r.lost, s.lost...)
}

// collect takes in what comes back until no call runs.
func (s *scatterer) collect() {
	for len(s.running) > 0 {
		// Wait for an answer, but no longer than until a call is overdue.
		timer := time.NewTimer(s.patience())
		select {
		case e := <-s.events:
			if e.call != nil {
				s.end(e)
				break
			}
			s.silent = e.silent
			s.greets = clock.In(call.StallTime / 2)
			s.hedge()
		case <-timer.C:
			s.greet()
			s.hedge()
		}
		timer.Stop()
	}
}

// moved takes those of the lost targets back whose files are by now with members
// that were not asked. A holder that lacks a file has given it up by a catalog
// that this node may not have yet: that one is waited for.
func (s *scatterer) moved() (moved []*target) {
	if len(s.lost) == 0 || s.r.ctx.Err() != nil {
		return nil
	}

	// Only a newer view tells where the files are now: with this one the same would be asked.
	if s.newer > s.r.d.Cluster.View().Index() {
		ctx, cancel := context.WithTimeout(s.r.ctx, catchUpTime)
		defer cancel()
		_ = s.r.d.Cluster.Await(ctx, s.newer) // in vain, the newest view there is has to do
	}

	view, missed := s.r.d.Cluster.View(), s.missed()
	s.lost = slices.DeleteFunc(s.lost, func(t *target) bool {
		fresh := holders(view, s.r.d.Peers, filesOf(t.group))
		fresh = slices.DeleteFunc(fresh, func(id string) bool { return slices.Contains(t.holders, id) || missed(id) })
		if len(fresh) == 0 || s.refused[t] != nil {
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
func (s *scatterer) unheard() (found []*target) {
	if len(s.lost) == 0 || s.r.ctx.Err() != nil {
		return nil
	}

	// Those that a target was already asked of have failed, whatever they say now.
	view := s.r.d.Cluster.View()
	others, all := map[*target][]string{}, map[string]bool{}
	for _, t := range s.lost {
		for _, id := range having(view, filesOf(t.group)) {
			if !slices.Contains(t.holders, id) && !s.silent[id] && s.refused[t] == nil {
				others[t] = append(others[t], id)
				all[id] = true
			}
		}
	}

	there := s.r.d.Peers.Answering(s.r.ctx, slices.Sorted(maps.Keys(all)))
	s.lost = slices.DeleteFunc(s.lost, func(t *target) bool {
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
func (s *scatterer) stop() {
	if len(s.running) == 0 && !s.greets.IsZero() {
		return // all have said what came of them
	}

	// Without the cancel, the wait would last as long as the slowest leaf.
	for c := range s.running {
		c.cancel(nil)
	}

	// The calls that end now still want to send: their events are thrown away.
	go func() {
		s.wg.Wait()
		close(s.events)
	}()
	for range s.events {
	}
}

// ask groups targets by their next holder and sends the calls. Those without
// a further holder are lost.
func (s *scatterer) ask(targets []*target, hedge bool) {
	byNode := map[string][]*target{}
	missed := s.missed()
	for _, t := range targets {
		n := s.tried[t]
		for n < len(t.holders) && missed(t.holders[n]) {
			t.holders = slices.Concat(t.holders[:n], t.holders[n+1:]) // unheard looks at it
		}
		if n >= len(t.holders) || s.r.ctx.Err() != nil {
			// A hedge asks in addition: the call that it doubles may still answer.
			if !hedge {
				s.lose(t)
			}
			continue
		}
		s.tried[t] = n + 1

		next := t.holders[n]
		byNode[next] = append(byNode[next], t)
	}

	alone := len(byNode) == 1 && len(s.running) == 0
	for _, node := range slices.Sorted(maps.Keys(byNode)) {
		s.send(node, byNode[node], hedge, alone)
	}
}

// missed returns what tells which nodes gave no answer a moment ago: a search would
// wait for them in vain.
func (s *scatterer) missed() func(node string) bool {
	known := map[string]bool{}
	return func(node string) bool {
		is, ok := known[node]
		if !ok {
			is = s.r.d.Peers.Misses(node)
			known[node] = is
		}
		return is
	}
}

func (s *scatterer) lose(t *target) {
	if !slices.Contains(s.lost, t) {
		s.lost = append(s.lost, t)
	}

	if err := s.refused[t]; err != nil {
		s.r.overload = err
	}
}

// send asks a node. alone says that no other call runs or is about to.
func (s *scatterer) send(node string, targets []*target, hedge, alone bool) {
	ctx, cancel := context.WithCancelCause(s.r.ctx)
	c := &asked{node: node, targets: targets, hedge: hedge, began: clock.Now(), cancel: cancel}
	s.running[c] = true

	// Each call has a request of its own: the groups differ.
	req := s.r.leaf
	req.Groups = make([]leafGroup, len(targets))
	for i, t := range targets {
		req.Groups[i] = leafGroup{group: t.group, rank: t.rank, Unit: t.unit}
	}

	s.r.d.Peers.Begin(node)
	run := func() event {
		defer cancel(nil)
		res, err := s.r.leaves.ask(ctx, node, &req)
		s.r.d.Peers.Observe(node, clock.Since(c.began), err)
		return event{call: c, res: res, err: err}
	}

	// Nobody else is asked, and a call to this node is never doubled: nothing to wait for
	// meanwhile.
	if alone && node == s.r.d.Cluster.Self() {
		s.end(run())
		return
	}
	s.wg.Go(func() { s.events <- run() })
}

// end takes in the end of a call.
func (s *scatterer) end(e event) {
	delete(s.running, e.call)

	var again []*target
	switch {
	case slices.ContainsFunc(e.call.targets, func(t *target) bool { return s.done[t] }):
		// The twin of this call was faster.
		again = s.idle(e.call.targets)
	case errors.Is(e.err, call.ErrOverloaded):
		// A node that refuses for now has not failed. Its shards are asked of
		// their next holders; where none is left, the search is refused too.
		for _, t := range e.call.targets {
			s.refused[t] = e.err
		}
		again = s.idle(e.call.targets)
	case e.err != nil:
		s.r.callFailed(e.call.node, e.err)
		again = s.idle(e.call.targets)
	default:
		again = s.accept(e)
	}

	s.ask(again, false)
}

// accept takes a response in and returns the targets that it does not answer.
func (s *scatterer) accept(e event) (again []*target) {
	if len(e.res.Hidden) > 0 {
		s.r.refused = max(s.r.refused, e.res.Index)
		s.r.cancel()
		return nil
	}
	again = s.verdicts(e)
	s.r.take(e.res)
	s.r.tell(e.call.node, &e.res.Stats)

	// A call is not needed any longer when all of it is answered by its twin.
	for c := range s.running {
		if !slices.ContainsFunc(c.targets, func(t *target) bool { return !s.done[t] }) {
			c.cancel(nil)
		}
	}

	return s.idle(again)
}

// verdicts counts what came of each target, and returns those that the next
// holder is to be asked for.
func (s *scatterer) verdicts(e event) (again []*target) {
	for i, t := range e.call.targets {
		switch e.res.Verdicts[i] {
		case verdictDone:
			s.done[t] = true
			s.r.stats.ShardsAnswered++
			if rest := s.without(t, e.res.Without); rest != nil {
				s.newer = max(s.newer, e.res.Index)
				again = append(again, rest)
			}
		case verdictLate:
			// There is no time left to ask anybody else.
			s.done[t] = true
			s.r.timeout, s.r.cut = true, true
		case verdictDamaged:
			s.r.stats.Crashes++
			again = append(again, t)
		default:
			s.newer = max(s.newer, e.res.Index)
			again = append(again, t)
		}
	}
	return again
}

// without is the target of the repositories that an answered one left out,
// since the node lacks a file of theirs; nil when there are none.
func (s *scatterer) without(t *target, repos []uint32) *target {
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
	s.tried[left] = s.tried[t]
	s.r.stats.ShardsRequired++
	return left
}

// idle is those of the targets that are not answered and not being asked.
func (s *scatterer) idle(targets []*target) []*target {
	var out []*target
	for _, t := range targets {
		if s.done[t] {
			continue
		}

		// It may be asked for twice at once, by its call and by a hedge.
		asked := false
		for c := range s.running {
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
func (s *scatterer) patience() time.Duration {
	next := time.Hour
	if !s.greets.IsZero() {
		next = s.greets.Sub(clock.Now())
	}
	for c := range s.running {
		if c.hedge || c.hedged {
			continue
		}
		next = min(next, s.r.d.Peers.Patience(c.node)-clock.Since(c.began))
	}

	return max(next, time.Millisecond)
}

// greet says hello to all nodes that are asked, and to those that would be next.
// However long a node works on a search, it answers that at once.
func (s *scatterer) greet() {
	if s.greets.IsZero() || clock.Now().Before(s.greets) {
		return
	}

	nodes := map[string]bool{}
	for c := range s.running {
		nodes[c.node] = true
		for _, t := range c.targets {
			for _, id := range t.holders[s.tried[t]:] {
				nodes[id] = true
			}
		}
	}
	delete(nodes, s.r.d.Cluster.Self())

	s.greets = time.Time{}
	s.wg.Go(func() {
		there := s.r.d.Peers.There(s.ctx, slices.Sorted(maps.Keys(nodes)))
		for _, id := range there {
			delete(nodes, id)
		}
		s.events <- event{silent: nodes}
	})
}

// hedge sends the calls that are overdue to the next holders too, and ends those to
// silent nodes when no other call is left to hope for.
func (s *scatterer) hedge() {
	for c := range maps.Clone(s.running) {
		age, silent := clock.Since(c.began), s.silent[c.node]
		if c.hedge || c.hedged || !silent && age < s.r.d.Peers.Patience(c.node) {
			continue
		}

		if !silent && age < call.StallTime && !s.r.d.Peers.AllowHedge() {
			// Look again when the call counts as stalled.
			continue
		}

		// This node is busy, not silent: more work does not help.
		c.hedged = true
		if c.node == s.r.d.Cluster.Self() {
			continue
		}

		before := len(s.running)
		s.ask(c.targets, true)
		s.r.hedged += len(s.running) - before
	}

	for c := range s.running {
		if !s.silent[c.node] {
			return
		}
	}
	for c := range s.running {
		c.cancel(errSilent)
	}
}

// callFailed notes that a node did not answer.
func (r *root) callFailed(node string, err error) {
	if r.ctx.Err() != nil {
		// The end of the search is not the fault of the node.
		r.timeout = errors.Is(r.ctx.Err(), context.DeadlineExceeded)
		return
	}
	if errors.Is(err, context.Canceled) && !errors.Is(err, errSilent) {
		return // the twin was faster
	}

	r.stats.Crashes++
	if !slices.Contains(r.failed, node) {
		r.failed = append(r.failed, node)
	}

	r.d.lost.note(node, err)
}

// overtaken reports whether a repository of a lost shard has other files in a
// newer view: another generation, or the same one packed.
func (r *root) overtaken(view *catalog.View) bool {
	return slices.ContainsFunc(r.lost, func(t *target) bool {
		return slices.ContainsFunc(t.group.Parts, func(p shard.Part) bool {
			old, now := r.seen.View.Repo(p.Repo), view.Repo(p.Repo)
			return now == nil || old == nil || !slices.Equal(now.Shards, old.Shards)
		})
	})
}
