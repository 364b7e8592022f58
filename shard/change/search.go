package change

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/shoalsearch/shoal/shard/file"
	"github.com/shoalsearch/shoal/shard/git"
	"github.com/shoalsearch/shoal/shard/query"
)

// LogSearch is a search of one log.
type LogSearch struct {
	Q     query.Q // without atoms of repositories
	Diff  bool    // files of commits are counted and bounded, and not commits
	Limit int     // commits, or files, that are told
}

// LogMatches is what a search found.
type LogMatches struct {
	Commits []CommitMatch // newest first; equal times by id
	Total   int           // commits, or files with Diff, that match
	Named   int           // binary and huge files that the query reaches, of which only the name was looked at

	Revisions []Tip // that were searched
	Whole     bool  // all of their commits were: none is beyond the bound, and git could read each
}

// CommitMatch is a commit that matches.
type CommitMatch struct {
	ID                     string
	Parents                int
	Author, Committer      string // as "Ann <ann@example.com>"
	AuthorTime, CommitTime time.Time
	Message                string
	Files                  []FileMatch
	MoreFiles              int // that it changed and that are not told
}

// FileMatch is a file that a commit changed.
type FileMatch struct {
	Path, From     string
	Status         byte // A added, M modified, D deleted, R renamed
	Language       string
	Binary, Huge   bool // its lines are not known
	Added, Removed int  // lines in all
	Hunks          []Hunk
	MoreHunks      int // that match, or all where no text was looked for, and are not told
}

// Hunk is a run of changed lines. Body has them, each with + or - before it.
type Hunk struct {
	Old, New git.DiffRange
	Body     []byte
}

// The bounds of what is told of one commit.
const (
	mostFiles = 20
	mostBody  = 32 << 10 // bytes of the hunks of a file
)

// Search finds what a query holds for. All texts that may match are read, so the counts are exact.
func (l *Log) Search(ctx context.Context, req LogSearch) (*LogMatches, error) {
	s, err := l.acquire()
	if err != nil {
		return nil, err
	}
	defer s.release()
	q, patterns, shown, err := prepare(req.Q, req.Diff)
	if err != nil {
		return nil, err
	}

	// What is newest in each file, and then of all files.
	out, found := &LogMatches{Revisions: s.m.Revisions, Whole: !s.m.Cut}, []hit(nil)
	err = file.Guard(func() error {
		for _, x := range s.files {
			out.Whole = out.Whole && len(x.m.Unread) == 0
			e := &evaluation{x: x, diff: req.Diff, patterns: patterns, ctx: ctx, reached: func(rev string) *roaring.Bitmap { return s.reachedBy(x, rev) }}
			within := e.as(value{e.live(s.reach), false}, req.Diff)
			hits, err := e.run(q, within, out)
			if err == nil && len(shown) > 0 {
				err = e.countNamed(loosened(q), within, out)
			}
			if err != nil {
				return err
			}
			found = newest(append(found, hits...), req.Limit)
		}
		for _, h := range group(found) {
			c, err := h.x.tell(h, shown, req.Diff, s.files)
			if err != nil {
				return err
			}
			out.Commits = append(out.Commits, *c)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// prepare compiles the texts of a query. shown are those of lines whose hunks are told.
func prepare(q query.Q, diff bool) (query.Q, map[*query.Text]*pattern, []*pattern, error) {
	var failed error
	patterns := map[*query.Text]*pattern{}
	q = query.Map(q, func(n query.Q) query.Q {
		t, ok := n.(*query.Text)
		if !ok || failed != nil {
			return n
		}
		own := *t
		if own.Field == query.Content && !diff {
			own.Field = query.Message
		}
		patterns[&own], failed = compile(&own)
		return &own
	})
	return q, patterns, positive(q, patterns, nil), failed
}

// positive are the patterns of lines that stand under no negation.
func positive(q query.Q, patterns map[*query.Text]*pattern, out []*pattern) []*pattern {
	switch n := q.(type) {
	case *query.And:
		for _, s := range n.Subs {
			out = positive(s, patterns, out)
		}
	case *query.Or:
		for _, s := range n.Subs {
			out = positive(s, patterns, out)
		}
	case *query.Text:
		if n.Field == query.Added || n.Field == query.Removed || n.Field == query.Content {
			out = append(out, patterns[n])
		}
	}
	return out
}

// reachedBy is the commits of a file that a revision reaches.
func (s *generation) reachedBy(x *index, rev string) *roaring.Bitmap {
	matches := (&query.Rev{Pattern: rev}).Matcher()
	all, mask := bits(s.m.Revisions), uint64(0)
	for _, r := range s.m.Revisions {
		if matches(r.Name, r.Commit, r.Name == "HEAD") {
			mask |= all[r.Commit]
		}
	}
	set := roaring.New()
	if mask == 0 {
		return set
	}
	for c := range x.m.Commits {
		if s.reach[int(x.base)+c]&mask != 0 {
			set.Add(uint32(c))
		}
	}
	return set
}

// hit is a commit that matches, or a file of it.
type hit struct {
	x      *index
	commit uint32
	files  []uint32
	time   int64
}

// run evaluates a query over what a revision reaches of a file.
func (e *evaluation) run(q query.Q, within value, out *LogMatches) ([]hit, error) {
	v, err := e.eval(q, within)
	if err != nil {
		return nil, err
	}
	set := roaring.And(e.as(v, e.diff).set, within.set)
	out.Total += int(set.GetCardinality())

	hits := make([]hit, 0, set.GetCardinality())
	for it := set.Iterator(); it.HasNext(); {
		n := it.Next()
		h := hit{x: e.x, commit: n}
		if e.diff {
			h.commit, h.files = e.x.commitOf(n), []uint32{n}
		}
		h.time = int64(e.x.times.At(int(2*h.commit) + 1))
		hits = append(hits, h)
	}
	return hits, nil
}

// loosened is a query that holds wherever q could, whatever the lines are that nobody knows.
func loosened(q query.Q) query.Q {
	ofLines := func(q query.Q) bool {
		t, ok := q.(*query.Text)
		return ok && (t.Field == query.Added || t.Field == query.Removed || t.Field == query.Content)
	}
	var walk func(q query.Q) query.Q
	walk = func(q query.Q) query.Q {
		if ofLines(q) {
			return query.Const(true)
		}
		switch n := q.(type) {
		case *query.And:
			return &query.And{Subs: mapped(n.Subs, walk)}
		case *query.Or:
			return &query.Or{Subs: mapped(n.Subs, walk)}
		case *query.Not:
			inside := false
			query.Map(n.Sub, func(q query.Q) query.Q {
				inside = inside || ofLines(q)
				return q
			})
			if inside {
				return query.Const(true)
			}
		}
		return q
	}
	return query.Simplify(walk(q))
}

func mapped(subs []query.Q, f func(query.Q) query.Q) (out []query.Q) {
	for _, s := range subs {
		out = append(out, f(s))
	}
	return out
}

// countNamed counts the files that a query reaches and of which only the name is known.
func (e *evaluation) countNamed(q query.Q, within value, out *LogMatches) error {
	set := roaring.New()
	for f := range e.x.m.Files {
		if e.x.entry(uint32(f)).named() {
			set.Add(uint32(f))
		}
	}
	if set.IsEmpty() {
		return nil
	}
	v, err := e.eval(q, within)
	if err != nil {
		return err
	}
	set.And(e.as(v, true).set)
	set.And(e.as(within, true).set)
	out.Named += int(set.GetCardinality())
	return nil
}

// live is the commits that a revision reaches.
func (e *evaluation) live(reach []uint64) *roaring.Bitmap {
	live := roaring.New()
	for c := range e.x.m.Commits {
		if int(e.x.base)+c < len(reach) && reach[int(e.x.base)+c] != 0 {
			live.Add(uint32(c))
		}
	}
	return live
}

// newest keeps so many hits, the newest first; equal times by id, then path by path.
func newest(hits []hit, limit int) []hit {
	slices.SortFunc(hits, func(a, b hit) int {
		if c := cmp.Compare(b.time, a.time); c != 0 {
			return c
		}
		return cmp.Or(bytes.Compare(a.rawID(), b.rawID()), slices.Compare(a.files, b.files))
	})
	return hits[:min(len(hits), limit)]
}

func (h hit) rawID() []byte {
	n := uint32(h.x.m.IDBytes)
	return h.x.ids[h.commit*n : (h.commit+1)*n]
}

// group puts the files of one commit together, which follow each other.
func group(hits []hit) (out []hit) {
	for _, h := range hits {
		if n := len(out); n > 0 && out[n-1].x == h.x && out[n-1].commit == h.commit {
			out[n-1].files = append(out[n-1].files, h.files...)
		} else {
			out = append(out, h)
		}
	}
	return out
}

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
func (x *index) tell(h hit, shown []*pattern, diff bool, all []*index) (*CommitMatch, error) {
	head := x.head(h.commit, all)
	messages := textReader{x: x, p: &x.messages}
	message, err := messages.text(h.commit)
	if err != nil {
		return nil, err
	}
	c := &CommitMatch{
		ID: head.ID, Parents: len(head.Parents), Author: head.Author, Committer: head.Committer,
		AuthorTime: time.Unix(head.AuthorTime, 0).UTC(), CommitTime: time.Unix(head.CommitTime, 0).UTC(),
		Message: string(bytes.TrimSuffix(message.added, []byte("\n"))),
	}

	files := h.files
	if !diff {
		from, to := x.filesOf(h.commit)
		for f := from; f < to; f++ {
			files = append(files, f)
		}
	}
	lines := textReader{x: x, p: &x.lines}
	for _, f := range files {
		if len(c.Files) == mostFiles {
			c.MoreFiles++
			continue
		}
		text, err := lines.text(f)
		if err != nil {
			return nil, err
		}
		told := x.file(f, text, shown, diff || len(shown) > 0)
		if !diff && len(shown) > 0 && len(told.Hunks) == 0 {
			c.MoreFiles++
			continue
		}
		c.Files = append(c.Files, told)
	}
	return c, nil
}

// file is a changed file, with those hunks that match or all where nothing is looked for in
// lines.
func (x *index) file(f uint32, text changed, shown []*pattern, hunks bool) FileMatch {
	p := x.patch(f, text)
	out := FileMatch{
		Path: p.Path, From: p.From, Status: p.Status, Binary: p.Binary, Huge: p.Huge,
		Language: x.m.Languages[x.pathLangs.At(int(x.entry(f).path))],
	}
	removed, added, room := text.removed, text.added, mostBody
	for _, h := range p.Hunks {
		old, now := removed[:h.Removed], added[:h.Added]
		removed, added = removed[h.Removed:], added[h.Added:]
		out.Removed, out.Added = out.Removed+h.Old.Lines, out.Added+h.New.Lines
		if !hunks || len(shown) > 0 && !slices.ContainsFunc(shown, func(p *pattern) bool { return p.inHunk(old, now) }) {
			continue
		}
		body := marked(marked(nil, '-', old), '+', now)
		if room -= len(body); room < 0 {
			out.MoreHunks++
			continue
		}
		out.Hunks = append(out.Hunks, Hunk{h.Old, h.New, body})
	}
	return out
}

// inHunk reports whether the lines of a hunk match.
func (p *pattern) inHunk(removed, added []byte) bool {
	return p.field != query.Added && len(removed) > 0 && p.m.Matches(removed) ||
		p.field != query.Removed && len(added) > 0 && p.m.Matches(added)
}

// marked appends lines with a sign before each.
func marked(dst []byte, sign byte, text []byte) []byte {
	for line := range bytes.Lines(text) {
		dst = append(append(dst, sign), line...)
	}
	return dst
}
