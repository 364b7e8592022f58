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

// Deps is what a Chronicle works with.
type Deps struct {
	Net     call.Network
	Self    string // id of this node
	Dir     string // where accesses are kept
	View    func() *catalog.View
	Members func() []cluster.Member
	Leader  func() string        // id; "" when there is none
	Rule    func() cluster.Audit // for how long changes are kept
	Policy  func() Policy        // for how long accesses are, and how many
	Secret  func(ctx context.Context, name string) ([]byte, error)
	Now     func() time.Time
	Log     *slog.Logger
}

// Chronicle tells owners what happened. It is safe for concurrent use.
type Chronicle struct {
	d     Deps
	diary *diary
	trail *trail
}

// New makes a Chronicle, which tells other nodes of what this one has seen from
// now on. It must be called before the cluster runs.
func New(d Deps) *Chronicle {
	// One look sees members, leader and catalog together.
	look := func() sight { return sightOf(d.Members(), d.Leader(), d.View()) }
	c := &Chronicle{d: d, diary: newDiary(d.Now, look)}

	c.trail = newTrail(trailDeps{
		Dir:    d.Dir,
		Node:   d.Self,
		Index:  func() uint64 { return d.View().Index() },
		Policy: d.Policy,
		Hash:   c.hash,

		Now: d.Now,
		Log: d.Log,
	})
	eventsCall.Serve(d.Net, c.serveEvents)
	accessesCall.Serve(d.Net, c.serveAccesses)
	return c
}

// Run looks at the cluster again and again, and writes accesses down, until ctx ends.
func (c *Chronicle) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return c.diary.run(ctx) })
	g.Go(func() error { return c.trail.run(ctx) })
	return g.Wait()
}

// Notes reports whether it has seen a catalog: what happens from then on is noted.
func (c *Chronicle) Notes() bool { return !c.diary.told().Since.IsZero() }

// NoteAccess keeps what was read or refused, in the files of this node. It waits for
// nothing, and is safe for concurrent use.
func (c *Chronicle) NoteAccess(a Access) { c.trail.note(a) }

// hash is what is kept of a query where its text is not: equal ones are equal on
// every node, and without the secret of the cluster no text can be tried against it.
func (c *Chronicle) hash(ctx context.Context, query string) (string, error) {
	// The secret keeps who reads the files from trying texts until a hash is the same.
	secret, err := c.d.Secret(ctx, "audit-queries")
	if err != nil {
		return "", err
	}
	h := hmac.New(sha256.New, secret)
	h.Write([]byte(query))
	return hex.EncodeToString(h.Sum(nil)[:16]), nil
}

// Trail is how much of what was read and refused is written down.
type Trail struct {
	Written, Lost map[string]int64 // lines since the start, by what is in the files: reads, refusals
	Bytes         int64            // of the files
}

// Trail tells how the audit of accesses of this node stands.
func (c *Chronicle) Trail() Trail {
	t := Trail{Written: map[string]int64{}, Lost: map[string]int64{}}
	for _, s := range c.trail.all() {
		t.Written[s.name], t.Lost[s.name] = s.written.Load(), s.missed.Load()
		t.Bytes += s.bytes.Load()
	}
	return t
}
