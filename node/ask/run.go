package ask

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/clock"
	"github.com/shoalsearch/shoal/node/thread"
)

const (
	proposeTime = 5 * time.Second
	handTime    = 2 * time.Second
	closePause  = 200 * time.Millisecond
	textPause   = 30 * time.Millisecond // pieces of text that come meanwhile are one event
)

// start has a turn answered, and its log written.
func (a *Asker) start(t *Turn, from *state) {
	a.running.Go(func() {
		defer a.forget(t)
		work, halt := context.WithCancelCause(a.end)
		defer halt(nil)
		bounded, cancel := context.WithTimeout(work, turnTime-a.d.Now().Sub(t.began))
		defer cancel()

		t.mu.Lock()
		t.halt = halt
		t.mu.Unlock()

		var written sync.WaitGroup
		written.Go(func() { t.write(a.end) })
		if !t.said() {
			t.answer(bounded, from)
		}

		written.Wait()

		if a.end.Err() != nil {
			t.handOver()
		}
	})
}

// said reports whether all is said, also that which has yet to be kept.
func (t *Turn) said() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last
}

func (a *Asker) forget(t *Turn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.turns[t.ID] == t {
		delete(a.turns, t.ID)
	}
}

// write writes the log until the last event is safe, another node goes on, or
// ctx ends. Watchers see an event once it is safe.
func (t *Turn) write(ctx context.Context) {
	for {
		select {
		case <-t.wake:
		case <-ctx.Done():
			t.end(errMoved)
			t.lose()
			return
		}

		t.mu.Lock()
		out, n, last := t.out, len(t.events), t.last
		t.out = nil
		t.mu.Unlock()
		if len(out) == 0 {
			continue
		}

		if err := t.append(ctx, out); err != nil {
			t.broken(ctx, err)
			return
		}

		// The last event says that the thread has the answer, so that comes first.
		if last {
			t.show(n - 1)
			if err := t.close(ctx); err != nil {
				t.broken(ctx, err)
				return
			}
			t.show(n)
			return
		}
		t.show(n)
		clock.Wait(ctx, textPause)
	}
}

func (t *Turn) append(ctx context.Context, out []entry) error {
	entries := make([][]byte, len(out))
	for i := range out {
		var err error
		entries[i], err = json.Marshal(&out[i])
		if err != nil {
			return fmt.Errorf("entry of a question: %w", err)
		}
	}
	return t.log.Append(ctx, entries...)
}

// broken ends the work on a turn whose log cannot be written here any more.
func (t *Turn) broken(ctx context.Context, err error) {
	t.end(errMoved)
	if ctx.Err() == nil && !errors.Is(err, thread.ErrLost) {
		t.a.d.Log.Error("the log of a question cannot be written", "err", err)
		t.a.abandon(ctx, t.ID, t.log.Fence())
	}
	t.lose()
}

// abandon ends a turn of which nothing can be kept.
func (a *Asker) abandon(ctx context.Context, id string, fence uint64) {
	ctx, cancel := context.WithTimeout(ctx, proposeTime)
	defer cancel()
	_, err := a.d.Propose(ctx, &catalog.EndTurn{Thread: id, Fence: fence, Turn: catalog.ThreadTurn{Failed: true}})
	if _, refused := catalog.Refused(err); err != nil && !refused {
		a.d.Log.Warn("a question that cannot go on was not ended", "err", err)
	}
}

// close keeps what was said and ends the turn in the catalog. It tries until
// ctx ends: what was said is safe meanwhile, and any copy can do the same.
func (t *Turn) close(ctx context.Context) error {
	t.mu.Lock()
	all := kept{t.reportLocked(), slices.Clone(t.events)}
	t.mu.Unlock()

	packed, err := pack(&all)
	if err != nil {
		return err
	}

	for {
		one, cancel := context.WithTimeout(ctx, proposeTime)
		err := t.closeOnce(one, &all.Report, packed)
		cancel()
		if err == nil {
			t.log.End()
			return nil
		}

		// The turn is no longer this node's.
		if _, refused := catalog.Refused(err); refused {
			return thread.ErrLost
		}
		if !clock.Wait(ctx, closePause) {
			return ctx.Err()
		}
	}
}

func (t *Turn) closeOnce(ctx context.Context, r *Report, packed []byte) error {
	file, size, err := t.a.d.Threads.Put(ctx, t.ID, packed)
	if err != nil {
		return err
	}

	turn := catalog.ThreadTurn{
		File:   file,
		Bytes:  uint32(size),
		Events: uint32(r.Last - r.First + 1),
		Failed: r.Status != Done,
	}
	_, err = t.a.d.Propose(ctx, &catalog.EndTurn{Thread: t.ID, Fence: t.log.Fence(), Turn: turn})
	return err
}

// handOver gives a turn to its other copy when this node stops.
func (t *Turn) handOver() {
	t.mu.Lock()
	ended := t.ended
	t.mu.Unlock()

	h := t.a.d.View().Thread(t.ID)
	if ended || h == nil || h.Run.Fence != t.log.Fence() {
		return
	}

	for _, node := range h.Run.Copies {
		if node == t.a.d.Self || !t.a.d.Alive(node) {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), handTime)
		defer cancel()

		// Where this fails the copy finds out by itself that this node is gone.
		move := &catalog.MoveRun{Thread: t.ID, Fence: h.Run.Fence, Node: node, Copies: []string{node}}
		_, _ = t.a.d.Propose(ctx, move)
		return
	}
}

// The files of turns are JSON, packed: events repeat their words.
var (
	packer, _   = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	unpacker, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(64<<20))
)

func pack(k *kept) ([]byte, error) {
	b, err := json.Marshal(k)
	if err != nil {
		return nil, fmt.Errorf("keep a question: %w", err)
	}
	return packer.EncodeAll(b, nil), nil
}

func unpack(b []byte) (*kept, error) {
	plain, err := unpacker.DecodeAll(b, nil)
	if err != nil {
		return nil, fmt.Errorf("what was said: %w", err)
	}
	k := new(kept)
	d := json.NewDecoder(bytes.NewReader(plain))
	if err := d.Decode(k); err != nil {
		return nil, fmt.Errorf("what was said: %w", err)
	}
	return k, nil
}

const (
	lookPause  = 200 * time.Millisecond
	deadAfter  = time.Second            // of a runner that gossip calls dead
	givenUp    = turnTime + time.Minute // of a turn whose copies are all gone
	retainLook = 10 * time.Minute
)

// watchRuns takes over what this node should answer, until ctx ends.
func (a *Asker) watchRuns(ctx context.Context) {
	silent := map[string]time.Time{} // since when runners are, by thread
	var retained time.Time
	for clock.Wait(ctx, a.scaled(lookPause)) {
		now, seen := a.d.Now(), map[string]bool{}
		for h := range a.d.View().RunningThreads() {
			seen[h.ID] = true
			a.lookAfter(ctx, h, now, silent)
		}

		for id := range silent {
			if !seen[id] {
				delete(silent, id)
			}
		}

		if a.d.Leading() && now.Sub(retained) > a.scaled(retainLook) {
			retained = now
			a.retain(ctx, now)
		}
	}
}

// lookAfter takes over one turn, where its runner is gone and this node has a
// copy.
func (a *Asker) lookAfter(ctx context.Context, h *catalog.Thread, now time.Time, silent map[string]time.Time) {
	if h.Run.Node == a.d.Self {
		a.resume(ctx, h.ID, h.Run.Fence)
		return
	}
	if a.d.Alive(h.Run.Node) {
		delete(silent, h.ID)
		return
	}

	// A runner is gone only when it was silent for a while: gossip errs for moments.
	since, known := silent[h.ID]
	if !known {
		silent[h.ID] = now
		return
	}

	switch {
	case now.Sub(since) < a.scaled(deadAfter):
		// It may yet come back.
	case slices.Contains(h.Run.Copies, a.d.Self):
		one, cancel := context.WithTimeout(ctx, proposeTime)
		defer cancel()

		// Another copy may have been first.
		move := &catalog.MoveRun{Thread: h.ID, Fence: h.Run.Fence, Node: a.d.Self, Copies: []string{a.d.Self}}
		_, _ = a.d.Propose(one, move)
	case now.Sub(h.Run.Since) > givenUp && !slices.ContainsFunc(h.Run.Copies, a.d.Alive):
		a.abandon(ctx, h.ID, h.Run.Fence)
	}
}

// resume goes on with a turn that the catalog gives to this node and that is
// not being answered here.
func (a *Asker) resume(ctx context.Context, id string, fence uint64) {
	if !a.claim(id) {
		return
	}
	defer func() {
		a.mu.Lock()
		delete(a.starting, id)
		a.mu.Unlock()
	}()

	t, from, err := a.resumed(ctx, id, fence)
	switch {
	case errors.Is(err, thread.ErrLost), err != nil && ctx.Err() != nil:
		return
	case err != nil:
		a.d.Log.Error("a question cannot be gone on with", "err", err)
		a.abandon(ctx, id, fence)
		return
	}

	a.mu.Lock()
	a.turns[id] = t
	a.mu.Unlock()
	a.start(t, from)
}

// claim tells whether a turn is to be begun here now: it is not when it is being
// answered, or begun by another.
func (a *Asker) claim(id string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.turns[id] != nil || a.starting[id] {
		return false
	}
	a.starting[id] = true
	return true
}

var errNothing = errors.New("nothing of it is on this node")

// resumed makes a turn of what is in its log.
func (a *Asker) resumed(ctx context.Context, id string, fence uint64) (*Turn, *state, error) {
	h := a.d.View().Thread(id)
	if h == nil || h.Run.Fence != fence {
		return nil, nil, thread.ErrLost
	}

	log, entries, err := a.d.Threads.Resume(ctx, id, h.Run)
	if err != nil {
		return nil, nil, err
	}

	p, err := readLog(entries)
	if err != nil {
		return nil, nil, err
	}

	if p.begun == nil || len(p.events) == 0 {
		return nil, nil, errNothing
	}

	q := p.begun.Question
	q.Earlier, err = a.earlier(ctx, p.begun.Asker, h)
	if err != nil {
		return nil, nil, err
	}

	// Where this node cannot answer, the turn still has to end, with the reason.
	plan, problem := a.plan(p.begun.Asker, q)
	if problem != nil {
		plan = planless(p.begun.Asker, q)
	}

	t := newTurn(a, id, h.Events(), plan)
	t.log, t.began, t.Began = log, p.begun.Began, p.begun.Began
	t.events = p.events
	for _, e := range p.events {
		t.size += len(e.Text)
	}

	if p.report != nil {
		// All is said: the turn has only to be closed.
		t.Report = *p.report
		t.last = true
		t.out = []entry{{}}
		t.stir()
		return t, nil, nil
	}

	t.emit(Event{Kind: KindAgain})
	t.emit(Event{Kind: KindNote, Text: "The node that answered went away; another one goes on."})

	if problem != nil {
		t.Report.Status, t.Report.Error = Failed, "The node that goes on cannot answer: "+problem.Error()
		t.emit(Event{Kind: KindError, Text: t.Report.Error})
		t.emit(Event{Kind: KindDone, Text: string(Failed)})
	}
	return t, p.state, nil
}
