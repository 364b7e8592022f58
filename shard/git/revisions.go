package git

import (
	"context"
	"slices"
	"time"
)

// MaxRevisions is the greatest number of indexed revisions besides HEAD and its branch.
const MaxRevisions = 64

// Revision is a name and the commit it stands for.
type Revision struct {
	Name   string // "HEAD", or a full name: refs/heads/main, refs/tags/v1
	Commit string // hex; the commit that a tag leads to
	Time   time.Time
}

// Matcher reports which names of branches or tags to include.
type Matcher interface{ Match(name string) bool }

// Revisions returns HEAD, its branch, and the branches and tags whose short names match; a nil
// matcher matches none. Branches come before tags, each sorted by commit time, newest first, then
// by name. HEAD and its branch are one revision with two names. The result has at most MaxRevisions
// others, and at most 64 different commits, so that a set of them fits a uint64. skipped counts the
// matching branches and tags beyond these limits. Revisions omits a tag that leads to no commit. The
// error is ErrEmpty if the repository has no commit.
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

	matching := append(selectRefs(s.branches, branches), selectRefs(s.tags, tags)...)
	matching = slices.DeleteFunc(matching, func(r Ref) bool { return r.Head }) // it is in the list already

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

// selectRefs returns the refs whose short names match; none if wanted is nil.
func selectRefs(refs []Ref, wanted Matcher) []Ref {
	var out []Ref
	for _, r := range refs {
		if wanted != nil && wanted.Match(r.Name) {
			out = append(out, r)
		}
	}
	return out
}
