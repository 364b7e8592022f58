package job

import (
	"context"
	"sync"
	"time"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/hold"
	"github.com/shoalsearch/shoal/shard"
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

	mu    sync.Mutex // guards the field below
	known map[shard.Part]unknownPart
}

// unknownPart is what Set.UnknownSymbols says of a part, which does not change.
type unknownPart struct{ files, tries int }

// The waits between attempts: each is four times the one before.
const (
	symbolsWait    = 30 * time.Second
	longestSymbols = 24 * time.Hour
	symbolsLook    = 30 * time.Second // between two looks
)

func newSymbols(cluster Cluster, files *hold.Files, can bool, wait time.Duration, now func() time.Time) *Symbols {
	return &Symbols{cluster: cluster, files: files, can: can, wait: wait, now: now, known: map[shard.Part]unknownPart{}}
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

// unknown looks at the repositories that are here. Files do not change, so each is looked at once.
func (s *Symbols) unknown(view *catalog.View) map[*catalog.Repo]unknownPart {
	s.mu.Lock()
	defer s.mu.Unlock()
	live, out := map[shard.Part]unknownPart{}, map[*catalog.Repo]unknownPart{}
	for repo := range view.Repos() {
		if repo.Orphaned() || !repo.Indexed() || !s.files.Complete(repo) {
			continue
		}

		sum := unknownPart{}
		for _, p := range hold.Parts(repo) {
			u, ok := s.known[p]
			if !ok {
				u.files, u.tries = s.files.UnknownSymbols(p)
			}
			live[p] = u
			if u.files > 0 && (sum.files == 0 || u.tries < sum.tries) {
				sum.tries = u.tries
			}
			sum.files += u.files
		}
		if sum.files > 0 {
			out[repo] = sum
		}
	}
	s.known = live
	return out
}
