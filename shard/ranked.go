package shard

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/shard/file"
	"github.com/shoalsearch/shoal/shard/match"
	"github.com/shoalsearch/shoal/shard/query"
)

// MaxWords is the largest number of words by which a search ranks files.
const MaxWords = 12

// Word is a word by which a search ranks files.
type Word struct {
	Expr   string  // regular expression for its forms
	Weight float64 // more if fewer files have it
}

// wordPlan is the part of a plan that ranks files by words. The postings estimate the score of each file,
// and the best files are read:
//
//	postings and paths -> an estimate for each file -> MaxFiles files are read -> their scores -> the lines of the first Shown
type wordPlan struct {
	words  []Word
	texts  []*pattern // by word
	pats   []int      // by word: index in plan.patterns of its pattern
	name   int        // index of the pattern that finds all words in paths
	kinds  uint64     // words that name a kind of files, as examples does; one bit for each
	filter *node      // the query without the words
}

// addWords makes the plan of a query select the files that have a word.
func (p *plan) addWords(words []Word) error {
	any := &query.Or{}
	var exprs []string
	for _, w := range words {
		exprs = append(exprs, w.Expr)
		any.Subs = append(any.Subs, &query.Text{Pattern: w.Expr, Regexp: true, Field: query.Content})
	}
	any.Subs = append(any.Subs, &query.Text{Pattern: strings.Join(exprs, "|"), Regexp: true, Field: query.Name})
	n, err := p.addNode(any, false)
	if err != nil {
		return err
	}

	p.words = &wordPlan{words: words, filter: p.root}
	p.root = &node{op: opAnd, subs: []*node{p.root, n}, slot: p.slots}
	p.slots++
	for i, sub := range any.Subs {
		pat := slices.IndexFunc(p.patterns, func(c *pattern) bool { return c.text == *sub.(*query.Text) })
		if i == len(words) {
			p.words.name = pat
			break
		}
		p.words.pats = append(p.words.pats, pat)
		p.words.texts = append(p.words.texts, p.patterns[pat])
		if namesKind(p.patterns[pat].m) {
			p.words.kinds |= 1 << i
		}
	}
	return nil
}

// estimate estimates the relevance of an occurrence of the current document, without reading its text.
// A word is in a text if the postings allow it.
func (e *evaluator) estimate(occ int) (c relevance) {
	p, path := e.p.words, e.b.s.occPath.At(occ)
	for i, pat := range p.pats {
		if units := e.countUnits(pat); units > 0 {
			c.has |= 1 << i
			c.matches[i] = perUnit * float64(units)
		}
	}
	if e.b.names[p.name].has(e.b.s, path) {
		c.scorePath(p, e.b.s.path(int(path)))
	}
	return c
}

// addEstimate adds a hit for an occurrence with a word, or counts its words.
func (s *search) addEstimate(e *evaluator, h hit, pc *piece) {
	c := e.estimate(int(h.occ))
	if c.has == 0 {
		return
	}
	if s.r.CountWords {
		if pc.words == nil {
			pc.words = make([]int, len(s.r.Words))
		}
		for i := range pc.words {
			pc.words[i] += int(c.has >> i & 1)
		}
		return
	}

	// The factor of the path is known when the best hits are chosen. Until then that of its kind stands for it.
	h.score = float32(c.score(s.r.Words) * kindFactor[h.kind()] * e.p.words.lift(&c, h.kind()))
	pc.hits = append(pc.hits, h)
}

// kind returns the kind of the file.
func (n hit) kind() category {
	return min(category(n.run.b.s.occKind[n.occ]), category(len(kindFactor)-1))
}

// pathFactor returns the factor for the path of the file.
func (n hit) pathFactor() float64 { return pathFactor(n.kind(), n.rawPath()) }

// excerpt is a part of a file that an answer shows.
type excerpt struct {
	from, lines int // it begins at an offset, and has that many lines; 0 lines means as much as its matches need
	spans       []match.Span
	weight      float64
}

// rankedFile is a file whose text was read, with the parts that it may show.
type rankedFile struct {
	hit   hit
	file  renderedFile
	best  []excerpt // its best lines, in order
	block excerpt   // its best block; no spans if there is none
}

// bestLinesShown is how many single lines of a file are rendered.
const bestLinesShown = 2

// renderRanked reads the texts of hits and returns the files, the best first. The first Shown of them that
// have different texts have chunks: the first file its best block, the others their best lines.
func (s *search) renderRanked(ctx context.Context, hits []hit) ([]renderedFile, error) {
	ranked := make([]rankedFile, len(hits))
	for i := range hits {
		ranked[i].hit = hits[i]
	}
	files, err := s.renderFiles(ctx, hits, func(e *evaluator, i int, out *renderedFile) error {
		return s.rankFile(e, &ranked[i], out)
	})
	if err != nil {
		return nil, err
	}
	for i := range files {
		ranked[i].file = files[i]
	}
	slices.SortFunc(ranked, func(a, b rankedFile) int {
		return cmp.Or(cmp.Compare(b.file.Score, a.file.Score), s.compareHits(a.hit.unscored(), b.hit.unscored()))
	})

	// Choose the files that are shown.
	var shown []*rankedFile
	texts := map[string]bool{}
	for i := range ranked {
		if r := &ranked[i]; r.file.done && !texts[r.file.OID] && len(shown) < s.r.Shown {
			texts[r.file.OID] = true
			shown = append(shown, r)
		}
	}
	hits = hits[:0]
	for _, r := range shown {
		hits = append(hits, r.hit)
	}
	chunks, err := s.renderFiles(ctx, hits, func(e *evaluator, i int, out *renderedFile) (err error) {
		parts := shown[i].best
		if b := shown[i].block; i == 0 && len(b.spans) > 0 {
			parts = []excerpt{b}
		}
		out.Chunks, err = s.renderExcerpts(e, hits[i], parts)
		return err
	})
	for i, r := range shown {
		r.file.Chunks = chunks[i].Chunks
		r.file.done = r.file.done && chunks[i].done
	}

	files = files[:0]
	for i := range ranked {
		files = append(files, ranked[i].file)
	}
	return files, err
}

// unscored returns a hit whose score has no effect on the order.
func (n hit) unscored() hit {
	n.score = 0
	return n
}

// rankFile reads the text of a file and scores it.
func (s *search) rankFile(e *evaluator, r *rankedFile, out *renderedFile) error {
	p, words := s.p.words, s.r.Words
	out.File = s.describe(r.hit)
	e.moveTo(r.hit.run.b, int(r.hit.doc))

	var c relevance
	if path := e.b.s.occPath.At(int(r.hit.occ)); e.b.names[p.name].has(e.b.s, path) {
		c.scorePath(p, e.b.s.path(int(path)))
	}
	lines, err := e.readWords(&c)
	if err != nil {
		return err
	}
	first, last, weight := bestBlock(lines, words)
	c.bestBlock = weight
	out.Score, out.Words = c.score(words)*r.hit.pathFactor()*p.lift(&c, r.hit.kind()), c.has
	out.all, out.shown = 1, 1

	if len(lines) == 0 {
		return nil
	}
	for _, l := range bestWordLines(lines, words) {
		r.best = append(r.best, excerpt{from: l.from, spans: slices.Clone(l.firstSpans()), weight: l.weight(words)})
	}
	if weight > 0 {
		r.block = blockOf(lines, first, last)
	}
	return nil
}

// maxLineSpans is how many matches of one line are shown.
const maxLineSpans = 20

func (l *wordLine) firstSpans() []match.Span { return l.spans[:min(len(l.spans), maxLineSpans)] }

// blockOf returns the block of lines[first] to lines[last], with some lines after it.
func blockOf(lines []wordLine, first, last int) excerpt {
	b := excerpt{from: lines[first].from}
	from := lines[first].number
	to := max(lines[last].number+1, from+blockLines-2)
	b.lines = to - from + 1
	for ; first < len(lines) && lines[first].number <= to && lines[first].short(); first++ {
		b.spans = append(b.spans, lines[first].firstSpans()...)
	}
	return b
}

// bestWordLines returns the lines with the most weight, in order.
func bestWordLines(lines []wordLine, words []Word) []wordLine {
	best := make([]int, 0, bestLinesShown+1)
	for i := range lines {
		best = append(best, i)
		slices.SortStableFunc(best, func(a, b int) int { return cmp.Compare(lines[b].weight(words), lines[a].weight(words)) })
		best = best[:min(len(best), bestLinesShown)]
	}
	slices.Sort(best)
	var out []wordLine
	for _, i := range best {
		out = append(out, lines[i])
	}
	return out
}

// place is where a text has a word.
type place struct {
	match.Span
	word int
}

// maxPlaces is how many places of one word in a file are looked at.
const maxPlaces = 1000

// readWords finds the words in the text of the current document, and returns the lines that have any. It
// sets all of c but what the path says.
func (e *evaluator) readWords(c *relevance) ([]wordLine, error) {
	p := e.p.words
	e.places = e.places[:0]
	for i, pat := range p.pats {
		if e.countUnits(pat) == 0 {
			continue
		}
		spans, err := e.allMatches(pat)
		if err != nil {
			return nil, err
		}
		if len(spans) > 0 {
			c.has |= 1 << i
			c.matches[i] = float64(len(spans))
		}
		for _, sp := range spans[:min(len(spans), maxPlaces)] {
			e.places = append(e.places, place{sp, i})
		}
	}
	slices.SortFunc(e.places, func(a, b place) int { return cmp.Or(a.Start-b.Start, b.End-a.End, a.word-b.word) })

	e.joined = e.joined[:0]
	for _, at := range e.places {
		e.joined = append(e.joined, at.Span)
	}
	lines, err := e.linesOfPlaces()
	if err != nil {
		return nil, err
	}
	found, err := e.symbolsOf(e.joined)
	for i, y := range found {
		if y.Name != "" && (i == 0 || y.Name != found[i-1].Name) {
			c.scoreSymbol(p, []byte(y.Name))
		}
	}
	return lines, err
}

// linesOfPlaces returns the lines of e.places. Their spans are parts of e.joined.
func (e *evaluator) linesOfPlaces() ([]wordLine, error) {
	lines := e.lines[:0]
	for i, at := range e.places {
		if n := len(lines); n == 0 || at.Start >= lines[n-1].to {
			from, err := e.t.lineStart(at.Start)
			if err != nil {
				return nil, err
			}
			to, err := e.t.lineEnd(at.Start)
			if err != nil {
				return nil, err
			}
			number, err := e.t.lineNumber(at.Start)
			if err != nil {
				return nil, err
			}
			lines = append(lines, wordLine{number: int(number), from: from, to: to, spans: e.joined[i:i]})
		}

		l := &lines[len(lines)-1]
		l.spans = l.spans[:len(l.spans)+1]
		l.has |= 1 << at.word
		if beginsPart(e.t.buf[l.from:at.End], at.Start-l.from) {
			l.begins |= 1 << at.word
		}
	}
	e.lines = lines
	return lines, nil
}

// renderExcerpts makes chunks of parts of a file, with the definitions around their matches.
func (s *search) renderExcerpts(e *evaluator, h hit, parts []excerpt) (chunks []Chunk, err error) {
	e.moveTo(h.run.b, int(h.doc))
	c := &chunker{e: e, around: true, stopped: &s.stopped}
	err = file.Guard(func() error {
		for _, part := range parts {
			spans := withoutOverlaps(part.spans)
			from, to, err := c.shownRange(spans[0])
			if part.lines > 0 {
				from, to, err = e.blockRange(part)
			}
			if err != nil {
				return err
			}
			for len(spans) > 1 && spans[len(spans)-1].End > to {
				spans = spans[:len(spans)-1]
			}
			chunk, err := c.makeChunk(from, to, spans)
			if err != nil {
				return err
			}
			chunk.Weight = float32(part.weight)
			chunks = append(chunks, chunk)
		}
		return nil
	})
	shiftBy(chunks, formOf(h.run.b.s.docSkip[h.doc]).charset.Base())
	return chunks, err
}

// blockRange returns the bytes of a block and of the line before it, often a head. It ends before an
// overlong line.
func (e *evaluator) blockRange(b excerpt) (from, to int, err error) {
	from, to = b.from, b.from
	for range b.lines {
		end := to
		if to < e.t.size {
			if end, err = e.t.lineEnd(to); err != nil {
				return 0, 0, err
			}
		}
		if end-to > longLine {
			break
		}
		to = end
	}
	if from > 0 {
		start, err := e.t.lineStart(from - 1)
		if err != nil {
			return 0, 0, err
		}
		if from-start <= longLine {
			from = start
		}
	}
	return from, to, nil
}
