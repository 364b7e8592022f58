package change

import (
	"context"
	"regexp"
	"regexp/syntax"
	"slices"

	"github.com/shoalsearch/shoal/shard/file"
	"github.com/shoalsearch/shoal/shard/query"
)

// Paths are the paths at which a file can match a query. Where All is set, nothing is known, and a
// file at any path can.
type Paths struct {
	All bool
	set map[string]bool
}

// Has reports whether a file at the path can match.
func (p *Paths) Has(path string) bool { return p.All || p.set[path] }

// None reports whether no file can match.
func (p *Paths) None() bool { return !p.All && len(p.set) == 0 }

// Paths returns the paths at which a file of a covered revision, or of one of its ancestors, can match
// a query about files. A line of a file was added by some commit, at that path or at one from which
// the file was moved. So the paths whose added lines match are enough, and those of renames after
// them. Where lines are unknown, the path always counts. [Extent.Revisions] has the revisions.
func (l *Log) Paths(ctx context.Context, q query.Q) (*Paths, []Tip, error) {
	s, err := l.acquire()
	if err != nil {
		return nil, nil, err
	}
	defer s.release()
	known := !s.m.Cut && len(s.m.Revisions) > 0
	for _, x := range s.files {
		known = known && len(x.m.Unread) == 0
	}
	out := &Paths{All: true}
	if !known {
		return out, s.m.Revisions, nil
	}
	err = file.Guard(func() error {
		c := &pathCollector{ctx: ctx, s: s}
		if out, err = c.of(q); err != nil || out.All {
			return err
		}
		if out.set == nil {
			return nil // nothing matches anywhere
		}
		c.addUnknown(out)
		c.addMoved(out)
		return nil
	})
	return out, s.m.Revisions, err
}

// pathCollector collects the paths for the parts of a query.
type pathCollector struct {
	ctx context.Context
	s   *generation
}

// of returns the paths at which lines were added that q needs.
func (c *pathCollector) of(q query.Q) (*Paths, error) {
	switch n := q.(type) {
	case query.Const:
		return &Paths{All: bool(n)}, nil
	case *query.Text:
		if n.Field == query.Content {
			return c.withText(n)
		}
	case *query.And:
		out := &Paths{All: true}
		for _, sub := range n.Subs {
			p, err := c.of(sub)
			if err != nil {
				return nil, err
			}
			out = out.and(p)
		}
		return out, nil
	case *query.Or:
		out := &Paths{}
		for _, sub := range n.Subs {
			p, err := c.of(sub)
			if err != nil || p.All {
				return p, err
			}
			out.add(p)
		}
		return out, nil
	}
	return &Paths{All: true}, nil
}

func (p *Paths) add(other *Paths) {
	if p.set == nil {
		p.set = map[string]bool{}
	}
	for path := range other.set {
		p.set[path] = true
	}
}

// and joins two conditions. Two parts of a query may come to a file by different paths, so a smaller
// set cannot be made of two: the smaller one of both is returned.
func (p *Paths) and(other *Paths) *Paths {
	if p.All || !other.All && len(other.set) < len(p.set) {
		return other
	}
	return p
}

// withText returns the paths at which added lines match.
func (c *pathCollector) withText(t *query.Text) (*Paths, error) {
	own := *t
	own.Field = query.Added
	p, err := compile(&own)
	if err != nil {
		return nil, err
	}
	if !staysInLines(t, p) {
		return &Paths{All: true}, nil
	}
	out := &Paths{set: map[string]bool{}}
	for _, x := range c.s.files {
		e := newEvaluation(x, c.s, true, nil)
		e.ctx = c.ctx
		found, err := e.search(&e.lines, p, e.all(true))
		if err != nil {
			return nil, err
		}
		for it := found.set.Iterator(); it.HasNext(); {
			out.set[string(x.paths.at(x.entry(it.Next()).path))] = true
		}
	}
	return out, nil
}

// staysInLines reports whether each match of a text in a file is also one in a single line. Nothing
// of an expression that can match an empty text, or that asks where a text begins or ends, does so.
func staysInLines(t *query.Text, p *pattern) bool {
	if !t.Regexp {
		return t.Pattern != "" && !p.hunks
	}
	re, err := syntax.Parse(t.Pattern, query.RegexpFlags)
	if err != nil || p.hunks {
		return false
	}
	empty, err := regexp.Compile(re.String())
	return err == nil && !empty.MatchString("")
}

// addUnknown adds the paths of files whose lines are not known, or not as a search of files has
// them.
func (c *pathCollector) addUnknown(out *Paths) {
	for _, x := range c.s.files {
		for f := range x.m.Files {
			if row := x.entry(uint32(f)); row.named() {
				out.set[string(x.paths.at(row.path))] = true
			}
		}
		for _, path := range x.m.Encoded {
			out.set[string(x.paths.at(path))] = true
		}
	}
}

// addMoved adds the paths to which files at the paths so far were moved, and so on.
func (c *pathCollector) addMoved(out *Paths) {
	moves := map[string][]string{}
	c.eachMove(func(from, to string) { moves[from] = append(moves[from], to) })
	var left []string
	for path := range out.set {
		left = append(left, path)
	}
	for len(left) > 0 {
		last := left[len(left)-1]
		left = left[:len(left)-1]
		for _, to := range moves[last] {
			if !out.set[to] {
				out.set[to] = true
				left = append(left, to)
			}
		}
	}
}

// eachMove calls use with the paths of each file that some commit moved, before and after.
func (c *pathCollector) eachMove(use func(from, to string)) {
	for _, x := range c.s.files {
		for f := range x.m.Files {
			if row := x.entry(uint32(f)); row.from != none {
				use(string(x.paths.at(row.from)), string(x.paths.at(row.path)))
			}
		}
		for _, m := range x.m.Moved {
			use(string(x.paths.at(m[0])), string(x.paths.at(m[1])))
		}
	}
}

// crosses reports whether a file that may have had one of the texts was moved to where another set of the
// names fits its path. A search by these names finds no change there, but the text came or went.
func (c *pathCollector) crosses(texts, names []*query.Text) (bool, error) {
	with := &Paths{}
	for _, t := range texts {
		p, err := c.withText(t)
		if err != nil || p.All {
			return p == nil || p.All, err
		}
		with.add(p)
	}
	if with.None() {
		return false, nil
	}
	c.addMoved(with)

	var patterns []*pattern
	for _, t := range names {
		p, err := compile(t)
		if err != nil {
			return false, err
		}
		patterns = append(patterns, p)
	}
	crosses := false
	c.eachMove(func(from, to string) {
		for _, p := range patterns {
			crosses = crosses || with.set[from] && p.m.Matches([]byte(from)) != p.m.Matches([]byte(to))
		}
	})
	return crosses, nil
}

// textsOf returns the texts of some fields in a query.
func textsOf(q query.Q, fields ...query.Field) (texts []*query.Text) {
	query.Map(q, func(n query.Q) query.Q {
		if t, ok := n.(*query.Text); ok && slices.Contains(fields, t.Field) {
			texts = append(texts, t)
		}
		return n
	})
	return texts
}
