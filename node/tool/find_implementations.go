package tool

import (
	"context"
	"fmt"
	"path"
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
	last, dir := "", ""
	for i := range r.Files {
		f := &r.Files[i]
		b := block{}
		if l.Text("repo") == "" && f.Repository != last {
			b.head = "[" + f.Repository + "]\n"
			dir = ""
		}
		// Several files of one directory name it once.
		if own := path.Dir(f.Path) + "/"; own != dir {
			many := i+1 < len(r.Files) && r.Files[i+1].Repository == f.Repository && own == path.Dir(r.Files[i+1].Path)+"/"
			switch {
			case many && own != "./", own == "./" && dir != "":
				b.head, dir = b.head+fileLabel(own)+"\n", own
			default:
				dir = ""
			}
		}
		for k := range f.Matches {
			if left == 0 {
				over++
				continue
			}
			left--
			b.lines = append(b.lines, l.typeLine(f, &f.Matches[k], dir))
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
	if len(r.Namesakes) > 0 {
		fmt.Fprintf(&out, "Not meant, and left out: %s.\n", label(strings.Join(r.Namesakes, ", ")))
	}
	if n := undecided(r); n > 0 {
		fmt.Fprintf(&out, "?: %d may extend another type of this name.\n", n)
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

// undecided counts the types that may extend a namesake of the requested one.
func undecided(r *symbols.SymbolResponse) (n int) {
	for i := range r.Files {
		for k := range r.Files[i].Matches {
			if r.Files[i].Matches[k].Undecided {
				n++
			}
		}
	}
	return n
}

// typeLine describes a type or method, with its position. A line above it names dir, if that is not "".
func (l *lookup) typeLine(f *symbols.SymbolFile, m *symbols.SymbolMatch, dir string) string {
	lines := fmt.Sprint(m.Range.Start.Line)
	if m.Range.End.Line > m.Range.Start.Line {
		lines += fmt.Sprintf("-%d", m.Range.End.Line)
	}
	text := fmt.Sprintf("%s:%s %s", fileLabel(strings.TrimPrefix(f.Path, dir)), lines, m.Kind)
	// Many files have the name of their type.
	stem, _, _ := strings.Cut(path.Base(f.Path), ".")
	if name := scopedName(m.Name, m.ParentName, m.ParentKind); m.Name != "" && name != stem {
		text += " " + name
	}
	_, asked := symbols.Qualified(l.Text("symbol"))
	if m.Of != "" && m.Of != asked {
		text += " of " + label(m.Of)
	}
	if m.Undecided {
		text += " ?"
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
