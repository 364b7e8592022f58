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

// refState is the content of the references. It is built once after each fetch, and never changed.
type refState struct {
	head     string // commit of HEAD; empty if there is none
	headTime time.Time
	symref   string // full name of the default branch; empty if detached
	branches []Ref  // newest first
	tags     []Ref
	byName   map[string]string   // full name to commit
	byCommit map[string][]string // commit to full names, branches before tags
}

// refFormat prints a NUL after each field.
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
		if err := s.addRef(ctx, b, f); err != nil {
			return nil, err
		}
	}

	s.sort()

	// HEAD names a branch or a commit. If the branch or commit does not exist, there is no HEAD.
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
	return s, s.findHeadTime(ctx, b)
}

// refLines returns the fields that for-each-ref prints for each reference.
func (b *base) refLines(ctx context.Context) ([][]string, error) {
	if lines, ok := b.fewRefLines(); ok {
		return lines, nil
	}

	// Running git once is faster than reading many files.
	c := b.git("for-each-ref", "--format="+refFormat)
	c.Limit, c.Timeout = 1<<30, 5*time.Minute
	var lines [][]string
	err := c.Stream(ctx, func(r io.Reader) error {
		return eachRef(newRecords(r), 7, func(f []string) {
			// Callers cannot ask for a longer name.
			if len(f[0]) <= maxRefName {
				lines = append(lines, f)
			}
		})
	})
	return lines, err
}

// eachRef reads the output of git for-each-ref, which has a number of fields for each reference, each
// with a NUL after it. It calls use with the fields of each reference; the first is the name.
func eachRef(in *records, fields int, use func(f []string)) error {
	for n := 0; ; n++ {
		// A line break ends each line, so it is at the beginning of the next name.
		name, err := in.readField(maxPath)
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
			part, err := in.readInnerField(maxField)
			if err != nil {
				return err
			}
			f = append(f, part)
		}
		use(f)
	}
}

// fewRefLines reads the same fields from the files of the mirror, without git, if there are few
// references. It returns false if the caller has to ask git.
func (b *base) fewRefLines() (lines [][]string, ok bool) {
	refs, ok := b.refFiles()
	if !ok || len(refs) > fewRefs {
		return nil, false
	}

	store, err := pack.Open(b.dir)
	if err != nil {
		return nil, false
	}
	defer store.Close()

	for _, name := range slices.Sorted(maps.Keys(refs)) {
		oid := refs[name]
		kind, content, err := readObject(store, oid)
		if err != nil {
			return nil, false
		}

		// These are the fields of refFormat. Those with a star describe the object that a tag leads
		// to.
		f := []string{name, kind.String(), oid, "", "", "", ""}
		switch kind {
		case pack.Commit:
			f[5], ok = commitSeconds(content)
		case pack.Tag:
			f[4], _ = headerLine(content, "object")
			kind, content, err = readObject(store, f[4])
			f[3], ok = kind.String(), err == nil
			if kind == pack.Commit {
				f[6], ok = commitSeconds(content)
			}
		}

		if !ok {
			return nil, false
		}

		lines = append(lines, f)
	}
	return lines, true
}

// addRef adds the reference with the fields of refFormat, unless it leads to no commit.
func (s *refState) addRef(ctx context.Context, b *base, f []string) error {
	r := Ref{Full: f[0]}
	seconds := ""

	// Find the commit to which the reference leads, and its time.
	switch {
	case f[1] == "commit":
		r.Commit, seconds = f[2], f[5]
	case f[1] == "tag" && f[3] == "commit":
		r.Commit, seconds = f[4], f[6]
	case f[1] == "tag" && f[3] == "tag": // a tag of a tag is rare, so ask for each
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

	// Only branches and tags have short names. Skip other references.
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

// peel returns the commit that a tag leads to, also by other tags, and the time of the commit. commit
// is empty if the tag leads to an object of another kind.
func (b *base) peel(ctx context.Context, oid string) (commit string, t time.Time, err error) {
	id := ""
	err = b.with(ctx, func(p reader) error {
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

// sort sorts the references, newest first, and fills byCommit in that order.
func (s *refState) sort() {
	for _, refs := range [][]Ref{s.branches, s.tags} {
		slices.SortFunc(refs, newestFirst)
		for _, r := range refs {
			s.byCommit[r.Commit] = append(s.byCommit[r.Commit], r.Full)
		}
	}
}

// newestFirst compares references: the newer commit comes first, then the name decides.
func newestFirst(a, b Ref) int {
	if c := b.Time.Compare(a.Time); c != 0 {
		return c
	}
	return strings.Compare(a.Full, b.Full)
}

// findHeadTime finds the time of a HEAD that names no branch.
func (s *refState) findHeadTime(ctx context.Context, b *base) error {
	if s.head == "" || s.symref != "" {
		return nil
	}
	t, err := b.commitTime(ctx, s.head)
	s.headTime = t
	return err
}

// Branches lists the branches, newest commit first, then by name. The caller owns the slice. A
// mirror without commits has no branches.
func (b *base) Branches(ctx context.Context) ([]Ref, error) {
	s, err := b.refs(ctx)
	if err != nil {
		return nil, err
	}
	return slices.Clone(s.branches), nil
}

// Tags lists the tags that lead to a commit, newest commit first, then by name. The caller owns the
// slice.
func (b *base) Tags(ctx context.Context) ([]Ref, error) {
	s, err := b.refs(ctx)
	if err != nil {
		return nil, err
	}
	return slices.Clone(s.tags), nil
}

// DefaultBranch returns the short name of the branch that HEAD names; empty if it names none.
func (b *base) DefaultBranch(ctx context.Context) (string, error) {
	s, err := b.refs(ctx)
	if err != nil {
		return "", err
	}
	return strings.TrimPrefix(s.symref, "refs/heads/"), nil
}

// commitSeconds returns the time of a commit in seconds; ok is false if the commit does not exist.
func (c reader) commitSeconds(commit string) (seconds int64, ok bool, err error) {
	if err := checkCommit(commit); err != nil {
		return 0, false, err
	}

	// The head of the commit names the committer.
	err = c.Contents(commit, func(info run.ObjectInfo, r io.Reader) error {
		if info.Kind != "commit" {
			return nil
		}
		head, err := io.ReadAll(io.LimitReader(r, 64<<10))
		if text, known := commitSeconds(head); known {
			seconds, ok = unixTime(text).Unix(), true
		}
		return err
	})
	return seconds, ok, err
}

// commitTime returns the time of a commit.
func (b *base) commitTime(ctx context.Context, commit string) (t time.Time, err error) {
	err = b.with(ctx, func(c reader) error {
		seconds, ok, err := c.commitSeconds(commit)
		if err == nil && !ok {
			err = fmt.Errorf("%q: %w", commit, ErrNoRef)
		}
		t = time.Unix(seconds, 0).UTC()
		return err
	})
	return t, err
}
