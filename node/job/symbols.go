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

// Symbols counts the files on this node whose symbols are not known, since ctags failed on
// them, and asks for an index job that tries them again: the later the more often it failed.
// A job for unchanged input finds such symbols alone. It is safe for concurrent use.
type Symbols struct {
	cluster Cluster
	files   *hold.Files
	can     bool          // this node finds symbols
	wait    time.Duration // after the first failure
	now     func() time.Time

	mu     sync.Mutex // guards the fields below
	view   *catalog.View
	known  map[catalog.RepoID]unknownPart // at the view, of those that have some
	absent *roaring.Bitmap                // repositories that were not complete here
}

// unknownPart is what Set.UnknownSymbols says of the parts of a repository together.
type unknownPart struct{ files, tries int }

// The waits between attempts: each is four times the one before.
const (
	symbolsWait    = 30 * time.Second
	longestSymbols = 24 * time.Hour
	symbolsLook    = 30 * time.Second // between two looks
)

func newSymbols(cluster Cluster, files *hold.Files, can bool, wait time.Duration, now func() time.Time) *Symbols {
	return &Symbols{cluster: cluster, files: files, can: can, wait: wait, now: now}
}

// Run asks for jobs until the context ends.
func (s *Symbols) Run(ctx context.Context) error {
	for clock.Wait(ctx, min(s.wait, symbolsLook)) {
		if cmds := s.due(); len(cmds) > 0 {
			// Without a leader nobody runs jobs: the next look proposes them again.
			_, _ = s.cluster.Propose(ctx, cmds...)
		}
	}
	return nil
}

// due is the jobs for repositories whose symbols are to be looked for again.
func (s *Symbols) due() (cmds []catalog.Command) {
	if !s.can {
		return nil
	}
	view := s.cluster.View()
	for repo, u := range s.unknown(view) {
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

// pause is the wait after so many attempts.
func (s *Symbols) pause(tries int) time.Duration {
	wait := s.wait
	for ; tries > 1 && wait < longestSymbols; tries-- {
		wait *= 4
	}
	return min(wait, longestSymbols)
}

// Unknown counts the files on this node whose symbols are not known, by repository.
func (s *Symbols) Unknown() map[catalog.RepoID]int {
	out := map[catalog.RepoID]int{}
	for repo, u := range s.unknown(s.cluster.View()) {
		out[repo.ID] = u.files
	}
	return out
}

// unknown looks at the repositories that are here. What is known of one holds until its
// files are others: only those that changed, or that were not here before, are looked at.
func (s *Symbols) unknown(view *catalog.View) map[*catalog.Repo]unknownPart {
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
		s.lookAt(view.Repo(it.Next()))
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

// lookAt notes the files of a repository whose symbols are not known, or that it is not here.
func (s *Symbols) lookAt(repo *catalog.Repo) {
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
