package job

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/cluster/config"
	"github.com/shoalsearch/shoal/node/host"
)

// readerSyncer asks code hosts who may read repositories, and writes the answers into the catalog.
type readerSyncer struct {
	hosts host.Tools
	log   *slog.Logger
}

const (
	readerSyncTime = 30 * time.Minute // time limit of an attempt
	leastOld       = 72 * time.Hour   // an answer younger than this always counts
	ageBatch       = 1000             // repositories or people in one command

	// lostTooMuch allows to lose lostCount entries, or all but 1/lostShare of them.
	lostCount = 20
	lostShare = 2
)

// kind returns how the cluster plans and runs the jobs that sync the permissions of a repository.
func (s *readerSyncer) kind() Kind {
	return Kind{
		Job:        catalog.JobRepoSync,
		PerCluster: func(s config.Settings) int { return s.MaxRepoPermissionSyncJobs },
		Timeout:    always(readerSyncTime),
		Look:       LookRepos, Enqueue: enqueueReaderSyncs,
		Run: s.runJob,
	}
}

// enqueueReaderSyncs enqueues due jobs that ask who may read repositories. Repositories that were
// never asked about come first. It also makes old answers invalid.
func enqueueReaderSyncs(p *planner) {
	interval := p.settings.RepoDrivenPermissionInterval
	old := AnswersEnd(p.in.Now, interval)
	var again, stale []catalog.RepoID
	for it := p.in.View.Asked().Iterator(); it.HasNext(); {
		repo := p.in.View.Repo(it.Next())
		if AudienceOf(p.in.View, repo) == nil {
			continue
		}

		// Make an old answer invalid at once, even if the next question has to wait.
		last := p.in.View.Access(repo.ID)
		if last != nil && last.At.Before(old) && !p.in.View.AccessIsStale(repo) {
			stale = append(stale, repo.ID)
		}

		// Vary the interval by a tenth, so that the questions spread over time.
		wait := interval - interval/10 + repoOffset(repo.ID, interval/5)
		switch {
		case !p.mayEnqueue(p.in.View.Job(catalog.JobRepoSync, catalog.RepoSubject(repo.ID)), wait):
		case last == nil:
			if !p.addIfRoom(&catalog.EnqueueJob{Kind: catalog.JobRepoSync, Subject: catalog.RepoSubject(repo.ID)}) {
				return
			}
		case p.elapsed(last.At, wait):
			again = append(again, repo.ID)
		}
	}

	for batch := range slices.Chunk(stale, ageBatch) {
		if !p.addIfRoom(&catalog.AgeAccess{Before: old, Repos: batch}) {
			return
		}
	}
	for _, id := range again {
		if !p.addIfRoom(&catalog.EnqueueJob{Kind: catalog.JobRepoSync, Subject: catalog.RepoSubject(id)}) {
			return
		}
	}
}

// AnswersEnd returns the time before which answers of a host no longer count.
func AnswersEnd(now time.Time, interval time.Duration) time.Time {
	return now.Add(-max(3*interval, leastOld))
}

// AudienceOf returns the connection whose host can be asked who may read a repository: it enforces
// permissions, and its host tells about readers. nil means that there is none.
func AudienceOf(view *catalog.View, repo *catalog.Repo) config.Connection {
	mode := view.PermissionSync()
	for _, link := range repo.Connections {
		conn := view.File().Connection(link.Name)
		if conn != nil && mode.Enforces(conn.Shared()) && host.ReadershipOf(conn) != host.Untold {
			return conn
		}
	}
	return nil
}

// runJob asks the host who may read a repository, and proposes the difference to the stored readers.
// If most readers are gone, it asks a second time, and fails unless both answers are equal.
func (s *readerSyncer) runJob(ctx context.Context, a *attempt) error {
	view := a.cluster.View()
	repo := view.Repo(catalog.SubjectRepo(a.job.Subject))
	if repo == nil {
		return fmt.Errorf("the repository has left: %w", errPermanent)
	}
	conn := AudienceOf(view, repo)

	if conn == nil {
		return fmt.Errorf("no connection says any more who may read the repository: %w", errPermanent)
	}

	opened, err := host.Open(conn, s.hosts)
	if err != nil {
		return err
	}

	h, ok := opened.(host.Audience)
	if !ok {
		return fmt.Errorf("hosts of kind %s do not tell who may read a repository: %w", conn.Kind(), errPermanent)
	}

	a.setStep("asking for readers")
	found, err := h.Readers(ctx, repo.ExternalID, repo.DisplayName)
	if err != nil {
		return fmt.Errorf("ask who may read the repository: %w", err)
	}

	known := storedReaders(view, repo)
	if lostTooMuch(len(known), len(found)) {
		again, err := h.Readers(ctx, repo.ExternalID, repo.DisplayName)
		if err != nil {
			return fmt.Errorf("ask again who may read the repository: %w", err)
		}
		if !slices.Equal(again, found) {
			return fmt.Errorf("the host told of %d readers and then of %d, before there were %d: neither is believed", len(found), len(again), len(known))
		}
		s.log.Warn("most readers of a repository are gone", "repo", repo.Name, "before", len(known), "now", len(found))
	}
	partial := host.ReadershipOf(conn) == host.SomeTold
	return repeatWhileStale(a, func() error { return s.proposeDifference(ctx, a, repo, found, partial) })
}

// maxDifferences limits how often a job computes a difference again because the listing of a person
// has changed the stored readers meanwhile.
const maxDifferences = 100

// lostTooMuch reports whether a list of had entries that now has now has lost so many that the host
// must be asked again.
func lostTooMuch(had, now int) bool {
	lost := had - now
	return lost > 0 && (now == 0 || lost > lostCount && now*lostShare < had)
}

// repeatWhileStale calls propose, which proposes a difference to the catalog. It repeats the call while
// the catalog refuses the proposal because the stored answers have changed since.
func repeatWhileStale(a *attempt, propose func() error) (err error) {
	for range maxDifferences {
		err = propose()
		refusal, is := catalog.Refused(err)
		if !is || refusal.Code != catalog.Stale || !a.holds() {
			return err
		}
	}
	return err
}

// proposeDifference proposes how the readers differ from the stored ones, in pages if there are many.
func (s *readerSyncer) proposeDifference(ctx context.Context, a *attempt, repo *catalog.Repo, found []string, partial bool) error {
	view := a.cluster.View()
	add, remove := diffReaders(view, repo, found, partial)
	for {
		c := &catalog.FinishRepoAccess{
			Repo:    repo.ID,
			Fence:   a.job.Fence,
			Seen:    view.Index(),
			Partial: partial,
			Readers: uint32(len(found)),
		}

		// Apply removals before additions.
		c.Remove, remove = splitAfter(remove, catalog.MaxAccessPage)
		c.Add, add = splitAfter(add, catalog.MaxAccessPage-len(c.Remove))

		c.More = len(add)+len(remove) > 0
		if !c.More {
			return a.finish(ctx, c)
		}
		if err := a.record(ctx, c); err != nil {
			return err
		}
	}
}

// diffReaders compares the readers found with the stored ones. If the observation is partial, it
// compares with those of partial observations, otherwise with those of complete ones.
func diffReaders(view *catalog.View, repo *catalog.Repo, found []string, partial bool) (add, remove []string) {
	isFound := map[string]bool{}
	for _, subject := range found {
		isFound[subject] = true
	}

	isStored := map[string]bool{}
	for _, r := range view.ReadersAt(catalog.SiteOf(repo.ExternalID)) {
		complete, extra := r.May(repo.ID)
		if partial && extra || !partial && complete {
			isStored[r.Subject] = true
			if !isFound[r.Subject] {
				remove = append(remove, r.Subject)
			}
		}
	}

	for _, subject := range found {
		if !isStored[subject] {
			add = append(add, subject)
		}
	}
	return add, remove
}

// storedReaders returns the stored readers of a repository, by all observations.
func storedReaders(view *catalog.View, repo *catalog.Repo) (subjects []string) {
	for _, r := range view.ReadersAt(catalog.SiteOf(repo.ExternalID)) {
		if complete, extra := r.May(repo.ID); complete || extra {
			subjects = append(subjects, r.Subject)
		}
	}
	return subjects
}

// splitAfter splits a list after its first n elements.
func splitAfter(list []string, n int) (head, rest []string) {
	n = min(n, len(list))
	return list[:n], list[n:]
}

// AccessIssue returns why a job that syncs permissions fails; "" if it does not. The first two
// failures in a row do not count.
func AccessIssue(j *catalog.Job) string {
	const reportedAttempts = 3
	failed := j != nil && (j.State == catalog.JobFailed || j.State == catalog.JobBackoff && j.Attempt >= reportedAttempts)
	if !failed {
		return ""
	}
	return j.Error
}
