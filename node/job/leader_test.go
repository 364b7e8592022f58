package job

import (
	"log/slog"
	"testing"
	"time"

	"github.com/shoalsearch/shoal/cluster/clustertest"
	"github.com/shoalsearch/shoal/node/hold"
)

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
	if look := l.looks(w.View(), l.members(ticks), ticks); look&LookRepos == 0 {
		t.Error("repositories are not looked at")
	}
	if n := l.members(ticks)[1]; !n.Lost() || n.Gone() {
		t.Errorf("the silent node is %+v", n)
	}
}
