package change

import (
	"bytes"
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/shoalsearch/shoal/shard/git"
	"github.com/shoalsearch/shoal/shard/query"
)

// head is a commit without its message.
func (x *index) head(c uint32, files []*index) git.PatchCommit {
	out := git.PatchCommit{
		ID:     x.id(c),
		Author: string(x.people.at(x.who.At(int(2 * c)))), Committer: string(x.people.at(x.who.At(int(2*c + 1)))),
		AuthorTime: int64(x.times.At(int(2 * c))), CommitTime: int64(x.times.At(int(2*c + 1))),
		Unread: slices.Contains(x.m.Unread, int(c)),
	}
	for _, p := range x.parentsOf(c) {
		out.Parents = append(out.Parents, idOf(files, p))
	}
	return out
}

// idOf is the id of a commit of some files by its number, "" for none.
func idOf(files []*index, n uint32) string {
	for _, x := range files {
		if n >= x.base && n < x.base+uint32(x.m.Commits) {
			return x.id(n - x.base)
		}
	}
	return ""
}

// patch is a changed file as git told it.
func (x *index) patch(f uint32, text changed) *git.PatchFile {
	e := x.entry(f)
	out := &git.PatchFile{
		Path: string(x.paths.at(e.path)), Status: byte(e.flags), Binary: e.flags&flagBinary != 0, Huge: e.flags&flagHuge != 0,
		Hunks: decodeHunks(text.hunks), Removed: text.removed, Added: text.added,
	}
	if e.from != none {
		out.From = string(x.paths.at(e.from))
	}
	return out
}

// tell is a commit as the answer has it. Of a query without lines all files are told, of one
// with lines the files that have one.
func (e *evaluation) tell(h hit, shown, said []*pattern, all []*index) (*CommitMatch, error) {
	x := e.x
	head := x.head(h.commit, all)
	message, err := e.messages.text(h.commit)
	if err != nil {
		return nil, err
	}
	c := &CommitMatch{
		ID: head.ID, Parents: len(head.Parents), Author: head.Author, Committer: head.Committer,
		AuthorTime: time.Unix(head.AuthorTime, 0).UTC(), CommitTime: time.Unix(head.CommitTime, 0).UTC(),
		Score: h.place.Score,
	}
	text := bytes.TrimSuffix(message.added, []byte("\n"))
	if c.MessageCut = len(text) > mostMessage; c.MessageCut {
		text = text[:mostMessage]
	}
	c.Message = string(text)
	c.Marks = marksIn(nil, said, []byte(c.Message), 0)
	if len(head.Parents) > 0 {
		c.Parent = head.Parents[0]
	}

	files := h.files
	if !e.diff {
		files = x.allFiles(h.commit)
	}
	room := mostBodies
	for _, f := range files {
		if len(c.Files) == MostFiles {
			c.MoreFiles++
			continue
		}
		only := !e.diff && len(shown) > 0 // files that match
		if only {
			possible, err := e.mayMatch(f, shown)
			if err != nil {
				return nil, err
			}
			if !possible {
				c.MoreFiles++
				continue
			}
		}
		told, err := e.file(f, shown, e.diff || only, &room)
		if err != nil {
			return nil, err
		}
		if only && len(told.Hunks)+told.MoreHunks == 0 {
			c.MoreFiles++
			continue
		}
		c.Files = append(c.Files, told)
	}
	return c, nil
}

// allFiles returns the numbers of the files of a commit.
func (x *index) allFiles(c uint32) (all []uint32) {
	from, to := x.filesOf(c)
	for f := from; f < to; f++ {
		all = append(all, f)
	}
	return all
}

// file is a changed file, with those hunks that match or all where nothing is looked for in
// lines, as far as they have room in the commit.
func (e *evaluation) file(f uint32, shown []*pattern, hunks bool, commit *int) (FileMatch, error) {
	r := &e.lines
	text, start, err := r.outline(f)
	if err != nil {
		return FileMatch{}, err
	}
	p := e.x.patch(f, text)
	out := FileMatch{
		Path: p.Path, From: p.From, Status: statusNames[p.Status],
		Language: e.x.m.Languages[e.x.pathLangs.At(int(e.x.entry(f).path))],
	}
	switch {
	case p.Binary:
		out.Kept = "binary"
	case p.Huge:
		out.Kept = "huge"
	}
	room := min(mostBody, *commit)
	for _, h := range placedHunks(p.Hunks, start, start+len(text.removed)) {
		out.Removed, out.Added = out.Removed+h.Old.Lines, out.Added+h.New.Lines
		if !hunks {
			continue
		}
		if len(shown) > 0 {
			matches, err := e.hunkHolds(&h, shown)
			if err != nil {
				return out, err
			}
			if !matches {
				continue
			}
		}
		if room -= h.Removed + h.Added; room < 0 {
			out.MoreHunks++
			continue
		}
		*commit -= h.Removed + h.Added
		if err := errors.Join(r.decode(h.old.from, h.old.to), r.decode(h.now.from, h.now.to)); err != nil {
			return out, err
		}
		out.Hunks = append(out.Hunks, hunkOf(h.PatchHunk, r.buf[h.old.from:h.old.to], r.buf[h.now.from:h.now.to], shown))
	}
	return out, nil
}

// hunkHolds reports whether a pattern matches in a hunk.
func (e *evaluation) hunkHolds(h *placedHunk, shown []*pattern) (bool, error) {
	for _, p := range shown {
		if ok, err := e.sideHolds(&e.lines, p, h.old, h.now); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

// mayMatch reports whether a pattern may match in a file, as far as the postings know.
func (e *evaluation) mayMatch(f uint32, shown []*pattern) (bool, error) {
	pages := e.lines.p
	first, n := pages.units(pages.of(f))
	if first == none {
		return false, nil
	}
	for _, p := range shown {
		units, err := e.unitsOf(pages, p, int(first>>16))
		if units == nil || err != nil {
			return true, err
		}
		if u := units.Next(int(first & 0xffff)); u >= 0 && u < int(first&0xffff)+int(n) {
			return true, nil
		}
	}
	return false, nil
}

// hunkOf is a hunk with its lines and marks.
func hunkOf(h git.PatchHunk, old, now []byte, shown []*pattern) Hunk {
	var gone, come []*pattern
	for _, p := range shown {
		if p.field != query.Added {
			gone = append(gone, p)
		}
		if p.field != query.Removed {
			come = append(come, p)
		}
	}
	body := signed(make([]byte, 0, len(old)+len(now)+h.Old.Lines+h.New.Lines), '-', old)
	before := len(body)
	body = signed(body, '+', now)
	marks := marksIn(nil, gone, body[:before], 1)
	for _, m := range marksIn(nil, come, body[before:], 1) {
		marks = append(marks, Span{Start: m.Start + before, End: m.End + before})
	}
	return Hunk{h.Old, h.New, string(body), marks}
}

// signed appends lines with a sign before each.
func signed(dst []byte, sign byte, text []byte) []byte {
	for line := range bytes.Lines(text) {
		dst = append(append(dst, sign), line...)
	}
	return dst
}

// marksIn appends where patterns match in lines of text, without the first skip bytes of each. The
// marks are in order and do not overlap.
func marksIn(dst []Span, patterns []*pattern, text []byte, skip int) []Span {
	at := 0
	for line := range bytes.Lines(text) {
		var found []Span
		for _, p := range patterns {
			found = p.m.Append(found, line[skip:], mostMarks)
		}
		slices.SortFunc(found, func(a, b Span) int { return cmp.Or(a.Start-b.Start, b.End-a.End) })
		end := 0
		for _, f := range found {
			if f.Start = max(f.Start, end); f.Start < f.End && len(dst) < mostMarks {
				dst = append(dst, Span{Start: at + skip + f.Start, End: at + skip + f.End})
				end = f.End
			}
		}
		at += len(line)
	}
	return dst
}
