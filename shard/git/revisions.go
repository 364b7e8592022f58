package git

import (
	"context"
	"fmt"
	"io/fs"
	"time"

	"github.com/bmatcuk/doublestar/v4"
)

// MaxRevisions is how many revisions besides HEAD are indexed.
const MaxRevisions = 64

// Revision is a name and the commit that it stands for.
type Revision struct {
	Name   string // "HEAD", or a full name: refs/heads/main, refs/tags/v1
	Commit string // hex; tags are peeled
	Time   time.Time
}

// Revisions returns HEAD and the branches and tags that match the globs on
// their short names (doublestar: * stays within a segment, ** does not): the
// branches, newest commit first, then the tags, newest commit first, equal
// times by name. There are at most MaxRevisions besides HEAD, and at most 64
// different commits in all, so that a set of them fits a uint64; skipped
// counts what matched and was left out. A tag that does not lead to a commit
// is no revision. ErrEmpty when there is no commit at all.
func (m *Mirror) Revisions(ctx context.Context, branches, tags []string) (revs []Revision, skipped int, err error) {
	s, err := m.refs(ctx)
	if err != nil {
		return nil, 0, err
	}
	if s.head == "" {
		return nil, 0, ErrEmpty
	}
	matching, err := choose(s.branches, branches)
	if err != nil {
		return nil, 0, err
	}
	more, err := choose(s.tags, tags)
	if err != nil {
		return nil, 0, err
	}
	matching = append(matching, more...)
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

// choose returns the refs that match one of the globs.
func choose(refs []Ref, globs []string) ([]Ref, error) {
	var out []Ref
	for _, g := range globs {
		if !doublestar.ValidatePattern(g) {
			return nil, fmt.Errorf("the glob %q is malformed: %w", g, fs.ErrInvalid)
		}
	}
	for _, r := range refs {
		for _, g := range globs {
			if doublestar.MatchUnvalidated(g, r.Name) {
				out = append(out, r)
				break
			}
		}
	}
	return out, nil
}
