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

// syncer lists connections and writes the listings into the catalog.
type syncer struct {
	hosts host.Tools
	log   *slog.Logger
	now   func() time.Time
}

const (
	syncTime    = time.Hour        // time limit of a sync
	partialWait = 10 * time.Minute // pause before an incomplete listing is repeated
)

// kind returns how the cluster plans and runs the jobs that sync a connection.
func (s *syncer) kind() Kind {
	return Kind{
		Job:        catalog.JobSync,
		PerCluster: func(s config.Settings) int { return s.MaxConnectionSyncJobs },
		Timeout:    always(syncTime),
		Look:       LookConnections, Enqueue: enqueueSyncs,
		Home:  syncHome,
		Input: definitionHash,
		Run:   s.runJob,
	}
}

// syncHome returns the node that also asks the host for pushes; bound is false: others may run it. The host counts calls per
// credential, and only that node knows how many are left. After a failure any node may try: one of
// them may have no route to the host.
func syncHome(p *planner, j *catalog.Job) (home []string, bound bool) {
	conn := p.in.View.File().Connection(j.Subject)
	if conn == nil || j.State == catalog.JobBackoff {
		return nil, false
	}

	key := askerKey(conn)
	best := ""
	for i := range p.in.Nodes {
		if n := &p.in.Nodes[i]; takesJobs(n) && (best == "" || prefersAsker(key, n.ID, best)) {
			best = n.ID
		}
	}
	if best == "" {
		return nil, false
	}
	return []string{best}, false
}

// definitionHash returns the hash of the connection's present definition.
func definitionHash(view *catalog.View, j *catalog.Job) string {
	if c := view.Connection(j.Subject); c != nil {
		return c.Hash
	}
	return ""
}

// enqueueSyncs enqueues due listings of connections.
func enqueueSyncs(p *planner) {
	for c := range p.in.View.Connections() {
		j := p.in.View.Job(catalog.JobSync, c.Name)
		ended := j == nil || j.State == catalog.JobDone || j.State == catalog.JobFailed
		if !ended || p.in.Now.Before(NextSync(p.settings, c, j)) {
			continue
		}
		if !p.addIfRoom(&catalog.EnqueueJob{Kind: catalog.JobSync, Subject: c.Name}) {
			return
		}
	}
}

// NextSync returns when a connection is listed next; zero: now. j is its last job, or nil.
func NextSync(s config.Settings, c *catalog.Connection, j *catalog.Job) time.Time {
	switch {
	case j == nil:
		return time.Time{}
	case j.State == catalog.JobWaiting || j.State == catalog.JobBackoff || j.State == catalog.JobRunning:
		return j.NotBefore
	// The job listed an outdated definition, so list again soon.
	case j.State == catalog.JobDone && c.Hash != c.Synced:
		return j.FinishedAt.Add(min(partialWait, s.ResyncConnectionInterval))
	}

	next := j.FinishedAt.Add(s.ResyncConnectionInterval)

	// An incomplete listing is repeated sooner.
	if j.State == catalog.JobDone && !c.Again.IsZero() && c.Again.Before(next) {
		next = c.Again
	}
	return next
}

// perHour is the assumed limit of calls per hour at hosts that do not tell theirs.
const perHour = 3600

// hintedSync returns when a connection may be listed because of a hint. Such listings use at most a
// quarter of the credential's calls.
func hintedSync(conn config.Connection, c *catalog.Connection, j *catalog.Job) time.Time {
	if j == nil || j.FinishedAt.IsZero() {
		return time.Time{}
	}
	row, _ := host.SignalOf(conn)
	row.Hourly = cmp.Or(row.Hourly, perHour)
	return j.FinishedAt.Add(row.Every(int(c.Account.Calls), host.Allowance{Limit: int(c.Account.Limit), Reset: c.Account.Reset}))
}

// whenToRepeat returns when to repeat an incomplete listing: when the host allows calls again, some time
// after a failure, or when a second listing would confirm missing repositories. Zero means that a
// repetition is useless.
func whenToRepeat(issues []host.Issue, held time.Time, now time.Time) time.Time {
	var at time.Time

	// propose sets at to t if that is earlier, but not before partialWait is over.
	propose := func(t time.Time) {
		t = laterOf(t, now.Add(partialWait))
		if at.IsZero() || t.Before(at) {
			at = t
		}
	}

	// Only a temporary problem may be gone at the next listing. Others need an owner.
	for _, i := range issues {
		if i.Partial && i.Passes() {
			propose(i.Until)
		}
	}
	if !held.IsZero() {
		propose(held.Add(shrinkWait))
	}
	return at
}

func laterOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// runJob lists a connection and writes the listing into the catalog, page by page. decideMissing
// tells when a missing repository is removed.
func (s *syncer) runJob(ctx context.Context, a *attempt) error {
	view := a.cluster.View()
	conn, known := view.File().Connection(a.job.Subject), view.Connection(a.job.Subject)
	if conn == nil || known == nil {
		return fmt.Errorf("the configuration has no connection %q any more: %w", a.job.Subject, errPermanent)
	}
	h, err := host.Open(conn, s.hosts)
	if err != nil {
		return err
	}

	a.setStep("listing")

	before := allowanceOf(h) // to count the calls of the listing
	l := newListing(a.cluster.View, a.record, a.job)
	defer l.resetGC()
	l.progress = a.setCount
	err = h.List(ctx, l)

	// Even after a failure, write what came before it, so that changed permissions count at once.
	if flushErr := l.flush(ctx); err == nil {
		err = flushErr
	}

	// If nothing that the connection names exists any more, its repositories are missing from the
	// listing like any others, and decideMissing decides about them.
	nothing := host.NothingThere(err)
	if err != nil && (!nothing || known.Repos == 0) {
		return err
	}

	a.setStep("confirming what is gone")
	fin, err := l.finishCommand(ctx, h, known, s.now())
	if err != nil {
		return err
	}
	fin.Account, fin.Nothing = credentialState(before, allowanceOf(h)), nothing
	if err := a.finish(ctx, fin); err != nil {
		return fmt.Errorf("finish the listing: %w", err)
	}
	s.log.Debug("connection synced", "connection", a.job.Subject, "repos", fin.Total, "complete", fin.Complete, "warnings", len(fin.Warnings))
	return nil
}

// allowanceOf returns what a host tells about the credential, if anything.
func allowanceOf(h host.Host) host.Allowance {
	if m, ok := h.(host.Metered); ok {
		return m.Allowance()
	}
	return host.Allowance{}
}

// credentialState returns the state of a credential after a listing, with the number of calls that the
// listing has made.
func credentialState(before, after host.Allowance) catalog.Account {
	return catalog.Account{
		Calls:     uint32(after.Calls - before.Calls),
		Limit:     uint32(max(0, after.Limit)),
		Remaining: uint32(max(0, after.Remaining)),
		Reset:     after.Reset,
		Expires:   after.Expires,
	}
}

// expiryNotice is how long before its expiry a token gives a warning.
const expiryNotice = 14 * 24 * time.Hour

// expiryWarning returns a warning if a token expires soon.
func expiryWarning(ends, now time.Time) []host.Issue {
	if ends.IsZero() || ends.Sub(now) > expiryNotice {
		return nil
	}
	return []host.Issue{{Code: host.TokenExpires, Text: "the token ends on " + ends.UTC().Format("2 January 2006") + ": give the connection a new one before that"}}
}
