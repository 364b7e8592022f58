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

// A call about a symbol may name several symbols, and a grep several revisions: a caller that asks
// for one often asks for the next, and each call costs more than its answer.

const (
	mostAtOnce  = 8
	leastForOne = 500 // tokens of the answer about one name
	leastForRef = 200 // of that at one revision: who compares some asks for little
)

// oneName matches a name in a list. It excludes the commas and spaces of templates and operators.
var oneName = regexp.MustCompile(`^[\pL\pN_$@.:#~!?-]+$`)

// namesOf splits a list such as "dbSyncDelete, dbAsyncDelete". It returns nil if symbol is a single
// name.
func namesOf(symbol string) []string {
	var names []string
	for part := range strings.SplitSeq(symbol, ",") {
		name := strings.TrimSpace(part)
		// If any part is not a name, the whole is one name: "operator," and "Map<K, V>" contain
		// commas.
		if !oneName.MatchString(name) {
			return nil
		}
		// Ignore repeated names.
		if !contains(names, name) {
			names = append(names, name)
		}
	}
	// A single name with a comma at its end still counts as a list.
	if len(names) == 1 && !strings.Contains(symbol, ",") {
		return nil
	}
	return names
}

// runFunc runs a call of a tool.
type runFunc func(ctx context.Context, v catalog.Viewer, a *Args) (string, error)

// ofEachName lets a tool answer a call with several symbols. The answers share the room.
func ofEachName(run runFunc) runFunc {
	return func(ctx context.Context, v catalog.Viewer, a *Args) (string, error) {
		names := namesOf(a.Text("symbol"))
		if names == nil {
			return run(ctx, v, a)
		}
		return ofEach(ctx, v, a, run, "symbol", names, leastForOne)
	}
}

// ofEachRef lets a tool answer a call with several revisions, with a heading for each. A revision
// whose name contains commas counts as one.
func ofEachRef(run runFunc) runFunc {
	named := func(ctx context.Context, v catalog.Viewer, a *Args) (string, error) {
		text, err := run(ctx, v, a)
		// A missing revision is part of the answer.
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
		// A search of all repositories never refuses a name.
		if a.Text("repo") != "" {
			if text, err := run(ctx, v, a); !errors.Is(err, call.ErrRef) {
				return text, err
			}
		}
		return ofEach(ctx, v, a, named, "ref", refs, leastForRef)
	}
}

// ofEachRepo lets a tool answer a call with several repositories, with a heading for each. A
// missing revision in one is part of the answer.
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

// refsOf splits a list of revisions such as "v1.0, v1.1".
func refsOf(list string) (refs []string) {
	for part := range strings.SplitSeq(list, ",") {
		if ref := strings.TrimSpace(part); ref != "" && !slices.Contains(refs, ref) {
			refs = append(refs, ref)
		}
	}
	return refs
}

// ofEach makes a call for each value of a parameter. Each call gets at least least tokens.
func ofEach(ctx context.Context, v catalog.Viewer, a *Args, run runFunc, param string, values []string, least int) (string, error) {
	// Too small answers are useless, so the remaining values wait for the next call.
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

		// Later values get the room that this answer did not use.
		left = max(left-len(text)/tokenBytes, least*(len(values)-i-1))
	}

	if len(later) > 0 {
		fmt.Fprintf(&out, "Left out: %s; continue with %s.\n", label(strings.Join(later, ", ")), a.with(param, strings.Join(later, ",")))
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}

// about returns the same call with another value of a parameter, and a part of its room.
func (a *Args) about(param, value string, tokens int) *Args {
	one := &Args{tool: a.tool, values: maps.Clone(a.values), given: slices.Clone(a.given), asked: a.asked, unmatched: a.unmatched, made: a.made, renamed: a.renamed}
	one.values[param] = value
	one.values["maxTokens"] = tokens
	return one
}
