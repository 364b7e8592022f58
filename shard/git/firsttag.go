package git

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/shoalsearch/shoal/node/lru"
)

// firstTagTime is the time limit for finding the tags that have a commit.
const firstTagTime = 2 * time.Second

// FirstTag is the oldest tag with a commit in its history, by the times of tagged commits.
type FirstTag struct {
	Name    string // short name; "" if no tag has the commit
	Release string // if Name is a pre-release, such as v2.0-rc1: the first release; "" if there is none yet
	Tags    int    // number of tags in the mirror
	Late    bool   // time ran out: a tag for an empty name may exist
	Whole   string // if Name is a tag for a part of the repository, such as globset-0.4.17: the first tag that is only a version; "" if there is none
	Parts   string // if there are tags for parts: the first release of each part, such as mobx@6.7.0, separated by spaces
}

// tagOrders finds the first tags that have a commit.
type tagOrders struct {
	*base
	last atomic.Pointer[tagOrder] // for the latest state of the references; nil before the first use
}

// tagOrder has the sorted tags of one state of the references, and cached results.
type tagOrder struct {
	state  *refState
	oldest []agedTag                    // all tags, the oldest first
	firsts *lru.Cache[string, FirstTag] // by commit
}

// sortedTags returns the sorted tags of a state of the references. It caches those of the latest
// state.
func (h *tagOrders) sortedTags(s *refState) *tagOrder {
	if o := h.last.Load(); o != nil && o.state == s {
		return o
	}
	o := &tagOrder{state: s, firsts: lru.New[string, FirstTag](1000)}
	for _, tag := range s.tags {
		o.oldest = append(o.oldest, newAgedTag(tag))
	}
	slices.SortFunc(o.oldest, func(a, b agedTag) int { return cmp.Or(a.Time.Compare(b.Time), strings.Compare(a.Full, b.Full)) })
	h.last.Store(o)
	return o
}

// FirstTag finds the first tag that has a commit. It takes at most two seconds.
func (h *tagOrders) FirstTag(ctx context.Context, commit string) (FirstTag, error) {
	return h.firstTagWithin(ctx, firstTagTime, commit)
}

// firstTagWithin is FirstTag with a time limit.
func (h *tagOrders) firstTagWithin(ctx context.Context, limit time.Duration, commit string) (first FirstTag, err error) {
	if err := checkCommit(commit); err != nil {
		return first, err
	}
	refs, err := h.refs(ctx)
	if err != nil || len(refs.tags) == 0 {
		return first, err
	}
	order := h.sortedTags(refs)
	if known, ok := order.firsts.Get(commit); ok {
		return known, nil
	}

	first.Tags = len(refs.tags)
	first.Late, err = h.withReach(ctx, limit, commit, func(d *reach) error { return first.setFrom(d, order.oldest) })
	if err != nil {
		return FirstTag{}, fmt.Errorf("find the first tag with a commit: %w", err)
	}
	if !first.Late {
		order.firsts.Put(commit, first, 1)
	}
	return first, nil
}

// Having returns those of refs that have a commit in their history. It takes at most two seconds.
// late says that time ran out, so that further refs may have the commit, too.
func (h *tagOrders) Having(ctx context.Context, commit string, refs []Ref) (having []Ref, late bool, err error) {
	return h.havingWithin(ctx, firstTagTime, commit, refs)
}

// havingWithin is Having with a time limit.
func (h *tagOrders) havingWithin(ctx context.Context, limit time.Duration, commit string, refs []Ref) (having []Ref, late bool, err error) {
	if err := checkCommit(commit); err != nil {
		return nil, false, err
	}

	late, err = h.withReach(ctx, limit, commit, func(d *reach) error {
		for _, ref := range refs {
			has, err := d.has(ref.Commit)
			if err != nil {
				return err
			}
			if has {
				having = append(having, ref)
			}
		}
		return nil
	})
	if err != nil {
		return nil, false, fmt.Errorf("find what has a commit: %w", err)
	}
	return having, late, nil
}

// withReach calls do with a reach for a commit. If the time limit ends do early, it returns late
// and no error.
func (h *tagOrders) withReach(ctx context.Context, limit time.Duration, commit string, do func(*reach) error) (late bool, err error) {
	err = h.inHistory(ctx, limit, func(c *chronicle, shallow boundary, late func() error) error {
		d, err := c.newReach(commit)
		if err != nil {
			return err
		}
		d.stop, d.shallow = late, shallow
		return do(d)
	})
	if errors.Is(err, errLate) {
		return true, nil
	}
	return false, err
}

// agedTag is a tag with the parts of its name.
type agedTag struct {
	Ref
	series string // text before the version, such as globset- or v; the whole name if it has no version
	whole  bool   // the name is only a version, such as v1.2.3
	pre    bool   // the version is a pre-release
}

// newAgedTag parses the name of a tag.
func newAgedTag(tag Ref) agedTag {
	series := tag.Name
	if i := strings.IndexAny(series, "0123456789"); i >= 0 {
		series = series[:i]
	}
	return agedTag{tag, series, IsVersion(tag.Name), IsPreRelease(tag.Name)}
}

// hasNoVersion reports whether the name has no version, as nightly.
func (t *agedTag) hasNoVersion() bool { return t.series == t.Name }

// part reports whether the tag is that of a release of a part of the repository.
func (t *agedTag) part() bool { return !t.whole && !t.pre && !t.hasNoVersion() }

// mostParts is the largest number of parts of a repository whose tags are told apart.
const mostParts = 100

// setFrom sets Name, Release, Whole and Parts, given all tags, the oldest first. d tells which tags have
// the commit.
func (f *FirstTag) setFrom(d *reach, tags []agedTag) error {
	var name *agedTag
	parts := map[string]bool{} // whether a series has its first release
	for i := range tags {
		tag := &tags[i]

		// Skip tags that cannot be Name, Release or Whole, because d.has walks through the history.
		release := name != nil && name.pre && f.Release == "" && !tag.pre && (name.hasNoVersion() || tag.series == name.series)
		whole := name != nil && !name.whole && !name.hasNoVersion() && f.Whole == "" && !tag.pre && tag.whole
		part := tag.part() && !parts[tag.series] && len(parts) < mostParts
		if name != nil && !release && !whole && !part {
			continue
		}

		has, err := d.has(tag.Commit)
		if err != nil {
			return err
		}
		if has && part {
			parts[tag.series] = true
			f.Parts = strings.TrimPrefix(f.Parts+" "+tag.Name, " ")
		}
		switch {
		case !has:
		case name == nil:
			name, f.Name = tag, tag.Name
		case release:
			f.Release = tag.Name
		case whole:
			f.Whole = tag.Name
		}
	}
	return nil
}

// versionAlone matches a name such as v1.2.3, 15.0.0 or release-2.0. Tools of Java call the whole of several
// parts parent, root or project.
var versionAlone = regexp.MustCompile(`(?i)^(?:v|ver|version|rel|release|parent|root|project)?[-._/]?v?\d`)

// IsVersion reports whether the name of a tag is only a version, so that it is of the whole repository.
func IsVersion(tag string) bool { return versionAlone.MatchString(tag) }

// preRelease matches the end of a name such as v2.0-rc1, 3.0.0b2 or v1.0.0-beta.3.
var preRelease = regexp.MustCompile(`(?i)(?:rc|alpha|beta|pre|preview|dev|snapshot|nightly|canary|\d[ab])[-._]?\d*$`)

// IsPreRelease reports whether the name of a tag is that of a pre-release, or has no version, as
// nightly.
func IsPreRelease(name string) bool {
	return preRelease.MatchString(name) || !strings.ContainsAny(name, "0123456789")
}

// reach tells which commits have a given commit, the target, in their history. All calls of has
// together walk each commit once. has skips commits whose generation is not greater than that of
// the target, because the generation of a commit is greater than those of its parents.
type reach struct {
	c           *chronicle
	target      uint32       // position of the target
	generation  uint32       // generation of the target; 0 if unknown
	inGraph     bool         // the target is in the graph, which also has all of its ancestors
	visited     bits         // commits that the walks have visited
	descendants bits         // the target, and commits that have it in their history
	path        []step       // commits from the argument of has to the current one
	stop        func() error // returns an error to stop the walk
	shallow     boundary
	steps       int
	nearParents []uint32 // parents of the current commit
}

// step is a commit in reach.path, and how many of its parents the walk has visited.
type step struct {
	pos     uint32
	visited int32
}

// newReach returns a reach whose target is a commit.
func (c *chronicle) newReach(commit string) (*reach, error) {
	id, err := hex.DecodeString(commit)
	if err != nil {
		return nil, err
	}
	pos, err := c.position(id)
	if err != nil {
		return nil, err
	}

	d := &reach{c: c, target: pos, inGraph: int(pos) < c.graph.Commits()}
	if d.inGraph {
		d.generation = c.graph.Generation(pos)
	}
	d.descendants.add(pos)
	return d, nil
}

// has reports whether a commit is the target or has it in its history. It fails if d.stop does.
func (d *reach) has(commit string) (bool, error) {
	id, err := hex.DecodeString(commit)
	if err != nil {
		return false, err
	}
	from, err := d.c.position(id)
	if err != nil {
		return false, err
	}

	// Walk depth first. When the walk finds a commit that has the target, all commits in d.path have
	// the target.
	for d.enter(from); len(d.path) > 0; d.steps++ {
		if d.steps&1023 == 1023 {
			if err := d.stop(); err != nil {
				return false, err
			}
		}

		top := &d.path[len(d.path)-1]
		if d.nearParents, err = d.parents(top.pos); err != nil {
			return false, err
		}
		if int(top.visited) == len(d.nearParents) {
			d.path = d.path[:len(d.path)-1]
			continue
		}

		next := d.nearParents[top.visited]
		top.visited++
		if d.descendants.has(next) {
			for _, s := range d.path {
				d.descendants.add(s.pos)
			}
			d.path = d.path[:0]
			return true, nil
		}
		d.enter(next)
	}
	return d.descendants.has(from), nil
}

// enter appends a commit to d.path if it may have the target in its history and was not visited
// before. So a cycle in a damaged graph does no harm.
func (d *reach) enter(pos uint32) {
	if !d.descendants.has(pos) && !d.visited.has(pos) && d.mayHave(pos) {
		d.visited.add(pos)
		d.path = append(d.path, step{pos: pos})
	}
}

// mayHave reports whether a commit may be a descendant of the target, by the graph alone.
func (d *reach) mayHave(pos uint32) bool {
	switch {
	case int(pos) >= d.c.graph.Commits():
		return true
	case !d.inGraph:
		return false // the graph has all ancestors of pos, and the target is not in it
	}
	// Graphs of old versions of git have no generations: all are 0.
	g := d.c.graph.Generation(pos)
	return g == 0 || g > d.generation
}

// parents returns the parents of a commit; none at the boundary of a shallow repository.
func (d *reach) parents(pos uint32) ([]uint32, error) {
	if d.shallow != nil && d.shallow[hex.EncodeToString(d.c.id(pos))] {
		return nil, nil
	}
	return d.c.parents(d.nearParents[:0], pos)
}

// bits is a set of positions.
type bits []uint64

// add adds a position.
func (b *bits) add(pos uint32) {
	word := int(pos / 64)
	if word >= len(*b) {
		*b = append(*b, make([]uint64, word+1-len(*b))...)
	}
	(*b)[word] |= 1 << (pos % 64)
}

// has reports whether the set has a position.
func (b bits) has(pos uint32) bool {
	word := int(pos / 64)
	return word < len(b) && b[word]&(1<<(pos%64)) != 0
}
