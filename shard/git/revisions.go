package git

import (
	"context"
	"time"
)

// MaxRevisions is how many revisions besides HEAD are indexed.
const MaxRevisions = 64

// Revision is a name and the commit that it stands for.
type Revision struct {
	Name   string // "HEAD", or a full name: refs/heads/main, refs/tags/v1
	Commit string // hex; tags are peeled
	Time   time.Time
}

// Matcher says which names are wanted.
type Matcher interface{ Match(name string) bool }

// Revisions returns HEAD and the branches and tags whose short names match
// (nil matches none): the branches, newest commit first, then the tags,
// newest commit first, equal times by name. There are at most MaxRevisions
// besides HEAD, and at most 64 different commits in all, so that a set of
// them fits a uint64; skipped counts what matched and was left out. A tag
// that does not lead to a commit is no revision. ErrEmpty when there is no
// commit at all.
func (m *Mirror) Revisions(ctx context.Context, branches, tags Matcher) (revs []Revision, skipped int, err error) {
	s, err := m.refs(ctx)
	if err != nil {
		return nil, 0, err
	}
	if s.head == "" {
		return nil, 0, ErrEmpty
	}
	matching := append(choose(s.branches, branches), choose(s.tags, tags)...)
	revs = []Revision{{Name: "HEAD", Commit: s.head, Time: s.headTime}}
	commits := map[string]bool{s.head: true}
	for i, r := range matching {
		if len(revs) > MaxRevisions || len(commits) == 64 && !commits[r.Commit] {
			return revs, len(matching) - i, nil
		}
		commits[r.Commit] = true
		revs = append(revs, Revision{Name: r.Full, Commit: r.Commit, Time: r.Time})
	}
	return revs, 0, nil
}

// choose returns the refs that are wanted.
func choose(refs []Ref, wanted Matcher) []Ref {
	var out []Ref
	for _, r := range refs {
		if wanted != nil && wanted.Match(r.Name) {
			out = append(out, r)
		}
	}
	return out
}
