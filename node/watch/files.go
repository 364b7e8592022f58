package watch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/coverage"
	"github.com/shoalsearch/shoal/node/search"
	"github.com/shoalsearch/shoal/shard/charset"
	"github.com/shoalsearch/shoal/shard/git"
	"github.com/shoalsearch/shoal/shard/query"
)

const (
	changedMost  = 100_000 // files that one check compares
	pathsAtOnce  = 500     // of one search
	patienceTime = 6       // failed attempts before a check goes on without an answer that stays incomplete
)

// MirrorDir is the mirrors of this node; *hold.Mirrors has them.
type MirrorDir interface {
	Has(id catalog.RepoID) bool
	Get(id catalog.RepoID) *git.Mirror
}

// FileSearcher searches the index for a viewer.
type FileSearcher interface {
	Search(ctx context.Context, v catalog.Viewer, req search.Request) (*search.Response, error)
}

// blobAt is a file with its content.
type blobAt struct{ path, oid string }

// errPatience means that an answer may be better a little later.
var errPatience = errors.New("the new files cannot be searched to the end yet")

// files looks for the watches of text and symbols in the files that the new index has and the old
// one had not.
func (c *check) files(ctx context.Context, patient bool) error {
	fresh, err := c.freshFiles(ctx)
	if err != nil || len(fresh) == 0 {
		return err
	}
	texts := c.w.sets.needs.findings()
	is, paths := map[blobAt]bool{}, []string(nil)
	for _, e := range fresh {
		is[blobAt{e.Path, e.OID}] = true
		paths = append(paths, e.Path)
		texts.add([]byte(e.Path))
	}
	err = c.w.d.Mirrors.Get(c.repo.ID).Scan(ctx, fresh, 0, func(_ git.Entry, content []byte) bool {
		text, _ := charset.Decode(nil, content)
		texts.add(text)
		return ctx.Err() == nil
	})
	if err != nil {
		return err
	}
	slices.Sort(paths)
	paths = slices.Compact(paths)

	return c.each(texts, false, func(_ *group, x *catalog.Watch, _ query.Q) (out result, err error) {
		v, ok := c.w.d.Gate.WorksFor(x.Account)
		if !ok {
			return out, nil
		}
		for some := range slices.Chunk(paths, pathsAtOnce) {
			resp, err := c.w.d.Search.Search(ctx, v, search.Request{
				Query: x.Query, Regexp: x.Regexp, CaseSensitive: x.Case, Words: x.Words, Matches: pathsAtOnce, PerFile: 1,
				Only: &search.Only{Repo: c.repo.Name, Paths: some},
			})
			if err != nil {
				return out, err
			}
			if patient && resp.Coverage.Has(coverage.Late, coverage.Lost, coverage.Symbols, coverage.Pending) {
				return out, errPatience
			}
			for i := range resp.Files {
				f := &resp.Files[i]
				if !is[blobAt{f.Path, f.OID}] {
					continue // it was there before, or is of a later push, which has a check of its own
				}
				if out.total++; len(out.hits) < hitsAtMost {
					out.hits = append(out.hits, c.fileHit(f))
				}
			}
		}
		return out, nil
	})
}

// fileHit describes a file that matches.
func (c *check) fileHit(f *search.File) catalog.Hit {
	hit := catalog.Hit{Path: cut(f.Path, pathAtMost)}
	if len(c.repo.Revisions) > 0 {
		hit.Commit = c.repo.Revisions[0].Commit
	}
	for _, r := range c.repo.Revisions {
		if slices.Contains(f.Branches, r.Name) {
			hit.Commit = r.Commit
			break
		}
	}
	if len(f.Chunks) == 0 || len(f.Chunks[0].Ranges) == 0 {
		return hit
	}
	chunk := &f.Chunks[0]
	hit.Line = chunk.Ranges[0].Start.Line
	lines := bytes.Split(chunk.Content, []byte("\n"))
	if at := int(hit.Line) - int(chunk.Start.Line); at >= 0 && at < len(lines) {
		hit.Title = cut(strings.TrimSpace(string(lines[at])), textAtMost)
	}
	return hit
}

// freshFiles lists the files of the indexed revisions whose path and content no revision had that
// was checked before.
func (c *check) freshFiles(ctx context.Context) (out []git.Entry, err error) {
	mirror, seen := c.w.d.Mirrors.Get(c.repo.ID), map[blobAt]bool{}
	for commit := range commitsOf(c.repo.Revisions) {
		fresh, err := freshSince(ctx, mirror, commitsOf(c.backlog.From), commit)
		if err != nil {
			return nil, err
		}
		for _, e := range fresh {
			if key := (blobAt{e.Path, e.OID}); !seen[key] {
				seen[key] = true
				out = append(out, e)
			}
		}
	}
	return out, nil
}

func commitsOf(revisions []catalog.Revision) map[string]bool {
	out := map[string]bool{}
	for _, r := range revisions {
		out[r.Commit] = true
	}
	return out
}

// freshSince lists the files of a commit that none of the old commits has.
func freshSince(ctx context.Context, mirror *git.Mirror, old map[string]bool, commit string) (fresh []git.Entry, err error) {
	if old[commit] {
		return nil, nil
	}
	first := true
	for o := range old {
		changes, err := mirror.Changes(ctx, o, commit, changedMost)
		if err != nil {
			return nil, err
		}
		if changes.Cut {
			return nil, fmt.Errorf("more than %d files changed", changedMost)
		}
		if first {
			fresh, first = slices.Clone(changes.Now), false
			continue
		}
		is := map[blobAt]bool{}
		for _, e := range changes.Now {
			is[blobAt{e.Path, e.OID}] = true
		}
		fresh = slices.DeleteFunc(fresh, func(e git.Entry) bool { return !is[blobAt{e.Path, e.OID}] })
	}
	return fresh, nil
}
