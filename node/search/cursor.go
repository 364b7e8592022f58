package search

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"

	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/shard"
	"github.com/shoalsearch/shoal/shard/query"
)

// cursor is where an answer ended: a client gives it back to go on from there. It names
// nothing but the last file that the client was shown, so it may travel as it is; a cursor
// that a client makes up leads to files that it may see anyway.
//
//	answer 1   from the beginning of the total order
//	answer 2   behind the cursor of answer 1
//	...
//
// No node keeps anything between two answers. Each of them looks at everything that
// matches, as a search with count:all does, however deep it is.
type cursor struct {
	Query []byte // digest of the query
	Index []byte // digest of what the order of the answer depends on

	After *shard.Cursor `json:",omitempty"`
	Repo  string        `json:",omitempty"` // the last repository, with type:repo
}

// maxCursor is how many bytes a client may send as one: long paths need some.
const maxCursor = 64 << 10

// allPlaces is more places than any file has.
const allPlaces = math.MaxInt32

// String encodes a cursor for a client; readCursor reads it.
func (c *cursor) String() string {
	text, err := json.Marshal(c)
	if err != nil {
		panic(fmt.Sprintf("BUG: a cursor cannot be encoded: %v", err))
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// readCursor reads the cursor of a request for a query; nil for none.
func readCursor(after string, q *query.Query) (*cursor, error) {
	if after == "" {
		return nil, nil
	}
	broken := call.Fail(call.ErrInvalid, "after: it is not the `next` of an answer. Leave it out to start again.")
	text, err := base64.RawURLEncoding.DecodeString(after)
	if err != nil || len(after) > maxCursor {
		return nil, broken
	}

	c := &cursor{}
	if json.Unmarshal(text, c) != nil || c.After != nil && (c.After.Shown < 0 || c.After.Shown > allPlaces) {
		return nil, broken
	}
	if !bytes.Equal(c.Query, digestOf(q)) {
		return nil, call.Fail(call.ErrInvalid, "after: it belongs to another query. Only count: and timeout: may differ from the query that it came with, and the number of matches.")
	}
	return c, nil
}

// digest stands for some texts.
func digest(parts ...string) []byte {
	h := sha256.New()
	var buf []byte
	for _, p := range parts {
		// With its length, no part runs into the next.
		buf = binary.AppendUvarint(buf[:0], uint64(len(p)))
		buf = append(buf, p...)
		h.Write(buf)
	}
	return h.Sum(nil)[:16]
}

// digestOf stands for what a query finds. How many of it are shown, and how long it
// may take, is no part of that.
func digestOf(q *query.Query) []byte {
	return digest(q.Q.String(), fmt.Sprint(q.Type), fmt.Sprint(q.At.Unix()))
}

// goOn makes the search one for a page of the total order: from its beginning, or from
// behind a cursor.
func (r *root) goOn(from *cursor) {
	if !r.req.Pages {
		return
	}

	// The files behind it may be anywhere, so that everything has to be looked at.
	r.leaf.CountAll, r.leaf.Heavy = true, true
	if r.from = from; from != nil {
		r.leaf.After = from.After
	}
}

// unchanged refuses to go on where the answer could have another order by now.
func (r *root) unchanged() error {
	if r.from == nil || bytes.Equal(r.from.Index, r.state()) {
		return nil
	}
	return call.Fail(call.ErrChanged, "A repository of this search was indexed again since the answer that `after` is from, or you may see other repositories now: the order of files may have changed. Start again without `after`; with repo: in the query other repositories do not matter.")
}

// state stands for all that the files and the order of an answer depend on: the
// repositories in question with their names, ranks and generations, what the query
// means with them, and commits that are read from git. Other changes of the catalog,
// as of jobs or of where files are held, leave it as it is.
func (r *root) state() []byte {
	parts := []string{string(r.layouts.of(r.seen.View).state(r.repos)), fmt.Sprint(r.repos.GetCardinality())}

	// Contexts, flags and names in it are sets of repositories by now.
	query.Map(r.q, func(q query.Q) query.Q {
		if set, ok := q.(*query.Repos); ok {
			numbers, _ := set.Set.ToBytes() // in memory, it cannot fail
			parts = append(parts, string(numbers))
		}
		return q
	})
	for _, p := range r.past {
		parts = append(parts, fmt.Sprint(p.repo.ID), p.found.Commit, p.found.Beside.Commit)
	}
	return digest(parts...)
}

// whole reports whether all was looked at that had to be.
func (r *root) whole() bool { return r.missing() == 0 && !r.timeout && r.ctx.Err() == nil }

// end adds to an answer where the next one goes on. Without a cursor, an answer that lacks
// something says so; behind a cursor it would leave a gap, and fails.
func (r *root) end(out *Response) error {
	switch {
	case !r.req.Pages:
		return nil
	case !r.whole() && r.from == nil:
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
	c := &cursor{Query: r.asked, Index: r.state()}
	switch {
	case r.shape == &ofRepositories:
		// Of more files than a leaf names, no list of repositories is known to be whole.
		if r.more || !r.namesCut {
			return nil, nil
		}
		c.Repo = out.Repositories[len(out.Repositories)-1].Name

	case !r.more:
		return nil, nil
	case len(r.files) == 0:
		return nil, call.Fail(call.ErrTooLarge, "The next file alone is more than an answer may hold. Ask without `whole`, or with fewer contextLines.")

	default:
		last := &r.files[len(r.files)-1]
		c.After = shard.CursorBehind(last, r.shownOf(last))
	}
	return c, nil
}

// shownOf is how many places of a file were shown, by this answer and those before.
func (r *root) shownOf(f *shard.File) int {
	if r.shape.listing {
		return allPlaces
	}
	shown := countRanges(*f)
	if c := r.leaf.After; c != nil && c.In(f) {
		shown += c.Shown
	}
	return shown
}

// beyond reports whether a repository of a list of them stands behind the cursor.
func (r *root) beyond(name string) bool {
	return r.from == nil || name > r.from.Repo
}
