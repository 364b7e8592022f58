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
	Late    bool   // time ran out: empty names are unknown
	Whole   string // if Name is a tag for a part of the repository, such as globset-0.4.17: the first tag that is only a version; "" if there is none
}

// tagOrders finds the first tags that have a commit.
type tagOrders struct {
	*base
	last atomic.Pointer[tagOrder] // nil before the first question
}

// tagOrder is the sorted tags of one state of the references, with cached answers.
type tagOrder struct {
	state  *refState
	oldest []agedTag                    // the oldest comes first
	firsts *lru.Cache[string, FirstTag] // by commit
}

// order returns the order of the tags. It is computed once for each state of the references.
func (h *tagOrders) order(s *refState) *tagOrder {
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
	return h.firstTagIn(ctx, firstTagTime, commit)
}

// firstTagIn finds the first tag that contains a commit, within a time limit.
func (h *tagOrders) firstTagIn(ctx context.Context, most time.Duration, commit string) (first FirstTag, err error) {
	if err := checkCommit(commit); err != nil {
		return first, err
	}
	refs, err := h.refs(ctx)
	if err != nil || len(refs.tags) == 0 {
		return first, err
	}
	order := h.order(refs)
	if known, ok := order.firsts.Get(commit); ok {
		return known, nil
	}

	first.Tags = len(refs.tags)
	first.Late, err = h.reaching(ctx, most, commit, func(d *reach) error { return first.among(d, order.oldest) })
	if err != nil {
		return FirstTag{}, fmt.Errorf("find the first tag with a commit: %w", err)
	}
	if !first.Late {
		order.firsts.Put(commit, first, 1)
	}
	return first, nil
}

// Having returns those of some refs that have a commit in their history. It takes at most two
// seconds. late reports that missing refs may have it too.
func (h *tagOrders) Having(ctx context.Context, commit string, refs []Ref) (kept []Ref, late bool, err error) {
	return h.havingIn(ctx, firstTagTime, commit, refs)
}

// havingIn returns those of refs that have a commit in their history. It takes at most the time
// most; late reports that missing refs may have it too.
func (h *tagOrders) havingIn(ctx context.Context, most time.Duration, commit string, refs []Ref) (kept []Ref, late bool, err error) {
	if err := checkCommit(commit); err != nil {
		return nil, false, err
	}

	late, err = h.reaching(ctx, most, commit, func(d *reach) error {
		for _, ref := range refs {
			has, err := d.has(ref.Commit)
			if err != nil {
				return err
			}
			if has {
				kept = append(kept, ref)
			}
		}
		return nil
	})
	if err != nil {
		return nil, false, fmt.Errorf("find what has a commit: %w", err)
	}
	return kept, late, nil
}

// reaching calls do with a reach for a commit. It reports late if the time limit was reached.
func (h *tagOrders) reaching(ctx context.Context, most time.Duration, commit string, do func(*reach) error) (late bool, err error) {
	err = h.inHistory(ctx, most, func(c *chronicle, shallow boundary, late func() error) error {
		d, err := c.reaching(commit)
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

// agedTag is a tag with what its name tells.
type agedTag struct {
	Ref
	series string // text before the version, such as globset- or v; the whole name if it has no version
	whole  bool   // the name is only a version, such as v1.2.3
	pre    bool   // the version is a pre-release
}

// newAgedTag returns a tag with what its name tells: its series and the kind of release.
func newAgedTag(tag Ref) agedTag {
	series := tag.Name
	if i := strings.IndexAny(series, "0123456789"); i >= 0 {
		series = series[:i]
	}
	return agedTag{tag, series, versionAlone.MatchString(tag.Name), isPreRelease(tag.Name)}
}

// bare reports whether the name has no version, such as nightly.
func (t *agedTag) bare() bool { return t.series == t.Name }

// among sets the first of the tags that has the commit, and the first releases.
func (f *FirstTag) among(d *reach, tags []agedTag) error {
	var name *agedTag
	for i := range tags {
		tag := &tags[i]

		// Look only at tags that may still matter: each look walks through the history.
		release := name != nil && name.pre && f.Release == "" && !tag.pre && (name.bare() || tag.series == name.series)
		whole := name != nil && !name.whole && !name.bare() && f.Whole == "" && !tag.pre && tag.whole
		if name != nil && !release && !whole {
			continue
		}

		has, err := d.has(tag.Commit)
		if err != nil {
			return err
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

// versionAlone matches a name such as v1.2.3, 15.0.0 or release-2.0.
var versionAlone = regexp.MustCompile(`(?i)^(?:v|ver|version|rel|release)?[-._/]?\d`)

// preRelease matches the end of a name such as v2.0-rc1, 3.0.0b2 or v1.0.0-beta.3.
var preRelease = regexp.MustCompile(`(?i)(?:rc|alpha|beta|pre|preview|dev|snapshot|nightly|canary|\d[ab])[-._]?\d*$`)

// isPreRelease reports whether a tag is named like a pre-release, or like no version at all, such
// as nightly.
func isPreRelease(name string) bool {
	return preRelease.MatchString(name) || !strings.ContainsAny(name, "0123456789")
}

// reach tells which commits have a given commit in their history. It walks each commit once for all
// questions. It skips commits that are too near to the root, because the generation of a commit is
// above those of its parents.
type reach struct {
	c          *chronicle
	of         uint32
	generation uint32 // generation of the commit; 0 = unknown
	inGraph    bool   // the commit is in the graph, which also has all of its ancestors
	seen, yes  bits   // commits that were walked, and those that have the commit
	way        []step // from the commit of the question to the present one
	stop       func() error
	shallow    boundary
	steps      int
	near       []uint32
}

// step is a commit on the way, and how many of its parents were visited.
type step struct {
	pos  uint32
	seen int32
}

// reaching returns a reach for a commit. The reach tells of other commits whether that commit is in
// their history.
func (c *chronicle) reaching(commit string) (*reach, error) {
	id, err := hex.DecodeString(commit)
	if err != nil {
		return nil, err
	}
	pos, err := c.position(id)
	if err != nil {
		return nil, err
	}

	d := &reach{c: c, of: pos, inGraph: int(pos) < c.graph.Commits()}
	if d.inGraph {
		d.generation = c.graph.Generation(pos)
	}
	d.yes.add(pos)
	return d, nil
}

// has reports whether a commit is the given one, or has it in its history. The error is errLate if
// stop says so.
func (d *reach) has(commit string) (bool, error) {
	id, err := hex.DecodeString(commit)
	if err != nil {
		return false, err
	}
	from, err := d.c.position(id)
	if err != nil {
		return false, err
	}

	// Walk depth first: when the commit is found, all commits on the way have it.
	for d.enter(from); len(d.way) > 0; d.steps++ {
		if d.steps&1023 == 1023 {
			if err := d.stop(); err != nil {
				return false, err
			}
		}

		top := &d.way[len(d.way)-1]
		if d.near, err = d.parents(top.pos); err != nil {
			return false, err
		}
		if int(top.seen) == len(d.near) {
			d.way = d.way[:len(d.way)-1]
			continue
		}

		next := d.near[top.seen]
		top.seen++
		if d.yes.has(next) {
			for _, s := range d.way {
				d.yes.add(s.pos)
			}
			d.way = d.way[:0]
			return true, nil
		}
		d.enter(next)
	}
	return d.yes.has(from), nil
}

// enter moves on to a commit if its history must be searched, at most once: a damaged graph may
// have a circle.
func (d *reach) enter(pos uint32) {
	if !d.yes.has(pos) && !d.seen.has(pos) && d.mayHave(pos) {
		d.seen.add(pos)
		d.way = append(d.way, step{pos: pos})
	}
}

// mayHave reports by the graph alone whether a commit can be a descendant.
func (d *reach) mayHave(pos uint32) bool {
	switch {
	case int(pos) >= d.c.graph.Commits():
		return true
	case !d.inGraph:
		return false // otherwise the graph would lack one of its ancestors
	}
	// Graphs of old versions of git have no generations: 0 is less than any other.
	g := d.c.graph.Generation(pos)
	return g == 0 || g > d.generation
}

func (d *reach) parents(pos uint32) ([]uint32, error) {
	if d.shallow != nil && d.shallow[hex.EncodeToString(d.c.id(pos))] {
		return nil, nil
	}
	return d.c.parents(d.near[:0], pos)
}

// bits is a set of positions.
type bits []uint64

func (b *bits) add(pos uint32) {
	word := int(pos / 64)
	if word >= len(*b) {
		*b = append(*b, make([]uint64, word+1-len(*b))...)
	}
	(*b)[word] |= 1 << (pos % 64)
}

func (b bits) has(pos uint32) bool {
	word := int(pos / 64)
	return word < len(b) && b[word]&(1<<(pos%64)) != 0
}
