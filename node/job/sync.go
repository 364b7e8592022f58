package job

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/host"
)

// syncer lists connections and brings the listings into the catalog.
type syncer struct {
	hosts host.Tools
	log   *slog.Logger
	now   func() time.Time
}

const (
	syncTime    = time.Hour        // deadline of a connection sync
	partialWait = 10 * time.Minute // until an incomplete listing is tried again
)

// kind is the row of connection syncs.
func (s *syncer) kind() Kind {
	return Kind{
		Job:        catalog.JobSync,
		PerCluster: func(s config.Settings) int { return s.MaxConnectionSyncJobs },
		Timeout:    always(syncTime),
		Look:       LookConnections, Enqueue: enqueueSyncs,
		Home:  syncHome,
		Input: definition,
		Run:   s.sync,
	}
}

// syncHome is the node that lists a connection: the one that asks its host for
// pushes, too. The host counts the calls of a credential, and of the nodes this one
// alone knows how many are left, and what was answered last. Where it failed any
// node may try: the way to the host may be barred to one.
func syncHome(p *planner, j *catalog.Job) (home []string, bound bool) {
	conn := p.in.View.File().Connection(j.Subject)
	if conn == nil || j.State == catalog.JobBackoff {
		return nil, false
	}

	key := askerKey(conn)
	best := ""
	for i := range p.in.Nodes {
		if n := &p.in.Nodes[i]; takesJobs(n) && (best == "" || asksRather(key, n.ID, best)) {
			best = n.ID
		}
	}
	if best == "" {
		return nil, false
	}
	return []string{best}, false
}

// definition is the connection that a listing is of, as the configuration has it.
func definition(view *catalog.View, j *catalog.Job) string {
	if c := view.Connection(j.Subject); c != nil {
		return c.Hash
	}
	return ""
}

// enqueueSyncs asks for a sync of the connections whose time has come.
func enqueueSyncs(p *planner) {
	for c := range p.in.View.Connections() {
		j := p.in.View.Job(catalog.JobSync, c.Name)
		ended := j == nil || j.State == catalog.JobDone || j.State == catalog.JobFailed
		if !ended || p.in.Now.Before(NextSync(p.settings, c, j)) {
			continue
		}
		if !p.add(&catalog.EnqueueJob{Kind: catalog.JobSync, Subject: c.Name}) {
			return
		}
	}
}

// NextSync is when a connection is listed again; j is its last job, nil
// before the first. It is the zero time where that is due now.
func NextSync(s config.Settings, c *catalog.Connection, j *catalog.Job) time.Time {
	switch {
	case j == nil:
		return time.Time{}
	case j.State == catalog.JobWaiting || j.State == catalog.JobBackoff || j.State == catalog.JobRunning:
		return j.NotBefore
	// It listed another configuration than the one in force: soon again.
	case j.State == catalog.JobDone && c.Hash != c.Synced:
		return j.FinishedAt.Add(min(partialWait, s.ResyncConnectionInterval))
	}

	next := j.FinishedAt.Add(s.ResyncConnectionInterval)

	// Never later than the interval, whatever a listing asks for.
	if j.State == catalog.JobDone && !c.Again.IsZero() && c.Again.Before(next) {
		next = c.Again
	}
	return next
}

// perHour is how many calls of an hour a credential is taken to have at hosts that
// say nothing of it.
const perHour = 3600

// hintedSync is when a connection may be listed for a hint: such listings take a
// quarter of the calls of a credential at most, as looks for pushes do.
func hintedSync(conn config.Connection, c *catalog.Connection, j *catalog.Job) time.Time {
	if j == nil || j.FinishedAt.IsZero() {
		return time.Time{}
	}
	row, _ := host.SignalOf(conn)
	row.Hourly = cmp.Or(row.Hourly, perHour)
	return j.FinishedAt.Add(row.Every(int(c.Account.Calls), host.Allowance{Limit: int(c.Account.Limit), Reset: c.Account.Reset}))
}

// again is when a listing that lacks something is worth another: when the host
// allows it, after a while where it failed, and where much is missing when it
// would be believed.
func again(issues []host.Issue, held time.Time, now time.Time) time.Time {
	var at time.Time
	sooner := func(t time.Time) {
		if t = later(t, now.Add(partialWait)); at.IsZero() || t.Before(at) {
			at = t
		}
	}

	// Only what passes by itself is worth another listing: the rest waits for an owner.
	for _, i := range issues {
		if i.Partial && i.Passes() {
			sooner(i.Until)
		}
	}
	if !held.IsZero() {
		sooner(held.Add(shrinkWait))
	}
	return at
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// sync lists a connection and brings the listing into the catalog, page by
// page as it comes. What the listing does not have is let go only where that
// is sure, see absent.
func (s *syncer) sync(ctx context.Context, a *attempt) error {
	view := a.cluster.View()
	conn, known := view.File().Connection(a.job.Subject), view.Connection(a.job.Subject)
	if conn == nil || known == nil {
		return fmt.Errorf("the configuration has no connection %q any more: %w", a.job.Subject, errPermanent)
	}
	h, err := host.Open(conn, s.hosts)
	if err != nil {
		return err
	}

	a.step("listing")

	// What the listing cost is the difference of what the host allows before and after.
	before := allowance(h)
	l := newListing(a.cluster.View, a.record, a.job)
	defer l.close()
	l.progress = a.count
	err = h.List(ctx, l)

	// What came before a failure is true all the same: who may see a repository
	// counts at once.
	if failed := l.flush(ctx); err == nil {
		err = failed
	}

	// Where nothing that is named is there any more, the listing ends like others:
	// what it had listed once is let go of by the same rules.
	nothing := host.NothingThere(err)
	if err != nil && (!nothing || known.Repos == 0) {
		return err
	}

	a.step("confirming what is gone")
	fin, err := l.finish(ctx, h, known, s.now())
	if err != nil {
		return err
	}
	fin.Account, fin.Nothing = account(before, allowance(h)), nothing
	if err := a.finish(ctx, fin); err != nil {
		return fmt.Errorf("finish the listing: %w", err)
	}
	s.log.Debug("connection synced", "connection", a.job.Subject, "repos", fin.Total, "complete", fin.Complete, "warnings", len(fin.Warnings))
	return nil
}

// allowance is what a host says of the credential, as far as it says anything.
func allowance(h host.Host) host.Allowance {
	if m, ok := h.(host.Metered); ok {
		return m.Allowance()
	}
	return host.Allowance{}
}

// account is how a credential stands after a listing.
func account(before, after host.Allowance) catalog.Account {
	return catalog.Account{
		Calls:     uint32(after.Calls - before.Calls),
		Limit:     uint32(max(0, after.Limit)),
		Remaining: uint32(max(0, after.Remaining)),
		Reset:     after.Reset,
		Expires:   after.Expires,
	}
}

// expiryNotice is how long before its end a token is warned of.
const expiryNotice = 14 * 24 * time.Hour

// expiry warns of a token that ends soon.
func expiry(ends, now time.Time) []host.Issue {
	if ends.IsZero() || ends.Sub(now) > expiryNotice {
		return nil
	}
	return []host.Issue{{Code: host.TokenExpires, Text: "the token ends on " + ends.UTC().Format("2 January 2006") + ": give the connection a new one before that"}}
}
