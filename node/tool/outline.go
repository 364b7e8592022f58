package tool

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/coverage"
)

func outline(b browse.Reader) Tool {
	return Tool{
		Name: "outline", Title: "Outline a file",
		About: "Lists what is defined in a file, or in the files of a directory, as `first-last kind name`. Use it before read_file on a big file.",
		Params: []Param{
			repoParam,
			{Name: "path", Kind: String, Required: true, About: "file or directory, from the root"},
			refParam,
			{Name: "kinds", Kind: Strings, About: "only these, at all levels: function, method, struct, ..."},
			{Name: "depth", Kind: Integer, Min: 1, Default: 2, About: "levels of nesting, without packages, namespaces and modules"},
		},
		Run: func(ctx context.Context, v catalog.Viewer, a *Args) (string, error) {
			return runOutline(ctx, v, b, a)
		},
	}
}

// runOutline runs a call of outline.
func runOutline(ctx context.Context, v catalog.Viewer, b browse.Reader, a *Args) (string, error) {
	req := browse.OutlineRequest{Repo: a.Text("repo"), Ref: a.Text("ref"), Paths: []string{a.Text("path")}}
	r, err := b.Outline(ctx, v, req)
	if err != nil {
		return "", err
	}
	return outlineText(a, r), nil
}

// outlineText writes the definitions in files.
func outlineText(a *Args, r *browse.OutlineResponse) string {
	blocks, shown, hidden := outlineBlocks(a, r, true)

	// In a large file the names matter most; parameters are shown on request.
	brief := sizeOf(blocks) > longOutline
	if brief {
		blocks, shown, hidden = outlineBlocks(a, r, false)
	}

	// These gaps need other words than those of a search.
	own := words{coverage.Limit: "files beyond the first 20, or what took too long; give the path of one file"}
	if g := r.Coverage().Gap(coverage.Symbols); g.Count > 0 {
		first := g.Files[0].Path
		own[g.Kind] = unknownSymbols(g.Count, first) + callOf("read_file", "repo", a.Text("repo"), "path", first, "ref", a.Text("ref")) + " reads it"
	}
	var e end
	e.covers(a, r.Coverage(), own)

	var out strings.Builder
	switch len(r.Files) {
	case 0:
		return "No file is there.\n" + e.String()
	case 1:
		// For a single file, the first line is the file's own heading.
		out.WriteString(strings.TrimSuffix(blocks[0].head, "\n"))
		blocks[0].head = ""
	default:
		fmt.Fprintf(&out, "%s at %.8s: %s with definitions", fileLabel(a.Text("path")), r.Commit, count(len(blocks), "file"))
	}

	// If a file is shortened, advise less depth, which shows the top levels completely.
	whole := writeBlocks(a, &out, blocks, &e, func(i int) string {
		return a.with("path", shown[i].Path, "depth", 1)
	})
	// This explains an empty outline, so it follows the blocks.
	out.WriteString(kindsThere(r, kindsWanted(a)))
	if brief {
		out.WriteString("Without parameters and fields, and constants and the like by number where they are many; kinds lists them, and the path of one file may have room. .Name is of the type that is named before it.\n")
	}

	if left := len(blocks) - whole; left > 0 {
		e.left = append(e.left, fmt.Sprintf("%s; continue with %s", count(left, "file"), a.with("path", shown[whole].Path)))
	}
	hidden.tell(a, &e)
	return out.String() + e.String()
}

// unknownSymbols describes files whose symbols could not be found, with the first as an example.
func unknownSymbols(files int, first string) string {
	return fmt.Sprintf("symbols of %s, as %s, which ctags failed on or did not reach in time; ", count(files, "file"), fileLabel(first))
}

// hiddenSymbols counts the definitions that an outline does not show.
type hiddenSymbols struct {
	deeper int      // below the depth that is shown
	inside []string // kinds of lambdas, and of variables in functions, each once
	locals int      // these
	fields []string // kinds of fields, each once
	values int      // these
}

// tell adds a line for each kind of symbol that is not shown, with the call that shows it.
func (h *hiddenSymbols) tell(a *Args, e *end) {
	if h.deeper > 0 {
		depth := a.Number("depth")
		e.leaves(fmt.Sprintf("%s below depth %d; %s", count(h.deeper, "symbol"), depth, a.with("depth", depth+1)))
	}
	if h.locals > 0 {
		e.leaves(fmt.Sprintf("lambdas and locals, %d; %s", h.locals, a.with("kinds", h.inside, "depth", nil)))
	}
	if h.values > 0 {
		e.leaves(fmt.Sprintf("%s; %s", count(h.values, "field"), a.with("kinds", h.fields, "depth", nil)))
	}
}

// longOutline is the largest size in bytes of an outline with parameters.
const longOutline = 6000

// sizeOf returns the size of the lines of blocks in bytes.
func sizeOf(blocks []block) (n int) {
	for i := range blocks {
		for _, line := range blocks[i].lines {
			n += len(line)
		}
	}
	return n
}

// outlineBlocks makes a block for each shown file. Among several, files without definitions are
// skipped.
func outlineBlocks(a *Args, r *browse.OutlineResponse, signatures bool) (blocks []block, shown []*browse.OutlineFile, hidden hiddenSymbols) {
	for i := range r.Files {
		f := &r.Files[i]
		lines, symbols := outlineLines(a, f, signatures, &hidden)
		b := block{lines: lines}
		if len(r.Files) > 1 && b.lines == nil {
			continue
		}
		b.head = outlineHead(f, r.Commit, symbols) + "\n"
		blocks = append(blocks, b)
		shown = append(shown, f)
	}
	return blocks, shown, hidden
}

// outlineHead returns the heading of a file's outline.
func outlineHead(f *browse.OutlineFile, commit string, symbols int) string {
	head := fmt.Sprintf("%s at %.8s", fileLabel(f.Path), commit)
	if f.Language != "" {
		head += ", " + f.Language
	}
	if f.Binary {
		return head + ", binary"
	}
	if f.Unknown {
		return head + fmt.Sprintf(", %s, symbols not known", count(f.Lines, "line"))
	}
	return head + fmt.Sprintf(", %s, %s", count(f.Lines, "line"), count(symbols, "symbol"))
}

// outlineLines writes the wanted definitions of a file, and returns their number. hidden counts the
// others.
func outlineLines(a *Args, f *browse.OutlineFile, signatures bool, hidden *hiddenSymbols) (lines []string, symbols int) {
	rows := outlineRows(a, f, signatures, hidden)
	asked := kindsWanted(a) != nil
	for i := 0; i < len(rows); {
		run := runOf(rows[i:])

		// In a large file, many constants and the like are only counted, unless the caller asked
		// for their kind.
		if !signatures && !asked && len(run) > longRun && run[0].short() {
			first, last := &run[0], &run[len(run)-1]
			lines = append(lines, fmt.Sprintf("%s%d-%d %s: %d, %s to %s\n",
				first.indent(), first.First, last.First, first.Kind, len(run), first.name(false), last.name(false)))
		} else {
			lines = append(lines, sharedLines(run, signatures)...)
		}
		i += len(run)
	}
	return lines, len(rows)
}

// outlineRow is a shown definition. depth is the number of definitions around it.
type outlineRow struct {
	*browse.OutlineSymbol
	depth int
}

// outlineRows returns the wanted definitions of a file, and counts the others.
func outlineRows(a *Args, f *browse.OutlineFile, signatures bool, hidden *hiddenSymbols) (rows []outlineRow) {
	kinds, most := kindsWanted(a), a.Number("depth")
	if kinds != nil && !a.Has("depth") {
		most = math.MaxInt
	}

	var open []*browse.OutlineSymbol // what is around
	for i := range f.Symbols {
		s := &f.Symbols[i]

		// Remove definitions that end before this one begins.
		for len(open) > 0 && open[len(open)-1].Last < s.First {
			open = open[:len(open)-1]
		}
		depth, level := len(open), levelIn(open)
		local := isLambda(s) || depth > 0 && isCode(open[depth-1]) && contains(valueKinds, s.Kind)
		field := depth > 0 && contains(fieldKinds, s.Kind)
		if s.Last > s.First {
			open = append(open, s)
		}

		// Package clauses and names of imports do not count as definitions.
		clause := s.Kind == "packageName" || s.Kind == "package" && s.Last <= s.First && f.Language != "Perl"
		switch {
		case kinds == nil && clause, kinds != nil && !contains(kinds, s.Kind):
		// Reading the enclosing function shows these as well.
		case kinds == nil && local:
			hidden.locals++
			hidden.inside = addOnce(hidden.inside, s.Kind)
		case level >= most:
			hidden.deeper++
		// Large files often consist mostly of fields. Reading the type shows them.
		case kinds == nil && !signatures && field:
			hidden.values++
			hidden.fields = addOnce(hidden.fields, s.Kind)
		default:
			rows = append(rows, outlineRow{s, depth})
		}
	}
	return rows
}

// levelIn returns the nesting level of a definition, given those around it. Packages, namespaces,
// modules and lambdas do not count: the former only hold names, and lambdas are not shown.
func levelIn(around []*browse.OutlineSymbol) (level int) {
	for _, s := range around {
		if !contains(spaceKinds, s.Kind) && !isLambda(s) {
			level++
		}
	}
	return level
}

// ctags' names for kinds of definitions, in all languages.
var (
	spaceKinds = []string{"package", "packageName", "namespace", "module", "submodule", "library", "unit", "program"}
	codeKinds  = []string{"function", "method", "singletonMethod", "constructor", "destructor", "getter", "setter", "generator", "func", "subroutine", "procedure", "task", "operator", "accessor"}
	valueKinds = []string{"variable", "constant", "const", "var", "val", "local", "parameter", "property", "label", "globalVar", "binding"}
)

// isCode reports whether a definition has code. Nothing outside can use what is declared in it.
func isCode(s *browse.OutlineSymbol) bool { return contains(codeKinds, s.Kind) || s.Kind == "lambda" }

// isLambda reports whether a definition has no name in the source, so that ctags invented one.
func isLambda(s *browse.OutlineSymbol) bool {
	name := strings.ToLower(s.Name)
	return s.Kind == "lambda" || isCode(s) && (strings.HasPrefix(name, "<lambda") || strings.HasPrefix(name, "anonymousfunction") || strings.HasPrefix(name, "__anon"))
}

func addOnce(list []string, s string) []string {
	if contains(list, s) {
		return list
	}
	return append(list, s)
}

// runOf returns the first rows that could share a line: of the same depth and kind, and either all
// or none on a single line of the file.
func runOf(rows []outlineRow) []outlineRow {
	n := 1
	for n < len(rows) && rows[n].depth == rows[0].depth && rows[n].Kind == rows[0].Kind && rows[n].short() == rows[0].short() {
		n++
	}
	return rows[:n]
}

// longRun is the largest number of one-line definitions that the outline of a large file lists by
// name.
const longRun = 8

// sharedLine is the number of bytes after which a line of several definitions ends.
const sharedLine = 100

// sharedLines writes a run of symbols. Several constants or fields share a line; in a large file,
// all symbols do.
func sharedLines(run []outlineRow, signatures bool) (lines []string) {
	open := false // the last line may be added to
	scope := ""   // of the last name on it
	for i := range run {
		r := &run[i]
		name := r.name(signatures)
		share := !signatures || r.short() && name == label(r.Name)

		last := len(lines) - 1
		if !open || !share || len(lines[last]) >= sharedLine {
			lines = append(lines, fmt.Sprintf("%s%s %s %s\n", r.indent(), linesOfSymbol(r.OutlineSymbol), r.Kind, name))
			open, scope = share, r.scope()
			continue
		}

		// Name a type once on a line, for several of its members.
		if scope != "" && r.scope() == scope {
			name = strings.TrimPrefix(name, scope)
		}
		scope = r.scope()
		lines[last] = fmt.Sprintf("%s, %s %s\n", strings.TrimSuffix(lines[last], "\n"), linesOfSymbol(r.OutlineSymbol), name)
	}
	return lines
}

// short reports whether a definition has one line or an unknown end.
func (r *outlineRow) short() bool { return r.Last <= r.First }

func (r *outlineRow) indent() string { return strings.Repeat(" ", r.depth) }

func (r *outlineRow) name(signature bool) string {
	return outlineName(r.OutlineSymbol, r.depth, signature)
}

// scope returns the type before the dot of a name; "" if it has none.
func (r *outlineRow) scope() string {
	if r.depth > 0 {
		return ""
	}
	return shortScope(r.ParentName, r.ParentKind)
}

// fieldKinds are ctags' kinds for fields of types.
var fieldKinds = []string{"member", "field", "property", "anonMember", "enumerator", "enumConstant"}

// outlineName returns the name of a definition, with its parameters if signature is set. If its
// type is in another file, the name begins with the type, as in Type.Method.
func outlineName(s *browse.OutlineSymbol, depth int, signature bool) string {
	name := label(s.Name)
	if scope := shortScope(s.ParentName, s.ParentKind); scope != "" && depth == 0 {
		name = scope + "." + name
	}
	if !signature {
		return name
	}
	return name + cut(label(s.Signature), 0, 0)
}

// linesOfSymbol returns the lines of a definition, as far as they are known.
func linesOfSymbol(s *browse.OutlineSymbol) string {
	if s.Last > s.First {
		return fmt.Sprintf("%d-%d", s.First, s.Last)
	}
	return fmt.Sprint(s.First)
}

// kindsWanted returns the requested kinds, nil for all. Models write them as a list or as one text
// with commas.
func kindsWanted(a *Args) []string {
	var out []string
	for _, kind := range a.List("kinds") {
		out = append(out, strings.FieldsFunc(kind, func(r rune) bool { return r == ',' || r == ' ' })...)
	}
	return out
}

// kindsThere returns a line with the kinds that the files do have, if they have none of the wanted
// ones. Kinds are ctags' words, which differ between languages.
func kindsThere(r *browse.OutlineResponse, wanted []string) string {
	there := map[string]int{}
	for i := range r.Files {
		for _, s := range r.Files[i].Symbols {
			there[s.Kind]++
		}
	}

	// If one of the wanted kinds exists, that is an answer.
	has := slices.ContainsFunc(wanted, func(kind string) bool { return there[kind] > 0 })
	if wanted == nil || len(there) == 0 || has {
		return ""
	}

	// The most frequent kinds come first, as the most likely ones.
	kinds := slices.SortedFunc(maps.Keys(there), func(a, b string) int {
		return cmp.Or(there[b]-there[a], strings.Compare(a, b))
	})
	for i, kind := range kinds {
		kinds[i] = fmt.Sprintf("%s %d", kind, there[kind])
	}
	return fmt.Sprintf("No %s is there; the kinds there: %s.\n", label(strings.Join(wanted, " or ")), strings.Join(kinds, ", "))
}
