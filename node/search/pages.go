package search

import (
	"bytes"
	"fmt"

	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/shard"
	"github.com/shoalsearch/shoal/shard/query"
)

// goOn makes the search one for a page of the total order: from its beginning, or from
// behind a cursor.
func (q *question) goOn(from *cursor) {
	if !q.req.Pages {
		return
	}

	// The files behind it may be anywhere, so that everything has to be looked at.
	q.leaf.CountAll, q.leaf.Heavy = true, true
	if q.from = from; from != nil {
		q.leaf.After = from.After
	}
}

// unchanged refuses to go on where the answer could have another order by now.
func (r *root) unchanged() error {
	if r.q.from == nil || bytes.Equal(r.q.from.Index, r.state()) {
		return nil
	}
	return call.Fail(call.ErrChanged, "A repository of this search was indexed again since the answer that `after` is from, or you may see other repositories now: the order of files may have changed. Start again without `after`; with repo: in the query other repositories do not matter.")
}

// state stands for all that the files and the order of an answer depend on: the
// repositories in question with their names, ranks and generations, what the query
// means with them, and commits that are read from git. Other changes of the catalog,
// as of jobs or of where files are held, leave it as it is.
func (r *root) state() []byte {
	parts := []string{string(r.layouts.of(r.q.sight.View).state(r.q.repos)), fmt.Sprint(r.q.repos.GetCardinality())}

	// Contexts, flags and names in it are sets of repositories by now.
	query.Map(r.q.tree, func(q query.Q) query.Q {
		if set, ok := q.(*query.Repos); ok {
			numbers, _ := set.Set.ToBytes() // in memory, it cannot fail
			parts = append(parts, string(numbers))
		}
		return q
	})
	for _, p := range r.q.past {
		parts = append(parts, fmt.Sprint(p.repo.ID), p.found.Commit, p.found.Beside.Commit)
	}
	return digest(parts...)
}

// whole reports whether all was looked at that had to be.
func (r *root) whole() bool { return r.a.missing() == 0 && !r.a.timeout && r.ctx.Err() == nil }

// end adds to an answer where the next one goes on. Without a cursor, an answer that lacks
// something says so; behind a cursor it would leave a gap, and fails.
func (r *root) end(out *Response) error {
	switch {
	case !r.q.req.Pages:
		return nil
	case !r.whole() && r.q.from == nil:
		return nil
	case !r.whole():
		return call.Fail(call.ErrIncomplete, "Not everything behind `after` was looked at, and an answer without the rest would leave a gap: ask again with the same `after`; if time ran out, with a longer timeout: in the query.")
	}

	next, err := r.next(out)
	if err != nil || next == nil {
		return err
	}
	out.Next = next.String()
	return nil
}

// next is where the answer ends; nil where nothing stands behind it.
func (r *root) next(out *Response) (*cursor, error) {
	c := &cursor{Query: r.q.digest, Index: r.state()}
	switch {
	case r.q.shape.repositories:
		// Of more files than a leaf names, no list of repositories is known to be whole.
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

// shownOf is how many places of a file were shown, by this answer and those before.
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
