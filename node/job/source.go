package job

import (
	"context"
	"fmt"
	"io"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/shard"
	"github.com/shoalsearch/shoal/shard/git"
)

// source is one repository of a mirror as package shard builds it.
type source struct {
	mirror *git.Mirror
	repo   shard.Repository
	blobs  []shard.Blob
	read   func(n int64) // told of bytes as they are read
}

// newSource lists the blobs of the revisions. Revisions that share a commit
// are one bit each all the same, so that each is found by its own name.
func newSource(ctx context.Context, m *git.Mirror, repo *catalog.Repo, revs []git.Revision) (*source, error) {
	s := &source{mirror: m, repo: shard.Repository{ID: repo.ID, Name: repo.Name}}
	var commits []string
	bits := map[string]uint64{} // commit -> the revisions that are it
	at := map[string]int{}
	for i, rev := range revs {
		s.repo.Revisions = append(s.repo.Revisions, shard.Revision{Name: rev.Name, Commit: rev.Commit, Time: rev.Time})
		if _, ok := at[rev.Commit]; !ok {
			at[rev.Commit] = len(commits)
			commits = append(commits, rev.Commit)
		}
		bits[rev.Commit] |= 1 << i
	}
	blobs, err := m.Union(ctx, commits)
	if err != nil {
		return nil, fmt.Errorf("list files: %w", err)
	}
	masks := make([]uint64, len(commits))
	for commit, i := range at {
		masks[i] = bits[commit]
	}
	s.blobs = make([]shard.Blob, len(blobs))
	for i, b := range blobs {
		s.blobs[i] = shard.Blob{OID: b.OID, Size: b.Size, Occurrences: make([]shard.Occurrence, len(b.Occurrences))}
		for k, o := range b.Occurrences {
			s.blobs[i].Occurrences[k] = shard.Occurrence{Path: o.Path, Mask: spread(o.Commits, masks)}
		}
	}
	return s, nil
}

// spread turns a mask of commits into one of revisions.
func spread(commits uint64, masks []uint64) uint64 {
	var out uint64
	for i, m := range masks {
		if commits>>i&1 == 1 {
			out |= m
		}
	}
	return out
}

// Repositories lists the one repository.
func (s *source) Repositories() []shard.Repository { return []shard.Repository{s.repo} }

// Blobs lists its blobs.
func (s *source) Blobs() []shard.Blob { return s.blobs }

// Read streams blobs out of the mirror.
func (s *source) Read(ctx context.Context, want []int, use func(i int, content []byte) error) error {
	b, err := s.mirror.Blobs(ctx, func(yield func(string) bool) {
		for _, i := range want {
			if !yield(s.blobs[i].OID) {
				return
			}
		}
	})
	if err != nil {
		return fmt.Errorf("read blobs: %w", err)
	}
	defer b.Close()
	var buf []byte
	for _, i := range want {
		buf, err = b.Next(buf[:0])
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return fmt.Errorf("read blob %s: %w", s.blobs[i].OID, err)
		}
		if s.read != nil {
			s.read(int64(len(buf)))
		}
		if err := use(i, buf); err != nil {
			return err
		}
	}
	return nil
}
