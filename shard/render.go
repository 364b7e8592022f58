package shard

import (
	"bytes"
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shoalsearch/shoal/shard/match"
	"github.com/shoalsearch/shoal/shard/query"
)

// render puts the notes in order and makes the files of the first ones.
func (s *search) render() (*Result, error) {
	res := &Result{Cut: s.cut}
	var notes []note
	for _, r := range s.runs {
		if r.failed {
			res.Failed = append(res.Failed, r.m.parts...)
			continue
		}
		counted := r.pieces[:min(r.limit, len(r.pieces))]
		for _, pc := range counted {
			notes = append(notes, pc.notes...)
		}
		for _, pc := range r.pieces[len(counted):] {
			s.stats.FilesSkipped += len(pc.docs)
			res.Cut = true
		}
		if r.b == nil {
			s.stats.ShardsSkipped++
			continue
		}
		if s.p.symbols && r.m.sym == nil && r.m.sh.m.documents > 0 {
			res.Cut = true // its symbols are not known yet
		}
	}
	for _, n := range notes {
		s.stats.TotalMatches += int(n.matches)
	}
	s.stats.Files = len(notes)
	s.stats.Planning = s.planning
	chosen := s.choose(s.best(notes))
	if len(chosen) < s.stats.Files {
		res.Cut = true
	}
	files, err := s.files(chosen)
	if err != nil {
		return nil, err
	}
	left, memory := s.r.MaxMatches, s.r.MemoryLimit
	for i := range files {
		f := &files[i]
		if memory -= f.bytes; memory < 0 {
			res.Cut = true
			break
		}
		if !f.done {
			res.Cut = true
			continue
		}
		if f.shown < f.Matches {
			res.Cut = true
		}
		left -= f.shown
		s.stats.ActualMatches += f.shown
		res.Files = append(res.Files, f.File)
	}
	for _, r := range s.runs {
		if r.failed && !slices.Contains(res.Failed, r.m.parts[0]) {
			res.Failed = append(res.Failed, r.m.parts...)
		}
	}
	res.Stats = s.stats
	return res, nil
}

// order is the total order of files.
func (s *search) order(a, b note) int {
	if a.score != b.score {
		return cmp.Compare(b.score, a.score)
	}
	if c := cmp.Compare(a.repoName(s), b.repoName(s)); c != 0 {
		return c
	}
	if c := bytes.Compare(a.rawPath(), b.rawPath()); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(a.mask, b.mask), cmp.Compare(a.oid(), b.oid()))
}

// best gives the first notes of the order, as many as may be shown: a note
// has at least one match. An exhaustive answer has a hundred times more of
// them, which need no order.
func (s *search) best(notes []note) []note {
	most := max(1, s.r.MaxMatches)
	if s.r.MaxFiles > 0 {
		most = min(most, s.r.MaxFiles)
	}
	top, full := notes[:0], false
	var last note // of the best so far: what comes behind it is not shown
	for _, n := range notes {
		if full && s.order(n, last) >= 0 {
			continue
		}
		if top = append(top, n); len(top) == 2*most {
			slices.SortFunc(top, s.order)
			top, full = top[:most], true
			last = top[most-1]
		}
	}
	slices.SortFunc(top, s.order)
	return top[:min(len(top), most)]
}

func (n note) repoName(s *search) string {
	repo := n.run.b.s.occRepo.at(int(n.occ))
	if s.r.Rank != nil {
		name, _ := s.r.Rank(n.run.m.repos[repo].id)
		return name
	}
	return n.run.b.s.m.repos[repo].Name
}

func (n note) path() string { return string(n.rawPath()) }

func (n note) rawPath() []byte {
	sh := n.run.b.s
	return sh.path(int(sh.occPath.at(int(n.occ))))
}

func (n note) oid() string { return n.run.b.s.oid(int(n.doc)) }

// choose gives the first notes that together have the matches to show.
func (s *search) choose(notes []note) []note {
	left := s.r.MaxMatches
	for i, n := range notes {
		if left <= 0 || s.r.MaxFiles > 0 && i >= s.r.MaxFiles {
			return notes[:i]
		}
		left -= int(n.matches)
	}
	return notes
}

// rendered is a file with what render must know of it.
type rendered struct {
	File
	shown int   // matches in the file as it is returned
	bytes int64 // that it holds
	done  bool  // it was made: neither damage nor the deadline came between
}

// files makes files of notes, on all free cores.
func (s *search) files(notes []note) ([]rendered, error) {
	out := make([]rendered, len(notes))
	shown := make([]int, len(notes)) // matches that each may show
	left := s.r.MaxMatches
	for i, n := range notes {
		shown[i] = min(left, int(n.matches))
		left -= shown[i]
	}
	var next, memory atomic.Int64
	began := time.Now()
	work := func() {
		e := s.evaluator()
		defer s.giveBack(e)
		for i := int(next.Add(1)) - 1; i < len(notes) && memory.Load() <= s.r.MemoryLimit; i = int(next.Add(1)) - 1 {
			if s.ctx.Err() != nil {
				break
			}
			err := guarded(func() error { return s.file(e, notes[i], shown[i], &out[i]) })
			out[i].done = err == nil && !s.stopped.Load()
			if err != nil {
				if err := s.lose(notes[i].run, err); err != nil {
					s.fail(err)
					break
				}
			}
			memory.Add(out[i].bytes)
		}
	}
	lane := light
	if s.spent > heavyAfter {
		lane = heavy
	}
	if err := s.gate.enter(s.ctx, lane); err != nil {
		return out, s.ended(err)
	}
	var wg sync.WaitGroup
	for extra := 0; extra < len(notes)/renderAlone && s.gate.tryEnter(); extra++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			defer s.gate.leave()
			work()
		}()
	}
	work()
	s.gate.leave()
	wg.Wait()
	s.spent += time.Since(began)
	if err := s.ctx.Err(); err != nil {
		return out, s.ended(err)
	}
	return out, s.err
}

// renderAlone is how many files are worth a goroutine of their own.
const renderAlone = 16

// file makes the file of a note with its first shown matches.
func (s *search) file(e *evaluator, n note, shown int, out *rendered) error {
	b := n.run.b
	sh, o := b.s, int(n.occ)
	e.turn(b, int(n.doc))
	spans, err := e.spans(o, n.mask)
	if err != nil {
		return err
	}
	// holds has to have been asked before spans; here all of it is known to
	// hold, but for arms of an Or, which spans asks itself.
	repo := n.run.m.repos[sh.occRepo.at(o)]
	f := &out.File
	f.Repo, f.RepoName, f.Path = repo.id, n.repoName(s), n.path()
	f.OID, f.Score, f.Matches = n.oid(), float64(n.score), int(n.matches)
	f.Language = sh.m.languages[sh.occLang.at(o)]
	f.Skipped = skip(sh.docSkip[n.doc]).reason()
	for _, r := range repo.revisions {
		if n.mask>>(r.Bit&63)&1 != 0 {
			f.Revisions = append(f.Revisions, r.Name)
		}
	}
	f.NameMatch = nameRanges(f.Path, e.nameSpans(o, n.mask))
	out.shown = shown
	if len(spans) > 0 && !s.r.NoChunks {
		if f.Chunks, err = s.chunks(e, spans[:min(len(spans), shown)]); err != nil {
			return err
		}
	}
	if s.r.Whole && e.t.units > 0 {
		if err := e.t.load(0, e.t.units-1); err != nil {
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

// nameSpans gives where the positive name patterns match in the path of an
// occurrence.
func (e *evaluator) nameSpans(occ int, mask uint64) []match.Span {
	path := e.b.s.path(int(e.b.s.occPath.at(occ)))
	var spans []match.Span
	for _, p := range e.p.patterns {
		if p.text.Field == query.Name && p.positive {
			spans = p.m.Append(spans, path, -1)
		}
	}
	return withoutOverlaps(spans)
}
