package thread

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

var (
	runs     = flag.Int("runs", 60, "how many worlds TestNoEventIsLostOrDoubled makes")
	fromSeed = flag.Uint64("seed", 1, "of the first world")
)

const steps = 60

// TestNoEventIsLostOrDoubled makes worlds in which nodes are killed and come
// back, calls and answers are lost, gossip errs, the catalog is seen late, and
// others take over though the node that answers is well. What was told to be
// safe stands at its place in every log that somebody goes on with.
func TestNoEventIsLostOrDoubled(t *testing.T) {
	t.Parallel()
	var sum tally
	for i := range *runs {
		seed := *fromSeed + uint64(i)
		if !t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { sum.add(play(t, seed)) })
		}) {
			break
		}
	}
	t.Logf("%d worlds: %d entries safe, %d take-overs, %d of them from a node that was well, %d kills, %d refused to nodes that had lost",
		*runs, sum.safe, sum.taken, sum.stolen, sum.kills, sum.lost)
	if sum.safe == 0 || sum.taken == 0 || sum.stolen == 0 || sum.kills == 0 || sum.lost == 0 {
		t.Error("something of it never happened")
	}
}

type tally struct{ safe, taken, stolen, kills, lost int }

func (t *tally) add(o tally) {
	t.safe += o.safe
	t.taken += o.taken
	t.stolen += o.stolen
	t.kills += o.kills
	t.lost += o.lost
}

const thread1 = "5b0c7a4e9d1f2a3b4c5d6e7f80912a3b"

// answering is a question that is being answered in a world.
type answering struct {
	*world
	logs  map[string]*Log // by node, of those that believe to answer
	safe  map[int]string  // what was told to be safe, by its place
	tally tally
	said  int
}

// play plays one world to its end.
func play(t *testing.T, seed uint64) tally {
	w := newWorld(t, seed, 2+int(seed%4))
	a := &answering{world: w, logs: map[string]*Log{}, safe: map[int]string{}}
	first := w.nodes[0]
	copies := []string{first.id}
	if second := first.store.Second(thread1); second != "" {
		copies = append(copies, second)
	}
	w.do(&catalog.BeginTurn{Thread: thread1, New: true, Owner: "ann", Node: first.id, Copies: copies})
	a.logs[first.id] = first.store.Begin(thread1, w.state.View().Thread(thread1).Run)

	w.faults = true
	for range steps {
		a.step()
	}

	// In the end all is well, and whoever goes on has all of it.
	w.faults = false
	for _, n := range w.nodes {
		if !n.up {
			n.start()
		}
	}
	for _, id := range w.state.View().Thread(thread1).Run.Copies {
		a.takeOver(w.node(id))
	}
	a.tally.safe = len(a.safe)
	return a.tally
}

// step is one thing that happens.
func (a *answering) step() {
	n := a.nodes[a.rng.IntN(len(a.nodes))]
	switch dice := a.rng.IntN(20); {
	case !n.up:
		if dice < 8 {
			n.start()
		}
	case dice < 12:
		a.say(n)
	case dice < 14:
		n.kill()
		delete(a.logs, n.id)
		a.tally.kills++
	default:
		a.takeOver(n)
	}
}

// say has a node that believes to answer add to the log.
func (a *answering) say(n *node) {
	log := a.logs[n.id]
	if log == nil {
		return
	}
	at := log.count
	var entries [][]byte
	for range 1 + a.rng.IntN(3) {
		a.said++
		entries = append(entries, fmt.Appendf(nil, "%s says %d", n.id, a.said))
	}

	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	err := log.Append(ctx, entries...)
	if err != nil {
		// A turn whose log cannot be written is given up here.
		delete(a.logs, n.id)
		if errors.Is(err, ErrLost) {
			a.tally.lost++
		}
		return
	}
	for i, e := range entries {
		if before, ok := a.safe[at+i]; ok {
			a.t.Fatalf("entry %d is %q, and %q after it was safe", at+i, before, e)
		}
		a.safe[at+i] = string(e)
	}
}

// takeOver lets a node go on, if the catalog says that it has a copy.
func (a *answering) takeOver(n *node) {
	h := n.view().Thread(thread1)
	if h == nil {
		return // not seen yet
	}
	run := h.Run
	if !slices.Contains(run.Copies, n.id) {
		return
	}
	was := a.node(run.Node)
	if run.Node != n.id {
		_, err := n.propose(a.t.Context(), &catalog.MoveRun{Thread: thread1, Fence: run.Fence, Node: n.id, Copies: []string{n.id}})
		if err != nil {
			return
		}
	}

	run = n.view().Thread(thread1).Run
	if run.Node != n.id || a.logs[n.id] != nil && a.logs[n.id].Fence() == run.Fence {
		return
	}
	log, entries, err := n.store.Resume(a.t.Context(), thread1, run)
	if errors.Is(err, ErrLost) {
		return
	}
	if err != nil {
		a.t.Fatal(err)
	}
	a.logs[n.id] = log
	a.tally.taken++
	if was != n && was.up {
		a.tally.stolen++
	}
	if a.state.View().Thread(thread1).Run.Fence != run.Fence {
		return // it has seen an old catalog: nothing that it says becomes safe
	}
	for at, want := range a.safe {
		if at >= len(entries) || string(entries[at]) != want {
			a.t.Fatalf("%s goes on with %d entries; that at %d was safe as %q", n.id, len(entries), at, want)
		}
	}
}
