package shard

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/shoalsearch/shoal/shard/match"
	"github.com/shoalsearch/shoal/shard/query"
	"github.com/shoalsearch/shoal/shard/symbols"
	"github.com/shoalsearch/shoal/trigram"
)

// evaluator decides documents, one after the other. Each goroutine of a search has its own
// evaluator, which keeps its buffers from document to document.
type evaluator struct {
	p *plan
	b *bound
	t text

	scratch scratch
	symbols symbols.Recent

	doc    int          // the present document
	found  []finding    // by pattern: what is known about the present document
	used   []bool       // by pattern: the present result shows its matches
	joined []match.Span // buffer of spans
	regexp int          // documents searched with a regular expression

	filesOnly bool // one match of a document is enough

	ranked  *repoView // the repository whose recency is in the next field
	recency float64
}

// finding is what is known about a content pattern in the present document.
type finding struct {
	state findState
	spans []match.Span // in order, not overlapping; complete only when state is foundAll
}

type findState uint8

const (
	unknown findState = iota
	foundNone
	foundFirst
	foundAll
)

// evaluator returns an evaluator for the plan of the search. It reuses buffers of earlier searches:
// most searches are short, and making buffers would cost as much as answering.
func (s *search) evaluator() *evaluator {
	e, ok := s.v.set.spare.Get().(*evaluator)
	if !ok {
		e = &evaluator{}
	}

	e.p, e.filesOnly, e.symbols.Cache = s.p, s.r.FilesOnly, s.v.set.cache
	n := len(s.p.patterns)
	e.found, e.used = slices.Grow(e.found[:0], n)[:n], slices.Grow(e.used[:0], n)[:n]
	return e
}

// Larger buffers are not kept for the next search.
const (
	keepText  = 4 << 20
	keepSpans = 64 << 10
)

// recycle keeps the buffers of e, and the bitmaps of runs, so that the next search need not
// allocate them. It drops very large ones.
func (s *search) recycle(e *evaluator, runs ...*run) {
	for _, r := range runs {
		if r.b == nil {
			continue
		}

		for _, units := range r.b.units {
			for _, b := range units {
				if b != nil && len(e.scratch.spare) < keepBitmaps {
					e.scratch.spare = append(e.scratch.spare, b)
				}
			}
		}

		r.b.units = nil
	}

	// A buffer that grew for one huge document is not worth keeping.
	if cap(e.t.buf) > keepText {
		e.t.buf = nil
	}

	for i := range e.found {
		if cap(e.found[i].spans) > keepSpans {
			e.found[i].spans = nil
		}
	}

	*e = evaluator{found: e.found, used: e.used, joined: e.joined[:0], scratch: e.scratch, symbols: e.symbols.Room(), t: text{buf: e.t.buf, decoded: e.t.decoded}}
	s.v.set.spare.Put(e)
}

// moveTo makes a document of a shard the present one.
func (e *evaluator) moveTo(b *bound, doc int) {
	e.b, e.doc = b, doc
	e.t.cache = b.cache
	e.t.open(b.s, doc)
	for _, i := range e.p.contents {
		e.found[i].state = unknown
	}
}

// holds returns those revisions of mask for which the occurrence satisfies the
// node. Since a revision is a bit, And, Or and Not are operations on masks:
//
//	holds(not a, 0b0111) = 0b0111 &^ holds(a, 0b0111)
func (e *evaluator) holds(n *node, occ int, mask uint64) (uint64, error) {
	s := e.b.s
	yes := false

	// These are facts about the occurrence or the document.
	switch n.op {
	case opConst:
		yes = n.yes
	case opRepos, opRev:
		return mask & e.b.nodes[n.slot].repos.bits[s.occRepo.At(occ)], nil
	case opLang:
		yes = e.b.nodes[n.slot].langs[s.occLang.At(occ)]
	case opName:
		yes = e.b.names[n.pat].has(s, s.occPath.At(occ))
	case opSymbol:
		yes = e.b.syms[n.pat].has(e.doc)

	// Only this case reads text, so the plan puts it after those above.
	case opContent:
		var err error
		if yes, err = e.contains(n.pat); err != nil {
			return 0, err
		}

	// These combine what their members hold.
	case opNot:
		not, err := e.holds(n.subs[0], occ, mask)
		return mask &^ not, err
	case opAnd:
		// Ask a member only about revisions that all members before it allow.
		for _, sub := range n.subs {
			var err error
			if mask, err = e.holds(sub, occ, mask); mask == 0 || err != nil {
				return 0, err
			}
		}
		return mask, nil
	case opOr:
		// Ask a member only about revisions that no member before it allows.
		var any uint64
		for _, sub := range n.subs {
			m, err := e.holds(sub, occ, mask&^any)
			if err != nil {
				return 0, err
			}
			if any |= m; any == mask {
				break
			}
		}
		return any, nil
	}

	if yes {
		return mask, nil
	}
	return 0, nil
}

// contains reports whether a content pattern matches in the document. If the query has only this
// pattern and its matches will be shown, it collects all matches at once.
func (e *evaluator) contains(pat int) (bool, error) {
	f := &e.found[pat]
	if f.state == unknown {
		limit := 1
		if len(e.p.contents) == 1 && !e.filesOnly {
			limit = -1
		}
		if err := e.find(pat, limit); err != nil {
			return false, err
		}
	}
	return f.state != foundNone, nil
}

// allMatches returns every match of a pattern.
func (e *evaluator) allMatches(pat int) ([]match.Span, error) {
	// An earlier call may have stopped at a limit.
	f := &e.found[pat]
	if f.state != foundAll && f.state != foundNone {
		if err := e.find(pat, -1); err != nil {
			return nil, err
		}
	}
	if f.state == foundNone {
		return nil, nil
	}
	return f.spans, nil
}

// find looks for up to limit matches of a pattern in the document; a negative limit means all. It
// reads the candidate units, and around them as far as the reach of the pattern says.
func (e *evaluator) find(pat, limit int) error {
	f, p := &e.found[pat], e.p.patterns[pat]
	f.spans = f.spans[:0]
	f.state = foundNone

	if e.t.units == 0 {
		return nil
	}

	if p.text.Regexp {
		e.regexp++
	}

	// Read around the candidates as far as a match can reach: its start, its line, or the document.
	var err error
	switch p.reach {
	case reachStart:
		err = e.findStarts(f, p, e.b.units[pat], limit)
	case reachLine:
		err = e.findLines(f, p, e.b.units[pat], limit)

	// Read the whole document, but only if one of its units is a candidate.
	case reachDocument:
		if _, b := e.run(e.b.units[pat], 0); b < 0 {
			return nil
		}
		if err = e.t.load(0, e.t.units-1); err == nil {
			f.spans = e.matches(p, f.spans, e.t.buf, limit)
		}
	}

	// A search without a limit has found all matches.
	if len(f.spans) > 0 {
		f.state = foundFirst
	}

	if limit < 0 && f.state == foundFirst {
		f.state = foundAll
	}
	return err
}

// matches appends up to limit matches of a pattern in a text of the present document.
func (e *evaluator) matches(p *pattern, spans []match.Span, text []byte, limit int) []match.Span {
	if e.b.feeds != nil && !e.b.feeds[e.b.s.segmentOf(e.t.row)] {
		return p.m.AppendUnix(spans, text, limit)
	}
	return p.m.Append(spans, text, limit)
}

// run returns the first and the last unit of the next run of candidate units at or after unit u of
// the document. It returns -1 and -1 if there is none. With candidates 2, 3, 4 and 9: run(0) = 2,
// 4; run(3) = 3, 4; run(5) = 9, 9.
func (e *evaluator) run(units []*trigram.Bitmap, u int) (first, last int) {
	// Bitmaps count units from the start of the segment.
	seg := e.b.s.segmentOf(e.t.row)
	base := e.t.row - e.b.s.segStart[seg]
	if u >= e.t.units || units[seg] == nil {
		return -1, -1
	}

	first = units[seg].Next(base+u) - base
	if first < 0 || first >= e.t.units {
		return -1, -1
	}

	last = first
	for last+1 < e.t.units && units[seg].Has(uint16(base+last+1)) {
		last++
	}
	return first, last
}

// findStarts looks for matches that start in candidate units. The text before done is searched: the
// next match starts there or later.
func (e *evaluator) findStarts(f *finding, p *pattern, units []*trigram.Bitmap, limit int) error {
	done := 0
	// Take one run of neighbouring candidate units at a time.
	for u := 0; limit < 0 || len(f.spans) < limit; {
		a, b := e.run(units, u)
		if a < 0 {
			break
		}
		u = b + 1

		from, _ := trigram.Span(e.t.size, uint32(a))
		_, to := trigram.Span(e.t.size, uint32(b))

		// A match that began before may reach into this run.
		from = max(from, done)
		if from >= to {
			continue
		}

		start, end, err := e.startRegion(p, a, b, from, to)
		if err != nil {
			return err
		}

		// The region may have matches that start outside of the run: owned drops them.
		have := len(f.spans)
		f.spans = e.matches(p, f.spans, e.t.buf[start:end], rest(limit, have))
		shift(f.spans[have:], start)

		// An expression is searched for up to the end of its line. Candidates there are done too,
		// or a line would be read once for each candidate.
		if p.longest < 0 {
			to = max(to, end)
			done = to
		}
		f.spans = ownedSpans(f.spans, have, from, to)
		if n := len(f.spans); n > have {
			done = max(done, f.spans[n-1].End)
		}
	}
	return nil
}

// startRegion decodes the text that decides which matches start in [from, to), the bytes that units
// a to b own. It returns the range of that text.
func (e *evaluator) startRegion(p *pattern, a, b, from, to int) (start, end int, err error) {
	if err := e.t.load(a, b); err != nil {
		return 0, 0, err
	}

	// A literal ends after its longest match.
	if p.longest >= 0 {
		end = min(to+p.longest-1, e.t.size)
		return from, end, e.t.decodeRange(from, end)
	}

	// An expression that looks behind itself needs the line in which it starts. Within its line it
	// matches as it does in the whole text.
	start = from
	if p.lookBehind && from > 0 {
		if start, err = e.firstLine(p, a, from); err != nil {
			return 0, 0, err
		}
	}

	end = e.t.size
	if to < e.t.size {
		end, err = e.t.lineEnd(to - 1)
	}
	return start, end, err
}

// firstLine returns the start of the first line that can have a match in a run of candidates. The
// run begins at unit a and at offset from. Mostly the line that began in the unit before has no
// match (Formula.MayBegin), so that unit is not read.
func (e *evaluator) firstLine(p *pattern, a, from int) (int, error) {
	if from > 0 && from == a*trigram.UnitSize {
		text := e.t.buf[from:e.t.readableEnd(a)]
		if i := bytes.IndexByte(text, '\n'); i >= 0 && !p.formula.MayBegin(text, i) {
			return from + i + 1, nil
		}
	}
	return e.t.lineStart(from)
}

// ownedSpans drops the spans from index have on that do not start in [from, to). They are found
// with the units that own their start.
func ownedSpans(spans []match.Span, have, from, to int) []match.Span {
	for len(spans) > have && spans[len(spans)-1].Start >= to {
		spans = spans[:len(spans)-1]
	}

	skip := have
	for skip < len(spans) && spans[skip].Start < from {
		skip++
	}
	return append(spans[:have], spans[skip:]...)
}

// findLines looks for matches in the lines that touch candidate units. The text before done is
// searched, so that no line is searched twice.
func (e *evaluator) findLines(f *finding, p *pattern, units []*trigram.Bitmap, limit int) error {
	done := 0
	for u := 0; limit < 0 || len(f.spans) < limit; {
		a, b := e.run(units, u)
		if a < 0 {
			break
		}
		u = b + 1

		from, _ := trigram.Span(e.t.size, uint32(a))
		_, to := trigram.Span(e.t.size, uint32(b))
		if err := e.t.load(a, b); err != nil {
			return err
		}

		start, err := e.firstLine(p, a, from)
		if err != nil {
			return err
		}

		// Search up to the end of the last line that touches unit b. An empty line right after the
		// unit may be a match of the unit too.
		end := e.t.size
		if to < e.t.size {
			if end, err = e.t.lineEnd(to - 1); err != nil {
				return err
			}
			if end == to {
				if end, err = e.t.lineEnd(to); err != nil {
					return err
				}
			}
		}

		start = max(start, done)
		if start >= end {
			continue
		}

		have := len(f.spans)
		f.spans = e.matches(p, f.spans, e.t.buf[start:end], rest(limit, have))
		shift(f.spans[have:], start)

		// Continue at the first unit that is not searched to its end.
		done = end
		for u < e.t.units {
			if _, owned := trigram.Span(e.t.size, uint32(u)); owned > done {
				break
			}
			u++
		}
	}
	return nil
}

// rest returns how many of limit matches are missing; a negative limit means all.
func rest(limit, have int) int {
	if limit < 0 {
		return -1
	}
	return limit - have
}

// shift moves spans from the beginning of a region to its place in the text.
func shift(spans []match.Span, by int) {
	for i := range spans {
		spans[i].Start += by
		spans[i].End += by
	}
}

// markShown marks the patterns whose matches explain why an occurrence was found: the positive
// patterns in the branches of the query that hold.
func (e *evaluator) markShown(n *node, occ int, mask uint64) error {
	// A pattern marks itself.
	switch n.op {
	case opContent, opSymbol:
		e.used[n.pat] = true

	// All members of an And hold, but not all of an Or.
	case opAnd:
		for _, sub := range n.subs {
			if err := e.markShown(sub, occ, mask); err != nil {
				return err
			}
		}
	case opOr:
		for _, sub := range n.subs {
			// A branch that does not hold may match here too, but that is not why the file was
			// found.
			held, err := e.holds(sub, occ, mask)
			if err != nil {
				return err
			}
			if held != 0 {
				if err := e.markShown(sub, occ, held); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// spans returns the matches to show in the content of an occurrence that satisfies the query in the
// revisions of mask. It joins the matches of all marked patterns, in order, without overlaps.
func (e *evaluator) spans(occ int, mask uint64) ([]match.Span, error) {
	clear(e.used)
	if err := e.markShown(e.p.root, occ, mask); err != nil {
		return nil, err
	}

	// Most queries mark one pattern, whose matches are in order already.
	last, several := -1, false
	for i := range e.used {
		if e.used[i] {
			several = several || last >= 0
			last = i
		}
	}

	switch {
	case last < 0:
		return nil, nil
	case !several && e.p.patterns[last].text.Field == query.Content:
		return e.allMatches(last)
	}

	// Join the matches of several patterns, then sort them.
	e.joined = e.joined[:0]
	for i := range e.used {
		if !e.used[i] {
			continue
		}

		if e.p.patterns[i].text.Field == query.Symbol {
			var err error
			if e.joined, err = e.findSymbols(i, e.joined); err != nil {
				return nil, err
			}
			continue
		}

		spans, err := e.allMatches(i)
		if err != nil {
			return nil, err
		}
		e.joined = append(e.joined, spans...)
	}

	e.joined = withoutOverlaps(e.joined)
	return e.joined, nil
}

// withoutOverlaps sorts spans and drops each that overlaps one kept before. Of two
// that overlap, the one that starts earlier is kept, then the longer one:
//
//	{0 4} {3 9} {4 6} {4 5}  ->  {0 4} {4 6}
func withoutOverlaps(spans []match.Span) []match.Span {
	slices.SortFunc(spans, func(a, b match.Span) int { return cmp.Or(a.Start-b.Start, b.End-a.End) })
	kept := spans[:0]
	for _, s := range spans {
		if n := len(kept); n > 0 && (s.Start < kept[n-1].End || s == kept[n-1]) {
			continue
		}
		kept = append(kept, s)
	}
	return kept
}
