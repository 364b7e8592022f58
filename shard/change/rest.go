package change

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/shard/git"
)

// Rest says where commits are read that a log lacks.
type Rest struct {
	Mirror    Mirror
	Revisions []Tip  // of which the answer is
	Dir       string // for files that go with the search; the caller removes it
}

const (
	restTips    = 8   // distinct commits of revisions, of which the ancestors are listed one after the other
	restCommits = 500 // that git reads in one run
	restMargin  = 200 * time.Millisecond
)

var errManyRevisions = errors.New("too many revisions to read what is not indexed")

// SearchAll finds the matches of a query in all commits of some revisions: in those of the log, and in
// the others as git tells them, the newest first, until a little before ctx ends. The answer is whole
// if the time sufficed.
func (l *Log) SearchAll(ctx context.Context, req LogSearch, rest Rest) (*LogMatches, error) {
	s, err := l.acquire()
	if err != nil {
		return nil, err
	}
	defer s.release()
	reading := ctx
	if left, ok := clock.Left(ctx); ok {
		var cancel context.CancelFunc
		reading, cancel = context.WithTimeout(ctx, left-min(left/4, restMargin))
		defer cancel()
	}

	ids, masks, err := rest.reach(reading)
	if err != nil {
		return nil, err
	}
	own := &generation{m: manifest{Revisions: rest.Revisions}, files: s.files, reach: make([]uint64, s.commits())}
	var missing []string
	for _, id := range ids {
		if n, ok := s.find(id); ok {
			own.reach[n] = masks[id]
		} else {
			missing = append(missing, id)
		}
	}
	req.All = true
	r, err := newReader(own, rest.Revisions, nil, req)
	if err != nil {
		return nil, err
	}
	look := func() error {
		ReadLogs(ctx, []*LogReader{r}, req)
		return r.err
	}
	if err := look(); err != nil {
		return nil, err
	}

	whole, before := true, time.Time{}
	for all := len(missing); len(missing) > 0; {
		from := max(0, len(missing)-restCommits)
		part, err := rest.read(reading, missing[from:], masks)
		if part != nil {
			defer part.close()
		}
		if err == nil {
			r.add(part, nil)
			err = look()
		}
		if err != nil {
			if reading.Err() == nil {
				return nil, err
			}
			if len(missing) == all { // then the newest may lack, too
				return nil, fmt.Errorf("read commits that are not indexed: %w", err)
			}
			whole, r.err = false, nil
			break
		}
		missing = missing[:from]
		before = time.Unix(int64(part.files[0].times.At(1)), 0).UTC() // of the oldest
	}
	out, err := r.Result(ctx)
	if err != nil {
		return nil, err
	}
	out.Whole = out.Whole && whole
	if out.Before = before; len(missing) == 0 {
		out.Before = time.Time{}
	}
	return out, nil
}

// reach lists the commits of the revisions, parents before children, and which revisions reach each.
func (r *Rest) reach(ctx context.Context) (ids []string, masks map[string]uint64, err error) {
	all := bits(r.Revisions)
	if len(all) > restTips {
		return nil, nil, errManyRevisions
	}
	masks = map[string]uint64{}
	var tips []string
	for tip, bit := range all {
		if ids, err = r.Mirror.Ancestry(ctx, []string{tip}, nil, 0, time.Time{}); err != nil {
			return nil, nil, err
		}
		for _, id := range ids {
			masks[id] |= bit
		}
		tips = append(tips, tip)
	}
	if len(tips) > 1 {
		ids, err = r.Mirror.Ancestry(ctx, tips, nil, 0, time.Time{})
	}
	return ids, masks, err
}

// read makes an index of some commits, which goes when it is closed.
func (r *Rest) read(ctx context.Context, ids []string, masks map[string]uint64) (*generation, error) {
	w, err := newRecorder(r.Dir, 0, func(string) (uint32, bool) { return 0, false })
	if err != nil {
		return nil, err
	}
	noted := &parentNoter{recorder: w, parents: map[string]string{}}
	if err := r.Mirror.Patches(ctx, ids, false, noted); err != nil {
		w.Abort()
		return nil, err
	}
	id, _, err := w.Finish()
	if err != nil {
		return nil, err
	}
	x, err := openIndex(r.Dir, id, 0)
	if err != nil {
		return nil, err
	}
	out := &generation{m: manifest{Revisions: r.Revisions}, files: []*index{x}, firstParents: noted.parents}
	for _, id := range ids {
		out.reach = append(out.reach, masks[id])
	}
	return out, nil
}

// parentNoter keeps the first parents of commits beside what is recorded.
type parentNoter struct {
	*recorder
	parents map[string]string
}

func (n *parentNoter) Commit(c *git.PatchCommit) error {
	if len(c.Parents) > 0 {
		n.parents[c.ID] = c.Parents[0]
	}
	return n.recorder.Commit(c)
}

// boundary returns the time before which commits may be left out: of the newest commit that lacks
// a parent.
func (s *generation) boundary() (before time.Time) {
	for _, x := range s.files {
		for c := range uint32(x.m.Commits) {
			if s.reach[x.base+c] == 0 {
				continue
			}
			for _, p := range x.parentsOf(c) {
				if at := time.Unix(int64(x.times.At(int(2*c+1))), 0).UTC(); p == none && at.After(before) {
					before = at
				}
			}
		}
	}
	return before
}

// newest returns when the first revision was committed.
func (s *generation) newest() time.Time {
	if len(s.m.Revisions) == 0 {
		return time.Time{}
	}
	n, ok := s.find(s.m.Revisions[0].Commit)
	if !ok {
		return time.Time{}
	}
	for _, x := range s.files {
		if n >= x.base && n < x.base+uint32(x.m.Commits) {
			return time.Unix(int64(x.times.At(int(2*(n-x.base)+1))), 0).UTC()
		}
	}
	return time.Time{}
}
