package tool

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/call"
)

// A call about a symbol, or a grep at a revision, may name several: who asks for one of
// them asks for the next one, and each call costs more than its answer.

const (
	mostAtOnce  = 8
	leastForOne = 500 // tokens of the answer about one name
	leastForRef = 200 // of that at one revision: who compares some asks for little
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
		return ofEach(ctx, v, a, run, "symbol", names, leastForOne)
	}
}

// ofEachRef answers a call that names several revisions with an answer about each below
// its name. A name with commas that is one revision is taken as such.
func ofEachRef(run runFunc) runFunc {
	named := func(ctx context.Context, v catalog.Viewer, a *Args) (string, error) {
		text, err := run(ctx, v, a)
		// What one of several lacks is an answer about it.
		if errors.Is(err, call.ErrRef) {
			text, err = "There is no such revision.", nil
		}
		return label(a.Text("ref")) + ": " + text, err
	}
	return func(ctx context.Context, v catalog.Viewer, a *Args) (string, error) {
		refs := refsOf(a.Text("ref"))
		if len(refs) < 2 {
			return run(ctx, v, a)
		}
		// Among all repositories no name is refused.
		if a.Text("repo") != "" {
			if text, err := run(ctx, v, a); !errors.Is(err, call.ErrRef) {
				return text, err
			}
		}
		return ofEach(ctx, v, a, named, "ref", refs, leastForRef)
	}
}

// ofEachRepo answers a call that names several repositories with an answer about each below
// its name. What one of them lacks is an answer about it.
func ofEachRepo(run runFunc) runFunc {
	named := func(ctx context.Context, v catalog.Viewer, a *Args) (string, error) {
		a.asked = a.Text("repo")
		text, err := run(ctx, v, a)
		var lacks *call.Error
		if errors.As(err, &lacks) && errors.Is(err, call.ErrRef) {
			text, err = sentence(lacks.Message), nil
		}
		return "[" + label(a.Text("repo")) + "]\n" + text, err
	}
	return func(ctx context.Context, v catalog.Viewer, a *Args) (string, error) {
		repos := a.List("repo")
		if repos == nil {
			return run(ctx, v, a)
		}
		return ofEach(ctx, v, a, named, "repo", repos, leastForOne)
	}
}

// refsOf is the revisions in a list as "v1.0, v1.1".
func refsOf(list string) (refs []string) {
	for part := range strings.SplitSeq(list, ",") {
		if ref := strings.TrimSpace(part); ref != "" && !slices.Contains(refs, ref) {
			refs = append(refs, ref)
		}
	}
	return refs
}

// ofEach makes a call for each of several values of a parameter, each of which has at
// least so many tokens.
func ofEach(ctx context.Context, v catalog.Viewer, a *Args, run runFunc, param string, values []string, least int) (string, error) {
	// No answer is worth less than a look at it; what has no room comes next.
	most := min(mostAtOnce, max(1, a.Number("maxTokens")/least))
	later := values[min(most, len(values)):]
	values = values[:len(values)-len(later)]

	var out strings.Builder
	left := a.Number("maxTokens")
	told := map[string]bool{}
	for i, value := range values {
		one := a.about(param, value, left/(len(values)-i))
		one.told = told
		text, err := run(ctx, v, one)
		if err != nil {
			return "", err
		}
		out.WriteString(strings.TrimSuffix(text, "\n") + "\n")

		// What one does not need the others have.
		left = max(left-len(text)/tokenBytes, least*(len(values)-i-1))
	}

	if len(later) > 0 {
		fmt.Fprintf(&out, "Left out: %s; continue with %s.\n", label(strings.Join(later, ", ")), a.with(param, strings.Join(later, ",")))
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}

// about is the same call with another value of a parameter, and some of its room.
func (a *Args) about(param, value string, tokens int) *Args {
	one := &Args{tool: a.tool, values: maps.Clone(a.values), given: slices.Clone(a.given), asked: a.asked, unmatched: a.unmatched}
	one.values[param] = value
	one.values["maxTokens"] = tokens
	return one
}
