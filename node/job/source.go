package job

import (
	"context"
	"fmt"
	"io"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/shard"
	"github.com/shoalsearch/shoal/shard/git"
)

// source provides one repository of a mirror to package shard.
type source struct {
	mirror *git.Mirror
	repo   shard.Repository
	blobs  []shard.Blob
	read   func(n int64) // called with the number of bytes read
}

// newSource returns the source of the revisions. Each commit has a bit in the masks of its files.
func newSource(ctx context.Context, m *git.Mirror, repo *catalog.Repo, revs []git.Revision) (*source, error) {
	s := &source{mirror: m, repo: shard.Repository{ID: repo.ID, Name: repo.Name}}

	// Revisions with the same commit share its bit.
	var commits []string
	at := map[string]int{} // index in commits
	for _, rev := range revs {
		if _, ok := at[rev.Commit]; !ok {
			at[rev.Commit] = len(commits)
			commits = append(commits, rev.Commit)
		}

		s.repo.Revisions = append(s.repo.Revisions, shard.Revision{Name: rev.Name, Commit: rev.Commit, Time: rev.Time, Bit: uint8(at[rev.Commit])})
	}

	blobs, err := m.Union(ctx, commits)
	if err != nil {
		return nil, fmt.Errorf("list files: %w", err)
	}

	s.blobs = make([]shard.Blob, len(blobs))
	for i, b := range blobs {
		s.blobs[i] = shard.Blob{OID: b.OID, Size: b.Size, Occurrences: make([]shard.Occurrence, len(b.Occurrences))}
		for k, o := range b.Occurrences {
			s.blobs[i].Occurrences[k] = shard.Occurrence{Path: o.Path, Mask: o.Commits}
		}
	}
	return s, nil
}

// totalSize returns the size of all blobs.
func (s *source) totalSize() (n int64) {
	for _, b := range s.blobs {
		n += b.Size
	}
	return n
}

// Repositories implements shard.Source.
func (s *source) Repositories() []shard.Repository { return []shard.Repository{s.repo} }

// Blobs implements shard.Source.
func (s *source) Blobs() []shard.Blob { return s.blobs }

// Read implements shard.Source. It streams blobs from the mirror.
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

		// The mirror was listed just now: an early end means damage.
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
