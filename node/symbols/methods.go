package symbols

import (
	"bytes"
	"cmp"
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/shoalsearch/shoal/node/search"
	"github.com/shoalsearch/shoal/shard"
	"github.com/shoalsearch/shoal/shard/query"
)

// A Go type implements an interface if it has its methods. Methods are compared by name, parameters
// and results, ignoring the packages of types.

// embedExpr returns an expression for Go lines that embed one of the names.
func embedExpr(names string) string {
	return `^[ \t]+\*?(?:\w+\.)?` + names + `(?:\[[^\n]*\])?[ \t]*(?:` + "`[^`\n]*`" + `)?[ \t]*(?://[^\n]*)?$`
}

// goText returns a query for an expression in Go files.
func goText(expr string) query.Q {
	return &query.And{Subs: []query.Q{&query.Lang{Name: "Go"}, &query.Text{Pattern: expr, Regexp: true}}}
}

// embeds returns the types in a Go file that embed one of the names.
func (h *hierarchy) embeds(f *search.File) (matches []SymbolMatch) {
	for i := range f.Chunks {
		c := &f.Chunks[i]
		for k, r := range c.Ranges {
			if k >= len(c.Around) || c.Around[k].Kind != "struct" && c.Around[k].Kind != "interface" {
				continue
			}
			line, at := lineOf(*c, r)
			name, _, _ := strings.Cut(strings.TrimLeft(strings.TrimSpace(string(line)), "*"), " ")
			name, _, _ = strings.Cut(name, "[")
			a := c.Around[k]
			matches = append(matches, SymbolMatch{Line: line, Range: r, Name: a.Name, Kind: a.Kind, ParentName: a.ParentName, Of: lastPart(name), at: at})
		}
	}
	return matches
}

// methodSet has the methods of a type by name.
type methodSet struct {
	methods  map[string]signatureOfGo
	embedded []string
	imports  map[string]string // of its file: import paths by the names of packages
	generic  bool
}

// signatureOfGo is the signature of a method.
type signatureOfGo struct {
	types string // without packages
	count string // of them, where type parameters hide what they are
}

// has reports whether a set contains all methods of an interface.
func (s *methodSet) has(of *methodSet) bool {
	for name, want := range of.methods {
		got, ok := s.methods[name]
		if !ok || got.count != want.count || !s.generic && !of.generic && got.types != want.types {
			return false
		}
	}
	return len(of.methods) > 0
}

// typeOfGo identifies a Go type by repository, directory and name.
type typeOfGo struct{ repo, dir, name string }

// wellKnown has interfaces that others often embed, and whose package is seldom indexed.
const wellKnown = `package p

type error interface { Error() string }

type fmt_Stringer interface { String() string }

type io_Reader interface { Read(p []byte) (n int, err error) }

type io_Writer interface { Write(p []byte) (n int, err error) }

type io_Closer interface { Close() error }

type io_ReadCloser interface { Read(p []byte) (n int, err error); Close() error }

type io_WriteCloser interface { Write(p []byte) (n int, err error); Close() error }

type io_ReadWriter interface { Read(p []byte) (n int, err error); Write(p []byte) (n int, err error) }

type sync_Locker interface { Lock(); Unlock() }`

const interfaceBody = `(?:\[[^\]\n]*\])?[ \t]+interface[ \t]*\{(?:[^{}]|\{[^{}]*\})*\}`

// implement adds the types that have the methods of the requested interface.
func (h *hierarchy) implement(found *SymbolResponse) error {
	wanted, err := h.interfaces(`\b(?:` + alternatives(h.names) + `)` + interfaceBody)
	if err != nil {
		return err
	}

	names := map[string]bool{}
	for key, set := range wanted {
		if !slices.Contains(h.names, key.name) {
			delete(wanted, key)
			continue
		}
		for name := range set.methods {
			names[name] = true
		}
	}
	if len(names) == 0 {
		return nil
	}

	types, places, err := h.methods(`\([^)\n]*\)[ \t]*(?:` + alternatives(slices.Sorted(maps.Keys(names))) + `)[ \t]*\(`)
	if err != nil {
		return err
	}
	have := map[typeOfGo]string{}
	for key, set := range types {
		for of, want := range wanted {
			if set.has(want) && h.sameDir(want, of, key) {
				have[key] = of.name
			}
		}
	}
	return h.implementers(found, have, places)
}

// sameDir reports whether a type can have the methods of an interface. Unexported methods need the
// same directory.
func (h *hierarchy) sameDir(want *methodSet, of, key typeOfGo) bool {
	for name := range want.methods {
		if !ast.IsExported(name) {
			return of.repo == key.repo && of.dir == key.dir
		}
	}
	return true
}

// implementers adds types, preferably at their definitions, and then the types that embed them.
func (h *hierarchy) implementers(found *SymbolResponse, have map[typeOfGo]string, places map[typeOfGo]SymbolFile) error {
	for round := 0; len(have) > 0 && round < 4; round++ {
		names := map[string]bool{}
		for key := range have {
			names[key.name] = true
		}
		sorted := slices.Sorted(maps.Keys(names))
		defined, err := h.defining(sorted)
		if err != nil {
			return err
		}
		h.place(found, defined, have, places)

		// A struct has the methods of the types that it embeds.
		next := map[typeOfGo]string{}
		_, err = h.find(goText(embedExpr(anyOf(sorted))), func(f *search.File) []SymbolMatch {
			for _, m := range h.embeds(f) {
				outer := typeOfGo{f.Repository, path.Dir(f.Path), m.Name}
				for inner, of := range have {
					if m.Kind == "struct" && m.Of == inner.name && embedsFrom(string(m.Line), inner, outer) && have[outer] == "" && places[outer].Path == "" {
						next[outer] = of
						m.Of = of
						places[outer] = SymbolFile{RepoID: f.RepoID, Repository: f.Repository, Path: f.Path, WebURL: f.WebURL, Language: f.Language, Matches: []SymbolMatch{m}}
					}
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		have = next
	}
	return nil
}

// embedsFrom reports whether an embedding line can mean the type of a directory. Without a package
// name it means the line's own directory.
func embedsFrom(line string, inner, outer typeOfGo) bool {
	pkg, _, qualified := strings.Cut(strings.TrimLeft(strings.TrimSpace(line), "*"), ".")
	if !qualified {
		return inner.repo == outer.repo && inner.dir == outer.dir
	}
	return pkg == path.Base(inner.dir)
}

// place adds types at their definitions, or else at their first method.
func (h *hierarchy) place(found, defined *SymbolResponse, have map[typeOfGo]string, places map[typeOfGo]SymbolFile) {
	done := map[typeOfGo]bool{}
	for _, f := range defined.Files {
		at := f
		at.Matches = nil
		for _, m := range f.Matches {
			key := typeOfGo{f.Repository, path.Dir(f.Path), m.Name}
			if m.Of = have[key]; m.Of != "" && f.Language == "Go" && m.Kind != "interface" {
				done[key] = true
				at.Matches = append(at.Matches, m)
			}
		}
		if at.Matches != nil {
			found.Files = append(found.Files, at)
		}
	}
	for key, of := range have {
		if f, ok := places[key]; ok && !done[key] {
			f.Matches = slices.Clone(f.Matches[:1])
			f.Matches[0].Name, f.Matches[0].Of = key.name, of
			found.Files = append(found.Files, f)
		}
	}
}

// importExpr matches a line that imports a package.
const importExpr = `^(?:import)?[ \t]*(?:([\w.]+)[ \t]+)?"([\w./~-]+)"`

var importLine = regexp.MustCompile(importExpr)

// interfaces returns the interfaces that an expression finds, including the methods of embedded
// ones.
func (h *hierarchy) interfaces(expr string) (map[typeOfGo]*methodSet, error) {
	sets := map[typeOfGo]*methodSet{}
	known := map[string]bool{}
	for range 5 {
		q := goText(expr).(*query.And)
		q.Subs = append(q.Subs, &query.Or{Subs: []query.Q{q.Subs[1], &query.Text{Pattern: importExpr, Regexp: true}}})
		_, err := h.find(q, func(f *search.File) []SymbolMatch {
			imports := map[string]string{}
			for i := range f.Chunks {
				for _, r := range f.Chunks[i].Ranges {
					text := textOf(&f.Chunks[i], r)
					if m := importLine.FindSubmatch(text); m != nil {
						imports[cmp.Or(string(m[1]), packageOf(string(m[2])))] = string(m[2])
					} else if name, set := interfaceOf(text); set != nil {
						set.imports = imports
						sets[typeOfGo{f.Repository, path.Dir(f.Path), name}] = set
						known[name] = true
					}
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}

		// The next round searches the embedded interfaces.
		var more []string
		for _, set := range sets {
			for _, name := range set.embedded {
				if name = lastPart(name); !known[name] {
					known[name] = true
					more = append(more, name)
				}
			}
		}
		if more == nil {
			break
		}
		slices.Sort(more)
		expr = `\b(?:` + alternatives(more) + `)` + interfaceBody
	}
	h.join(sets)
	return sets, nil
}

// standard returns the interfaces of wellKnown by qualified name. The caller must not change them.
var standard = sync.OnceValue(func() map[string]*methodSet {
	all := map[string]*methodSet{}
	file, _ := parser.ParseFile(gotoken.NewFileSet(), "", wellKnown, parser.SkipObjectResolution)
	for _, d := range file.Decls {
		spec := d.(*ast.GenDecl).Specs[0].(*ast.TypeSpec)
		all[strings.ReplaceAll(spec.Name.Name, "_", ".")] = methodsOf(spec)
	}
	return all
})

// join adds to each interface the methods of the interfaces that it embeds.
func (h *hierarchy) join(sets map[typeOfGo]*methodSet) {
	joined := map[*methodSet]bool{}
	var join func(key typeOfGo, set *methodSet)
	join = func(key typeOfGo, set *methodSet) {
		if joined[set] {
			return
		}
		joined[set] = true
		for _, name := range set.embedded {
			at, inner := embeddedBy(key, name, sets)
			if inner == nil {
				h.out.Undefined = append(h.out.Undefined, name)
				continue
			}
			join(at, inner)
			maps.Copy(set.methods, inner.methods)
		}
	}
	for key, set := range sets {
		join(key, set)
	}
}

// embeddedBy returns the interface that a type embeds under a name. It is in the same directory, in
// the package that the file imports, or a well-known one. If several fit, it is the nearest; nil if
// none fits or two are equally near.
func embeddedBy(outer typeOfGo, name string, sets map[typeOfGo]*methodSet) (at typeOfGo, inner *methodSet) {
	pkg, last, qualified := strings.Cut(name, ".")
	if !qualified {
		at = typeOfGo{outer.repo, outer.dir, name}
		return at, cmp.Or(sets[at], standard()[name])
	}

	imported := sets[outer].imports[pkg]
	best := 0
	for other, set := range sets {
		switch n := importNearness(imported, outer, other); {
		case other.name != last || n < best:
		case n > best:
			best, at, inner = n, other, set
		default:
			inner = nil
		}
	}
	if best > 0 {
		return at, inner
	}
	return at, standard()[imported+"."+last]
}

// packageOf returns the likely name of a package with an import path.
func packageOf(imported string) string {
	imported, name := path.Split(imported)
	if imported != "" && majorVersion.MatchString(name) {
		name = path.Base(imported)
	}
	name, _, _ = strings.Cut(name, ".v")
	return strings.TrimSuffix(strings.TrimPrefix(name, "go-"), "-go")
}

var majorVersion = regexp.MustCompile(`^v\d+$`)

// importNearness rates how likely an import path means the directory of a type; 0 if impossible.
// The path must end with the directory. Most important is whether the path names the repository,
// then whether it is the importing file's own, then the common directories.
func importNearness(imported string, outer, of typeOfGo) int {
	// A package in a source tree or a vendor directory is imported by its path in there.
	dir := "/" + of.dir
	for _, tree := range []string{"/src/", "/vendor/"} {
		if i := strings.LastIndex(dir, tree); i >= 0 && dir[i+len(tree):] == imported {
			return 1 + 1000 + sameElements(outer, of)
		}
	}

	near := 1 + sameElements(outer, of)
	named := slices.Contains(strings.Split(imported, "/"), path.Base(of.repo)) || packageOf(imported) == packageOf(of.repo)
	switch {
	case of.dir == "." && packageOf(imported) != packageOf(of.repo), of.dir != "." && !strings.HasSuffix(imported, dir):
		return 0
	case named:
		return near + 1000
	case of.repo == outer.repo:
		return near
	}
	return 0
}

// sameElements rates how near the directories of two types are: above 100 in one repository, else
// 0.
func sameElements(a, b typeOfGo) int {
	if a.repo != b.repo {
		return 0
	}
	same, in := 100, strings.Split(b.dir, "/")
	for i, element := range strings.Split(a.dir, "/") {
		if i == len(in) || in[i] != element {
			break
		}
		same++
	}
	return same
}

// methods returns the method sets of types with a method that an expression finds, and one position
// for each type.
func (h *hierarchy) methods(expr string) (map[typeOfGo]*methodSet, map[typeOfGo]SymbolFile, error) {
	types, places := map[typeOfGo]*methodSet{}, map[typeOfGo]SymbolFile{}
	_, err := h.find(goText(`^func[ \t]*`+expr), func(f *search.File) []SymbolMatch {
		for i := range f.Chunks {
			c := &f.Chunks[i]
			for _, r := range c.Ranges {
				name, method, generic := methodOf(c.Content[min(int(r.Start.Offset-c.Start.Offset), len(c.Content)):])
				if method == nil {
					continue
				}
				key := typeOfGo{f.Repository, path.Dir(f.Path), name}
				if types[key] == nil {
					types[key] = &methodSet{methods: map[string]signatureOfGo{}}
					line, at := lineOf(*c, r)
					places[key] = SymbolFile{RepoID: f.RepoID, Repository: f.Repository, Path: f.Path, WebURL: f.WebURL, Language: f.Language,
						Matches: []SymbolMatch{{Line: line, Range: r, Name: name, Kind: "type", at: at}}}
				}
				types[key].generic = types[key].generic || generic
				types[key].methods[method.Name.Name] = signatureOfFunc(method.Type)
			}
		}
		return nil
	})
	return types, places, err
}

// embedded adds the types that the named types embed, and the interfaces that they implement.
func (h *hierarchy) embedded(add func(name, by, repo string)) error {
	// A struct may contain anonymous structs, one level deep.
	body := `\b(?:` + alternatives(h.names) + `)(?:\[[^\]\n]*\])?[ \t]+(?:struct|interface)[ \t]*\{(?:[^{}]|\{[^{}]*\})*\}`
	_, err := h.find(goText(body), func(f *search.File) []SymbolMatch {
		for i := range f.Chunks {
			for _, r := range f.Chunks[i].Ranges {
				if name, set := interfaceOf(textOf(&f.Chunks[i], r)); set != nil {
					for _, inner := range set.embedded {
						add(lastPart(inner), name, f.Repository)
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}

	types, _, err := h.methods(`\([^)\n]*` + anyOf(h.names) + `[^)\n]*\)[ \t]*\w+[ \t]*\(`)
	if err != nil {
		return err
	}
	names := map[string]bool{}
	for _, set := range types {
		for name := range set.methods {
			names[name] = true
		}
	}
	if len(names) == 0 {
		return nil
	}

	some := alternatives(slices.Sorted(maps.Keys(names)))
	sets, err := h.interfaces(`\b\w+(?:\[[^\]\n]*\])?[ \t]+interface[ \t]*\{(?:[^{}]|\{[^{}]*\})*?\b(?:` + some + `)\((?:[^{}]|\{[^{}]*\})*\}`)
	if err != nil {
		return err
	}
	for key, set := range types {
		for of, want := range sets {
			if slices.Contains(h.names, key.name) && set.has(want) && h.sameDir(want, of, key) {
				add(of.name, key.name, of.repo)
			}
		}
	}
	return nil
}

// textOf returns the text of a range in its chunk.
func textOf(c *shard.Chunk, r shard.Range) []byte {
	from, to := int(r.Start.Offset-c.Start.Offset), int(r.End.Offset-c.Start.Offset)
	if from < 0 || to > len(c.Content) || from > to {
		return nil
	}
	return c.Content[from:to]
}

// interfaceOf parses the definition of a type, without its keyword. It returns nil for anything
// else.
func interfaceOf(text []byte) (string, *methodSet) {
	file, err := parser.ParseFile(gotoken.NewFileSet(), "", "package p\ntype "+string(text), parser.SkipObjectResolution)
	if err != nil || len(file.Decls) != 1 {
		return "", nil
	}
	spec := file.Decls[0].(*ast.GenDecl).Specs[0].(*ast.TypeSpec)
	return spec.Name.Name, methodsOf(spec)
}

// methodsOf returns the methods of an interface, and the types that an interface or struct embeds.
func methodsOf(spec *ast.TypeSpec) *methodSet {
	set := &methodSet{methods: map[string]signatureOfGo{}, generic: spec.TypeParams != nil}
	var fields *ast.FieldList
	switch t := spec.Type.(type) {
	case *ast.InterfaceType:
		fields = t.Methods
	case *ast.StructType:
		fields = t.Fields
	default:
		return nil
	}
	for _, f := range fields.List {
		switch t := f.Type.(type) {
		case *ast.FuncType:
			for _, name := range f.Names {
				set.methods[name.Name] = signatureOfFunc(t)
			}
		// Any other unnamed element is a type set.
		case *ast.Ident, *ast.SelectorExpr, *ast.StarExpr, *ast.IndexExpr, *ast.IndexListExpr:
			if name := qualifiedText(t); f.Names == nil && name != "comparable" && name != "any" {
				set.embedded = append(set.embedded, name)
			}
		}
	}
	return set
}

// methodOf parses the head of a method; nil if it is none.
func methodOf(text []byte) (receiver string, method *ast.FuncDecl, generic bool) {
	end := 0
	for range headLines {
		n := bytes.IndexByte(text[end:], '\n')
		if n < 0 {
			n = len(text) - end - 1
		}
		end = min(end+n+1, len(text))

		// The body is either complete on its line or begins there.
		head := string(text[:end])
		for _, source := range []string{head, head[:strings.LastIndexByte(head, '{')+1] + "}"} {
			file, err := parser.ParseFile(gotoken.NewFileSet(), "", "package p\n"+source, parser.SkipObjectResolution)
			if err != nil || len(file.Decls) != 1 {
				continue
			}
			f, ok := file.Decls[0].(*ast.FuncDecl)
			if !ok || f.Recv == nil || len(f.Recv.List) != 1 {
				return "", nil, false
			}
			name, _, generic := strings.Cut(strings.TrimLeft(typeText(f.Recv.List[0].Type), "*"), "[")
			return name, f, generic
		}
	}
	return "", nil, false
}

// signatureOfFunc returns the types of parameters and results.
func signatureOfFunc(f *ast.FuncType) signatureOfGo {
	params, results := typesOf(f.Params), typesOf(f.Results)
	return signatureOfGo{strings.Join(params, ",") + ")" + strings.Join(results, ","), strconv.Itoa(len(params)) + ")" + strconv.Itoa(len(results))}
}

func typesOf(list *ast.FieldList) (types []string) {
	if list == nil {
		return nil
	}
	for _, f := range list.List {
		for range max(1, len(f.Names)) {
			types = append(types, typeText(f.Type))
		}
	}
	return types
}

// qualifiedText returns the name of a type with its package, without type arguments.
func qualifiedText(e ast.Expr) string {
	switch t := e.(type) {
	case *ast.StarExpr:
		return qualifiedText(t.X)
	case *ast.IndexExpr:
		return qualifiedText(t.X)
	case *ast.IndexListExpr:
		return qualifiedText(t.X)
	case *ast.SelectorExpr:
		return typeText(t.X) + "." + t.Sel.Name
	}
	return typeText(e)
}
