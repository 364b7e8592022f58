package watch

import (
	"regexp"
	"regexp/syntax"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/search"
	"github.com/shoalsearch/shoal/shard/query"
	"github.com/shoalsearch/shoal/trigram"
)

// groups are the watches by their queries, so that watches with one query are checked together.
type groups struct {
	of  *catalog.View // whose watches these are; nil: none were read yet
	all map[asked]*group
}

// asked is a query with its toggles.
type asked struct {
	query               string
	regexp, case_, word bool
}

// group is the watches with one query.
type group struct {
	standing  *search.Standing
	changes   bool                              // it finds commits or diffs, and not files
	questions map[*query.Text]*trigram.Question // of the texts that can be ruled out without a search
	watches   []*catalog.Watch
}

// update reads the watches of a view, unless they are those that were read last.
func (g *groups) update(view *catalog.View) {
	if g.of != nil && view.SameWatches(g.of) {
		return
	}
	old := g.all
	g.of, g.all = view, map[asked]*group{}
	for x := range view.Watches() {
		key := asked{x.Query, x.Regexp, x.Case, x.Words}
		at := g.all[key]
		if at == nil {
			at = old[key]
			if at == nil {
				at = newGroup(x)
			}
			if at == nil {
				continue // of a version with another query language
			}
			at.watches = nil
			g.all[key] = at
		}
		at.watches = append(at.watches, x)
	}
}

// have reports whether some watch is about commits or diffs, or about files.
func (g *groups) have(changes bool) bool {
	for _, at := range g.all {
		if at.changes == changes {
			return true
		}
	}
	return false
}

// newGroup prepares the query of a watch; nil if it cannot be understood.
func newGroup(x *catalog.Watch) *group {
	s, err := standing(x)
	if err != nil {
		return nil
	}
	g := &group{standing: s, changes: s.Query.Type.Changes(), questions: map[*query.Text]*trigram.Question{}}
	query.Map(s.Query.Q, func(n query.Q) query.Q {
		if t, ok := n.(*query.Text); ok {
			if q := questionOf(t); q != nil {
				g.questions[t] = q
			}
		}
		return n
	})
	return g
}

// questionOf prepares a text for asking sketches. It returns nil for a text that they cannot rule
// out: the sketches know neither the ends of a text, nor where a symbol begins.
func questionOf(t *query.Text) *trigram.Question {
	if t.Regexp && t.Field == query.Symbol {
		return nil
	}
	pattern, flags := t.Pattern, query.RegexpFlags
	if !t.Regexp {
		pattern = regexp.QuoteMeta(pattern)
	}
	if t.Fold {
		flags |= syntax.FoldCase
	}
	re, err := syntax.Parse(pattern, flags)
	if err != nil || hasTextAnchor(re) {
		return nil
	}
	return trigram.Ask(re)
}

// hasTextAnchor reports whether an expression contains \A or \z.
func hasTextAnchor(re *syntax.Regexp) bool {
	if re.Op == syntax.OpBeginText || re.Op == syntax.OpEndText {
		return true
	}
	for _, sub := range re.Sub {
		if hasTextAnchor(sub) {
			return true
		}
	}
	return false
}

// mayMatch reports whether a query may match something in texts; false is certain. The parts of an
// "and" may match in different texts.
func (g *group) mayMatch(q query.Q, texts []*trigram.Sketch) bool {
	switch n := q.(type) {
	case query.Const:
		return bool(n)
	case *query.And:
		for _, s := range n.Subs {
			if !g.mayMatch(s, texts) {
				return false
			}
		}
	case *query.Or:
		for _, s := range n.Subs {
			if g.mayMatch(s, texts) {
				return true
			}
		}
		return false
	case *query.Text:
		question := g.questions[n]
		if question == nil {
			return true
		}
		for _, t := range texts {
			if question.MayMatch(t) {
				return true
			}
		}
		return false
	}
	return true
}

// sketcher makes sketches of texts, many small texts together.
type sketcher struct {
	buf []byte
	all []*trigram.Sketch
}

const sketchBytes = 64 << 10

func (s *sketcher) add(text []byte) {
	if len(text) == 0 {
		return
	}
	if len(s.buf) > 0 && len(s.buf)+len(text) > sketchBytes {
		s.flush()
	}
	// Each text begins and ends at a line.
	s.buf = append(append(s.buf, text...), '\n')
}

func (s *sketcher) flush() {
	if len(s.buf) > 0 {
		s.all = append(s.all, trigram.NewSketch(s.buf))
		s.buf = s.buf[:0]
	}
}
