package tool

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/node/browse"
	"github.com/shoalsearch/shoal/node/symbols"
	"github.com/shoalsearch/shoal/shard/lex"
)

var calledName = regexp.MustCompile(`[\pL_$][\pL\pN_$]*[!?]?`)

// callees adds the functions that a definition calls, and those that these call.
func (t *callTree) callees(name string, in definedPlace, level int) error {
	t.followed[name] = true
	names, at, err := t.calledIn(name, in)
	if err != nil || len(names) == 0 {
		return err
	}
	defined, err := t.define(slices.Clone(names))
	if err != nil {
		return err
	}
	for _, called := range names {
		// Ignore definitions in languages that this one cannot call.
		places := slices.DeleteFunc(defined[called], func(p definedPlace) bool { return !symbols.Mixed(p.lang, in.lang) })
		if defined[called] = places; len(places) == 0 {
			continue
		}
		// Prefer the same file, then the same repository.
		near := func(p definedPlace) int {
			switch {
			case p.repo != in.repo:
				return 2
			case p.path != in.path:
				return 1
			}
			return 0
		}
		slices.SortStableFunc(places, func(a, b definedPlace) int { return near(a) - near(b) })
		first := places[0]
		t.add(level, scopedName(called, first.parent, first.parentKind), first.repo, first.path, fmt.Sprintf("%d, called at %s", first.line, strings.Join(at[called], ",")))
		if len(places) > 1 && len(places) <= mostNamesakes {
			t.lines[len(t.lines)-1] += fmt.Sprintf(" (1 of %d definitions)", len(places))
		}
		if level >= t.Number("depth") {
			continue
		}
		if err := t.follow(called, defined, func() error { return t.callees(called, first, level+1) }); err != nil {
			return err
		}
	}
	return nil
}

// calledIn lists the names that a definition calls, each with the line numbers.
func (t *callTree) calledIn(name string, in definedPlace) (names []string, at map[string][]string, err error) {
	t.lookups++
	o, err := t.browse.Outline(t.ctx, t.viewer, browse.OutlineRequest{Repo: in.repo, Ref: t.Text("ref"), Paths: []string{in.path}})
	if err != nil || len(o.Files) == 0 {
		return nil, nil, err
	}
	last := in.line
	for _, s := range o.Files[0].Symbols {
		if s.First == in.line && s.Name == name {
			last = max(last, s.Last)
		}
	}
	r, err := t.browse.ReadFile(t.ctx, t.viewer, browse.ReadFileRequest{Repo: in.repo, Path: in.path, Ref: o.Commit, Offset: in.line, Limit: min(last-in.line+1, mostBody)})
	if err != nil {
		return nil, nil, err
	}

	at = map[string][]string{}
	open := lex.State(0) // nothing is open where a definition begins
	for i, line := range r.Lines {
		for _, m := range calledName.FindAllIndex(line, -1) {
			word := string(line[m[0]:m[1]])
			called, _ := calls(in.lang, word, line)
			if !called || word == name && i == 0 || symbols.OutsideCode(in.lang, line, open, m[0]) {
				continue
			}
			if at[word] == nil && len(names) == mostInBody {
				continue
			}
			if at[word] == nil {
				names = append(names, word)
			}
			if number := fmt.Sprint(in.line + i); !contains(at[word], number) {
				at[word] = append(at[word], number)
			}
		}
		open = lex.For(in.lang).After(line, open)
	}
	return names, at, nil
}
