package git

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/shoalsearch/shoal/shard/git/pack"
	"github.com/shoalsearch/shoal/shard/git/run"
)

// Ref is a branch or a tag.
type Ref struct {
	Name   string // short
	Full   string // refs/heads/... or refs/tags/...
	Commit string
	Time   time.Time // of the commit
	Head   bool      // the default branch
}

// refState is what the references say, computed once after each fetch.
// It is read-only.
type refState struct {
	head     string // commit of HEAD; empty when there is none
	headTime time.Time
	symref   string // full name of the default branch; empty when detached
	branches []Ref  // newest first
	tags     []Ref
	byName   map[string]string   // full name to commit
	byCommit map[string][]string // commit to full names, branches first
}

// refFormat has a NUL after each field.
const refFormat = "%(refname)%00%(objecttype)%00%(objectname)%00%(*objecttype)%00%(*objectname)%00%(committerdate:unix)%00%(*committerdate:unix)%00"

// readRefs reads the references and HEAD.
func (b *base) readRefs(ctx context.Context) (*refState, error) {
	head, err := os.ReadFile(filepath.Join(b.dir, "HEAD"))
	if err != nil {
		return nil, err
	}

	s := &refState{
		byName:   map[string]string{},
		byCommit: map[string][]string{},
	}
	value := strings.TrimSpace(string(head))
	if to, ok := strings.CutPrefix(value, "ref: "); ok {
		s.symref = to
	}

	lines, err := b.refLines(ctx)
	if err != nil {
		return nil, fmt.Errorf("read references: %w", err)
	}
	for _, f := range lines {
		if err := s.add(ctx, b, f); err != nil {
			return nil, err
		}
	}

	s.sort()

	// HEAD is a branch or a commit; one that leads to nothing is none.
	if s.symref != "" {
		s.head = s.byName[s.symref]
	} else {
		s.head = value
	}
	if s.head == "" {
		s.symref = ""
	}

	for i := range s.branches {
		s.branches[i].Head = s.branches[i].Full == s.symref
		if s.branches[i].Head {
			s.headTime = s.branches[i].Time
		}
	}
	return s, s.detached(ctx, b)
}

// refLines is what for-each-ref prints of the references, in fields.
func (b *base) refLines(ctx context.Context) ([][]string, error) {
	if lines, ok := b.fewRefLines(); ok {
		return lines, nil
	}

	// Many are told faster by one run of git than by as many files.
	c := b.git("for-each-ref", "--format="+refFormat)
	c.Limit, c.Timeout = 1<<30, 5*time.Minute
	var lines [][]string
	err := c.Stream(ctx, func(r io.Reader) error {
		return eachRef(newRecords(r), 7, func(f []string) {
			// Nobody can ask for a longer name.
			if len(f[0]) <= maxRefName {
				lines = append(lines, f)
			}
		})
	})
	return lines, err
}

// eachRef reads the lines of git for-each-ref, of so many fields with a NUL after
// each. The first is the name.
func eachRef(in *records, fields int, use func(f []string)) error {
	for n := 0; ; n++ {
		// The line break of the line before stands in front.
		name, err := in.field(maxPath)
		if name == "\n" && err == io.ErrUnexpectedEOF {
			return nil
		}
		if err != nil {
			return ignoreEOF(err)
		}
		if n == pack.MaxRefs {
			return errManyRefs
		}

		f := append(make([]string, 0, fields), strings.TrimPrefix(name, "\n"))
		for len(f) < fields {
			part, err := in.part(maxField)
			if err != nil {
				return err
			}
			f = append(f, part)
		}
		use(f)
	}
}

// fewRefLines makes the same lines out of the files of the mirror, without git,
// where the references are few. ok is false where git has to be asked.
func (b *base) fewRefLines() (lines [][]string, ok bool) {
	refs, ok := b.refFiles()
	if !ok || len(refs) > fewRefs {
		return nil, false
	}

	// Few enough to read each object that they name.
	store, err := pack.Open(b.dir)
	if err != nil {
		return nil, false
	}
	defer store.Close()

	for _, name := range slices.Sorted(maps.Keys(refs)) {
		oid := refs[name]
		kind, content, err := whole(store, oid)
		if err != nil {
			return nil, false
		}

		// The fields of refFormat: those with a star are of what a tag leads to.
		f := []string{name, kind.String(), oid, "", "", "", ""}
		switch kind {
		case pack.Commit:
			f[5], ok = committed(content)
		case pack.Tag:
			f[4], _ = headerLine(content, "object")
			kind, content, err = whole(store, f[4])
			f[3], ok = kind.String(), err == nil
			if kind == pack.Commit {
				f[6], ok = committed(content)
			}
		}

		if !ok {
			return nil, false
		}

		lines = append(lines, f)
	}
	return lines, true
}

// add adds the reference in a line of refFormat. One that leads to no commit is
// left out.
func (s *refState) add(ctx context.Context, b *base, f []string) error {
	r := Ref{Full: f[0]}
	seconds := ""

	// The commit that it leads to, and when that was made.
	switch {
	case f[1] == "commit":
		r.Commit, seconds = f[2], f[5]
	case f[1] == "tag" && f[3] == "commit":
		r.Commit, seconds = f[4], f[6]
	case f[1] == "tag" && f[3] == "tag": // a tag of a tag: rare, so one question each
		id, t, err := b.peel(ctx, f[4])
		if err != nil {
			return err
		}
		r.Commit, r.Time = id, t
	}

	if r.Commit == "" {
		return nil
	}
	if n, err := strconv.ParseInt(seconds, 10, 64); err == nil {
		r.Time = time.Unix(n, 0).UTC()
	}

	// Branches and tags have short names, others are not listed.
	if name, ok := strings.CutPrefix(r.Full, "refs/heads/"); ok {
		r.Name = name
		s.branches = append(s.branches, r)
	} else if name, ok := strings.CutPrefix(r.Full, "refs/tags/"); ok {
		r.Name = name
		s.tags = append(s.tags, r)
	} else {
		return nil
	}
	s.byName[r.Full] = r.Commit
	return nil
}

// peel follows a chain of tags; the commit is empty when it ends elsewhere.
func (b *base) peel(ctx context.Context, oid string) (commit string, t time.Time, err error) {
	id := ""
	err = b.with(ctx, func(p reader) error {
		// A tag may lead to a tag: git follows them all.
		info, err := p.Info(oid + "^{commit}")
		if err != nil || info.Kind != "commit" {
			return err
		}
		id = info.OID
		return nil
	})

	if err != nil || id == "" {
		return "", t, err
	}

	t, err = b.commitTime(ctx, id)
	return id, t, err
}

// sort puts the newest first and fills byCommit in that order.
func (s *refState) sort() {
	for _, refs := range [][]Ref{s.branches, s.tags} {
		slices.SortFunc(refs, newestFirst)
		for _, r := range refs {
			s.byCommit[r.Commit] = append(s.byCommit[r.Commit], r.Full)
		}
	}
}

func newestFirst(a, b Ref) int {
	if c := b.Time.Compare(a.Time); c != 0 {
		return c
	}
	return strings.Compare(a.Full, b.Full)
}

// detached finds the time of a HEAD that is no branch.
func (s *refState) detached(ctx context.Context, b *base) error {
	if s.head == "" || s.symref != "" {
		return nil
	}
	t, err := b.commitTime(ctx, s.head)
	s.headTime = t
	return err
}

// Branches lists the branches, newest commit first, then by name. The slice
// is the caller's. A mirror without commits has none.
func (b *base) Branches(ctx context.Context) ([]Ref, error) {
	s, err := b.refs(ctx)
	if err != nil {
		return nil, err
	}
	return slices.Clone(s.branches), nil
}

// Tags lists the tags that lead to a commit, newest commit first, then by
// name. The slice is the caller's.
func (b *base) Tags(ctx context.Context) ([]Ref, error) {
	s, err := b.refs(ctx)
	if err != nil {
		return nil, err
	}
	return slices.Clone(s.tags), nil
}

// DefaultBranch is the short name of the branch that HEAD stands for; empty
// when it stands for none.
func (b *base) DefaultBranch(ctx context.Context) (string, error) {
	s, err := b.refs(ctx)
	if err != nil {
		return "", err
	}
	return strings.TrimPrefix(s.symref, "refs/heads/"), nil
}

// committed is the time of a commit in seconds; ok is false when there is no
// such commit.
func (c reader) committed(commit string) (seconds int64, ok bool, err error) {
	if err := checkCommit(commit); err != nil {
		return 0, false, err
	}

	// The committer stands in the head.
	err = c.Contents(commit, func(info run.ObjectInfo, r io.Reader) error {
		if info.Kind != "commit" {
			return nil
		}
		head, err := io.ReadAll(io.LimitReader(r, 64<<10))
		if text, known := committed(head); known {
			seconds, ok = unixTime(text).Unix(), true
		}
		return err
	})
	return seconds, ok, err
}

// commitTime is when a commit was made.
func (b *base) commitTime(ctx context.Context, commit string) (t time.Time, err error) {
	err = b.with(ctx, func(c reader) error {
		seconds, ok, err := c.committed(commit)
		if err == nil && !ok {
			err = fmt.Errorf("%q: %w", commit, ErrNoRef)
		}
		t = time.Unix(seconds, 0).UTC()
		return err
	})
	return t, err
}
