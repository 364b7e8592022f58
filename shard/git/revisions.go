package git

import (
	"context"
	"slices"
	"time"
)

// MaxRevisions is how many revisions besides HEAD and its branch are indexed.
const MaxRevisions = 64

// Revision is a name and the commit that it stands for.
type Revision struct {
	Name   string // "HEAD", or a full name: refs/heads/main, refs/tags/v1
	Commit string // hex; tags are peeled
	Time   time.Time
}

// Matcher says which names are wanted.
type Matcher interface{ Match(name string) bool }

// Revisions returns HEAD, the branch that it points to, and the branches and
// tags whose short names match (nil matches none): the branches, newest commit
// first, then the tags, newest commit first, equal times by name. HEAD and its
// branch are one revision with two names. There are at most MaxRevisions
// besides it, and at most 64 different commits in all, so that a set of them
// fits a uint64; skipped counts what matched and was left out. A tag that does
// not lead to a commit is no revision. ErrEmpty when there is no commit at all.
func (b *base) Revisions(ctx context.Context, branches, tags Matcher) (revs []Revision, skipped int, err error) {
	s, err := b.refs(ctx)
	if err != nil {
		return nil, 0, err
	}
	if s.head == "" {
		return nil, 0, ErrEmpty
	}

	revs = []Revision{{Name: "HEAD", Commit: s.head, Time: s.headTime}}
	for _, r := range s.branches {
		if r.Head && r.Commit == s.head {
			revs = append(revs, Revision{Name: r.Full, Commit: r.Commit, Time: r.Time})
		}
	}
	first := len(revs)

	// HEAD's branch is among the revisions already.
	matching := append(choose(s.branches, branches), choose(s.tags, tags)...)
	matching = slices.DeleteFunc(matching, func(r Ref) bool { return r.Head })

	commits := map[string]bool{s.head: true} // len(commits) <= 64
	for i, r := range matching {
		if len(revs)-first == MaxRevisions || len(commits) == 64 && !commits[r.Commit] {
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
