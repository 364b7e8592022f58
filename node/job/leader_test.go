package job

import (
	"log/slog"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/clustertest"
	"github.com/shoalsearch/shoal/node/hold"
)

// A look that takes a minute, since the machine stood still or the disk did,
// is not followed by an hour without placement and jobs.
func TestASlowLookDoesNotStopThePlanning(t *testing.T) {
	t.Parallel()
	w := clustertest.New(t, oneConnection, 2)
	slow := func() time.Time {
		w.Pass(time.Minute)
		return w.Now()
	}
	log := slog.New(slog.DiscardHandler)
	placer := hold.NewPlacer(w.Node("n1"), 2, log, slow)
	l := newLeader(w.Node("n1"), table(), placer, LeaderOptions{Log: log, Ticks: slow})
	l.plan(t.Context())
	if l.nextRepo.IsZero() || l.nextRepo.Sub(w.Now()) > lookLatest {
		t.Errorf("the next look for repositories is at %v, it is %v now", l.nextRepo, w.Now())
	}
}

// dated is a node by whose clock it is some date.
type dated struct {
	*clustertest.Node
	date *time.Time
}

// Time implements Cluster.
func (d *dated) Time() time.Time { return *d.date }

// Somebody sets the clock of the leader back by an hour: it goes on planning,
// and a silent node is given up when it has been silent for long enough.
func TestAClockThatIsSetBackDoesNotStopThePlanning(t *testing.T) {
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
	if look := l.looks(w.View(), ticks); look&LookRepos == 0 {
		t.Error("repositories are not looked at")
	}
	if n := l.nodes(ticks)[1]; !n.Lost() || n.Gone() {
		t.Errorf("the silent node is %+v", n)
	}
}
