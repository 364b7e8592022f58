package ask

import (
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/clustertest"
)

// watched is the nodes of a cluster as one of them sees them.
type watched struct {
	self    string
	leads   bool
	dead    map[string]bool
	Catalog // not called
}

func (w *watched) Self() string           { return w.self }
func (w *watched) Leading() bool          { return w.leads }
func (w *watched) Alive(node string) bool { return !w.dead[node] }

// A turn only ends for the loss of its node if the loss is certain, and by one node.
func TestLostTurn_isDeclaredOnceAndOnlyIfCertain(t *testing.T) {
	t.Parallel()
	const id = "5b0c7a4e9d1f2a3b4c5d6e7f80912a3b"
	w := clustertest.New(t, `{}`, 3)
	w.Do(beginTurn(id, true))
	h := w.View().Thread(id)
	start := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

	for name, tt := range map[string]struct {
		self         string // n1 answers
		leads, runs  bool
		dead         []bool // in checks a second apart
		lost, starts bool
	}{
		"it runs here":                            {self: "n1", leads: true, runs: true, dead: make([]bool, 20)},
		"it is about to run here":                 {self: "n1", starts: true, dead: make([]bool, 1)},
		"this node was started again":             {self: "n1", dead: make([]bool, 1), lost: true},
		"its node is there":                       {self: "n2", leads: true, dead: make([]bool, 20)},
		"its node is dead for a moment":           {self: "n2", leads: true, dead: []bool{true, true, true}},
		"its node is dead for long":               {self: "n2", leads: true, dead: dead(11), lost: true},
		"its node is dead, the leader sees to it": {self: "n2", dead: dead(11)},
		"its node flaps":                          {self: "n2", leads: true, dead: append(append(dead(9), false), dead(9)...)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nodes := &watched{self: tt.self, leads: tt.leads, dead: map[string]bool{}}
			l := &losses{nodes: nodes, runs: newRuns(), pace: 1, silent: map[string]time.Time{}}
			if tt.runs {
				l.runs.turns[id] = &Turn{}
			}
			l.runs.starting[id] = tt.starts

			var lost bool
			for i, dead := range tt.dead {
				nodes.dead["n1"] = dead
				lost = l.shouldEnd(h, start.Add(time.Duration(i)*time.Second))
			}
			if lost != tt.lost {
				t.Errorf("lost: %t, want %t", lost, tt.lost)
			}
		})
	}
}

func dead(looks int) []bool {
	all := make([]bool, looks)
	for i := range all {
		all[i] = true
	}
	return all
}

// A lost turn has its question and the reason of its end, with a higher number than all its
// possible events.
func TestLostTurn_keepsItsQuestion(t *testing.T) {
	t.Parallel()
	k := lostTurn(Report{Query: "What is seven?", Status: Running}, 7, lostEvents)
	if k.Report.Query != "What is seven?" || k.Report.Status != Failed || k.Report.First != 8 || k.Report.Last != 7+lostEvents {
		t.Errorf("%+v", k.Report)
	}
	first, end := k.Events[0], k.Events[len(k.Events)-1]
	if first.N != 8 || first.Text != "What is seven?" || end.N != k.Report.Last || end.Kind != KindDone || end.Text != string(Failed) {
		t.Errorf("%+v", k.Events)
	}
	if k.Events[1].N <= 7+maxEvents+1 {
		t.Errorf("the error has the number %d, which may have been another event's", k.Events[1].N)
	}
}

// A stopping node begins no turn, and waits for the running ones.
func TestNodeStop_waitsForRunningTurns(t *testing.T) {
	t.Parallel()
	r := newRuns()
	a, b := &Turn{Report: Report{ID: "a"}}, &Turn{Report: Report{ID: "b"}}
	r.turns["a"], r.turns["b"] = a, b

	counts, over := make(chan int), make(chan struct{})
	go func() {
		defer close(over)
		r.drain(t.Context(), func(n int) { counts <- n })
	}()
	for i, turn := range []*Turn{a, b} {
		if n := <-counts; n != 2-i {
			t.Errorf("%d run, want %d", n, 2-i)
		}
		if err := r.reserve("new"); err == nil {
			t.Error("a question is taken by a node that stops")
		}
		r.removeTurn(turn)
	}
	if n := <-counts; n != 0 {
		t.Errorf("%d run in the end", n)
	}
	<-over
}

// beginTurn returns the command by which n1 begins to answer a question of the operator.
func beginTurn(id string, first bool) *catalog.BeginTurn {
	lost := catalog.ThreadTurn{File: "7f83b1657ff1fc53b92dc18148a1d65dfc2d4b1fa3d677284addd200126d9069", Events: lostEvents, Failed: true}
	return &catalog.BeginTurn{Thread: id, New: first, Owner: "operator", Node: "n1", Lost: lost}
}
