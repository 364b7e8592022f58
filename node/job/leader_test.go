package job

import (
	"log/slog"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/clustertest"
	"github.com/shoalsearch/shoal/node/hold"
)

// While the catalog has the same data, repositories are looked at again only after a longer
// pause, and the leader does not spin until then.
func TestJobPlanner_plansNothingWhileNothingChanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t, oneConnection, 1)
	w.Repos("a", "one")
	log := slog.New(slog.DiscardHandler)
	n := w.Node("n1")
	l := newLeader(n, w.kinds, hold.NewPlacer(n, 2, log, w.Now), LeaderOptions{Log: log, Ticks: w.Now})
	for range 5 {
		l.plan(t.Context())
		w.Pass(time.Minute)
	}
	if l.idle.view == nil {
		t.Fatal("there is always something to do")
	}

	l.idle.until = w.Now().Add(time.Hour)
	w.Pass(30 * time.Minute)
	l.nextSync = w.Now().Add(time.Hour)
	if look := l.dueLooks(w.View(), l.planNodes(w.Now()), w.Now()); look&LookRepos != 0 {
		t.Error("repositories are looked at though nothing has changed")
	}
	if wait := l.untilNextPlan(); wait != time.Second {
		t.Errorf("the next plan is in %v, want a second", wait)
	}

	w.Confirm("n1", catalog.MirrorKey(1))
	if look := l.dueLooks(w.View(), l.planNodes(w.Now()), w.Now()); look&LookRepos == 0 {
		t.Error("repositories are not looked at though the catalog has other data")
	}
}

// dated is a node with a clock that the test sets.
type dated struct {
	*clustertest.Node
	date *time.Time
}

// Time implements Cluster.
func (d *dated) Time() time.Time { return *d.date }

// The leader's clock is set back by an hour. It continues planning, and gives up a silent node in
// time.
func TestJobPlanner_plansOnTimeThoughTheClockIsSetBack(t *testing.T) {
	t.Parallel()
	w := clustertest.New(t, oneConnection, 2)
	log := slog.New(slog.DiscardHandler)
	ticks, date := w.Now(), w.Now()
	placer := hold.NewPlacer(w.Node("n1"), 2, log, func() time.Time { return ticks })
	n := &dated{w.Node("n1"), &date}
	l := newLeader(n, table(), placer, LeaderOptions{Log: log, Ticks: func() time.Time { return ticks }})
	l.plan(t.Context())
	w.Lose("n2")

	date, ticks = date.Add(-time.Hour), ticks.Add(hold.LostAfter)
	if look := l.dueLooks(w.View(), l.planNodes(ticks), ticks); look&LookRepos == 0 {
		t.Error("repositories are not looked at")
	}
	if n := l.planNodes(ticks)[1]; !n.Lost() || n.Gone() {
		t.Errorf("the silent node is %+v", n)
	}
}
