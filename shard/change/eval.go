package change

import (
	"context"
	"fmt"
	"sort"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/shoalsearch/shoal/shard/query"
	"github.com/shoalsearch/shoal/trigram"
)

// value is the set of commits, or of files of commits, that match a part of a query.
type value struct {
	set   *roaring.Bitmap
	files bool
}

// evaluation evaluates a query over one file of changes. Each part of the query becomes its exact
// set of matches. Cheap parts are evaluated first, and texts are only searched where the other
// parts match.
//
//	type:diff      The answer has files. A condition on a commit holds for all of its files.
//	type:commit    The answer has commits. Conditions on files hold for a commit if one of its
//	               files satisfies all of them. A negation holds for a commit if none of its
//	               files satisfies the negated condition.
type evaluation struct {
	x        *index
	s        *generation
	diff     bool
	patterns map[*query.Text]*pattern
	scratch  trigram.Scratch
	ctx      context.Context // of the search; set before each piece
	known    known

	messages, lines textReader
}

// known is what an evaluation found out already and needs again for other commits.
type known struct {
	revs   map[string]*roaring.Bitmap     // reached commits, by pattern of the revision; nil for all
	units  map[*pattern][]*trigram.Bitmap // candidates, by segment
	paths  map[query.Q][]verdict          // by number of a path
	people map[*pattern][]verdict         // by number of a person
}

// verdict says whether a path or a person matches.
type verdict byte

const (
	unknown verdict = iota
	matching
	other
)

// newEvaluation returns an evaluation of a file. Its caller sets ctx.
func newEvaluation(x *index, s *generation, diff bool, patterns map[*query.Text]*pattern) *evaluation {
	e := &evaluation{x: x, s: s, diff: diff, patterns: patterns}
	e.messages, e.lines = textReader{x: x, p: &x.messages}, textReader{x: x, p: &x.lines}
	e.known = known{map[string]*roaring.Bitmap{}, map[*pattern][]*trigram.Bitmap{}, map[query.Q][]verdict{}, map[*pattern][]verdict{}}
	return e
}

// spent returns how many blocks were decoded.
func (e *evaluation) spent() int { return e.messages.spent + e.lines.spent }

// rest gives the buffers of texts to other searches, until the next text is read.
func (e *evaluation) rest() {
	e.messages.close()
	e.lines.close()
}

// all returns the set of all commits, or of all files.
func (e *evaluation) all(files bool) value {
	n := e.x.m.Commits
	if files {
		n = e.x.m.Files
	}
	set := roaring.New()
	set.AddRange(0, uint64(n))
	return value{set, files}
}

// as converts a set of commits to the set of their files, or a set of files to the set of their
// commits.
func (e *evaluation) as(v value, files bool) value {
	if v.files == files {
		return v
	}
	out := roaring.New()
	if files {
		// Most sets are a few long runs.
		for it := v.set.Iterator(); it.HasNext(); {
			first := it.Next()
			last := first
			for it.HasNext() && it.PeekNext() == last+1 {
				last = it.Next()
			}
			from, _ := e.x.filesOf(first)
			_, to := e.x.filesOf(last)
			out.AddRange(uint64(from), uint64(to))
		}
		return value{out, true}
	}
	c := uint32(0)
	for it := v.set.Iterator(); it.HasNext(); {
		c = e.x.commitFrom(it.Next(), c)
		out.Add(c)
		_, to := e.x.filesOf(c)
		it.AdvanceIfNeeded(to)
	}
	return value{out, false}
}

// addRange adds commits from a number up to another, or their files.
func (e *evaluation) addRange(v value, from, to uint32) {
	if v.files {
		from, _ = e.x.filesOf(from)
		_, to = e.x.filesOf(to - 1)
	}
	v.set.AddRange(uint64(from), uint64(to))
}

// eval returns the matches of q. Only those in within need to be right.
func (e *evaluation) eval(q query.Q, within value) (value, error) {
	if err := e.ctx.Err(); err != nil {
		return value{}, err
	}
	switch n := q.(type) {
	case query.Const:
		if n {
			return within, nil
		}
		return value{roaring.New(), within.files}, nil
	case *query.And:
		return e.and(n, within)
	case *query.Or:
		return e.or(n, within)
	case *query.Not:
		return e.not(n, within)

	// Conditions on commits.
	case *query.Rev:
		return e.reached(n.Pattern, within), nil
	case *query.Dates:
		return e.commits(within, func(c uint32) bool { return inDates(n, int64(e.x.times.At(int(2*c+1)))) }), nil
	case *query.Merge:
		return e.merges(n, within), nil
	case *query.Lang:
		return e.byPath(n, within, func(path uint32) bool { return e.x.m.Languages[e.x.pathLangs.At(int(path))] == n.Name }), nil
	case *query.Text:
		return e.text(n, within)
	}
	return value{}, fmt.Errorf("BUG: %T is not about changes", q)
}

// reached returns the part of within that revisions reach.
func (e *evaluation) reached(rev string, within value) value {
	set, ok := e.known.revs[rev]
	if !ok {
		if set = e.s.reachedBy(e.x, rev); set.GetCardinality() == uint64(e.x.m.Commits) {
			set = nil
		}
		e.known.revs[rev] = set
	}
	if set == nil {
		return within
	}
	return value{roaring.And(e.as(within, false).set, set), false}
}

func inDates(d *query.Dates, committed int64) bool {
	return (d.Since.IsZero() || committed >= d.Since.Unix()) && (d.Until.IsZero() || committed <= d.Until.Unix())
}

// commits returns the commits in within for which is returns true.
func (e *evaluation) commits(within value, is func(c uint32) bool) value {
	set := roaring.New()
	for it := e.as(within, false).set.Iterator(); it.HasNext(); {
		if c := it.Next(); is(c) {
			set.Add(c)
		}
	}
	return value{set, false}
}

func (e *evaluation) merges(n *query.Merge, within value) value {
	if n.Value == "yes" {
		return e.as(within, false)
	}
	return e.commits(within, func(c uint32) bool { return (e.x.numParents(c) > 1) == (n.Value == "only") })
}

// judged returns what is known of all paths, or of all people.
func judged[K comparable](known map[K][]verdict, key K, number int) []verdict {
	if known[key] == nil {
		known[key] = make([]verdict, number)
	}
	return known[key]
}

// judge asks is only where nothing is known.
func (v *verdict) judge(is func(number uint32) bool, number uint32) bool {
	if *v == unknown {
		*v = other
		if is(number) {
			*v = matching
		}
	}
	return *v == matching
}

// byPath returns the files in within whose path, or path before a rename, fits a part of the query.
func (e *evaluation) byPath(part query.Q, within value, fits func(path uint32) bool) value {
	known := judged(e.known.paths, part, e.x.paths.ends.Len())
	set := roaring.New()
	for it := e.as(within, true).set.Iterator(); it.HasNext(); {
		f := it.Next()
		path, from := e.x.pathsOf(f)
		if known[path].judge(fits, path) || from != none && known[from].judge(fits, from) {
			set.Add(f)
		}
	}
	return value{set, true}
}

// and returns the matches of all parts of n.
func (e *evaluation) and(n *query.And, within value) (value, error) {
	// Evaluate cheap parts first; they narrow the others.
	subs := append([]query.Q(nil), n.Subs...)
	sort.SliceStable(subs, func(i, j int) bool { return cost(subs[i]) < cost(subs[j]) })

	out, err := e.candidates(subs, within)
	if err != nil {
		return out, err
	}
	for _, s := range subs {
		if out.set.IsEmpty() {
			break
		}
		v, err := e.eval(s, out)
		if err != nil {
			return v, err
		}
		if v.files || out.files {
			v, out = e.as(v, true), e.as(out, true)
		}
		out = value{roaring.And(out.set, v.set), v.files}
	}
	return out, nil
}

// cost orders the parts of an and by effort.
func cost(q query.Q) int {
	switch n := q.(type) {
	case *query.And, *query.Or:
		return 4
	case *query.Not:
		return 5
	case *query.Text:
		switch n.Field {
		case query.Author, query.Committer:
			return 1
		case query.Name:
			return 2
		}
		return 3
	}
	return 0
}

// or returns the matches of any part of n.
func (e *evaluation) or(n *query.Or, within value) (value, error) {
	files := e.ofFiles(n)
	if !files {
		within = e.as(within, false) // an arm about files is one about all files of the commit
	}
	out := value{roaring.New(), files}
	for _, s := range n.Subs {
		v, err := e.eval(s, within)
		if err != nil {
			return v, err
		}
		out.set.Or(e.as(v, files).set)
	}
	return out, nil
}

// ofFiles reports whether the matches of q are files instead of commits.
func (e *evaluation) ofFiles(q query.Q) bool {
	any, all := false, true
	var subs []query.Q
	switch n := q.(type) {
	case *query.Lang:
		return true
	case *query.Text:
		return n.Field != query.Message && n.Field != query.Author && n.Field != query.Committer
	case *query.Not:
		return e.diff && e.ofFiles(n.Sub)
	case *query.And:
		subs = n.Subs
	case *query.Or:
		subs = n.Subs
	}
	for _, s := range subs {
		files := e.ofFiles(s)
		any, all = any || files, all && files
	}
	if _, or := q.(*query.Or); or && !e.diff {
		return all
	}
	return any
}

// not returns the commits or files that do not match n.Sub.
func (e *evaluation) not(n *query.Not, within value) (value, error) {
	// A negation must consider all files of a commit, not only those that match other conditions.
	if !e.diff {
		within = e.as(within, false)
	}
	v, err := e.eval(n.Sub, within)
	if err != nil {
		return v, err
	}
	if !e.diff {
		v = e.as(v, false)
	}
	return value{roaring.AndNot(e.as(within, v.files).set, v.set), v.files}, nil
}

// text returns the matches of a text.
func (e *evaluation) text(t *query.Text, within value) (value, error) {
	p := e.patterns[t]
	switch t.Field {
	case query.Name:
		return e.byPath(t, within, func(path uint32) bool { return p.m.Matches(e.x.paths.at(path)) }), nil
	case query.Author:
		return e.byPerson(p, within, 0), nil
	case query.Committer:
		return e.byPerson(p, within, 1), nil
	case query.Message:
		within, err := e.candidates([]query.Q{t}, within)
		if err != nil {
			return within, err
		}
		return e.search(&e.messages, p, e.as(within, false))
	case query.Added, query.Removed, query.Content:
		within, err := e.candidates([]query.Q{t}, within)
		if err != nil {
			return within, err
		}
		return e.search(&e.lines, p, e.as(within, true))
	}
	return value{}, fmt.Errorf("BUG: field %d is not about changes", t.Field)
}

// byPerson returns the commits in within whose author (role 0) or committer (role 1) matches.
func (e *evaluation) byPerson(p *pattern, within value, role int) value {
	known := judged(e.known.people, p, e.x.people.ends.Len())
	fits := func(person uint32) bool { return p.m.Matches(e.x.people.at(person)) }
	return e.commits(within, func(c uint32) bool {
		person := e.x.who.At(int(2*c) + role)
		return known[person].judge(fits, person)
	})
}

// candidates returns the part of within that the postings leave to the conditions on texts. All of them
// hold for one file, or for one commit, so a page without a candidate of one of them has no match.
func (e *evaluation) candidates(subs []query.Q, within value) (value, error) {
	for _, s := range subs {
		t, ok := s.(*query.Text)
		if !ok || e.patterns[t].formula == nil || within.set.IsEmpty() {
			continue
		}
		r := &e.lines
		switch t.Field {
		case query.Message:
			r = &e.messages
		case query.Added, query.Removed, query.Content:
		default:
			continue
		}
		set, files := roaring.New(), r == &e.lines
		first, last := e.span(within, files)
		err := e.eachCandidate(r.p, e.patterns[t], first, last, func(page int) error {
			set.AddRange(uint64(r.p.first(page)), uint64(r.p.end(page)))
			return nil
		})
		if err != nil {
			return within, err
		}
		within.set = roaring.And(within.set, e.as(value{set, files}, within.files).set)
	}
	return within, nil
}

// span returns the first and the last commit of a set that is not empty, or the first and the last file.
// Those of commits may be the ones of others, where a commit has none.
func (e *evaluation) span(v value, files bool) (first, last uint32) {
	first, last = v.set.Minimum(), v.set.Maximum()
	switch {
	case v.files == files:
	case files:
		from, _ := e.x.filesOf(first)
		_, to := e.x.filesOf(last)
		first, last = from, max(from, to-min(to, 1))
	default:
		first, last = e.x.commitFrom(first, 0), e.x.commitFrom(last, 0)
	}
	return first, last
}

// search returns the texts in within that match: commits by their messages, or files by their
// lines. It skips pages without candidates.
func (e *evaluation) search(r *textReader, p *pattern, within value) (value, error) {
	out := value{roaring.New(), within.files}
	if within.set.IsEmpty() {
		return out, nil
	}
	it := within.set.Iterator()
	return out, e.eachCandidate(r.p, p, within.set.Minimum(), within.set.Maximum(), func(page int) error {
		it.AdvanceIfNeeded(r.p.first(page))
		for end := r.p.end(page); it.HasNext() && it.PeekNext() < end; {
			n := it.Next()
			if ok, err := e.holds(r, p, n); err != nil {
				return err
			} else if ok {
				out.set.Add(n)
			}
		}
		return nil
	})
}

// holds reports whether a text matches. Where it matters where hunks begin and end, each is looked at
// alone.
func (e *evaluation) holds(r *textReader, p *pattern, n uint32) (bool, error) {
	c, start, err := r.outline(n)
	if err != nil {
		return false, err
	}
	middle := start + len(c.removed)
	if !p.hunks {
		return e.sideHolds(r, p, span{start, middle}, span{middle, middle + len(c.added)})
	}
	for _, h := range placedHunks(decodeHunks(c.hunks), start, middle) {
		if ok, err := e.sideHolds(r, p, h.old, h.now); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

// sideHolds reports whether the removed or the added lines match, in the field of the pattern.
func (e *evaluation) sideHolds(r *textReader, p *pattern, removed, added span) (bool, error) {
	for _, side := range p.sides(removed, added) {
		if ok, err := e.lineHolds(r, p, side); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

// lineHolds reports whether one of some whole lines of the page matches. It reads those that the postings
// leave.
func (e *evaluation) lineHolds(r *textReader, p *pattern, lines span) (bool, error) {
	if lines.from == lines.to {
		return false, nil
	}
	units, err := e.unitsOf(r.p, p, int(r.row.unit>>16))
	if err != nil {
		return false, err
	}
	if units == nil || !p.inLine {
		err := r.decode(lines.from, lines.to)
		return err == nil && p.m.Matches(r.buf[lines.from:lines.to]), err
	}
	base := int(r.row.unit & 0xffff)
	first, last := r.row.unitsOf(lines)
	for u := units.Next(base + first); u >= 0 && u <= base+last; u = units.Next(u + 1) {
		from, _ := trigram.Span(r.row.text, uint32(u-base))
		for u < base+last && units.Has(uint16(u+1)) {
			u++
		}
		_, to := trigram.Span(r.row.text, uint32(u-base))
		part, err := r.lines(span{from, to}, lines)
		if err != nil || p.m.Matches(part) {
			return err == nil, err
		}
	}
	return false, nil
}

// eachCandidate calls look with each page that has a candidate, from the page of one text to the page of
// another.
func (e *evaluation) eachCandidate(pages *pageColumn, p *pattern, first, last uint32, look func(page int) error) error {
	if pages.len() == 0 {
		return nil
	}
	for i, end := pages.of(first), pages.of(last)+1; i < end; i++ {
		unit, n := pages.units(i)
		if unit == none {
			continue
		}
		units, err := e.unitsOf(pages, p, int(unit>>16))
		if err != nil {
			return err
		}
		if units != nil {
			// Go on to the page with the next candidate.
			switch next := units.Next(int(unit & 0xffff)); {
			case next < 0:
				i = pages.withUnit((unit|0xffff)+1, i, end) - 1
				continue
			case next >= int(unit&0xffff)+int(n):
				i = pages.withUnit(unit&^0xffff|uint32(next), i, end) - 1
				continue
			}
		}
		if err := e.ctx.Err(); err != nil {
			return err
		}
		if err := look(i); err != nil {
			return err
		}
	}
	return nil
}

// withUnit returns the first page after page i, and before page end, that may have a unit or a later one.
func (p *pageColumn) withUnit(unit uint32, i, end int) int {
	return i + 1 + sort.Search(end-i-1, func(k int) bool {
		for k += i + 1; k < end; k++ { // empty pages have none
			if first, n := p.units(k); first != none {
				return first+n > unit
			}
		}
		return true
	})
}

// unitsOf returns the units of a segment with candidates; nil means all.
func (e *evaluation) unitsOf(pages *pageColumn, p *pattern, segment int) (*trigram.Bitmap, error) {
	if p.formula == nil {
		return nil, nil
	}
	all := e.known.units[p]
	if all == nil {
		all = make([]*trigram.Bitmap, pages.segments())
		e.known.units[p] = all
	}
	if segment >= len(all) {
		return nil, e.x.f.Damaged("segment %d of %d", segment, len(all))
	}
	if all[segment] == nil {
		units := &trigram.Bitmap{}
		var err error
		if len(pages.sets) > 0 {
			err = pages.unitsBySets(p.formula, units)
		} else {
			_, err = pages.post.Search(segment, p.formula, nil, &e.scratch, units)
		}
		if err != nil {
			return nil, e.x.f.Damaged("what pages have: %v", err)
		}
		all[segment] = units
	}
	return all[segment], nil
}

// segments returns how many segments the units of all pages have.
func (p *pageColumn) segments() int {
	if len(p.sets) > 0 {
		return 1 // fewLines has less than 65,536 units
	}
	return p.post.Segments()
}

// unitsBySets finds the units of the pages whose set of trigrams leaves them.
func (p *pageColumn) unitsBySets(f *trigram.Formula, units *trigram.Bitmap) error {
	sets := p.sets
	for i := range p.len() {
		first, n := p.units(i)
		if first == none {
			continue
		}
		set, rest, err := trigram.ReadSet(sets)
		if err != nil {
			return err
		}
		if f.MayMatch(set) {
			for u := range n {
				units.Set(uint16(first + u))
			}
		}
		sets = rest
	}
	return nil
}
