package job

import (
	"context"
	"sync"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/hold"
)

// Symbols counts the files on this node on which ctags failed, and enqueues index jobs to retry
// them, with growing pauses. A job with unchanged input only looks for such symbols. It is safe for
// concurrent use.
type Symbols struct {
	cluster Cluster
	files   *hold.Files
	can     bool          // this node can find symbols
	wait    time.Duration // after the first failure
	now     func() time.Time

	mu     sync.Mutex // guards the fields below
	view   *catalog.View
	known  map[catalog.RepoID]unknownPart // repositories with unknown symbols, at the view
	absent *roaring.Bitmap                // repositories with files that this node lacked
}

// unknownPart sums Files.UnknownSymbols over the parts of a repository.
type unknownPart struct{ files, tries int }

// Pauses between attempts. Each pause is four times the pause before.
const (
	symbolsWait    = 30 * time.Second
	longestSymbols = 24 * time.Hour
	symbolsLook    = 30 * time.Second // between two looks
)

func newSymbols(cluster Cluster, files *hold.Files, can bool, wait time.Duration, now func() time.Time) *Symbols {
	return &Symbols{cluster: cluster, files: files, can: can, wait: wait, now: now}
}

// Run enqueues index jobs for repositories with unknown symbols, until ctx ends.
func (s *Symbols) Run(ctx context.Context) error {
	for clock.Wait(ctx, min(s.wait, symbolsLook)) {
		if cmds := s.dueJobs(); len(cmds) > 0 {
			// Without a leader the next look proposes them again.
			_, _ = s.cluster.Propose(ctx, cmds...)
		}
	}
	return nil
}

// dueJobs returns commands that enqueue jobs for repositories whose symbols must be retried now.
func (s *Symbols) dueJobs() (cmds []catalog.Command) {
	if !s.can {
		return nil
	}
	view := s.cluster.View()
	for repo, u := range s.findUnknown(view) {
		subject := catalog.RepoSubject(repo.ID)
		if j := view.Job(catalog.JobIndex, subject); j != nil && j.State != catalog.JobDone && j.State != catalog.JobFailed {
			continue
		}
		if !s.now().Before(repo.IndexedAt.Add(s.pause(u.tries))) {
			cmds = append(cmds, &catalog.EnqueueJob{Kind: catalog.JobIndex, Subject: subject})
		}
	}
	return cmds
}

// pause returns the pause after a number of failed attempts.
func (s *Symbols) pause(tries int) time.Duration {
	wait := s.wait
	for ; tries > 1 && wait < longestSymbols; tries-- {
		wait *= 4
	}
	return min(wait, longestSymbols)
}

// Unknown counts the files on this node whose symbols are unknown, by repository.
func (s *Symbols) Unknown() map[catalog.RepoID]int {
	out := map[catalog.RepoID]int{}
	for repo, u := range s.findUnknown(s.cluster.View()) {
		out[repo.ID] = u.files
	}
	return out
}

// findUnknown returns the repositories on this node with unknown symbols. It only counts again
// those that changed since the last call, or of which files were missing then.
func (s *Symbols) findUnknown(view *catalog.View) map[*catalog.Repo]unknownPart {
	s.mu.Lock()
	defer s.mu.Unlock()
	changes, ok := catalog.Changes{}, false
	if s.view != nil {
		changes, ok = view.Since(s.view)
	}
	if !ok {
		changes, s.known, s.absent = view.Everything(), map[catalog.RepoID]unknownPart{}, roaring.New()
	}

	look := s.absent
	look.AddMany(changes.Repos)
	s.view, s.absent = view, roaring.New()
	for it := look.Iterator(); it.HasNext(); {
		s.countUnknown(view.Repo(it.Next()))
	}

	out := map[*catalog.Repo]unknownPart{}
	for id, u := range s.known {
		if repo := view.Repo(id); repo == nil || repo.Orphaned() {
			delete(s.known, id)
		} else if s.files.Complete(repo) {
			out[repo] = u
		}
	}
	return out
}

// countUnknown counts the unknown symbols of a repository in s.known, or adds it to s.absent if this
// node lacks some of its files.
func (s *Symbols) countUnknown(repo *catalog.Repo) {
	if repo == nil || !repo.Indexed() {
		return
	}
	delete(s.known, repo.ID)
	if !s.files.Complete(repo) {
		s.absent.Add(repo.ID)
		return
	}

	sum := unknownPart{}
	for _, p := range hold.Parts(repo) {
		if p.Symbols.IsZero() {
			continue
		}
		files, tries := s.files.UnknownSymbols(p)
		if files > 0 && (sum.files == 0 || tries < sum.tries) {
			sum.tries = tries
		}
		sum.files += files
	}
	if sum.files > 0 {
		s.known[repo.ID] = sum
	}
}
