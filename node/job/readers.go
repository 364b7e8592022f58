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

// readers asks code hosts who may read repositories, and writes the answers into the catalog.
type readers struct {
	hosts host.Tools
	log   *slog.Logger
}

const (
	readersTime = 30 * time.Minute // time limit of an attempt
	leastOld    = 72 * time.Hour   // an answer younger than this always counts
	ageBatch    = 1000             // repositories in one command

	// Limits of lostTooMuch.
	lostCount = 20
	lostShare = 2
)

// kind returns how the cluster plans and runs the jobs that sync the permissions of a repository.
func (s *readers) kind() Kind {
	return Kind{
		Job:        catalog.JobRepoSync,
		PerCluster: func(s config.Settings) int { return s.MaxRepoPermissionSyncJobs },
		Timeout:    always(readersTime),
		Look:       LookRepos, Enqueue: enqueueReaders,
		Run: s.sync,
	}
}

// enqueueReaders enqueues due questions about the readers of repositories, first questions first.
// It also ages out old answers.
func enqueueReaders(p *planner) {
	interval := p.settings.RepoDrivenPermissionInterval
	old := AnswersEnd(p.in.Now, interval)
	var again, stale []catalog.RepoID
	for it := p.in.View.Asked().Iterator(); it.HasNext(); {
		repo := p.in.View.Repo(it.Next())
		if AudienceOf(p.in.View, repo) == nil {
			continue
		}

		// Age out the answer at once, even if the next question has to wait.
		last := p.in.View.Access(repo.ID)
		if last != nil && last.At.Before(old) && !p.in.View.AccessIsStale(repo) {
			stale = append(stale, repo.ID)
		}

		// Vary the interval by a tenth, so that repositories that were asked together once are not
		// always asked together.
		rest := interval - interval/10 + spread(repo.ID, interval/5)
		switch {
		case !p.idle(p.in.View.Job(catalog.JobRepoSync, catalog.RepoSubject(repo.ID)), rest):
		case last == nil:
			if !p.add(&catalog.EnqueueJob{Kind: catalog.JobRepoSync, Subject: catalog.RepoSubject(repo.ID)}) {
				return
			}
		case p.elapsed(last.At, rest):
			again = append(again, repo.ID)
		}
	}

	for batch := range slices.Chunk(stale, ageBatch) {
		if !p.add(&catalog.AgeAccess{Before: old, Repos: batch}) {
			return
		}
	}
	for _, id := range again {
		if !p.add(&catalog.EnqueueJob{Kind: catalog.JobRepoSync, Subject: catalog.RepoSubject(id)}) {
			return
		}
	}
}

// AnswersEnd returns the time before which answers of a host no longer count.
func AnswersEnd(now time.Time, interval time.Duration) time.Time {
	return now.Add(-max(3*interval, leastOld))
}

// AudienceOf returns the connection used to ask who may read a repository, or nil: it enforces
// permissions, and its host tells about readers.
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

// sync asks who may read a repository, and proposes the difference.
func (s *readers) sync(ctx context.Context, a *attempt) error {
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

	a.step("asking for readers")
	found, err := h.Readers(ctx, repo.ExternalID, repo.DisplayName)
	if err != nil {
		return fmt.Errorf("ask who may read the repository: %w", err)
	}

	// If most readers are gone, ask a second time.
	known := known(view, repo)
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
	return agreed(a, func() error { return s.difference(ctx, a, repo, found, partial) })
}

// maxDifferences limits how often a difference is computed again, because listings of people
// changed something meanwhile.
const maxDifferences = 100

// lostTooMuch reports whether a list has lost so much that the host must be asked again: more than
// both limits, or everything.
func lostTooMuch(had, now int) bool {
	lost := had - now
	return lost > 0 && (now == 0 || lost > lostCount && now*lostShare < had)
}

// agreed proposes a difference again and again, while other answers change the state that it is
// based on.
func agreed(a *attempt, difference func() error) (err error) {
	for range maxDifferences {
		err = difference()
		no, is := catalog.Refused(err)
		if !is || no.Code != catalog.Stale || !a.holds() {
			return err
		}
	}
	return err
}

// difference proposes how the readers differ from the stored ones, in pages if there are many.
func (s *readers) difference(ctx context.Context, a *attempt, repo *catalog.Repo, found []string, partial bool) error {
	view := a.cluster.View()
	add, remove := changes(view, repo, found, partial)
	for {
		c := &catalog.FinishRepoAccess{
			Repo:    repo.ID,
			Fence:   a.job.Fence,
			Seen:    view.Index(),
			Partial: partial,
			Readers: uint32(len(found)),
		}

		// Apply removals before additions.
		c.Remove, remove = cut(remove, catalog.MaxAccessPage)
		c.Add, add = cut(add, catalog.MaxAccessPage-len(c.Remove))

		c.More = len(add)+len(remove) > 0
		if !c.More {
			return a.finish(ctx, c)
		}
		if err := a.record(ctx, c); err != nil {
			return err
		}
	}
}

// changes compares the readers found with the stored ones.
func changes(view *catalog.View, repo *catalog.Repo, found []string, partial bool) (add, remove []string) {
	may := map[string]bool{}
	for _, subject := range found {
		may[subject] = true
	}

	// Compare only with observations of the same kind, complete or partial.
	had := map[string]bool{}
	for _, r := range view.ReadersAt(catalog.SiteOf(repo.ExternalID)) {
		complete, extra := r.May(repo.ID)
		if partial && extra || !partial && complete {
			had[r.Subject] = true
			if !may[r.Subject] {
				remove = append(remove, r.Subject)
			}
		}
	}

	for _, subject := range found {
		if !had[subject] {
			add = append(add, subject)
		}
	}
	return add, remove
}

// known returns the stored readers of a repository, by all observations.
func known(view *catalog.View, repo *catalog.Repo) (subjects []string) {
	for _, r := range view.ReadersAt(catalog.SiteOf(repo.ExternalID)) {
		if complete, extra := r.May(repo.ID); complete || extra {
			subjects = append(subjects, r.Subject)
		}
	}
	return subjects
}

// cut splits a list after its first n elements.
func cut(list []string, n int) (head, rest []string) {
	n = min(n, len(list))
	return list[:n], list[n:]
}

// AccessIssue returns why the readers of a repository could not be asked, or "". The first two
// failures do not count.
func AccessIssue(j *catalog.Job) string {
	failed := j != nil && (j.State == catalog.JobFailed || j.State == catalog.JobBackoff && j.Attempt >= 3)
	if !failed {
		return ""
	}
	return j.Error
}
