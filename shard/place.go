package shard

import (
	"cmp"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// Mark is a place in the total order of files: behind the first Shown places of one file.
type Mark struct {
	Score     float64
	Repo      string // its name
	Path      string
	Revisions []string
	OID       string
	Shown     int // places of the file before the mark, those of its content first
}

// MarkBehind is the mark behind the first shown places of a file.
func MarkBehind(f *File, shown int) *Mark {
	return &Mark{Score: f.Score, Repo: f.RepoName, Path: f.Path, Revisions: f.Revisions, OID: f.OID, Shown: shown}
}

// IsOf reports whether a mark is within or behind this file.
func (m *Mark) IsOf(f *File) bool {
	return m.Score == f.Score && m.Repo == f.RepoName && m.Path == f.Path && m.OID == f.OID && slices.Equal(m.Revisions, f.Revisions)
}

// First is an answer to the same question that stopped early: of the files that a
// search for MaxMatches looks at, those up to Last.
//
//	looked at   a5  b9  c2         d7 e8 f1     of the whole shard
//	shown       b9  a5             up to Last
//	the rest    e8  d7  c2  f1     in the total order
type First struct {
	MaxMatches int
	Last       Mark
}

// Tally tells one set of files from another: equal sets have equal ones.
type Tally struct {
	Files int
	Sum   uint64 // of a hash of each file, in no order
}

// Add counts a file.
func (t *Tally) Add(f *File) { t.add(f.RepoName, f.Path, f.Revisions, f.OID) }

// Join counts the files of another set.
func (t *Tally) Join(o Tally) { t.Files, t.Sum = t.Files+o.Files, t.Sum+o.Sum }

func (t *Tally) add(repo, path string, revisions []string, oid string) {
	h := xxhash.New()
	part := func(s string) {
		// A path may have any byte but this one, so that the parts stay apart.
		_, _ = h.WriteString(s)
		_, _ = h.WriteString("\x00")
	}

	part(repo)
	part(path)
	part(oid)
	for _, name := range revisions {
		part(name)
	}
	t.Join(Tally{1, h.Sum64()})
}

// firstPieces is how many pieces of a run the first answer looked at.
func (s *search) firstPieces(r *run) int {
	if s.r.First == nil {
		return 0
	}
	sum := 0
	for i := range r.pieces {
		if sum += r.pieces[i].matches; sum >= s.enough(s.r.First.MaxMatches, r.pieces[i].units) {
			return i + 1
		}
	}
	return len(r.pieces)
}

// unshown reports whether no answer has shown a hit yet, or only some of its places,
// which it notes in the hit. early: the first answer looked at it.
func (s *search) unshown(h *hit, early bool, res *Result) bool {
	if early {
		left := s.behind(h, &s.r.First.Last)
		if !left || h.given > 0 {
			res.Shown.add(h.repoName(s), h.path(), h.revisions(), h.oid())
		}
		if !left {
			return false
		}
	}

	// What a later answer says of a file holds for all answers before it.
	return s.r.After == nil || s.behind(h, s.r.After)
}

// behind reports whether something of a hit stands behind a mark, and notes how many
// of its places stand before it.
func (s *search) behind(h *hit, m *Mark) bool {
	if c := s.beside(*h, m); c != 0 {
		return c > 0
	}
	h.given = int32(m.Shown)
	return m.Shown < h.ranges()
}

// beside compares a hit with the file of a mark, in the total order.
func (s *search) beside(h hit, m *Mark) int {
	return cmp.Or(
		cmp.Compare(m.Score, float64(h.score)),
		strings.Compare(h.repoName(s), m.Repo),
		strings.Compare(h.path(), m.Path),
		slices.Compare(h.revisions(), m.Revisions),
		strings.Compare(h.oid(), m.OID),
	)
}
