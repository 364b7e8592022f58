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

// runOutline answers a call of outline.
func runOutline(ctx context.Context, v catalog.Viewer, b browse.Reader, a *Args) (string, error) {
	req := browse.OutlineRequest{Repo: a.Text("repo"), Ref: a.Text("ref"), Paths: []string{a.Text("path")}}
	r, err := b.Outline(ctx, v, req)
	if err != nil {
		return "", err
	}
	return outlineText(a, r), nil
}

// outlineText writes the definitions of files.
func outlineText(a *Args, r *browse.OutlineResponse) string {
	blocks, shown, hidden := outlineBlocks(a, r, true)

	// Of a large file the names matter: parameters are told where they are asked for.
	brief := sizeOf(blocks) > longOutline
	if brief {
		blocks, shown, hidden = outlineBlocks(a, r, false)
	}

	// Words of its own for what search has none for.
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
		// Of one file its own head is the first line.
		out.WriteString(strings.TrimSuffix(blocks[0].head, "\n"))
		blocks[0].head = ""
	default:
		fmt.Fprintf(&out, "%s at %.8s: %s with definitions", fileLabel(a.Text("path")), r.Commit, count(len(blocks), "file"))
	}

	// What is cut is asked for with less depth: the top of it is then whole.
	whole := writeBlocks(a, &out, blocks, &e, func(i int) string {
		return a.with("path", shown[i].Path, "depth", 1)
	})
	// Behind the blocks, for it explains why they are empty.
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

// unknownSymbols names a number of files whose symbols could not be found, by the first.
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

// tell adds what is not shown, with the calls that show it.
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

// longOutline is how many bytes an outline may have with the parameters of functions.
const longOutline = 6000

// sizeOf is how many bytes the lines of blocks have.
func sizeOf(blocks []block) (n int) {
	for i := range blocks {
		for _, line := range blocks[i].lines {
			n += len(line)
		}
	}
	return n
}

// outlineBlocks makes a block of each file that is shown. Among others a file
// without definitions is not.
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

// outlineLines writes the definitions of a file that are wanted, and tells how
// many they are. hidden counts the others.
func outlineLines(a *Args, f *browse.OutlineFile, signatures bool, hidden *hiddenSymbols) (lines []string, symbols int) {
	rows := outlineRows(a, f, signatures, hidden)
	asked := kindsWanted(a) != nil
	for i := 0; i < len(rows); {
		run := runOf(rows[i:])

		// Of a large file that many constants and the like are told by their number, unless
		// their kind was asked for.
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

// outlineRow is a definition that is shown. It is as deep as the number of those that it
// stands in.
type outlineRow struct {
	*browse.OutlineSymbol
	depth int
}

// outlineRows picks the definitions of a file that are wanted, and counts the others.
func outlineRows(a *Args, f *browse.OutlineFile, signatures bool, hidden *hiddenSymbols) (rows []outlineRow) {
	kinds, most := kindsWanted(a), a.Number("depth")
	if kinds != nil && !a.Has("depth") {
		most = math.MaxInt
	}

	var open []*browse.OutlineSymbol // what is around
	for i := range f.Symbols {
		s := &f.Symbols[i]

		// What ends before this one begins is around it no more.
		for len(open) > 0 && open[len(open)-1].Last < s.First {
			open = open[:len(open)-1]
		}
		depth, level := len(open), levelIn(open)
		local := isLambda(s) || depth > 0 && isCode(open[depth-1]) && contains(valueKinds, s.Kind)
		field := depth > 0 && contains(fieldKinds, s.Kind)
		if s.Last > s.First {
			open = append(open, s)
		}

		// The clause of a package and the name of an import are no definitions of the file.
		clause := s.Kind == "packageName" || s.Kind == "package" && s.Last <= s.First && f.Language != "Perl"
		switch {
		case kinds == nil && clause, kinds != nil && !contains(kinds, s.Kind):
		// Each of these is as well found by reading what it is in.
		case kinds == nil && local:
			hidden.locals++
			hidden.inside = addOnce(hidden.inside, s.Kind)
		case level >= most:
			hidden.deeper++
		// Fields are the most of many a large file, and who needs them reads their type.
		case kinds == nil && !signatures && field:
			hidden.values++
			hidden.fields = addOnce(hidden.fields, s.Kind)
		default:
			rows = append(rows, outlineRow{s, depth})
		}
	}
	return rows
}

// levelIn is how deep a definition is in those around it. Packages, namespaces and
// modules only hold names, and lambdas are not shown: they are no level.
func levelIn(around []*browse.OutlineSymbol) (level int) {
	for _, s := range around {
		if !contains(spaceKinds, s.Kind) && !isLambda(s) {
			level++
		}
	}
	return level
}

// What ctags calls parts of a file, in its languages.
var (
	spaceKinds = []string{"package", "packageName", "namespace", "module", "submodule", "library", "unit", "program"}
	codeKinds  = []string{"function", "method", "singletonMethod", "constructor", "destructor", "getter", "setter", "generator", "func", "subroutine", "procedure", "task", "operator", "accessor"}
	valueKinds = []string{"variable", "constant", "const", "var", "val", "local", "parameter", "property", "label", "globalVar", "binding"}
)

// isCode reports whether a definition is one of code that runs: what is declared in it
// nobody else can use.
func isCode(s *browse.OutlineSymbol) bool { return contains(codeKinds, s.Kind) || s.Kind == "lambda" }

// isLambda reports whether a definition has no name in the source: ctags makes one up.
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

// runOf is the first rows that could share a line: as deep, of one kind, and all on one
// line of the file or none of them.
func runOf(rows []outlineRow) []outlineRow {
	n := 1
	for n < len(rows) && rows[n].depth == rows[0].depth && rows[n].Kind == rows[0].Kind && rows[n].short() == rows[0].short() {
		n++
	}
	return rows[:n]
}

// longRun is how many definitions of one line a large file's outline lists by name.
const longRun = 8

// sharedLine is how many bytes a line of several definitions has before the next begins.
const sharedLine = 100

// sharedLines writes a run. Constants, fields and the like share lines; of a large file
// all do.
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

		// What several belong to is named once on a line.
		if scope != "" && r.scope() == scope {
			name = strings.TrimPrefix(name, scope)
		}
		scope = r.scope()
		lines[last] = fmt.Sprintf("%s, %s %s\n", strings.TrimSuffix(lines[last], "\n"), linesOfSymbol(r.OutlineSymbol), name)
	}
	return lines
}

// short tells of a definition that is known to be on one line, or that has no known end.
func (r *outlineRow) short() bool { return r.Last <= r.First }

func (r *outlineRow) indent() string { return strings.Repeat(" ", r.depth) }

func (r *outlineRow) name(signature bool) string {
	return outlineName(r.OutlineSymbol, r.depth, signature)
}

// scope is what stands before the point of a name; "" where it has none.
func (r *outlineRow) scope() string {
	if r.depth > 0 {
		return ""
	}
	return shortScope(r.ParentName, r.ParentKind)
}

// fieldKinds is what ctags calls parts of a type that hold a value.
var fieldKinds = []string{"member", "field", "property", "anonMember", "enumerator", "enumConstant"}

// outlineName is the name of a definition, with its parameters if they are wanted.
// If its type stands in another file, the name begins with that, as in Type.Method.
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

// linesOfSymbol is the lines of a definition, as far as they are known.
func linesOfSymbol(s *browse.OutlineSymbol) string {
	if s.Last > s.First {
		return fmt.Sprintf("%d-%d", s.First, s.Last)
	}
	return fmt.Sprint(s.First)
}

// kindsWanted is the kinds that the caller wants, nil for all. Models write
// them as a list and as one text with commas.
func kindsWanted(a *Args) []string {
	var out []string
	for _, kind := range a.List("kinds") {
		out = append(out, strings.FieldsFunc(kind, func(r rune) bool { return r == ',' || r == ' ' })...)
	}
	return out
}

// kindsThere is a line that tells which kinds the files have, where they have
// none of those that are wanted: kinds are ctags' words, which differ from
// language to language.
func kindsThere(r *browse.OutlineResponse, wanted []string) string {
	there := map[string]int{}
	for i := range r.Files {
		for _, s := range r.Files[i].Symbols {
			there[s.Kind]++
		}
	}

	// One kind that is there is an answer, if the others are not.
	has := slices.ContainsFunc(wanted, func(kind string) bool { return there[kind] > 0 })
	if wanted == nil || len(there) == 0 || has {
		return ""
	}

	// Most first: what there is most of is most likely what was meant.
	kinds := slices.SortedFunc(maps.Keys(there), func(a, b string) int {
		return cmp.Or(there[b]-there[a], strings.Compare(a, b))
	})
	for i, kind := range kinds {
		kinds[i] = fmt.Sprintf("%s %d", kind, there[kind])
	}
	return fmt.Sprintf("No %s is there; the kinds there: %s.\n", label(strings.Join(wanted, " or ")), strings.Join(kinds, ", "))
}
