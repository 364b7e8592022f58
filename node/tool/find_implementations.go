package tool

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/symbols"
)

func implementations(s symbols.Searcher, b browse.Reader) Tool {
	return Tool{
		Name: "find_implementations", Title: "Find implementations",
		About: "Finds the types that extend or implement a type, or the methods that override Type.method, by names. `up` shows what it extends.",
		Params: []Param{
			{Name: "symbol", Kind: String, Required: true, About: "type, or Type.method"},
			anyRepoParam,
			{Name: "direction", Kind: String, Words: []string{"down", "up"}, Default: "down"},
			{Name: "transitive", Kind: Boolean, Default: false},
			pathParam, testsParam,
			{Name: "limit", Kind: Integer, Min: 1, Max: mostOfSymbol, Default: 100},
		},
		Run: ofEachName(func(ctx context.Context, v catalog.Viewer, a *Args) (string, error) {
			l := &lookup{a, ctx, v, s, b}
			r, err := s.Hierarchy(ctx, v, symbols.HierarchyRequest{SymbolRequest: l.request(), Up: a.Text("direction") == "up", Transitive: a.Flag("transitive")})
			if err != nil {
				return "", err
			}
			return l.hierarchy(r)
		}),
	}
}

// hierarchy writes the types that extend a type, or those that it extends.
func (l *lookup) hierarchy(r *symbols.SymbolResponse) (string, error) {
	if len(r.Files) == 0 {
		if err := pathIsThere(l.ctx, l.viewer, l.browse, l.Args); err != nil {
			return "", err
		}
	}

	var blocks []block
	left, over := l.Number("limit"), 0
	last := ""
	for i := range r.Files {
		f := &r.Files[i]
		b := block{}
		if l.Text("repo") == "" && f.Repository != last {
			b.head = "[" + f.Repository + "]\n"
		}
		for k := range f.Matches {
			if left == 0 {
				over++
				continue
			}
			left--
			b.lines = append(b.lines, l.typeLine(f, &f.Matches[k]))
		}
		if b.lines != nil {
			last = f.Repository
			blocks = append(blocks, b)
		}
	}

	var out strings.Builder
	out.WriteString(l.definedText(r.Defined) + l.found(r))
	e := end{found: r.MatchCount > 0}
	shown := writeBlocks(l.Args, &out, blocks, &e, func(i int) string { return l.with("path", r.Files[i].Path) })
	if hidden := len(blocks) - shown; hidden > 0 {
		e.leaves(fmt.Sprintf("%s; %s", count(hidden, "file"), narrower(l.tool)))
	}
	if over > 0 {
		e.leaves(fmt.Sprintf("%s; %s", count(over, "type"), l.beyond()))
	}
	if len(r.Undefined) > 0 {
		fmt.Fprintf(&out, "Not defined here: %s.\n", label(strings.Join(r.Undefined, ", ")))
	}
	e.unlooked = append(e.unlooked, l.unread(r)...)
	e.lacks(l.Args, r.Coverage, "")
	return out.String() + e.String(), nil
}

// unread describes types that the hierarchy cannot find in the language of the requested type.
func (l *lookup) unread(r *symbols.SymbolResponse) []string {
	for i := range r.Defined {
		if f := &r.Defined[i]; !symbols.HasHierarchy(f.Language) && r.MatchCount == 0 {
			return []string{"types of " + f.Language + ", of which only text is known: " + l.asText()}
		}
	}
	if l.Text("direction") == "up" {
		return nil
	}

	for i := range r.Defined {
		if f := &r.Defined[i]; f.Language == "Go" && f.Matches[0].Kind == "interface" {
			return []string{"types of Go that have only a part of the methods by embedding"}
		}
	}

	// Types without a name never appear in the answer.
	name := regexp.QuoteMeta(l.name())
	for i := range r.Defined {
		switch r.Defined[i].Language {
		case "Java", "Groovy", "Scala":
			return []string{"anonymous classes: grep `new\\s+" + name + "\\b`"}
		case "Kotlin":
			return []string{"lambdas: grep `\\b" + name + "\\s*\\{`"}
		}
	}
	return nil
}

// typeLine describes a type or method, with its position.
func (l *lookup) typeLine(f *symbols.SymbolFile, m *symbols.SymbolMatch) string {
	lines := fmt.Sprint(m.Range.Start.Line)
	if m.Range.End.Line > m.Range.Start.Line {
		lines += fmt.Sprintf("-%d", m.Range.End.Line)
	}
	text := fmt.Sprintf("%s:%s %s", fileLabel(f.Path), lines, m.Kind)
	if name := scopedName(m.Name, m.ParentName, m.ParentKind); m.Name != "" {
		text += " " + name
	}
	_, asked := qualifiedName(l.Text("symbol"))
	if m.Of != "" && m.Of != asked {
		text += " of " + label(m.Of)
	}
	return text + "\n"
}

// found says how many types were found.
func (l *lookup) found(r *symbols.SymbolResponse) string {
	name := label(l.Text("symbol"))
	switch up := l.Text("direction") == "up"; {
	case r.MatchCount == 0 && up:
		return name + " extends nothing that is known here" + searched(r.Coverage)
	case r.MatchCount == 0:
		return "Nothing extends or implements " + name + searched(r.Coverage)
	case up:
		return fmt.Sprintf("%s extends or implements %s", name, count(r.MatchCount, "type"))
	case r.MatchCount == 1:
		return "1 extends or implements " + name
	}
	return fmt.Sprintf("%d extend or implement %s", r.MatchCount, name)
}
