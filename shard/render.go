package shard

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shoalsearch/shoal/clock"
	"github.com/shoalsearch/shoal/shard/file"
	"github.com/shoalsearch/shoal/shard/match"
	"github.com/shoalsearch/shoal/shard/query"
)

// render is the second round of a search: it sorts the hits and renders the files of the best ones.
func (s *search) render(ctx context.Context) (*Result, error) {
	res := &Result{Cut: s.cut}

	hits := s.collectHits(res)
	s.stats.Planning = s.planning

	chosen := s.chooseHits(s.bestHits(hits))
	if len(chosen) < len(hits) {
		res.Cut, res.More = true, true
	}

	files, err := s.renderChosen(ctx, chosen)
	if err != nil {
		return nil, err
	}

	s.addFiles(res, files)

	// Rendering may have found more files damaged.
	for _, r := range s.runs {
		if r.failed && !slices.Contains(res.Failed, r.m.parts[0]) {
			res.Failed = append(res.Failed, r.m.parts...)
		}
	}

	res.Stats = s.stats
	return res, nil
}

// collectHits returns the hits of the first round that come after the cursor, in the order of
// shards and pieces. It counts all hits in s.stats, and sets in res what is missing.
func (s *search) collectHits(res *Result) []hit {
	var hits []hit
	res.WordFiles = make([]int, len(s.r.Words))
	for _, r := range s.runs {
		if r.failed {
			res.Failed = append(res.Failed, r.m.parts...)
			continue
		}

		// An early stop leaves out the pieces after the limit.
		counted := r.pieces[:min(r.limit, len(r.pieces))]
		for _, pc := range counted {
			hits = s.countHits(hits, pc.hits)
			for i, n := range pc.words {
				res.WordFiles[i] += n
			}
		}
		for _, pc := range r.pieces[len(counted):] {
			s.stats.FilesSkipped += len(pc.docs)
			res.Cut, res.More = true, true
		}

		if r.b == nil { // the deadline came before the shard was bound
			s.stats.ShardsSkipped++
			continue
		}

		if s.p.symbols && r.m.hasUnknownSymbols() {
			res.Untagged = true
		}
	}
	return hits
}

// countHits adds the hits of a piece to s.stats, and appends those after the cursor to hits.
func (s *search) countHits(hits, more []hit) []hit {
	s.stats.Files += len(more)
	for _, h := range more {
		s.stats.TotalMatches += h.countMatches()
	}
	if s.r.After == nil {
		return append(hits, more...)
	}

	for _, h := range more {
		if s.isAfterCursor(&h, s.r.After) {
			hits = append(hits, h)
		}
	}
	return hits
}

// addFiles adds rendered files to the result, up to the memory limit. It sets res.Cut if it leaves
// out anything.
func (s *search) addFiles(res *Result, files []renderedFile) {
	memory := s.r.MemoryLimit
	for i := range files {
		f := &files[i]
		if memory -= f.bytes; memory < 0 {
			res.Cut, res.More, res.Full = true, true, true
			break
		}

		// The search was stopped before this file was rendered.
		if !f.done {
			res.Cut = true
			continue
		}

		if f.shown < f.all {
			res.Cut, res.More = true, true
		}

		s.stats.ActualMatches += f.shown
		res.Files = append(res.Files, f.File)
	}
}

// compareHits compares two hits: the higher score comes first, then repository, path, revisions and
// blob id decide. No two hits are equal, so the same request always has the same answer.
func (s *search) compareHits(a, b hit) int {
	if a.score != b.score {
		return cmp.Compare(b.score, a.score)
	}
	if c := cmp.Compare(a.repoName(s), b.repoName(s)); c != 0 {
		return c
	}
	if c := bytes.Compare(a.rawPath(), b.rawPath()); c != 0 {
		return c
	}

	// The same path may have several hits, in different revisions.
	if c := slices.Compare(a.revisions(), b.revisions()); c != 0 {
		return c
	}
	return cmp.Compare(a.oid(), b.oid())
}

// bestHits returns the first limit hits, sorted. limit is how many may be shown if each has one
// match. It does not sort all hits, because an exhaustive search has many more: top grows to twice
// the limit, is sorted and cut in half. From then on it adds only hits that come before the last
// one in top.
func (s *search) bestHits(hits []hit) []hit {
	limit := max(1, s.r.MaxMatches)
	if s.r.MaxFiles > 0 {
		limit = min(limit, s.r.MaxFiles)
	}

	top, full := hits[:0], false
	var last hit // the last hit of top when it was cut: hits after it are not shown
	for _, n := range hits {
		// Until here the kind of a file stands for its path, which can only lower the score.
		if s.p.words != nil && (!full || n.score >= last.score) {
			n.score *= float32(n.pathFactor() / kindFactor[n.kind()])
		}
		if full && s.compareHits(n, last) >= 0 {
			continue
		}

		if top = append(top, n); len(top) == 2*limit {
			slices.SortFunc(top, s.compareHits)
			top, full = top[:limit], true
			last = top[limit-1]
		}
	}

	slices.SortFunc(top, s.compareHits)
	return top[:min(len(top), limit)]
}

// repoName returns the name of the repository of a hit: the present one if the request gives names,
// else the one when the shard was built.
func (n hit) repoName(s *search) string {
	repo := n.run.m.repos[n.run.b.s.occRepo.At(int(n.occ))]
	if s.r.Rank != nil {
		name, _ := s.r.Rank(repo.id)
		return name
	}
	return repo.name
}

// revisions returns the names of the revisions that contain the file and for which the query holds.
func (n hit) revisions() (names []string) {
	repo := n.run.m.repos[n.run.b.s.occRepo.At(int(n.occ))]
	for _, r := range repo.revisions {
		if n.mask>>(r.Bit&63)&1 != 0 {
			names = append(names, r.Name)
		}
	}
	return names
}

func (n hit) path() string { return string(n.rawPath()) }

func (n hit) rawPath() []byte {
	sh := n.run.b.s
	return sh.path(int(sh.occPath.At(int(n.occ))))
}

func (n hit) oid() string { return n.run.b.s.oid(int(n.doc)) }

// chooseHits returns the first hits, up to MaxFiles, that together have MaxMatches matches.
func (s *search) chooseHits(hits []hit) []hit {
	left := s.r.MaxMatches
	for i, n := range hits {
		if left <= 0 || s.r.MaxFiles > 0 && i >= s.r.MaxFiles {
			return hits[:i]
		}
		left -= s.limitCost(n)
	}
	return hits
}

// renderedFile is a rendered file with what addFiles needs to know.
type renderedFile struct {
	File
	all   int   // matches that may be shown
	shown int   // matches that are shown
	bytes int64 // memory that it takes
	done  bool  // rendering ended without an error or a stop
}

// renderChosen renders the files of the best hits.
func (s *search) renderChosen(ctx context.Context, hits []hit) ([]renderedFile, error) {
	if s.p.words != nil {
		return s.renderRanked(ctx, hits)
	}
	shown := s.allotMatches(hits)
	return s.renderFiles(ctx, hits, func(e *evaluator, i int, out *renderedFile) error {
		return s.renderFile(e, hits[i], shown[i], out)
	})
}

// renderFiles calls render for each hit, on all free cores.
func (s *search) renderFiles(ctx context.Context, hits []hit, render func(e *evaluator, i int, out *renderedFile) error) ([]renderedFile, error) {
	start := clock.Now()
	w := &rendering{hits: hits, render: render, out: make([]renderedFile, len(hits))}

	// A search that has used much time waits in the heavy lane.
	lane := light
	if s.spent > heavyAfter {
		lane = heavy
	}
	if err := s.gate.enter(ctx, lane); err != nil {
		return w.out, s.cutAtDeadline(err)
	}

	// Start a helper for each renderAlone hits, as long as there are free slots.
	var wg sync.WaitGroup
	for extra := 0; extra < len(hits)/renderAlone && s.gate.tryEnter(); extra++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			s.renderAll(ctx, w, start)
		}()
	}

	s.renderAll(ctx, w, start)
	wg.Wait()
	s.spent += clock.Since(start)

	if err := ctx.Err(); err != nil {
		return w.out, s.cutAtDeadline(err)
	}
	return w.out, s.err
}

// rendering has the hits that several goroutines render together.
type rendering struct {
	hits   []hit
	render func(e *evaluator, i int, out *renderedFile) error
	out    []renderedFile // by hit

	next, memory atomic.Int64 // index of the next hit, and the bytes of all files rendered so far
}

// renderAll is the loop of one goroutine: it renders the next hit until none is left or the memory
// limit is reached. The caller has a slot of the gate, which renderAll releases. start is when the
// second round started.
func (s *search) renderAll(ctx context.Context, w *rendering, start time.Time) {
	e := s.newEvaluator()
	defer s.reuseBuffers(e)

	for w.memory.Load() <= s.r.MemoryLimit && ctx.Err() == nil {
		i := int(w.next.Add(1)) - 1
		if i >= len(w.hits) {
			break
		}

		// A damaged file costs only its own hits.
		err := file.Guard(func() error { return w.render(e, i, &w.out[i]) })
		w.out[i].done = err == nil && !s.stopped.Load()
		if err != nil {
			if err := s.dropRun(w.hits[i].run, err); err != nil {
				s.fail(err)
				break
			}
		}
		w.memory.Add(w.out[i].bytes)

		// After each file, a heavy search lets waiting ones go first. A light search goes on,
		// because files are small, and it would wait for a whole piece of a heavy search.
		if s.spent+clock.Since(start) > heavyAfter && s.gate.yield(ctx, heavy) != nil {
			return
		}
	}
	s.gate.leave()
}

// allotMatches returns how many matches of each hit may be shown. With a limit of 10 matches, hits
// with 7, 5 and 4 matches get 7, 3 and 0. A hit without matches uses one.
func (s *search) allotMatches(hits []hit) []int {
	shown := make([]int, len(hits))
	left := s.r.MaxMatches
	for i, h := range hits {
		shown[i] = min(left, s.limitCost(h))
		left -= shown[i]
	}
	return shown
}

// renderAlone is the number of files for which one goroutine is enough.
const renderAlone = 16

// renderFile renders the file of a hit to out, with at most shown of its matches.
func (s *search) renderFile(e *evaluator, n hit, shown int, out *renderedFile) error {
	b := n.run.b
	sh, o := b.s, int(n.occ)
	e.moveTo(b, int(n.doc))

	out.File = s.describe(n)
	f := &out.File
	f.Score, f.Matches = float64(n.score), int(n.content)
	stored := formOf(sh.docSkip[n.doc])
	f.Skipped, f.Encoding = stored.skip.reason(), stored.charset.String()
	// Show matches in the content first, then those in the path. Matches beyond MaxPerFile do not
	// make the answer incomplete.
	out.all, out.shown = s.countShowable(n), min(shown, n.countMatches()-int(n.before))
	var names []match.Span
	if n.names > 0 {
		names = e.nameSpans(o)
	}

	before := min(int(n.content), int(n.before))
	names = names[min(len(names), int(n.before)-before):]
	inside := min(int(n.content)-before, shown)
	f.NameMatch = nameRanges(f.Path, names[:min(len(names), shown-inside)])

	// Find the matches again, because the first round has stored only their number.
	if inside > 0 && !s.r.NoChunks {
		spans, err := e.spansToShow(o, n.mask)
		if err != nil || s.stopped.Load() {
			return err // a stopped matcher finds fewer, and the file counts as not rendered
		}
		if f.Chunks, err = s.bestChunks(e, f.Language, spans[before:], inside); err != nil {
			return err
		}
	}

	shiftBy(f.Chunks, stored.charset.Base())

	if s.r.Whole && e.t.units > 0 {
		if err := e.t.decodeUnits(0, e.t.units-1); err != nil {
			return err
		}
		f.Content = append([]byte(nil), e.t.buf...)
	}

	out.bytes = int64(len(f.Content)) + 256
	for _, c := range f.Chunks {
		out.bytes += int64(len(c.Content)) + 32*int64(len(c.Ranges))
	}
	return nil
}

// describe returns a file without its matches.
func (s *search) describe(n hit) File {
	sh, o := n.run.b.s, int(n.occ)
	return File{
		Repo:      n.run.m.repos[sh.occRepo.At(o)].id,
		RepoName:  n.repoName(s),
		Path:      n.path(),
		OID:       n.oid(),
		Language:  sh.m.languages[sh.occLang.At(o)],
		Revisions: n.revisions(),
	}
}

// bestChunks renders the chunks of n spans: of the first ones or, with MaxPerFile, of those on the
// best lines.
func (s *search) bestChunks(e *evaluator, language string, spans []match.Span, n int) ([]Chunk, error) {
	if s.r.MaxPerFile == 0 {
		return s.makeChunks(e, language, spans[:n])
	}

	// Weigh the lines by all matches of the file, which show what text is rare in it.
	lines, err := e.bestLines(spans)
	if err != nil {
		return nil, err
	}
	chunks, err := s.makeChunks(e, language, bestSpans(spans, lines, n))
	if err != nil {
		return nil, err
	}
	setWeights(chunks, spans, lines)
	return chunks, nil
}

// nameSpans returns the matches of patterns of paths in the path of an occurrence, without those of
// negated patterns.
func (e *evaluator) nameSpans(occ int) []match.Span {
	if !e.p.named {
		return nil
	}

	path := e.b.s.path(int(e.b.s.occPath.At(occ)))
	var spans []match.Span
	for _, p := range e.p.patterns {
		if p.text.Field == query.Name && p.positive {
			spans = p.m.Append(spans, path, -1)
		}
	}
	return withoutOverlaps(spans)
}

// isAfterCursor reports whether a hit has matches after a cursor, and sets h.before to the number
// of its matches before the cursor.
func (s *search) isAfterCursor(h *hit, c *Cursor) bool {
	order := cmp.Or(
		cmp.Compare(c.Score, float64(h.score)),
		strings.Compare(h.repoName(s), c.Repo),
		bytes.Compare(h.rawPath(), c.Path),
		slices.CompareFunc(h.revisions(), c.Revisions, func(a string, b []byte) int { return strings.Compare(a, string(b)) }),
		strings.Compare(h.oid(), c.OID),
	)
	if order == 0 {
		h.before = int32(c.Shown)
		return c.Shown < h.countMatches()
	}
	return order > 0
}
