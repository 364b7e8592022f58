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

// evaluator decides which documents satisfy the query, one after the other. Each goroutine of a
// search has its own evaluator, which reuses its buffers for all documents.
type evaluator struct {
	p *plan
	b *bound
	t text

	scratch scratch
	symbols symbols.Recent

	doc    int          // the current document
	found  []finding    // by pattern: its matches in the current document, as far as they are known
	used   []bool       // by pattern: its matches are shown in the current result
	joined []match.Span // buffer of spans
	places []place      // buffer of the places of words
	lines  []wordLine   // buffer of lines with words
	regexp int          // number of documents searched with a regular expression

	filesOnly bool // one match of a document is enough

	ranked  *repoView // the repository whose recency is in the next field
	recency float64
}

// finding has the matches of a content pattern in the current document, as far as they are known.
type finding struct {
	state findState
	spans []match.Span // in order, not overlapping; complete only when state is foundAll
}

type findState uint8

const (
	unknown    findState = iota // not searched yet
	foundNone                   // searched: there is no match
	foundFirst                  // a search stopped at its limit: there may be more matches
	foundAll
)

// noLimit is the limit of a search for all matches.
const noLimit = -1

// newEvaluator returns an evaluator for the plan of the search. It reuses buffers of earlier
// searches, because allocating them would take as long as a short search.
func (s *search) newEvaluator() *evaluator {
	e, ok := s.v.set.spare.Get().(*evaluator)
	if !ok {
		e = &evaluator{}
	}

	e.p, e.filesOnly, e.symbols.Cache = s.p, s.r.FilesOnly, s.v.set.cache
	n := len(s.p.patterns)
	e.found, e.used = slices.Grow(e.found[:0], n)[:n], slices.Grow(e.used[:0], n)[:n]
	return e
}

// The largest buffers that reuseBuffers stores for the next search.
const (
	maxReusedText  = 4 << 20  // bytes
	maxReusedSpans = 64 << 10 // spans
)

// reuseBuffers stores the buffers of e, and the bitmaps of runs, for the next search, except very
// large ones.
func (s *search) reuseBuffers(e *evaluator, runs ...*run) {
	for _, r := range runs {
		if r.b == nil {
			continue
		}

		for _, units := range r.b.units {
			for _, b := range units {
				if b != nil && len(e.scratch.spare) < maxSpareBitmaps {
					e.scratch.spare = append(e.scratch.spare, b)
				}
			}
		}

		r.b.units = nil
	}

	if cap(e.t.buf) > maxReusedText {
		e.t.buf = nil
	}

	for i := range e.found {
		if cap(e.found[i].spans) > maxReusedSpans {
			e.found[i].spans = nil
		}
	}

	*e = evaluator{found: e.found, used: e.used, joined: e.joined[:0], places: e.places[:0], lines: e.lines[:0], scratch: e.scratch, symbols: e.symbols.ReuseBuffers(), t: text{buf: e.t.buf, decoded: e.t.decoded}}
	s.v.set.spare.Put(e)
}

// moveTo makes a document of a shard the current one.
func (e *evaluator) moveTo(b *bound, doc int) {
	e.b, e.doc = b, doc
	e.t.cache = b.cache
	e.t.moveTo(b.s, doc)
	for _, i := range e.p.contents {
		e.found[i].state = unknown
	}
}

// revisionsHolding returns the revisions in mask for which the occurrence satisfies the node. Since
// a revision is a bit, And, Or and Not are operations on masks:
//
//	revisionsHolding(not a, 0b0111) = 0b0111 &^ revisionsHolding(a, 0b0111)
func (e *evaluator) revisionsHolding(n *node, occ int, mask uint64) (uint64, error) {
	s := e.b.s
	yes := false

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

	// Only opContent reads text, so the plan puts it last.
	case opContent:
		var err error
		if yes, err = e.hasMatch(n.pat); err != nil {
			return 0, err
		}

	case opNot:
		excluded, err := e.revisionsHolding(n.subs[0], occ, mask)
		return mask &^ excluded, err
	case opAnd:
		// Evaluate each member only for revisions for which all members before it hold.
		for _, sub := range n.subs {
			var err error
			if mask, err = e.revisionsHolding(sub, occ, mask); mask == 0 || err != nil {
				return 0, err
			}
		}
		return mask, nil
	case opOr:
		// Evaluate each member only for revisions for which no member before it holds.
		var any uint64
		for _, sub := range n.subs {
			m, err := e.revisionsHolding(sub, occ, mask&^any)
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

// hasMatch reports whether a content pattern matches in the document. If the query has only this
// pattern and its matches will be shown, it finds all matches at once; otherwise only the first.
func (e *evaluator) hasMatch(pat int) (bool, error) {
	f := &e.found[pat]
	if f.state == unknown {
		limit := 1
		if len(e.p.contents) == 1 && !e.filesOnly {
			limit = noLimit
		}
		if err := e.findMatches(pat, limit); err != nil {
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
		if err := e.findMatches(pat, noLimit); err != nil {
			return nil, err
		}
	}
	if f.state == foundNone {
		return nil, nil
	}
	return f.spans, nil
}

// findMatches finds up to limit matches of a pattern in the document and stores them in e.found; a
// negative limit means all. It reads the candidate units, and the text around them as the reach of
// the pattern requires.
func (e *evaluator) findMatches(pat, limit int) error {
	f, p := &e.found[pat], e.p.patterns[pat]
	f.spans = f.spans[:0]
	f.state = foundNone

	if e.t.units == 0 {
		return nil
	}

	if p.text.Regexp {
		e.regexp++
	}

	var err error
	switch p.reach {
	case reachStart:
		err = e.findStarts(f, p, e.b.units[pat], limit)
	case reachLine:
		err = e.findLines(f, p, e.b.units[pat], limit)

	// Read the whole document, but only if one of its units is a candidate.
	case reachDocument:
		if _, b := e.nextRun(e.b.units[pat], 0); b < 0 {
			return nil
		}
		if err = e.t.decodeUnits(0, e.t.units-1); err == nil {
			f.spans = e.appendMatches(p, f.spans, e.t.buf, limit)
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

// appendMatches appends up to limit matches of a pattern in text, a part of the current document.
func (e *evaluator) appendMatches(p *pattern, spans []match.Span, text []byte, limit int) []match.Span {
	if e.b.hasCR != nil && !e.b.hasCR[e.b.s.segmentOf(e.t.row)] {
		return p.m.AppendUnix(spans, text, limit)
	}
	return p.m.Append(spans, text, limit)
}

// nextRun returns the first and the last unit of the next run of neighbouring candidate units at or
// after unit u of the document, or -1 and -1 if there is none. With the candidates 2, 3, 4 and 9 it
// returns 2, 4 for u = 0, 3, 4 for u = 3, and 9, 9 for u = 5.
func (e *evaluator) nextRun(units []*trigram.Bitmap, u int) (first, last int) {
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

// countUnits returns the number of candidate units of the document for a pattern. It tells about how
// often a file has a word without reading the file.
func (e *evaluator) countUnits(pat int) (n int) {
	for u := 0; e.t.units > 0; {
		first, last := e.nextRun(e.b.units[pat], u)
		if first < 0 {
			break
		}
		n += last - first + 1
		u = last + 1
	}
	return n
}

// findStarts finds the matches that start in candidate units. done is the offset at which the next
// match may start, because the text before it has been searched.
func (e *evaluator) findStarts(f *finding, p *pattern, units []*trigram.Bitmap, limit int) error {
	done := 0
	for u := 0; limit < 0 || len(f.spans) < limit; {
		a, b := e.nextRun(units, u)
		if a < 0 {
			break
		}
		u = b + 1

		from, _ := trigram.Span(e.t.size, uint32(a))
		_, to := trigram.Span(e.t.size, uint32(b))

		// A match that began before this run may reach into it.
		from = max(from, done)
		if from >= to {
			continue
		}

		start, end, err := e.decodeRegion(p, a, b, from, to)
		if err != nil {
			return err
		}

		have := len(f.spans)
		f.spans = e.appendMatches(p, f.spans, e.t.buf[start:end], remainingLimit(limit, have))
		shiftSpans(f.spans[have:], start)

		// An expression was searched up to the end of the line. Skip the candidates in the rest of
		// that line, so that a long line is not searched once for each candidate.
		if p.longest < 0 {
			to = max(to, end)
			done = to
		}
		f.spans = spansStartingIn(f.spans, have, from, to)
		if n := len(f.spans); n > have {
			done = max(done, f.spans[n-1].End)
		}
	}
	return nil
}

// decodeRegion decodes the text that a search for the matches that start in [from, to) must read,
// and returns its range. The bytes [from, to) belong to the units a to b.
func (e *evaluator) decodeRegion(p *pattern, a, b, from, to int) (start, end int, err error) {
	if err := e.t.decodeUnits(a, b); err != nil {
		return 0, 0, err
	}

	// No match of a literal is longer than p.longest.
	if p.longest >= 0 {
		end = min(to+p.longest-1, e.t.size)
		return from, end, e.t.decodeRange(from, end)
	}

	// An expression with ^ or \b needs the text before the match, from the start of the line:
	// within its line it matches as it does in the whole text.
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

// firstLine returns the start of the first line that can have a match in a run of candidates, which
// begins with unit a at offset from. If the line at from has begun in the unit before,
// Formula.MayBegin mostly shows that it has no match, so that the unit before need not be decoded.
func (e *evaluator) firstLine(p *pattern, a, from int) (int, error) {
	if from > 0 && from == a*trigram.UnitSize {
		text := e.t.buf[from:e.t.readableEnd(a)]
		if i := bytes.IndexByte(text, '\n'); i >= 0 && !p.formula.MayBegin(text, i) {
			return from + i + 1, nil
		}
	}
	return e.t.lineStart(from)
}

// spansStartingIn drops, from index have on, the spans that do not start in [from, to). A search in
// the unit in which they start finds them.
func spansStartingIn(spans []match.Span, have, from, to int) []match.Span {
	for len(spans) > have && spans[len(spans)-1].Start >= to {
		spans = spans[:len(spans)-1]
	}

	skip := have
	for skip < len(spans) && spans[skip].Start < from {
		skip++
	}
	return append(spans[:have], spans[skip:]...)
}

// findLines finds the matches in the lines that touch candidate units. It searches no line twice:
// it has searched the text before done.
func (e *evaluator) findLines(f *finding, p *pattern, units []*trigram.Bitmap, limit int) error {
	done := 0
	for u := 0; limit < 0 || len(f.spans) < limit; {
		a, b := e.nextRun(units, u)
		if a < 0 {
			break
		}
		u = b + 1

		from, _ := trigram.Span(e.t.size, uint32(a))
		_, to := trigram.Span(e.t.size, uint32(b))
		if err := e.t.decodeUnits(a, b); err != nil {
			return err
		}

		start, err := e.firstLine(p, a, from)
		if err != nil {
			return err
		}

		// Search up to the end of the last line that touches unit b. If that is the end of the
		// unit, include the next line, because an empty line there may be a match of unit b.
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
		f.spans = e.appendMatches(p, f.spans, e.t.buf[start:end], remainingLimit(limit, have))
		shiftSpans(f.spans[have:], start)

		// Skip the units that have been searched to their ends.
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

// remainingLimit returns the limit for the rest of a search that has found some matches already.
func remainingLimit(limit, found int) int {
	if limit < 0 {
		return noLimit
	}
	return limit - found
}

// shiftSpans adds the start of a region to spans in it, which makes them offsets in the document.
func shiftSpans(spans []match.Span, by int) {
	for i := range spans {
		spans[i].Start += by
		spans[i].End += by
	}
}

// markShown marks the patterns whose matches explain why an occurrence was found: the positive
// patterns in the branches of the query that hold.
func (e *evaluator) markShown(n *node, occ int, mask uint64) error {
	switch n.op {
	case opContent, opSymbol:
		e.used[n.pat] = true
	case opAnd:
		for _, sub := range n.subs {
			if err := e.markShown(sub, occ, mask); err != nil {
				return err
			}
		}
	case opOr:
		for _, sub := range n.subs {
			// Do not show the matches of a branch that does not hold.
			revisions, err := e.revisionsHolding(sub, occ, mask)
			if err != nil {
				return err
			}
			if revisions != 0 {
				if err := e.markShown(sub, occ, revisions); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// spansToShow returns the matches to show in the content of an occurrence that satisfies the query
// in the revisions of mask: those of all patterns that markShown marks, in order, without overlaps.
func (e *evaluator) spansToShow(occ int, mask uint64) ([]match.Span, error) {
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

// withoutOverlaps sorts spans and drops each that overlaps an earlier one in the result. Of two
// that overlap it prefers the one that starts earlier, then the longer one:
//
//	{0 4} {3 9} {4 6} {4 5}  ->  {0 4} {4 6}
func withoutOverlaps(spans []match.Span) []match.Span {
	slices.SortFunc(spans, func(a, b match.Span) int { return cmp.Or(a.Start-b.Start, b.End-a.End) })
	separate := spans[:0]
	for _, s := range spans {
		if n := len(separate); n > 0 && (s.Start < separate[n-1].End || s == separate[n-1]) {
			continue
		}
		separate = append(separate, s)
	}
	return separate
}
