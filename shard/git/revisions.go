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

// Revisions returns HEAD and the branches and tags that match the globs on
// their short names (doublestar: * stays in a segment, ** does not), newest
// commit first, branches before tags of the same time, then by name; at most
// MaxRevisions besides HEAD, and at most 64 different commits in all, so that
// a set of them fits a uint64. skipped counts what matched and was left out.
// A tag that does not lead to a commit is no revision. ErrEmpty when there
// is no commit at all.
func (m *Mirror) Revisions(ctx context.Context, branches, tags []string) (revs []Revision, skipped int, err error) {
	return nil, 0, ErrEmpty
}
