package job

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/host"
	"github.com/shoalsearch/shoal/node/place"
)

// OpenOwn opens a code host in the name of a person who allowed it. fence is the fence of the job.
// anew means that the host refused the stored token, so a new one is needed. If the error is a
// *host.Refusal that refuses the person, the person loses all access by this host.
type OpenOwn func(ctx context.Context, x *catalog.Identity, stored *catalog.HostToken, fence uint64, anew bool) (host.Own, error)

// accountSyncer asks code hosts in people's names what they may read, and writes the answers into the
// catalog.
type accountSyncer struct {
	openHost OpenOwn
	log      *slog.Logger
}

const accountSyncTime = 30 * time.Minute // time limit of an attempt

// kind returns how the cluster plans and runs the jobs that sync the permissions of an account.
func (s *accountSyncer) kind() Kind {
	return Kind{
		Job:        catalog.JobAccountSync,
		PerCluster: func(s config.Settings) int { return s.MaxAccountPermissionSyncJobs },
		Timeout:    always(accountSyncTime),
		Look:       LookRepos, Enqueue: enqueueAccountSyncs,
		Run: s.runJob,
	}
}

// enqueueAccountSyncs enqueues due jobs that ask what people may read, and makes old answers invalid.
// A sign-in enqueues its job itself.
func enqueueAccountSyncs(p *planner) {
	if p.in.View.PermissionSync() != catalog.PermissionSyncOn {
		return
	}
	interval := p.settings.UserDrivenPermissionInterval
	if !ageOldLists(p, AnswersEnd(p.in.Now, interval)) {
		return
	}

	for x := range p.in.View.HostTokens() {
		key := catalog.ReaderKey(x.Site, x.Subject)
		if p.in.View.IdentityAt(x.Site, x.Subject) == nil {
			continue // the provider is no longer configured
		}

		// Vary the interval, so that the jobs of people who signed in together spread over time.
		wait := interval - interval/10 + time.Duration(place.Key(key)%uint64(interval/5+1))
		last := p.in.View.Reader(x.Site, x.Subject)
		refused := last != nil && last.Issue != ""
		due := last == nil || last.Began == 0 || p.elapsed(last.At, wait)
		if refused || !due || !p.mayEnqueue(p.in.View.Job(catalog.JobAccountSync, key), wait) {
			continue
		}
		if !p.addIfRoom(&catalog.EnqueueJob{Kind: catalog.JobAccountSync, Subject: key}) {
			return
		}
	}
}

// ageOldLists makes lists of people invalid that are older than before. It returns false if the plan
// is full.
func ageOldLists(p *planner, before time.Time) bool {
	var old []string

	// Only a list that still counts can be aged out.
	for r := range p.in.View.Readers() {
		if r.Began > 0 && !r.Stale && r.Issue == "" && r.At.Before(before) {
			old = append(old, r.Key())
		}
	}
	for batch := range slices.Chunk(old, ageBatch) {
		if !p.addIfRoom(&catalog.AgeAccess{Before: before, Readers: batch}) {
			return false
		}
	}
	return true
}

// runJob asks the code host, in a person's name, which repositories the person may read. It proposes
// only the changes to what the catalog has.
func (s *accountSyncer) runJob(ctx context.Context, a *attempt) error {
	site, subject := catalog.SplitReaderKey(a.job.Subject)
	view := a.cluster.View()
	x := view.IdentityAt(site, subject)
	if x == nil || view.PermissionSync() != catalog.PermissionSyncOn {
		return fmt.Errorf("nobody lets the host be asked in their name any more: %w", errPermanent)
	}

	a.setStep("listing")
	list, err := s.listWithRetry(ctx, a, x)
	// If the host refuses the person, earlier answers no longer count.
	if r := (*host.Refusal)(nil); errors.As(err, &r) && r.RefusesPerson() {
		s.log.Info("a code host refuses somebody", "site", site, "subject", subject, "reason", r.Text)
		return a.finish(ctx, &catalog.RefuseReader{Site: site, Subject: subject, Fence: a.job.Fence, Issue: r.Text})
	}
	if err != nil {
		return err
	}
	return repeatWhileStale(a, func() error { return s.proposeDifference(ctx, a, site, subject, list) })
}

// ownList is what a host lets a person read.
type ownList struct {
	ids      []string // external ids
	withheld string   // what the host left out; "": nothing
	shrunk   bool     // most of what they could read is gone, and the host said so twice
}

// listWithRetry lists what a person may read. If the host refuses the stored token, it tries once
// more with a new one.
func (s *accountSyncer) listWithRetry(ctx context.Context, a *attempt, x *catalog.Identity) (ownList, error) {
	const newToken = true
	list, err := s.listOnce(ctx, a, x, !newToken)
	// A refusal without a status comes from this node: a new token would not help.
	if r := (*host.Refusal)(nil); errors.As(err, &r) && r.Code == host.TokenRefused && r.Status != 0 {
		return s.listOnce(ctx, a, x, newToken)
	}
	return list, err
}

// listOnce lists what a person may read, with the stored token or, with newToken, with a new one. If
// most repositories are gone, it asks a second time, and fails unless both answers are equal.
func (s *accountSyncer) listOnce(ctx context.Context, a *attempt, x *catalog.Identity, newToken bool) (list ownList, err error) {
	stored := a.cluster.View().HostToken(x)
	if stored == nil {
		return list, fmt.Errorf("the token was taken back: %w", errPermanent)
	}

	own, err := s.openHost(ctx, x, stored, a.job.Fence, newToken)
	if err != nil {
		return list, err
	}

	if list.ids, list.withheld, err = listReadable(ctx, own, x.Subject); err != nil {
		return list, err
	}

	view := a.cluster.View()
	knownBefore := int(view.Reader(stored.Site, stored.Subject).Complete().GetCardinality())
	found := int(reposWithIDs(view, list.ids).GetCardinality())
	if !lostTooMuch(knownBefore, found) {
		return list, nil
	}

	again, withheld, err := listReadable(ctx, own, x.Subject)
	if err != nil {
		return list, fmt.Errorf("ask again what the person may read: %w", err)
	}

	if !slices.Equal(again, list.ids) {
		return list, fmt.Errorf("the host told of %d repositories of the person and then of %d, %d of this service were known: neither is believed", len(list.ids), len(again), knownBefore)
	}

	s.log.Warn("somebody may read most repositories no more", "site", stored.Site, "subject", stored.Subject, "before", knownBefore, "now", found)
	return ownList{ids: again, withheld: withheld, shrunk: true}, nil
}

// listReadable lists what a person may read, and what the host withheld. It first checks that the
// token is the person's. Some hosts treat an expired token like an anonymous caller, and that list
// would remove the person's access.
func listReadable(ctx context.Context, own host.Own, subject string) (ids []string, withheld string, err error) {
	who, err := own.Who(ctx)
	if err != nil {
		return nil, "", fmt.Errorf("ask whose the token is: %w", err)
	}
	if who != subject {
		return nil, "", fmt.Errorf("the host takes the person's token for that of somebody else: they have to link the account again: %w", errPermanent)
	}
	ids, withheld, err = host.Readable(ctx, own)
	if err != nil {
		return nil, "", fmt.Errorf("ask what the person may read: %w", err)
	}
	return ids, withheld, nil
}

// reposWithIDs returns the repositories of this service with these external ids.
func reposWithIDs(view *catalog.View, ids []string) *roaring.Bitmap {
	set := roaring.New()
	for _, id := range ids {
		if repo := view.RepoByExternalID(id); repo != nil {
			set.Add(repo.ID)
		}
	}
	return set
}

// proposeDifference ends the job with the difference between a list and the stored one.
func (s *accountSyncer) proposeDifference(ctx context.Context, a *attempt, site, subject string, list ownList) error {
	view := a.cluster.View()
	reader, set := view.Reader(site, subject), reposWithIDs(view, list.ids)

	// The catalog refuses the difference if the reader has changed since.
	c := &catalog.FinishReaderAccess{Site: site, Subject: subject, Fence: a.job.Fence, Note: list.withheld}
	if reader != nil {
		c.Instead = reader.Changed
	}

	// Only the difference enters the log: most lists are long and stay the same.
	var err error
	if c.Add, err = encodeSet(roaring.AndNot(set, reader.Complete())); err != nil {
		return err
	}
	if c.Remove, err = encodeSet(roaring.AndNot(reader.Complete(), set)); err != nil {
		return err
	}

	if !list.shrunk {
		return a.finish(ctx, c)
	}

	// The host may be wrong: an event tells the owners that the list lost most of its repositories.
	return a.finishNoted(ctx, c, &catalog.NoteEvent{
		Action: "permissions.shrunk", TargetType: "reader", Target: site + " " + subject,
		Message: fmt.Sprintf("from %s to %d", catalog.Counted(int(reader.Complete().GetCardinality()), "repository", "repositories"), set.GetCardinality()),
	})
}

// encodeSet encodes a set for a command; an empty set gives nil.
func encodeSet(set *roaring.Bitmap) ([]byte, error) {
	if set.IsEmpty() {
		return nil, nil
	}
	return set.ToBytes()
}
