package tool

import (
	"strings"
	"testing"

	"github.com/shoalsearch/shoal/node/browse"
)

// TestDiffSummary_countsLinesByInnermostDefinition: lines that came and went are counted with the innermost
// definition that they are part of.
func TestDiffSummary_countsLinesByInnermostDefinition(t *testing.T) {
	t.Parallel()
	function := func(name string, first, last int) browse.OutlineSymbol {
		return browse.OutlineSymbol{Name: name, Kind: "function", First: first, Last: last}
	}
	in := func(parent, kind, name string, first, last int) browse.OutlineSymbol {
		return browse.OutlineSymbol{Name: name, Kind: kind, ParentName: parent, ParentKind: "class", First: first, Last: last}
	}
	class := browse.OutlineSymbol{Name: "Pool", Kind: "class", First: 1, Last: 9}
	hunk := func(old, head int, body string) browse.DiffHunk {
		return browse.DiffHunk{OldStart: old, NewStart: head, Body: strings.ReplaceAll(body, "|", "\n")}
	}

	for _, tt := range []struct {
		name      string
		old, head []browse.OutlineSymbol // of 20 lines
		hunks     []browse.DiffHunk
		want      string
	}{
		{"a line of a function", []browse.OutlineSymbol{function("f", 2, 6), function("g", 8, 9)}, []browse.OutlineSymbol{function("f", 2, 7), function("g", 9, 10)},
			[]browse.DiffHunk{hunk(3, 3, "-a|+b|+c|")}, "changed function: f +2 -1"},
		{"around both", []browse.OutlineSymbol{function("f", 2, 3)}, []browse.OutlineSymbol{function("f", 2, 3)},
			[]browse.DiffHunk{hunk(1, 1, "-a|+b|"), hunk(4, 4, "-c|")}, "elsewhere: +1 -2"},
		{"lines around a change count for neither", []browse.OutlineSymbol{function("f", 2, 6)}, []browse.OutlineSymbol{function("f", 2, 6)},
			[]browse.DiffHunk{hunk(2, 2, " a|-b|+c| d|")}, "changed function: f +1 -1"},
		{"came and went", []browse.OutlineSymbol{function("f", 1, 3)}, []browse.OutlineSymbol{function("g", 1, 2)},
			[]browse.DiffHunk{hunk(1, 1, "-a|-b|-c|+d|+e|")}, "new function: g +2|gone function: f -3"},
		{"a method and its class", []browse.OutlineSymbol{class, in("Pool", "method", "get", 3, 5)}, []browse.OutlineSymbol{class, in("Pool", "method", "get", 3, 5)},
			[]browse.DiffHunk{hunk(2, 2, "-a|+b|"), hunk(4, 4, "-c|+d|")}, "changed class: Pool +1 -1|changed method: Pool.get +1 -1"},
		{"a field is part of its class", []browse.OutlineSymbol{class, in("Pool", "member", "size", 2, 2)}, []browse.OutlineSymbol{class, in("Pool", "member", "length", 2, 2)},
			[]browse.DiffHunk{hunk(2, 2, "-a|+b|")}, "changed class: Pool +1 -1"},
		{"what is local is part of its function", []browse.OutlineSymbol{function("f", 1, 9), function("inner", 3, 5)}, []browse.OutlineSymbol{function("f", 1, 9), function("other", 3, 5)},
			[]browse.DiffHunk{hunk(3, 3, "-a|+b|")}, "changed function: f +1 -1"},
		{"a constant has no numbers", []browse.OutlineSymbol{{Name: "A", Kind: "constant", First: 1, Last: 1}, {Name: "B", Kind: "constant", First: 2, Last: 2}},
			[]browse.OutlineSymbol{{Name: "A", Kind: "constant", First: 1, Last: 1}, {Name: "C", Kind: "constant", First: 2, Last: 2}},
			[]browse.DiffHunk{hunk(1, 1, "-a|-b|+d|+c|")}, "new constant: C|gone constant: B|changed constant: A"},
		{"constants that were only aligned anew", []browse.OutlineSymbol{{Name: "A", Kind: "constant", First: 1, Last: 1}, {Name: "B", Kind: "constant", First: 2, Last: 2}},
			[]browse.OutlineSymbol{{Name: "A", Kind: "constant", First: 1, Last: 1}, {Name: "B", Kind: "constant", First: 2, Last: 2}, {Name: "Longer", Kind: "constant", First: 3, Last: 3}},
			[]browse.DiffHunk{hunk(1, 1, "-A = 1|-B = 2|+A      = 1|+B      = 3|+Longer = 4|")}, "new constant: Longer|changed constant: A, B"},
		{"the second of one name", []browse.OutlineSymbol{function("init", 1, 2)}, []browse.OutlineSymbol{function("init", 1, 2), function("init", 4, 6)},
			[]browse.DiffHunk{hunk(3, 4, "+a|+b|+c|")}, "new function: init +3"},
		{"no line break at the end", []browse.OutlineSymbol{function("f", 1, 2)}, []browse.OutlineSymbol{function("f", 1, 2)},
			[]browse.DiffHunk{hunk(2, 2, "-a|\\ No newline at end of file|+b|")}, "changed function: f +1 -1"},
		{"an end behind the file", []browse.OutlineSymbol{function("f", 1, 2)}, []browse.OutlineSymbol{function("f", 19, 500)},
			[]browse.DiffHunk{hunk(1, 20, "-a|+b|")}, "changed function: f +1 -1"},
		{"nothing is defined", nil, nil, []browse.DiffHunk{hunk(1, 1, "-a|+b|")}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := &browse.DiffFile{Hunks: tt.hunks}
			lines := symbolLines(f, &browse.OutlineFile{Lines: 20, Symbols: tt.old}, &browse.OutlineFile{Lines: 20, Symbols: tt.head})
			if got := strings.ReplaceAll(strings.TrimSuffix(strings.Join(lines, ""), "\n"), "\n", "|"); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestDiffSummary_isEmptyIfTheSymbolsOfOneSideAreUnknown: where the symbols of a side are not known, nothing is said
// to have come or gone.
func TestDiffSummary_isEmptyIfTheSymbolsOfOneSideAreUnknown(t *testing.T) {
	t.Parallel()
	f := &browse.DiffFile{OldPath: "a.go", NewPath: "a.go", OldMode: "100644", NewMode: "100644", Hunks: []browse.DiffHunk{{OldStart: 1, NewStart: 1, Body: "-a\n+b\n"}}}
	side := map[string]*browse.OutlineFile{"a.go": {Lines: 3, Symbols: []browse.OutlineSymbol{{Name: "f", Kind: "function", First: 1, Last: 3}}}}
	unknown := map[string]*browse.OutlineFile{"a.go": {Lines: 3, Unknown: true}}
	added := *f
	added.OldPath, added.OldMode = "", ""
	added.Hunks = []browse.DiffHunk{{NewStart: 1, Body: "+b\n"}}
	cut := *f
	cut.Cut = true

	for _, tt := range []struct {
		name  string
		known outlined
		file  *browse.DiffFile
		want  int // lines
	}{
		{"both", outlined{old: side, new: side}, f, 1},
		{"no old side", outlined{new: side}, f, 0},
		{"no new side", outlined{old: side}, f, 0},
		{"old side not known", outlined{old: unknown, new: side}, f, 0},
		{"new side not known", outlined{old: side, new: unknown}, f, 0},
		{"not the whole patch", outlined{old: side, new: side}, &cut, 0},
		{"a new file", outlined{new: side}, &added, 1},
	} {
		if got := tt.known.lines(tt.file); len(got) != tt.want {
			t.Errorf("%s: %q", tt.name, got)
		}
	}
}
