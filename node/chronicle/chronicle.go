package chronicle

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/call"
)

// Deps are the other parts that a Chronicle uses.
type Deps struct {
	Net     call.Network
	Self    string // id of this node
	Dir     string // folder of accesses
	View    func() *catalog.View
	Members func() []cluster.Member
	Leader  func() string        // id; "": no leader
	Rule    func() cluster.Audit // how long changes are kept
	Policy  func() Policy        // how long accesses are kept, and how many
	Secret  func(ctx context.Context, name string) ([]byte, error)
	Now     func() time.Time
	Log     *slog.Logger
}

// Chronicle records and lists what happened. It is safe for concurrent use.
type Chronicle struct {
	d     Deps
	diary *diary
	trail *trail
}

// New returns a Chronicle, and registers the handlers for other nodes' requests. Call it before the
// cluster runs.
func New(d Deps) *Chronicle {
	// Take members, leader and catalog at the same time.
	look := func() sight { return sightOf(d.Members(), d.Leader(), d.View()) }
	c := &Chronicle{d: d, diary: newDiary(d.Now, look)}

	c.trail = newTrail(trailDeps{
		Dir:    d.Dir,
		Node:   d.Self,
		Index:  func() uint64 { return d.View().Index() },
		Policy: d.Policy,
		Hash:   c.hashQuery,

		Now: d.Now,
		Log: d.Log,
	})
	eventsCall.Serve(d.Net, c.serveEvents)
	accessesCall.Serve(d.Net, c.serveAccesses)
	return c
}

// Run records the events of the cluster and the accesses to code, until ctx ends.
func (c *Chronicle) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return c.diary.run(ctx) })
	g.Go(func() error { return c.trail.run(ctx) })
	return g.Wait()
}

// Recording reports whether it has seen a catalog and so records events.
func (c *Chronicle) Recording() bool { return !c.diary.snapshot().Since.IsZero() }

// NoteAccess records a read or refusal in the files of this node. It never blocks, and is safe for
// concurrent use.
func (c *Chronicle) NoteAccess(a Access) { c.trail.queue(a) }

// hashQuery returns the keyed hash of a query, to be stored instead of its text. Equal queries have
// equal hashes on each node.
func (c *Chronicle) hashQuery(ctx context.Context, query string) (string, error) {
	// The secret prevents readers of the files from guessing texts.
	secret, err := c.d.Secret(ctx, "audit-queries")
	if err != nil {
		return "", err
	}
	h := hmac.New(sha256.New, secret)
	h.Write([]byte(query))
	return hex.EncodeToString(h.Sum(nil)[:16]), nil
}

// Trail has counters of the recorded accesses.
type Trail struct {
	Written, Lost map[string]int64 // lines since the start, by series: reads, refusals
	Bytes         int64            // total size of the files
}

// Trail returns the counters of this node's recorded accesses.
func (c *Chronicle) Trail() Trail {
	t := Trail{Written: map[string]int64{}, Lost: map[string]int64{}}
	for _, s := range c.trail.allSeries() {
		t.Written[s.name], t.Lost[s.name] = s.written.Load(), s.totalLost.Load()
		t.Bytes += s.bytes.Load()
	}
	return t
}
