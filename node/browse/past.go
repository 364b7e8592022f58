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

// The bounds of what is read from git for one search in one repository.
const (
	pastFiles = 20_000
	pastBytes = 128 << 20
	pastDiffs = 1000 // paths in which an indexed revision may differ for the index to be of use
)

// PastRequest asks the holder of a mirror to search a commit that is not indexed.
type PastRequest struct {
	Ref    string
	At     time.Time          // the commit of Ref at that time; zero: its newest
	Beside []catalog.Revision // indexed; only what differs from the nearest is read
	Q      query.Q            // its Rev is the commit that is asked for

	Matches, Files, Context int
	Whole, Count, NoChunks  bool
	Recency                 float64 // of the repository, in the order of the answer

	After *shard.Cursor // as in shard.Request
}

// PastResponse is what the mirror has of the answer; the index has the rest.
type PastResponse struct {
	Commit string
	Time   time.Time        // of the commit
	Beside catalog.Revision // that has the other files; no name: there are none
	Paths  []string         // of Beside that are not so in the commit

	Read  int   // files that were read
	Bytes int64 // of them

	Files    []shard.File
	Stats    shard.Stats
	Cut      bool
	Untagged shard.UntaggedFiles // whose symbols are not known, and that the query reaches

	More, Full bool // as shard.Result has them
}

// Past searches a commit that is not indexed: the files that an indexed revision
// has alike are left to the index, the others are read from git. ErrRef: there is
// no such commit. ErrTooLarge: too much would have to be read.
func (b *Browser) Past(ctx context.Context, v catalog.Viewer, repo string, req PastRequest) (*PastResponse, error) {
	return route(ctx, b, v, repo, pastOperation, req)
}

var pastOperation = operation[PastRequest, PastResponse]{name: "past", run: answerPast, heavy: true}

// answerPast searches the files of a commit that no indexed revision has alike.
func answerPast(ctx context.Context, s *site, req PastRequest) (*PastResponse, error) {
	commit, err := s.commitOf(ctx, req.Ref, req.At)
	if err != nil {
		return nil, err
	}

	out := &PastResponse{Commit: commit.Hash, Time: commit.CommitTime}
	files, err := s.apart(ctx, out, req)
	if err != nil || len(files) == 0 {
		return out, err
	}
	return out, s.searchPast(ctx, out, req, files)
}

// commitOf is the commit of a ref at a time.
func (s *site) commitOf(ctx context.Context, ref string, at time.Time) (git.Commit, error) {
	hash, err := s.resolve(ctx, ref)
	if err != nil {
		return git.Commit{}, err
	}

	if at.IsZero() {
		return s.mirror.Show(ctx, hash)
	}

	// By the time of commits, not of authors: a change may be written long before it came in.
	commit, err := s.mirror.At(ctx, hash, at)
	if errors.Is(err, git.ErrNoRef) {
		return commit, call.Fail(call.ErrRef, "Repository %q has no commit that is as old as %s: nothing was committed by then.", s.repo.Name, at.Format(time.DateTime))
	}
	return commit, err
}

// apart lists the files of a commit that the index does not have so.
func (s *site) apart(ctx context.Context, out *PastResponse, req PastRequest) ([]git.Entry, error) {
	// Sizes are looked up for what may be read at all: of more it is refused by its number.
	keep := namesOf(req.Q)
	files, err := s.beside(ctx, out, req.Beside, keep)
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

	// The size is only told where it is known.
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

// beside compares the commit with the indexed revision that is nearest. Where
// they have too little in common, or a path that a query cannot name, all of the
// commit is read.
func (s *site) beside(ctx context.Context, out *PastResponse, indexed []catalog.Revision, keep func(string) bool) ([]git.Entry, error) {
	commits := make([]string, len(indexed))
	for i, r := range indexed {
		commits[i] = r.Commit
	}

	// None may be related, as after a new beginning of the history.
	nearest, err := s.mirror.Nearest(ctx, out.Commit, commits)
	if err != nil || nearest < 0 {
		return nil, err
	}

	changes, err := s.mirror.Changes(ctx, commits[nearest], out.Commit, pastDiffs)
	if err != nil || changes.Cut {
		return nil, err
	}

	// Such a path cannot stand in a query that leaves it out of the index's answer.
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

// searchPast searches files of a commit in a small index of them.
func (s *site) searchPast(ctx context.Context, out *PastResponse, req PastRequest, files []git.Entry) error {
	key := fmt.Sprintf("%d %s %s %s", s.repo.ID, out.Commit, out.Beside.Commit, nameKey(req.Q))
	small, err := s.scratch.get(ctx, key, func(context.Context) (shard.Source, error) {
		return &pastSource{mirror: s.mirror, files: files, repo: shard.Repository{
			ID: s.repo.ID, Name: s.repo.Name, Revisions: []shard.Revision{{Name: out.Commit, Commit: out.Commit, Time: out.Time}},
		}}, nil
	}, s.options)
	if err != nil {
		return fmt.Errorf("read %q at %.10s: %w", s.repo.Name, out.Commit, err)
	}
	defer s.scratch.release(small)

	// Nothing else removes them while they are held: a missing one is damaged.
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

// namesOf is whether a file can be in an answer by its path alone: what every
// match of the query needs of it.
func namesOf(q query.Q) func(path string) bool {
	var tests []func(string) bool
	for _, n := range conjuncts(q) {
		// A negated name is one that a file must not have.
		not, is := n.(*query.Not)
		if is {
			n = not.Sub
		}
		t, ok := n.(*query.Text)
		if !ok || t.Field != query.Name {
			continue
		}

		expr, err := regexp.Compile(nameExpr(t))
		if err != nil {
			continue // the index will say what is wrong with it
		}
		tests = append(tests, func(path string) bool { return expr.MatchString(path) != is })
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

// nameKey is the part of a query that decides which files are read.
func nameKey(q query.Q) string {
	// Only what decides which files are read: the same small index serves other words.
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

// conjuncts is what must hold for q to hold.
func conjuncts(q query.Q) []query.Q {
	if and, ok := q.(*query.And); ok {
		return and.Subs
	}
	return []query.Q{q}
}

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

// pastSource is files of one commit as package shard builds them.
type pastSource struct {
	mirror *git.Mirror
	repo   shard.Repository
	files  []git.Entry
	blobs  []shard.Blob
}

// Repositories lists the one repository.
func (s *pastSource) Repositories() []shard.Repository { return []shard.Repository{s.repo} }

// Blobs lists each content once, with its paths.
func (s *pastSource) Blobs() []shard.Blob {
	// By content: a commit often has one file at several paths.
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

// Read reads contents from the mirror.
func (s *pastSource) Read(ctx context.Context, want []int, use func(i int, content []byte) error) error {
	// All are asked for at once and come in that order: a process of git for each would take longer.
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

	// The content belongs to use only while it runs, so that one buffer is enough.
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
