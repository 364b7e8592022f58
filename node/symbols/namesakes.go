package symbols

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/node/search"
	"github.com/shoalsearch/shoal/shard/query"
)

// namesakes tells the requested type from other types with the same last part of their names, such
// as CallAdapter.Factory from Converter.Factory. It is used only where the request has a qualifier.
type namesakes struct {
	name   string
	scopes [][]string // of the requested type: the request's, and those around its definitions
	others [][]string // of the other types with that name
	heads  map[place]bool
	files  map[fileOf]bool // of the requested type
	dirs   map[string]bool // of types with the name that nothing is around: whether all are the requested one
}

// verdict says whether a head means the requested type.
type verdict int

const (
	undecided verdict = iota
	same
	another
)

// scopeParts splits a qualifier into its parts.
func scopeParts(scope string) []string {
	return strings.FieldsFunc(scope, func(r rune) bool { return strings.ContainsRune(`.:\/#`, r) })
}

// fits reports whether one of two qualifiers ends with the other. No qualifier fits nothing.
func fits(a, b []string) bool {
	n := min(len(a), len(b))
	return n > 0 && slices.Equal(a[len(a)-n:], b[len(b)-n:])
}

// of decides by a written qualifier.
func (n *namesakes) of(qualifier []string) verdict {
	fit := func(scope []string) bool { return fits(scope, qualifier) }
	switch {
	case slices.ContainsFunc(n.scopes, fit):
		return same
	case slices.ContainsFunc(n.others, fit):
		return another
	}
	return undecided
}

// within decides by the scope around a head: the innermost scope that defines the name counts.
func (n *namesakes) within(around string) verdict {
	for parts := scopeParts(around); len(parts) > 0; parts = parts[:len(parts)-1] {
		// A longer scope than the parts is a scope within them.
		at := func(scope []string) bool { return len(scope) <= len(parts) && fits(scope, parts) }
		switch {
		case slices.ContainsFunc(n.scopes, at):
			return same
		case slices.ContainsFunc(n.others, at):
			return another
		}
	}
	return undecided
}

// namesakesOf returns the namesakes of a qualified symbol; nil if it has no qualifier.
func (h *hierarchy) namesakesOf(symbol string) (*namesakes, error) {
	scope, name := Qualified(symbol)
	if scope == "" || len(h.out.Defined) == 0 {
		return nil, nil
	}
	n := &namesakes{name: name, scopes: [][]string{scopeParts(scope)}, heads: map[place]bool{}, files: map[fileOf]bool{}, dirs: map[string]bool{}}
	asked := map[place]bool{}
	for i := range h.out.Defined {
		f := &h.out.Defined[i]
		for _, m := range f.Matches {
			asked[place{keyOf(f), m.Range.Start.Line}] = true
			if m.ParentName != "" {
				n.scopes = append(n.scopes, scopeParts(m.ParentName))
			}
			n.files[keyOf(f)] = true
			n.dirs[dirOf(f)] = m.ParentName == ""
		}
	}

	all, err := h.defining([]string{name})
	if err != nil {
		return nil, err
	}
	for i := range all.Files {
		f := &all.Files[i]
		for _, m := range f.Matches {
			at := place{keyOf(f), m.Range.Start.Line}
			if asked[at] || !h.spoken(f.Language) {
				continue
			}
			n.heads[at] = true
			if m.ParentName != "" {
				n.others = append(n.others, scopeParts(m.ParentName))
			} else {
				module := moduleOf(f.Path)
				n.others = append(n.others, module, module[:len(module)-1])
				n.dirs[dirOf(f)] = false
			}
		}
	}
	return n, nil
}

func dirOf(f *SymbolFile) string { return f.Repository + " " + path.Dir(f.Path) }

// moduleOf returns the parts of a path as a qualifier: a module of Python is called like its file, a
// package of Java like its directory.
func moduleOf(file string) []string {
	dir := path.Dir(file)
	stem, _, _ := strings.Cut(path.Base(file), ".")
	return append(scopeParts(strings.TrimPrefix(dir, ".")), stem)
}

// inModule reports whether the path of a definition without a scope ends with the qualifier of a
// request: httpx._types of httpx/_types.py, or retrofit2 of retrofit2/Call.java.
func inModule(file, scope string) bool {
	module, parts := moduleOf(file), scopeParts(scope)
	ends := func(m []string) bool { return len(m) >= len(parts) && fits(m, parts) }
	return ends(module) || ends(module[:len(module)-1])
}

// settle removes the types of a level that extend a namesake of the requested type, and marks those
// that neither heads nor imports decide.
func (h *hierarchy) settle(found *SymbolResponse) error {
	if h.namesakes == nil {
		return nil
	}
	imports, err := h.imports(found)
	if err != nil {
		return err
	}
	left := map[string]int{}
	for i := range found.Files {
		f := &found.Files[i]
		f.Matches = slices.DeleteFunc(f.Matches, func(m SymbolMatch) bool {
			if m.Of != h.namesakes.name || m.by == "" {
				return false
			}
			verdict, other := h.namesakes.decide(f, &m, imports[keyOf(f)])
			if verdict == another {
				left[other]++
			}
			return verdict == another
		})
		for k := range f.Matches {
			m := &f.Matches[k]
			if m.Of == h.namesakes.name && m.by != "" {
				verdict, _ := h.namesakes.decide(f, m, imports[keyOf(f)])
				m.Undecided = verdict == undecided
			}
		}
	}
	found.dropEmpty()
	for _, name := range slices.Sorted(maps.Keys(left)) {
		h.out.Namesakes = append(h.out.Namesakes, fmt.Sprintf("%d of %s", left[name], name))
	}
	return nil
}

// decide says whether a head means the requested type, and how the other type is written if not.
func (n *namesakes) decide(f *SymbolFile, m *SymbolMatch, imported [][]string) (verdict, string) {
	// The head says it.
	if q := strings.TrimRight(strings.TrimSuffix(m.by, n.name), `.:\`); q != "" {
		return n.of(scopeParts(q)), m.by
	}
	// The file says it.
	for _, q := range imported {
		if v := n.of(q); v != undecided {
			return v, strings.Join(append(slices.Clone(q), n.name), ".")
		}
	}
	if v := n.within(m.scope); v != undecided {
		return v, n.name
	}
	if imported == nil && (len(n.others) == 0 || n.files[keyOf(f)] || packaged(f.Language) && n.dirs[dirOf(f)]) {
		return same, ""
	}
	return undecided, ""
}

// packaged reports whether a file sees the types of its directory without an import.
func packaged(lang string) bool {
	return slices.Contains([]string{"Java", "Kotlin", "Scala", "Groovy", "PHP", "C#", "Swift"}, lang)
}

// importOf matches a line that imports a name, with the path to it.
const importOf = `^[ \t]*(?:import|from|use|using)\b[^\n]*\b%s\b`

// imports returns, for files with heads that write no qualifier, the qualifiers of their imports of
// the requested name.
func (h *hierarchy) imports(found *SymbolResponse) (map[fileOf][][]string, error) {
	bare := slices.ContainsFunc(found.Files, func(f SymbolFile) bool {
		return slices.ContainsFunc(f.Matches, func(m SymbolMatch) bool { return m.by == h.namesakes.name })
	})
	if !bare {
		return nil, nil
	}
	name := regexp.QuoteMeta(h.namesakes.name)
	expr := regexp.MustCompile(fmt.Sprintf(importOf, name))
	imports := map[fileOf][][]string{}
	_, err := h.find(&query.Text{Pattern: expr.String(), Regexp: true}, func(f *search.File) []SymbolMatch {
		for i := range f.Chunks {
			for line := range strings.Lines(string(f.Chunks[i].Content)) {
				if expr.MatchString(line) {
					key := fileOf{f.Repository, f.Path}
					imports[key] = append(imports[key], importedFrom(line, h.namesakes.name))
				}
			}
		}
		return nil
	})
	return imports, err
}

// modulePath is a path in an import.
var modulePath = regexp.MustCompile(`[\w$./\\:@-]*[\w$]`)

// importedFrom returns the qualifier of a name that an import line names: a.b of "import a.b.C", and
// of "from a.b import C" and of `import { C } from "a/b"`.
func importedFrom(line, name string) []string {
	words := modulePath.FindAllString(line, -1)
	for _, w := range words {
		parts := scopeParts(w)
		if len(parts) > 1 && parts[len(parts)-1] == name {
			return parts[:len(parts)-1]
		}
	}
	for i, w := range words {
		if w == "from" && i+1 < len(words) {
			return scopeParts(words[i+1])
		}
	}
	return nil
}

// ofNamesake reports whether a head is that of another type with the requested name, whose
// supertypes are not those of the requested one.
func (h *hierarchy) ofNamesake(f *search.File, m *SymbolMatch) bool {
	n := h.namesakes
	if n == nil || m.Name != n.name {
		return false
	}
	scope := cmp.Or(m.scope, m.ParentName)
	return n.heads[place{fileOf{f.Repository, f.Path}, m.Range.Start.Line}] || scope != "" && n.of(scopeParts(scope)) == another
}

// imports reports whether a line of PHP such as "use A\B;" is an import. Only within a type does it
// add a trait.
func imports(lang, around string, line []byte) bool {
	if lang != "PHP" {
		return false
	}
	within := around == "class" || around == "trait" || around == "enum"
	return !within && (around != "" || len(line) > 0 && line[0] != ' ' && line[0] != '\t')
}
