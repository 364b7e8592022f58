package tool

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/cluster/catalog"
)

// A call about a symbol may name several: who asks for one of them asks for the
// next one, and each call costs more than its answer.

const (
	mostAtOnce  = 8
	leastForOne = 500 // tokens of the answer about one name
)

// oneName is how a name looks in a list: without the commas and spaces that
// templates and operators have.
var oneName = regexp.MustCompile(`^[\pL\pN_$@.:#~!?-]+$`)

// namesOf is the names in a list as "dbSyncDelete, dbAsyncDelete"; nil where it
// is one name.
func namesOf(symbol string) []string {
	var names []string
	for part := range strings.SplitSeq(symbol, ",") {
		name := strings.TrimSpace(part)
		// One odd part and the whole is one name: operator, and Map<K, V> have commas too.
		if !oneName.MatchString(name) {
			return nil
		}
		// Asked for twice, answered once.
		if !contains(names, name) {
			names = append(names, name)
		}
	}
	// A list of one, as with a comma at its end, is still mended.
	if len(names) == 1 && !strings.Contains(symbol, ",") {
		return nil
	}
	return names
}

// runFunc is the work of a tool.
type runFunc func(ctx context.Context, v catalog.Viewer, a *Args) (string, error)

// ofEachName answers a call that names several symbols with an answer about each,
// which share the room.
func ofEachName(run runFunc) runFunc {
	return func(ctx context.Context, v catalog.Viewer, a *Args) (string, error) {
		names := namesOf(a.Text("symbol"))
		if names == nil {
			return run(ctx, v, a)
		}

		// No answer is worth less than a look at it; what has no room comes next.
		most := min(mostAtOnce, max(1, a.Number("maxTokens")/leastForOne))
		later := names[min(most, len(names)):]
		names = names[:len(names)-len(later)]

		var out strings.Builder
		left := a.Number("maxTokens")
		told := map[string]bool{}
		for i, name := range names {
			one := a.about(name, left/(len(names)-i))
			one.told = told
			text, err := run(ctx, v, one)
			if err != nil {
				return "", err
			}
			out.WriteString(strings.TrimSuffix(text, "\n") + "\n")

			// What one does not need the others have.
			left = max(left-len(text)/tokenBytes, leastForOne*(len(names)-i-1))
		}

		if len(later) > 0 {
			fmt.Fprintf(&out, "Left out: %s; continue with %s.\n", label(strings.Join(later, ", ")), a.with("symbol", strings.Join(later, ",")))
		}
		return strings.TrimSuffix(out.String(), "\n"), nil
	}
}

// about is the same call for one symbol, with some of its room.
func (a *Args) about(symbol string, tokens int) *Args {
	one := &Args{tool: a.tool, values: maps.Clone(a.values), given: slices.Clone(a.given), asked: a.asked}
	one.values["symbol"] = symbol
	one.values["maxTokens"] = tokens
	return one
}
