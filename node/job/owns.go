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
// anew means that the host refused the stored token. A *host.Refusal that refuses the person ends
// all access by this host.
type OpenOwn func(ctx context.Context, x *catalog.Identity, kept *catalog.HostToken, fence uint64, anew bool) (host.Own, error)

// owns asks code hosts in people's names what they may read, and writes the answers into the
// catalog.
type owns struct {
	open OpenOwn
	log  *slog.Logger
}

const ownsTime = 30 * time.Minute // time limit of an attempt

// kind returns how the cluster plans and runs the jobs that sync the permissions of an account.
func (s *owns) kind() Kind {
	return Kind{
		Job:        catalog.JobAccountSync,
		PerCluster: func(s config.Settings) int { return s.MaxAccountPermissionSyncJobs },
		Timeout:    always(ownsTime),
		Look:       LookRepos, Enqueue: enqueueOwns,
		Run: s.sync,
	}
}

// enqueueOwns enqueues due questions about what people may read, and ages out old answers. A
// sign-in enqueues its question itself.
func enqueueOwns(p *planner) {
	if p.in.View.PermissionSync() != catalog.PermissionSyncOn {
		return
	}
	interval := p.settings.UserDrivenPermissionInterval
	if !endOldLists(p, AnswersEnd(p.in.Now, interval)) {
		return
	}

	for x := range p.in.View.HostTokens() {
		key := catalog.ReaderKey(x.Site, x.Subject)
		if p.in.View.IdentityAt(x.Site, x.Subject) == nil {
			continue // the provider is no longer configured
		}

		// Vary the interval, so that people who signed in together are not always asked for
		// together.
		rest := interval - interval/10 + time.Duration(place.Key(key)%uint64(interval/5+1))
		last := p.in.View.Reader(x.Site, x.Subject)
		refused := last != nil && last.Issue != ""
		due := last == nil || last.Began == 0 || p.elapsed(last.At, rest)
		if refused || !due || !p.idle(p.in.View.Job(catalog.JobAccountSync, key), rest) {
			continue
		}
		if !p.add(&catalog.EnqueueJob{Kind: catalog.JobAccountSync, Subject: key}) {
			return
		}
	}
}

// endOldLists ages out lists of people from before a time. It returns false if the plan is full.
func endOldLists(p *planner, before time.Time) bool {
	var old []string

	// Only a list that still counts can be aged out.
	for r := range p.in.View.Readers() {
		if r.Began > 0 && !r.Stale && r.Issue == "" && r.At.Before(before) {
			old = append(old, r.Key())
		}
	}
	for batch := range slices.Chunk(old, ageBatch) {
		if !p.add(&catalog.AgeAccess{Before: before, Readers: batch}) {
			return false
		}
	}
	return true
}

// sync asks the code host, in a person's name, which repositories the person may read. It proposes
// only the changes to what the catalog has.
func (s *owns) sync(ctx context.Context, a *attempt) error {
	site, subject := catalog.SplitReaderKey(a.job.Subject)
	view := a.cluster.View()
	x := view.IdentityAt(site, subject)
	if x == nil || view.PermissionSync() != catalog.PermissionSyncOn {
		return fmt.Errorf("nobody lets the host be asked in their name any more: %w", errPermanent)
	}

	// Ask in the person's name.
	a.step("listing")
	list, err := s.ask(ctx, a, x)
	// A refusal is an answer: earlier answers no longer count.
	if r := (*host.Refusal)(nil); errors.As(err, &r) && r.RefusesPerson() {
		s.log.Info("a code host refuses somebody", "site", site, "subject", subject, "reason", r.Text)
		return a.finish(ctx, &catalog.RefuseReader{Site: site, Subject: subject, Fence: a.job.Fence, Issue: r.Text})
	}
	if err != nil {
		return err
	}
	return agreed(a, func() error { return s.difference(ctx, a, site, subject, list) })
}

// ownList is what a host lets a person read.
type ownList struct {
	ids      []string // external ids
	withheld string
	shrunk   bool // most of what they could read is gone, and the host said so twice
}

// ask lists what a person may read. If the host refuses the token, it tries once with a new one: a
// token may end early.
func (s *owns) ask(ctx context.Context, a *attempt, x *catalog.Identity) (ownList, error) {
	list, err := s.askWith(ctx, a, x, false)
	if r := (*host.Refusal)(nil); errors.As(err, &r) && r.Code == host.TokenRefused && r.Status != 0 {
		return s.askWith(ctx, a, x, true)
	}
	return list, err
}

// askWith asks with the stored token, or with a new one.
func (s *owns) askWith(ctx context.Context, a *attempt, x *catalog.Identity, anew bool) (list ownList, err error) {
	kept := a.cluster.View().HostToken(x)
	if kept == nil {
		return list, fmt.Errorf("the token was taken back: %w", errPermanent)
	}

	own, err := s.open(ctx, x, kept, a.job.Fence, anew)
	if err != nil {
		return list, err
	}

	if list.ids, list.withheld, err = listOwn(ctx, own, x.Subject); err != nil {
		return list, err
	}

	// If most is gone, ask a second time.
	view := a.cluster.View()
	had := int(view.Reader(kept.Site, kept.Subject).Complete().GetCardinality())
	found := int(reposOf(view, list.ids).GetCardinality())
	if !lostTooMuch(had, found) {
		return list, nil
	}

	again, withheld, err := listOwn(ctx, own, x.Subject)
	if err != nil {
		return list, fmt.Errorf("ask again what the person may read: %w", err)
	}

	if !slices.Equal(again, list.ids) {
		return list, fmt.Errorf("the host told of %d repositories of the person and then of %d, %d of this service were known: neither is believed", len(list.ids), len(again), had)
	}

	s.log.Warn("somebody may read most repositories no more", "site", kept.Site, "subject", kept.Subject, "before", had, "now", found)
	return ownList{again, withheld, true}, nil
}

// listOwn lists what a person may read. It first checks that the token is the person's: some hosts
// treat an expired token like an anonymous caller.
func listOwn(ctx context.Context, own host.Own, subject string) (ids []string, withheld string, err error) {
	// Check first: an anonymous list would remove the person's access.
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

// reposOf returns the repositories of this service with these external ids.
func reposOf(view *catalog.View, ids []string) *roaring.Bitmap {
	set := roaring.New()
	for _, id := range ids {
		if repo := view.RepoByExternalID(id); repo != nil {
			set.Add(repo.ID)
		}
	}
	return set
}

// difference proposes how a list differs from the stored one.
func (s *owns) difference(ctx context.Context, a *attempt, site, subject string, list ownList) error {
	view := a.cluster.View()
	reader, set := view.Reader(site, subject), reposOf(view, list.ids)

	c := &catalog.FinishReaderAccess{Site: site, Subject: subject, Fence: a.job.Fence, Note: list.withheld}
	// The difference is valid only for this state of the reader.
	if reader != nil {
		c.Instead = reader.Changed
	}

	// Only the difference enters the log: most lists are long and stay the same.
	var err error
	if c.Add, err = bytesOf(roaring.AndNot(set, reader.Complete())); err != nil {
		return err
	}
	if c.Remove, err = bytesOf(roaring.AndNot(reader.Complete(), set)); err != nil {
		return err
	}

	// A list that lost much gives an event for owners: the host may be wrong.
	if !list.shrunk {
		return a.finish(ctx, c)
	}
	return a.finishNoted(ctx, c, &catalog.NoteEvent{
		Action: "permissions.shrunk", TargetType: "reader", Target: site + " " + subject,
		Message: fmt.Sprintf("from %s to %d", catalog.Counted(int(reader.Complete().GetCardinality()), "repository", "repositories"), set.GetCardinality()),
	})
}

// bytesOf encodes a set for a command; an empty set gives nil.
func bytesOf(set *roaring.Bitmap) ([]byte, error) {
	if set.IsEmpty() {
		return nil, nil
	}
	return set.ToBytes()
}
