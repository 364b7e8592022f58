package browse

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/call"
	"github.com/shoalsearch/shoal/shard"
	"github.com/shoalsearch/shoal/shard/git"
	"github.com/shoalsearch/shoal/shard/query"
)

// Limits of what one search reads from git in one repository.
const (
	pastFiles = 20_000
	pastBytes = 128 << 20
	pastDiffs = 1000 // paths that may differ from an indexed revision; with more, the index is of no use
)

// PastRequest asks the holder of a mirror to search a commit that is not indexed.
type PastRequest struct {
	Ref    string
	At     time.Time          // use the commit that Ref had at this time; zero: the newest
	Beside []catalog.Revision // indexed revisions; only the differences from the nearest are read
	Q      query.Q            // its Rev is the requested commit

	Matches, Files, Context int
	Whole, Count, NoChunks  bool
	Recency                 float64 // of the repository, for ranking

	After *shard.Cursor // as in shard.Request
}

// PastResponse is what the mirror contributes to an answer; the index contributes the rest.
type PastResponse struct {
	Commit string
	Time   time.Time        // of the commit
	Beside catalog.Revision // indexed revision that has the other files; no name means none
	Paths  []string         // paths of Beside that differ in the commit or are missing there

	Read  int   // files read
	Bytes int64 // bytes of these files

	Files    []shard.File
	Stats    shard.Stats
	Cut      bool
	Untagged shard.UntaggedFiles // files that the query reaches and whose symbols are unknown

	More, Full bool // as in shard.Result
}

// Past searches a commit that is not indexed. Files that an indexed revision has unchanged are
// left to the index; the others are read from git. It returns ErrRef if there is no such commit,
// and ErrTooLarge if too much would have to be read.
func (b *Browser) Past(ctx context.Context, v catalog.Viewer, repo string, req PastRequest) (*PastResponse, error) {
	return route(ctx, b, v, repo, pastOperation, req)
}

var pastOperation = operation[PastRequest, PastResponse]{name: "past", run: answerPast, heavy: true}

// answerPast searches the files of a commit that no indexed revision has unchanged.
func answerPast(ctx context.Context, s *site, req PastRequest) (*PastResponse, error) {
	commit, err := s.commitOf(ctx, req.Ref, req.At)
	if err != nil {
		return nil, err
	}

	out := &PastResponse{Commit: commit.Hash, Time: commit.CommitTime}
	files, err := s.unindexedFiles(ctx, out, req)
	if err != nil || len(files) == 0 {
		return out, err
	}
	return out, s.searchPast(ctx, out, req, files)
}

// commitOf returns the commit that a ref had at a time.
func (s *site) commitOf(ctx context.Context, ref string, at time.Time) (git.Commit, error) {
	hash, err := s.resolve(ctx, ref)
	if err != nil {
		return git.Commit{}, err
	}

	if at.IsZero() {
		return s.mirror.Show(ctx, hash)
	}

	// By commit time, not author time: a change may be written long before it is merged.
	commit, err := s.mirror.At(ctx, hash, at)
	if errors.Is(err, git.ErrNoRef) {
		return commit, call.Fail(call.ErrRef, "Repository %q has no commit that is as old as %s: nothing was committed by then.", s.repo.Name, at.Format(time.DateTime))
	}
	return commit, err
}

// unindexedFiles lists the files of a commit that the index does not have in this version.
func (s *site) unindexedFiles(ctx context.Context, out *PastResponse, req PastRequest) ([]git.Entry, error) {
	// Skip the sizes if there are too many files: the number alone refuses the request.
	keep := nameFilter(req.Q)
	files, err := s.changedFiles(ctx, out, req.Beside, keep)
	if err == nil && out.Beside.Name == "" {
		files, err = s.mirror.Files(ctx, out.Commit, keep)
	}
	if err == nil && len(files) <= pastFiles {
		files, err = s.mirror.Sized(ctx, files)
	}
	if err != nil {
		return nil, err
	}

	out.Read = len(files)
	for _, f := range files {
		out.Bytes += f.Size
	}

	// Sizes are unknown if there are too many files.
	if out.Read > pastFiles || out.Bytes > pastBytes {
		size := ""
		if out.Read <= pastFiles {
			size = fmt.Sprintf(" of %d MB", out.Bytes>>20)
		}
		return nil, call.Fail(call.ErrTooLarge, "Repository %q is not indexed at %.10s, and %d files%s would have to be read from git; %d files of %d MB may be. Ask for fewer with file:, or have this revision indexed (revisions of the connection).",
			s.repo.Name, out.Commit, out.Read, size, pastFiles, pastBytes>>20)
	}
	return files, nil
}

// changedFiles compares the commit with the nearest indexed revision. It returns no files and no
// revision if the two have too little in common, or a path that a query cannot name. The caller
// then reads the whole commit.
func (s *site) changedFiles(ctx context.Context, out *PastResponse, indexed []catalog.Revision, keep func(string) bool) ([]git.Entry, error) {
	commits := make([]string, len(indexed))
	for i, r := range indexed {
		commits[i] = r.Commit
	}

	// None may be related, for example after the history was rewritten.
	nearest, err := s.mirror.Nearest(ctx, out.Commit, commits)
	if err != nil || nearest < 0 {
		return nil, err
	}

	changes, err := s.mirror.Changes(ctx, commits[nearest], out.Commit, pastDiffs)
	if err != nil || changes.Cut {
		return nil, err
	}

	// The index's query must exclude these paths, and a query can only name UTF-8.
	for _, path := range changes.Gone {
		if !utf8.ValidString(path) {
			return nil, nil
		}
	}

	out.Beside, out.Paths = indexed[nearest], changes.Gone
	var files []git.Entry
	for _, e := range changes.Now {
		if keep(e.Path) {
			files = append(files, e)
		}
	}
	return files, nil
}

// searchPast builds a small index of the files and searches it.
func (s *site) searchPast(ctx context.Context, out *PastResponse, req PastRequest, files []git.Entry) error {
	key := fmt.Sprintf("%d %s %s %s", s.repo.ID, out.Commit, out.Beside.Commit, nameKey(req.Q))
	small, err := s.scratch.acquireIndex(ctx, key, func(context.Context) (shard.Source, error) {
		return &pastSource{mirror: s.mirror, files: files, repo: shard.Repository{
			ID: s.repo.ID, Name: s.repo.Name, Revisions: []shard.Revision{{Name: out.Commit, Commit: out.Commit, Time: out.Time}},
		}}, nil
	}, s.options)
	if err != nil {
		return fmt.Errorf("read %q at %.10s: %w", s.repo.Name, out.Commit, err)
	}
	defer s.scratch.release(small)

	// Nobody else removes these files while they are held, so a missing one means damage.
	view, missing := small.set.Acquire(small.parts)
	defer view.Release()
	if len(missing) > 0 {
		return fmt.Errorf("read %q at %.10s: %d small indexes are gone", s.repo.Name, out.Commit, len(missing))
	}

	// In the small index the commit is the only revision.
	q := query.Map(req.Q, func(q query.Q) query.Q {
		if _, ok := q.(*query.Rev); ok {
			return &query.Rev{Pattern: out.Commit}
		}
		return q
	})

	found, err := view.Search(ctx, shard.Request{
		Q:          q,
		MaxMatches: req.Matches,
		MaxFiles:   req.Files,
		CountAll:   req.Count,

		ContextLines: req.Context,
		Whole:        req.Whole,
		NoChunks:     req.NoChunks,
		Rank:         func(uint32) (string, float64) { return s.repo.Name, req.Recency },

		After: req.After,
	})
	if err != nil {
		return err
	}

	out.Files, out.Stats, out.Cut = found.Files, found.Stats, found.Cut
	out.More, out.Full = found.More, found.Full
	if found.Untagged {
		if out.Untagged, err = view.Untagged(ctx, q); err != nil {
			return err
		}
	}
	out.Stats.FilesNotSearched, err = view.CountUnsearched(ctx, q)
	return err
}

// nameFilter returns a test for paths: it is false for files that cannot match the query because
// of their path.
func nameFilter(q query.Q) func(path string) bool {
	var tests []func(string) bool
	for _, n := range conjuncts(q) {
		// A negated name must not match.
		negated, isNegated := n.(*query.Not)
		if isNegated {
			n = negated.Sub
		}
		t, ok := n.(*query.Text)
		if !ok || t.Field != query.Name {
			continue
		}

		expr, err := regexp.Compile(nameExpr(t))
		if err != nil {
			continue // the index reports the error
		}
		tests = append(tests, func(path string) bool { return expr.MatchString(path) != isNegated })
	}

	return func(path string) bool {
		for _, test := range tests {
			if !test(path) {
				return false
			}
		}
		return true
	}
}

// nameKey returns the part of a query that decides which files are read. Queries with the same
// key share a small index.
func nameKey(q query.Q) string {
	var parts []string
	for _, n := range conjuncts(q) {
		of := n
		if not, ok := n.(*query.Not); ok {
			of = not.Sub
		}

		if t, ok := of.(*query.Text); ok && t.Field == query.Name {
			parts = append(parts, n.String())
		}
	}

	return strings.Join(parts, " ")
}

// conjuncts returns the parts of q that all must hold.
func conjuncts(q query.Q) []query.Q {
	if and, ok := q.(*query.And); ok {
		return and.Subs
	}
	return []query.Q{q}
}

// nameExpr returns the expression of a condition on paths.
func nameExpr(t *query.Text) string {
	expr := t.Pattern
	if !t.Regexp {
		expr = regexp.QuoteMeta(expr)
	}
	if t.Fold {
		expr = "(?i)" + expr
	}
	return "(?ms)" + expr
}

// pastSource implements shard.Source for files of one commit, or for blobs of several.
type pastSource struct {
	mirror *git.Mirror
	repo   shard.Repository
	files  []git.Entry
	blobs  []shard.Blob
}

// Repositories lists the one repository.
func (s *pastSource) Repositories() []shard.Repository { return []shard.Repository{s.repo} }

// Blobs lists each content once, with all its paths.
func (s *pastSource) Blobs() []shard.Blob {
	at := map[string]int{}
	for _, f := range s.files {
		i, ok := at[f.OID]
		if !ok {
			i = len(s.blobs)
			at[f.OID] = i
			s.blobs = append(s.blobs, shard.Blob{OID: f.OID, Size: f.Size})
		}

		s.blobs[i].Occurrences = append(s.blobs[i].Occurrences, shard.Occurrence{Path: f.Path, Mask: 1})
	}

	return s.blobs
}

// Read passes the wanted contents to use, in order.
func (s *pastSource) Read(ctx context.Context, want []int, use func(i int, content []byte) error) error {
	// One git process serves them all; one process for each would take longer.
	blobs, err := s.mirror.Blobs(ctx, func(yield func(string) bool) {
		for _, i := range want {
			if !yield(s.blobs[i].OID) {
				return
			}
		}
	})
	if err != nil {
		return err
	}
	defer blobs.Close()

	// use must not keep the content, so one buffer is enough.
	var buf []byte
	for _, i := range want {
		if buf, err = blobs.Next(buf[:0]); err != nil {
			return fmt.Errorf("read blob %s: %w", s.blobs[i].OID, err)
		}
		if err := use(i, buf); err != nil {
			return err
		}
	}

	return nil
}
