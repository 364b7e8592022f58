package change

import (
	"fmt"
	"regexp/syntax"
	"strings"

	"github.com/shoalsearch/shoal/shard/match"
	"github.com/shoalsearch/shoal/shard/query"
	"github.com/shoalsearch/shoal/trigram"
)

// pattern is a compiled text of a query.
type pattern struct {
	field   query.Field
	m       *match.Matcher
	formula *trigram.Formula // nil: it narrows nothing
	hunks   bool             // where a hunk begins and ends decides whether its lines match
	inLine  bool             // a line that the postings leave decides alone whether it matches
}

// compile prepares a text of a query for searching.
func compile(t *query.Text) (*pattern, error) {
	m, err := match.Compile(t.Pattern, match.Options{Literal: !t.Regexp, Fold: t.Fold, Names: t.Field == query.Name, WordBegins: t.WordBegins, WordEnds: t.WordEnds})
	if err != nil {
		return nil, fmt.Errorf("search changes: %w", err)
	}
	p := &pattern{field: t.Field, m: m}
	if !t.Regexp {
		p.formula, p.hunks = trigram.FromLiteral(t.Pattern, t.Fold), strings.Contains(t.Pattern, "\n")
		p.inLine = !p.hunks && p.formula != nil && p.formula.Scope() != trigram.ScopeDocument
		return p, nil
	}

	lines, err := match.SpansLines(t.Pattern)
	if err != nil {
		return nil, fmt.Errorf("search changes: %w", err)
	}
	flags := query.RegexpFlags
	if t.Fold {
		flags |= syntax.FoldCase
	}
	re, err := syntax.Parse(t.Pattern, flags)
	if err != nil {
		return nil, fmt.Errorf("search changes: %w", err)
	}
	p.hunks = dropAnchors(re, lines) || lines
	p.formula = trigram.FromRegexp(re, t.Fold)
	p.inLine = !p.hunks && p.formula != nil && p.formula.Scope() != trigram.ScopeDocument
	return p, nil
}

// dropAnchors makes an expression match more: without its anchors at the ends of texts and, with
// lines, of lines. A page has many texts, and its postings know no end of one. The last line of a text
// ends there too, so $ behind a newline is true of it; in the page another text follows. dropAnchors
// reports whether there was one at an end of texts.
func dropAnchors(re *syntax.Regexp, lines bool) (atEnds bool) {
	switch re.Op {
	case syntax.OpBeginText, syntax.OpEndText:
		re.Op, atEnds = syntax.OpEmptyMatch, true
	case syntax.OpBeginLine, syntax.OpEndLine:
		if lines {
			re.Op = syntax.OpEmptyMatch
		}
	}
	for _, sub := range re.Sub {
		atEnds = dropAnchors(sub, lines) || atEnds
	}
	return atEnds
}

// sides is those of the removed and the added lines in which the pattern is looked for.
func (p *pattern) sides(removed, added span) []span {
	switch p.field {
	case query.Removed:
		return []span{removed}
	case query.Added, query.Message:
		return []span{added}
	}
	return []span{removed, added}
}
