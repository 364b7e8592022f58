package tool

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/node/browse"
)

const (
	mostConstants    = 6  // of the file that a read definition uses; of more, none is shown
	mostLookedAt     = 12 // lines that may define one
	longestConstant  = 120
	shortestConstant = 3 // letters of a name
)

// constantKinds are ctags' kinds of what has one value in a file. A variable counts if its line has a value.
var constantKinds = []string{"macro", "constant", "const", "variable", "static", "field", "property"}

// valued matches what follows a name if its line shows a value.
var valued = regexp.MustCompile(`[=:(\[ ]\s*\S*["'\d]|[=]\s*\S`)

// nameExpr matches the names in a text.
var nameExpr = regexp.MustCompile(`[\pL_$][\pL\pN_$]*`)

// constants returns the lines of the same file that define constants which the read definitions use. body
// is their text, and ranges are their lines.
func (r *reading) constants(body string, ranges []lineRange) string {
	used := map[string]bool{}
	for _, name := range nameExpr.FindAllString(body, -1) {
		used[name] = len(name) >= shortestConstant
	}

	var at []browse.OutlineSymbol
	for i, s := range r.symbols {
		within := slices.ContainsFunc(ranges, func(lr lineRange) bool { return lr.first <= s.First && s.First <= lr.last })
		if !used[s.Name] || within || !contains(constantKinds, s.Kind) || s.Last > s.First || r.local(i) {
			continue
		}
		if at = append(at, s); len(at) > mostLookedAt {
			return ""
		}
	}

	var lines []string
	for _, s := range at {
		f, err := r.lines(r.Text("path"), s.First, 1)
		if err != nil || len(f.Lines) == 0 {
			return ""
		}
		text := strings.TrimSpace(visible(f.Lines[0]))
		_, value, ok := strings.Cut(text, s.Name)
		if ok && valued.MatchString(value) {
			lines = append(lines, fmt.Sprintf("%d: %s\n", s.First, cutAround(text, 0, 0, longestConstant/2)))
		}
	}
	if len(lines) == 0 || len(lines) > mostConstants {
		return ""
	}
	return "-- uses\n" + strings.Join(lines, "")
}

// local reports whether a symbol of the file is within a function.
func (r *reading) local(i int) bool {
	line := r.symbols[i].First
	return slices.ContainsFunc(r.symbols, func(s browse.OutlineSymbol) bool {
		return contains(functionKinds, s.Kind) && s.First < line && line <= s.Last
	})
}
