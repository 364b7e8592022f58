package chronicle

import (
	"context"
	"time"

	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/call"
)

// Deps is what a Chronicle works with.
type Deps struct {
	Net     call.Network
	View    func() *catalog.View
	Members func() []cluster.Member
	Leader  func() string        // id; "" when there is none
	Rule    func() cluster.Audit // for how long changes are kept
	Now     func() time.Time
}

// Chronicle tells owners what happened. It is safe for concurrent use.
type Chronicle struct {
	d     Deps
	diary *diary
}

// New makes a Chronicle, which tells other nodes of what this one has seen from
// now on. It must be called before the cluster runs.
func New(d Deps) *Chronicle {
	look := func() sight { return sightOf(d.Members(), d.Leader(), d.View()) }
	c := &Chronicle{d: d, diary: &diary{now: d.Now, look: look}}
	eventsCall.Serve(d.Net, c.serveEvents)
	return c
}

// Run looks at the cluster again and again, until ctx ends.
func (c *Chronicle) Run(ctx context.Context) error { return c.diary.run(ctx) }

// Notes reports whether it has seen a catalog: what happens from then on is noted.
func (c *Chronicle) Notes() bool { return !c.diary.told().Since.IsZero() }
