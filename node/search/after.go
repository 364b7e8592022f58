package search

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/cluster"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/shard"
	"github.com/shoalsearch/shoal/shard/query"
)

// place is where an answer ended. It travels sealed, through the hands of a client:
//
//	answer 1   may stop early, shows some  place: First
//	answer 2   the rest, in its order      place: First, After
//	answer 3   the rest behind After       ...
//
// No node keeps anything between two answers. Each after the first one looks at
// everything that matches, as a search with count:all does, however deep it is.
type place struct {
	Query []byte // digest of what was asked
	State []byte // digest of the index by which it was answered

	First *shard.First // with an answer that may have stopped early
	Shown shard.Tally  // by that one
	After *shard.Mark  // nil while there was none but that one
	Name  string       // of the last repository, with type:repo
}

// The bounds of a place.
const (
	maxAfter  = 64 << 10               // bytes of one that a client gives; paths are what makes it long
	sealTime  = 300 * time.Millisecond // to make the secret of the cluster, the first time
	sealPause = 5 * time.Second        // until that is tried again
	placeUse  = "search"
)

// isWhole is more places than any file has.
const isWhole = math.MaxInt32

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

// open reads the place that a request goes on from; nil for none.
func (s *Searcher) open(ctx context.Context, after string, q *query.Query) (*place, error) {
	if after == "" {
		return nil, nil
	}
	broken := call.Fail(call.ErrInvalid, "after: it is not what an answer of this cluster told as `next`, or it was changed on the way. Leave it out to begin anew.")
	sealed, err := base64.RawURLEncoding.DecodeString(after)
	if err != nil || len(after) > maxAfter {
		return nil, broken
	}

	plain, err := s.d.Places.Open(ctx, sealed, placeUse)
	if errors.Is(err, cluster.ErrNoLeader) || ctx.Err() != nil {
		return nil, call.Fail(call.ErrUnavailable, "after: this node cannot read it now: ask again.")
	}
	if err != nil {
		return nil, broken
	}
	p, err := placeOf(plain)
	if err != nil {
		return nil, broken
	}

	if !bytes.Equal(p.Query, digestOf(q)) {
		return nil, call.Fail(call.ErrInvalid, "after: it is of another query. Only count: and timeout: may differ from the query that it came with, and the number of matches.")
	}
	return p, nil
}

// goOn makes the search one for what stands behind a place.
func (r *root) goOn(p *place) {
	r.place = p
	if p == nil {
		return
	}

	// What was left out before may be anywhere, so that everything has to be looked at.
	r.leaf.CountAll, r.leaf.Heavy = true, true
	r.leaf.First, r.leaf.After = p.First, p.After
}

// changed is the end of a walk whose next answer cannot join the ones before.
func changed() error {
	return call.Fail(call.ErrChanged, "What this search is about has been indexed anew since the answer that `after` is from, or you may see other repositories now: files may stand elsewhere in the order. Begin anew without `after`; with repo: in the query other repositories do not matter.")
}

// unchanged refuses to go on where the answer could have another order by now.
func (r *root) unchanged() error {
	if r.place != nil && !bytes.Equal(r.place.State, r.state()) {
		return changed()
	}
	return nil
}

// state stands for all that the files and the order of an answer depend on: the
// repositories in question with their names, ranks and index files, what the query
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

// end tells in an answer where the next one goes on. Where it goes on itself from
// another, it fails if it does not join that without a gap.
func (s *Searcher) end(ctx context.Context, r *root, out *Response) error {
	switch {
	case !r.req.Pages:
		return nil
	case !r.whole() && r.place == nil:
		return nil // what it lacks could not be told from what stands behind it: it says that it lacks something
	case !r.whole():
		return call.Fail(call.ErrIncomplete, "Not all that stands behind `after` was looked at, and an answer without the rest would leave a gap: ask again with the same `after`; where time ran out, with a longer timeout: in the query.")
	case r.place != nil && r.place.First != nil && r.place.Shown != r.shown:
		return changed()
	}

	next, err := r.next(out)
	if err != nil || next == nil {
		return err
	}
	out.Next = s.sealed(ctx, next)
	return nil
}

// whole reports whether all was looked at that had to be.
func (r *root) whole() bool { return r.missing() == 0 && !r.timeout && r.ctx.Err() == nil }

// next is where the answer ends; nil where nothing stands behind it.
func (r *root) next(out *Response) (*place, error) {
	p := place{}
	if r.place != nil {
		p = *r.place
	}

	switch {
	case r.shape == &ofRepositories:
		// Of more files than a leaf names, no list of repositories is known to be whole.
		if r.more || !r.namesCut {
			return nil, nil
		}
		p.Name = out.Repositories[len(out.Repositories)-1].Name

	case !r.more || len(r.files) == 0 && r.place == nil:
		return nil, nil
	case len(r.files) == 0:
		return nil, call.Fail(call.ErrTooLarge, "The next file alone is more than an answer may hold. Ask without `whole`, or with fewer contextLines.")

	default:
		last := &r.files[len(r.files)-1]
		mark := shard.MarkBehind(last, r.shownOf(last))
		// Whether it has left files out depends on others in the same index files, which not
		// every viewer may know of: so it counts as one that may have.
		if r.place == nil && !r.leaf.CountAll {
			p.First, p.Shown = &shard.First{MaxMatches: r.leaf.Matches, Last: *mark}, tallyOf(r.files)
		} else {
			p.After = mark
		}
	}

	p.Query, p.State = r.asked, r.state()
	return &p, nil
}

// shownOf is how many places of a file were shown, by this answer and those before.
func (r *root) shownOf(f *shard.File) int {
	if r.shape.listing {
		return isWhole
	}

	shown := countRanges(*f)
	switch p := r.place; {
	case p == nil:
	case p.After != nil && p.After.IsOf(f):
		shown += p.After.Shown
	case p.First != nil && p.First.Last.IsOf(f):
		shown += p.First.Last.Shown
	}
	return shown
}

func tallyOf(files []shard.File) (t shard.Tally) {
	for i := range files {
		t.Add(&files[i])
	}
	return t
}

// beyond reports whether a repository of a list of them stands behind the place.
func (r *root) beyond(name string) bool {
	return r.place == nil || name > r.place.Name
}

// sealed is a place as a client gets it; "" where the cluster has no leader to make
// the secret, which it does once for good.
func (s *Searcher) sealed(ctx context.Context, p *place) string {
	if until := s.noSeal.Load(); until > clock.Now().UnixNano() {
		return ""
	}

	ctx, cancel := context.WithTimeout(ctx, sealTime)
	defer cancel()
	sealed, err := s.d.Places.Seal(ctx, p.encode(), placeUse)
	if err != nil {
		// Other searches would wait for the same in vain.
		s.noSeal.Store(clock.Now().Add(sealPause).UnixNano())
		s.d.Log.Warn("answer without its next", "error", err)
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(sealed)
}
