package change

import (
	"bytes"
	"cmp"
	mathbits "math/bits"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/shoalsearch/shoal/shard/git"
	"github.com/shoalsearch/shoal/shard/match"
	"github.com/shoalsearch/shoal/shard/query"
)

// LogSearch is a search of one log.
type LogSearch struct {
	Q      query.Q // without atoms of repositories
	Diff   bool    // files of commits are counted and bounded, and not commits
	Best   bool    // the best first, see [evaluation.score]; else the newest
	After  Place   // where the answer before this one ended
	Limit  int     // commits, or files, that are told; files of one commit stay together
	Facets bool    // count what matches by author and month
	Moves  bool    // tell whether the texts were moved, see [LogMatches.Moved]
	All    bool    // count everything; else [LogMatches.More] may be set

	Patterns *Patterns // shared by the searches of one question; nil compiles them for this search
}

// Place is where a commit stands in the order of an answer. Its zero value is before all.
type Place struct {
	Score int    // 0 where the newest are first
	Time  int64  // in seconds
	ID    string // of the commit
}

// behind reports whether p stands behind q, whatever their ids are: ids of two repositories do not
// compare.
func (p Place) behind(q Place) bool {
	return cmp.Or(cmp.Compare(q.Score, p.Score), cmp.Compare(q.Time, p.Time)) > 0
}

func (p Place) compare(q Place) int {
	return cmp.Or(cmp.Compare(q.Score, p.Score), cmp.Compare(q.Time, p.Time), strings.Compare(p.ID, q.ID))
}

// LogMatches is the result of a search.
type LogMatches struct {
	Commits []CommitMatch // in order
	Total   int           // commits, or files with Diff, that match
	Left    int           // of these, what does not come before After
	More    bool          // not all were looked at, so the counts are lower bounds; what is told is first all the same
	Named   int           // binary and huge files that the query reaches, of which only the name was looked at

	// With Moves: a file that may have had one of the texts was moved into or out of the paths of the query.
	Moved bool

	Authors, Months map[string]int // with Facets: commits, or files with Diff, by name and by month as 2026-01

	Revisions []Tip // that were searched
	Whole     bool  // all of their commits were: none is beyond the bound, and git could read each

	Before time.Time // commits before it were left out; zero if it is not known that any was
	After  time.Time // when the newest revision that was searched was committed
}

// CommitMatch is a matching commit.
type CommitMatch struct {
	ID         string      `json:"commit"`
	Parents    int         `json:"parents"`
	Parent     string      `json:"parent,omitempty"` // the first, of which the old lines are
	Author     string      `json:"author"`           // as "Ann <ann@example.com>"
	AuthorTime time.Time   `json:"authoredAt"`
	Committer  string      `json:"committer"`
	CommitTime time.Time   `json:"committedAt"`
	Message    string      `json:"message"`
	MessageCut bool        `json:"isMessageCut,omitzero"` // the rest of a long one is not told
	Marks      []Span      `json:"-"`                     // of Message
	Files      []FileMatch `json:"files"`
	MoreFiles  int         `json:"moreFiles"`          // that it changed and that are not told
	FirstTag   string      `json:"firstTag,omitempty"` // the first release with it; "" if it has none or nobody looked
	Score      int         `json:"-"`
}

// FileMatch is a file that a commit changed.
type FileMatch struct {
	Path      string `json:"path"`
	From      string `json:"oldPath,omitempty"`
	Status    string `json:"status"` // added, modified, deleted, renamed
	Language  string `json:"language"`
	Kept      string `json:"keptByName,omitempty"` // binary or huge: its lines are not known
	Added     int    `json:"added"`                // lines in all
	Removed   int    `json:"removed"`
	Hunks     []Hunk `json:"hunks"`
	MoreHunks int    `json:"moreHunks"` // that match, or all where no text was looked for, and are not told
}

// Hunk is a range of changed lines. Body has the lines, each with + or - before it.
type Hunk struct {
	Old   git.DiffRange `json:"oldRange"`
	New   git.DiffRange `json:"newRange"`
	Body  string        `json:"body"`
	Marks []Span        `json:"-"` // of Body
}

// Span is a place that matches, in bytes.
type Span = match.Span

// MostFiles is how many files of one commit are told.
const MostFiles = 20

// The other limits of the details of one commit.
const (
	mostBody    = 32 << 10 // bytes of the hunks of a file
	mostBodies  = 64 << 10 // of those of all files
	mostMessage = 16 << 10 // bytes
	mostMarks   = 100      // of a hunk
)

var statusNames = map[byte]string{'A': "added", 'D': "deleted", 'M': "modified", 'R': "renamed", 'T': "typeChanged"}

// Patterns has the compiled texts of a question, which it may ask of many logs.
type Patterns struct {
	mu sync.Mutex
	of map[*query.Text]compiledText
}

type compiledText struct {
	text    *query.Text
	pattern *pattern
	err     error
}

// get compiles a text, unless it is compiled already.
func (p *Patterns) get(t *query.Text, diff bool) compiledText {
	p.mu.Lock()
	defer p.mu.Unlock()
	out, ok := p.of[t]
	if !ok {
		own := *t
		if own.Field == query.Content && !diff {
			own.Field = query.Message
		}
		out.text = &own
		out.pattern, out.err = compile(&own)
		if p.of == nil {
			p.of = map[*query.Text]compiledText{}
		}
		p.of[t] = out
	}
	return out
}

// prepare compiles the texts of a query.
func prepare(req LogSearch) (query.Q, map[*query.Text]*pattern, error) {
	compiled := req.Patterns
	if compiled == nil {
		compiled = &Patterns{}
	}
	var failed error
	patterns := map[*query.Text]*pattern{}
	q := query.Map(req.Q, func(n query.Q) query.Q {
		t, ok := n.(*query.Text)
		if !ok || failed != nil {
			return n
		}
		c := compiled.get(t, req.Diff)
		patterns[c.text], failed = c.pattern, c.err
		return c.text
	})
	return q, patterns, failed
}

// positive are the patterns of some fields that stand under no negation.
func positive(q query.Q, patterns map[*query.Text]*pattern, out []*pattern, fields ...query.Field) []*pattern {
	switch n := q.(type) {
	case *query.And:
		for _, s := range n.Subs {
			out = positive(s, patterns, out, fields...)
		}
	case *query.Or:
		for _, s := range n.Subs {
			out = positive(s, patterns, out, fields...)
		}
	case *query.Text:
		if slices.Contains(fields, n.Field) {
			out = append(out, patterns[n])
		}
	}
	return out
}

// reachedBy returns the commits of a file that a revision reaches.
func (s *generation) reachedBy(x *index, rev string) *roaring.Bitmap {
	matches := (&query.Rev{Pattern: rev}).Matcher()
	all, mask := bits(s.m.Revisions), uint64(0)
	for _, r := range s.m.Revisions {
		if matches(r.Name, r.Commit, r.Name == "HEAD") {
			mask |= all[r.Commit]
		}
	}
	return s.withMask(x, mask)
}

// withMask returns the commits of a file that one of some revisions reaches.
func (s *generation) withMask(x *index, mask uint64) *roaring.Bitmap {
	set := roaring.New()
	reach := s.reach[min(int(x.base), len(s.reach)):min(int(x.base)+x.m.Commits, len(s.reach))]
	for c := 0; c < len(reach); c++ {
		from := c
		for c < len(reach) && reach[c]&mask != 0 {
			c++
		}
		if c > from {
			set.AddRange(uint64(from), uint64(c))
		}
	}
	return set
}

// hit is a commit that matches, with those of its files that do where files are looked for.
type hit struct {
	x      *index
	s      *generation
	file   *fileReader
	commit uint32
	files  []uint32
	place  Place
}

// items is what a hit counts as.
func (h *hit) items() int { return max(1, len(h.files)) }

// run evaluates a query over some reachable commits or files of a file of changes.
func (e *evaluation) run(q query.Q, within value) ([]hit, error) {
	v, err := e.eval(q, within)
	if err != nil {
		return nil, err
	}

	var hits []hit
	c := uint32(0)
	for it := roaring.And(e.as(v, e.diff).set, within.set).Iterator(); it.HasNext(); {
		n := it.Next()
		if !e.diff {
			c = n
		} else {
			c = e.x.commitFrom(n, c)
		}
		if last := len(hits) - 1; last < 0 || hits[last].commit != c {
			hits = append(hits, hit{x: e.x, s: e.s, commit: c, place: Place{Time: int64(e.x.times.At(int(2*c + 1))), ID: e.x.id(c)}})
		}
		if e.diff {
			hits[len(hits)-1].files = append(hits[len(hits)-1].files, n)
		}
	}
	return hits, nil
}

// score says how much each hit is about the texts: first those with a text in the first line of the
// message, then the smallest changes. The smallest is what differs least by chance from what was meant.
func (e *evaluation) score(hits []hit, patterns []*pattern) error {
	for i := range hits {
		h := &hits[i]
		message, err := e.messages.text(h.commit)
		if err != nil {
			return err
		}
		subject, _, _ := bytes.Cut(message.added, []byte("\n"))
		if slices.ContainsFunc(patterns, func(p *pattern) bool { return p.m.Matches(subject) }) {
			h.place.Score = 1 << 8
		}

		changed := 0
		files := h.files
		if !e.diff {
			files = e.x.allFiles(h.commit)
		}
		for _, f := range files {
			row := e.x.entry(f)
			changed += row.removed + row.added
		}
		// A merge without lines of its own is about the least.
		if h.place.Score++; changed > 0 {
			h.place.Score += 64 - mathbits.Len(uint(changed))
		}
	}
	return nil
}

// count counts hits, also by author and month.
func (e *evaluation) count(hits []hit, facets bool, out *LogMatches) {
	authors := map[uint32]int{}
	for i := range hits {
		n := hits[i].items()
		out.Total += n
		if facets {
			authors[e.x.who.At(int(2*hits[i].commit))] += n
			out.Months[time.Unix(hits[i].place.Time, 0).UTC().Format("2006-01")] += n
		}
	}
	for who, n := range authors {
		name, _, _ := bytes.Cut(e.x.people.at(who), []byte(" <"))
		out.Authors[string(name)] += n
	}
}

// behind is the hits that do not come before a place.
func (m *LogMatches) behind(hits []hit, after Place) []hit {
	if after != (Place{}) {
		hits = slices.DeleteFunc(hits, func(h hit) bool { return h.place.compare(after) <= 0 })
	}
	for i := range hits {
		m.Left += hits[i].items()
	}
	return hits
}

// first keeps so many hits or files, those first in order. A commit keeps all of its files.
func first(hits []hit, limit int) []hit {
	slices.SortFunc(hits, func(a, b hit) int { return a.place.compare(b.place) })
	n := 0
	for i := range hits {
		if n >= limit {
			return hits[:i]
		}
		n += hits[i].items()
	}
	return hits
}

// loosened returns a query that matches everything that q could match, if all unknown lines
// matched.
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
