package shard

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
)

// Cursor is a position in the total order of files: behind the first Shown places of one
// file. Paths and names of revisions are bytes as git has them, so that a cursor survives
// any encoding.
type Cursor struct {
	Score     float64
	Repo      string // its name
	Path      []byte
	Revisions [][]byte
	OID       string
	Shown     int // places of the file before the cursor, those of its content first
}

// CursorBehind returns the cursor behind the first shown places of a file.
func CursorBehind(f *File, shown int) *Cursor {
	c := &Cursor{Score: f.Score, Repo: f.RepoName, Path: []byte(f.Path), OID: f.OID, Shown: shown}
	for _, name := range f.Revisions {
		c.Revisions = append(c.Revisions, []byte(name))
	}
	return c
}

// In reports whether a cursor is within this file or just behind it.
func (c *Cursor) In(f *File) bool {
	return c.Score == f.Score && c.Repo == f.RepoName && string(c.Path) == f.Path && c.OID == f.OID &&
		slices.EqualFunc(c.Revisions, f.Revisions, func(a []byte, b string) bool { return string(a) == b })
}

// behind reports whether something of a hit stands behind a cursor, and notes in the hit
// how many of its places stand before it.
func (s *search) behind(h *hit, c *Cursor) bool {
	order := cmp.Or(
		cmp.Compare(c.Score, float64(h.score)),
		strings.Compare(h.repoName(s), c.Repo),
		bytes.Compare(h.rawPath(), c.Path),
		slices.CompareFunc(h.revisions(), c.Revisions, func(a string, b []byte) int { return strings.Compare(a, string(b)) }),
		strings.Compare(h.oid(), c.OID),
	)
	if order == 0 {
		h.before = int32(c.Shown)
		return c.Shown < h.ranges()
	}
	return order > 0
}
