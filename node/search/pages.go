package search

import (
	"bytes"
	"fmt"

	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/shard"
	"github.com/shoalsearch/shoal/shard/query"
)

// continueFrom makes the search return a page in the order of files: from the beginning, or after a cursor.
func (q *question) continueFrom(from *cursor) {
	if !q.req.Pages {
		return
	}

	// The files after the cursor may be anywhere, so everything must be searched.
	q.leaf.CountAll, q.leaf.Heavy = true, true
	if q.from = from; from != nil {
		q.leaf.After = from.After
	}
}

// checkUnchanged returns an error if the order of files may have changed since the answer of the cursor.
func (r *root) checkUnchanged() error {
	if r.q.from == nil || bytes.Equal(r.q.from.Index, r.state()) {
		return nil
	}
	return call.Fail(call.ErrChanged, "A repository of this search was indexed again since the answer that `after` is from, or you may see other repositories now: the order of files may have changed. Start again without `after`; with repo: in the query other repositories do not matter.")
}

// state returns a digest of everything that the files and the order of an answer depend on. That is
// the repositories of the query with their names, ranks and generations, the repository sets that
// the query resolves to, and commits that are read from git. Other changes of the catalog, such as
// of jobs or holders, leave it as it is.
func (r *root) state() []byte {
	parts := []string{string(r.layouts.get(r.q.visible.View).state(r.q.repos)), fmt.Sprint(r.q.repos.GetCardinality())}

	// Conditions on repositories have become sets by now.
	query.Map(r.q.tree, func(q query.Q) query.Q {
		if set, ok := q.(*query.Repos); ok {
			numbers, _ := set.Set.ToBytes() // writing to memory cannot fail
			parts = append(parts, string(numbers))
		}
		return q
	})
	for _, p := range r.q.past {
		parts = append(parts, fmt.Sprint(p.repo.ID), p.found.Commit, p.found.Beside.Commit)
	}
	return digest(parts...)
}

// complete reports whether everything that had to be searched was searched.
func (r *root) complete() bool { return r.a.missing() == 0 && !r.a.timeout && r.ctx.Err() == nil }

// setNext adds the cursor of the next page to a response. A first page that lacks something has no
// cursor. A later page that lacks something would leave a gap, so it fails.
func (r *root) setNext(out *Response) error {
	switch {
	case !r.q.req.Pages:
		return nil
	case !r.complete() && r.q.from == nil:
		return nil
	case !r.complete():
		return call.Fail(call.ErrIncomplete, "Not everything behind `after` was searched, so the answer would have a gap. Ask again with the same `after`. If time ran out, use a longer timeout: in the query.")
	}

	next, err := r.nextCursor(out)
	if err != nil || next == nil {
		return err
	}
	out.Next = next.String()
	return nil
}

// nextCursor returns the cursor where the answer ends; nil if nothing comes after it.
func (r *root) nextCursor(out *Response) (*cursor, error) {
	c := &cursor{Query: r.q.digest, Index: r.state()}
	switch {
	case r.q.shape.repositories:
		// If a leaf had more files than it returned, the list of repositories may have gaps.
		if r.a.more || !r.a.namesCut {
			return nil, nil
		}
		c.Repo = out.Repositories[len(out.Repositories)-1].Name

	case !r.a.more:
		return nil, nil
	case len(r.a.files) == 0:
		return nil, call.Fail(call.ErrTooLarge, "The next file alone is more than an answer may hold. Ask without `whole`, or with fewer contextLines.")

	default:
		last := &r.a.files[len(r.a.files)-1]
		c.After = shard.CursorBehind(last, r.shownOf(last))
	}
	return c, nil
}

// shownOf returns how many places of a file were shown, by this answer and those before.
func (r *root) shownOf(f *shard.File) int {
	if r.q.shape.listing {
		return allPlaces
	}
	shown := countRanges(*f)
	if c := r.q.leaf.After; c != nil && c.In(f) {
		shown += c.Shown
	}
	return shown
}
