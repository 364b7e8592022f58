package tool

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/browse"
)

// mostSummedUp is the largest number of files of a difference that are summarized by their symbols.
// One outline request takes as many.
const mostSummedUp = 20

// outlined has the symbols of the files on both sides of a comparison.
type outlined struct {
	old, new map[string]*browse.OutlineFile // by path
}

// findSymbols summarizes the files with the most changed lines by their definitions. It sorts the
// files by changed lines.
func (c *comparison) findSymbols(ctx context.Context, v catalog.Viewer, b browse.Reader) error {
	slices.SortStableFunc(c.files, func(x, y changed) int { return cmp.Compare(y.plus+y.minus, x.plus+x.minus) })
	files := c.files[:min(len(c.files), mostSummedUp)]

	// Symbolic links and submodules have no definitions.
	var old, head []string
	for _, f := range files {
		if f.diff.Binary {
			continue
		}
		if isText(f.diff.OldMode) {
			old = append(old, f.diff.OldPath)
		}
		if isText(f.diff.NewMode) {
			head = append(head, f.diff.NewPath)
		}
	}

	var known outlined
	var err error
	if known.old, err = outlines(ctx, v, b, c.Text("repo"), c.r.BaseCommit, old); err != nil {
		return err
	}
	if known.new, err = outlines(ctx, v, b, c.Text("repo"), c.r.HeadCommit, head); err != nil {
		return err
	}

	for i := range files {
		files[i].symbols = known.lines(files[i].diff)
		if !files[i].diff.Binary && known.lacks(files[i].diff) {
			c.unknown = append(c.unknown, files[i].path)
		}
	}
	return nil
}

// isText reports by a file's mode that it is neither a symbolic link nor a submodule.
func isText(mode string) bool { return strings.HasPrefix(mode, "100") }

// outlines returns the outlines of files in a commit, by path.
func outlines(ctx context.Context, v catalog.Viewer, b browse.Reader, repo, commit string, paths []string) (map[string]*browse.OutlineFile, error) {
	found := map[string]*browse.OutlineFile{}
	if len(paths) == 0 {
		return found, nil
	}

	r, err := b.Outline(ctx, v, browse.OutlineRequest{Repo: repo, Ref: commit, Paths: paths})
	if err != nil {
		return nil, err
	}
	for i := range r.Files {
		found[r.Files[i].Path] = &r.Files[i]
	}
	return found, nil
}

// bySymbols lists for each file which definitions are new, gone and changed.
func (c *comparison) bySymbols(out *strings.Builder, e *end) {
	files := c.files[:min(len(c.files), mostSummedUp)]
	blocks := make([]block, len(files))
	for i := range files {
		blocks[i] = block{head: files[i].line(), lines: files[i].symbols}
	}

	shown := writeBlocks(c.Args, out, blocks, e, func(i int) string {
		// The same call would show the same again; the patch shows the rest.
		if c.Text("path") == files[i].path {
			return c.with("mode", "patch")
		}
		return c.with("path", files[i].path, "include", nil, "exclude", nil)
	})

	if left := len(c.files) - shown; left > 0 {
		e.left = append(e.left, fmt.Sprintf("%s with fewer changed lines; continue with %s, or with path", count(left, "file"), c.with("mode", "stat")))
	}
	if len(c.unknown) > 0 {
		e.unlooked = append(e.unlooked, unknownSymbols(len(c.unknown), c.unknown[0])+c.with("path", c.unknown[0], "mode", "patch")+" shows the lines")
	}
	// A caller that asked for symbols did not ask for the patch.
	if c.Text("mode") == "auto" {
		e.left = append(e.left, "the patch, which does not fit; continue with "+c.with("mode", "patch"))
	}
}

// lines summarizes the changes of a file by its definitions. It returns nil if the symbols of one
// side are unknown: all definitions of the other side would seem new, or gone.
func (o *outlined) lines(f *browse.DiffFile) []string {
	old, head := o.old[f.OldPath], o.new[f.NewPath]
	if o.lacks(f) || f.Cut {
		return nil
	}
	return symbolLines(f, old, head)
}

// lacks reports whether the symbols of one side of a file are unknown.
func (o *outlined) lacks(f *browse.DiffFile) bool {
	return unknownSide(o.old[f.OldPath], f.OldMode) || unknownSide(o.new[f.NewPath], f.NewMode)
}

func unknownSide(f *browse.OutlineFile, mode string) bool {
	return isText(mode) && (f == nil || f.Unknown)
}

// defined is a definition in a changed file, on one side or both.
type defined struct {
	name, kind  string
	old, new    bool // it is there
	short       bool // on one line
	plus, minus int  // of its lines, without those of definitions in it

	oldParams, newParams string // in brackets; "" if unknown
}

// symbolLines summarizes the changes of a file by its definitions; nil if it has none.
func symbolLines(f *browse.DiffFile, old, head *browse.OutlineFile) []string {
	// First the definitions of the new side, in order, then those that are gone.
	var all []*defined
	at := map[string]*defined{}
	newSide := innermostByLine(head, func(key string, d defined) *defined {
		d.new, d.newParams, d.oldParams = true, d.oldParams, ""
		all, at[key] = append(all, &d), &d
		return &d
	})
	oldSide := innermostByLine(old, func(key string, d defined) *defined {
		known := at[key]
		if known == nil {
			known = &d
			all = append(all, known)
		}
		known.old, known.oldParams = true, d.oldParams
		return known
	})

	// Lines outside all definitions are counted in one without a name.
	other := &defined{old: true, new: true}
	countLines(f,
		func(line int) { innermost(oldSide, line, other).minus++ },
		func(line int) { innermost(newSide, line, other).plus++ })
	if len(all) == 0 {
		return nil
	}

	unsigned := 0
	if signed := slices.DeleteFunc(slices.Clone(all), func(d *defined) bool { return changedParams(d.oldParams, d.newParams) == "" }); len(signed) > mostSigned {
		for _, d := range signed {
			d.oldParams = ""
		}
		unsigned = len(signed)
	}
	lines := linesOfDefined(all)
	if unsigned > 0 {
		lines = append(lines, fmt.Sprintf("parameters of %d changed, too\n", unsigned))
	}
	if other.plus+other.minus > 0 {
		lines = append(lines, fmt.Sprintf("elsewhere: +%d -%d\n", other.plus, other.minus))
	}

	return lines
}

// innermostByLine returns, by line number, the innermost definition around each line of a file; nil
// for none. place returns the record in which a definition's lines are counted. Its key includes a
// number, because several definitions may have one name.
func innermostByLine(f *browse.OutlineFile, place func(key string, d defined) *defined) []*defined {
	if f == nil {
		return nil
	}

	parts := make([]*defined, f.Lines+1)
	seen := map[string]int{}
	inside := 0 // last line of the function that was opened last
	for i := range f.Symbols {
		s := &f.Symbols[i]

		// Locals and fields count as part of the definition around them.
		local := s.First <= inside
		if local || s.Kind == "package" || s.Kind == "packageName" || contains(fieldKinds, s.Kind) && s.Signature == "" || s.First < 1 {
			continue
		}
		kind := s.Kind
		if contains(fieldKinds, kind) {
			kind = "method" // ctags calls those of Python members
		}
		if contains(functionKinds, kind) {
			inside = s.Last
		}

		d := defined{name: outlineName(s, 0, false), kind: kind, short: s.Last <= s.First, oldParams: s.Signature}
		key := d.kind + " " + d.name
		seen[key]++
		part := place(fmt.Sprint(key, " ", seen[key]), d)

		// Inner definitions come later and overwrite the lines of outer ones.
		for line := s.First; line <= min(max(s.Last, s.First), f.Lines); line++ {
			parts[line] = part
		}
	}
	return parts
}

// functionKinds are ctags' kinds for definitions with a body of code.
var functionKinds = []string{"function", "method", "func", "subroutine", "procedure", "constructor", "singletonMethod"}

// innermost returns the definition around a line, or other if there is none.
func innermost(parts []*defined, line int, other *defined) *defined {
	if line < len(parts) && parts[line] != nil {
		return parts[line]
	}
	return other
}

// countLines calls went for each removed line and came for each added line, with its number.
func countLines(f *browse.DiffFile, went, came func(line int)) {
	for _, h := range f.Hunks {
		old, head := h.OldStart, h.NewStart
		for line := range strings.Lines(h.Body) {
			switch line[0] {
			case '-':
				went(old)
				old++
			case '+':
				came(head)
				head++
			case ' ':
				old++
				head++
			}
		}
	}
}

// linesOfDefined writes the new, gone and changed definitions, those of one kind together.
func linesOfDefined(all []*defined) []string {
	var lines []string
	for _, what := range []string{"new", "gone", "changed"} {
		for _, kind := range kindsOf(all) {
			begin := what + " " + label(kind) + ": "
			line := begin
			for _, d := range all {
				if d.kind != kind || d.what() != what {
					continue
				}
				// A long list continues on another line with the same beginning.
				if len(line) > sharedLine {
					lines = append(lines, line+"\n")
					line = begin
				}
				if line != begin {
					line += ", "
				}
				line += d.text()
			}
			if line != begin {
				lines = append(lines, line+"\n")
			}
		}
	}
	return lines
}

// kindsOf lists the kinds of definitions in order of appearance.
func kindsOf(all []*defined) (kinds []string) {
	for _, d := range all {
		if !slices.Contains(kinds, d.kind) {
			kinds = append(kinds, d.kind)
		}
	}
	return kinds
}

// what returns how a definition changed: "new", "gone", "changed", or "" if it did not.
func (d *defined) what() string {
	switch {
	case !d.old:
		return "new"
	case !d.new:
		return "gone"
	case d.plus+d.minus > 0:
		return "changed"
	}
	return ""
}

// text returns the name of a definition, with its numbers of added and removed lines.
func (d *defined) text() string {
	switch {
	case d.short:
		return d.name
	case !d.old:
		return fmt.Sprintf("%s +%d", d.name, d.plus)
	case !d.new:
		return fmt.Sprintf("%s -%d", d.name, d.minus)
	}
	return fmt.Sprintf("%s +%d -%d%s", d.name, d.plus, d.minus, changedParams(d.oldParams, d.newParams))
}

// mostSigned is the largest number of changed definitions of a file whose parameters are told.
const mostSigned = 12

// mostParams is the largest number of bytes of parameters that a change names.
const mostParams = 300

// changedParams names the parameters that went and came, in brackets; "" for none.
func changedParams(old, head string) string {
	if old == "" || head == "" || old == head {
		return ""
	}
	was, is := paramsOf(old), paramsOf(head)
	var text []string
	for _, p := range was {
		if !slices.Contains(is, p) {
			text = append(text, "-"+label(p))
		}
	}
	for _, p := range is {
		if !slices.Contains(was, p) {
			text = append(text, "+"+label(p))
		}
	}
	all := strings.Join(text, ", ")
	if len(all) > mostParams {
		all = cutEnd(all, mostParams)
	}
	if all == "" {
		return " (parameters in another order)"
	}
	return " (" + all + ")"
}

// paramsOf splits the parameters of a signature such as (a int, b map[string]int).
func paramsOf(signature string) (params []string) {
	depth, from := 0, 0
	text := strings.TrimSuffix(strings.TrimPrefix(signature, "("), ")")
	for i, r := range text {
		switch r {
		case '(', '[', '{', '<':
			depth++
		case ')', ']', '}', '>':
			depth--
		case ',':
			if depth == 0 {
				params, from = append(params, strings.TrimSpace(text[from:i])), i+1
			}
		}
	}
	if last := strings.TrimSpace(text[min(from, len(text)):]); last != "" {
		params = append(params, last)
	}
	return params
}
