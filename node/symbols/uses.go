package symbols

import (
	"cmp"
	"context"
	"path"
	"slices"
	"strings"

	"github.com/shoalsearch/shoal/cluster/catalog"
	"github.com/shoalsearch/shoal/node/coverage"
	"github.com/shoalsearch/shoal/node/lru"
	"github.com/shoalsearch/shoal/node/paths"
	"github.com/shoalsearch/shoal/shard"
)

// arrangeDefinitions puts definitions in order: by place, then by kind, of programs
// those that are named like their repository, sources before headers, and what is
// alike in all of that by how often it is used.
func (s *Finder) arrangeDefinitions(ctx context.Context, v catalog.Viewer, req SymbolRequest, name string, out *SymbolResponse) {
	kind := func(a, b SymbolMatch) int { return shard.KindRank(a.Kind) - shard.KindRank(b.Kind) }
	for i := range out.Files {
		slices.SortStableFunc(out.Files[i].Matches, kind)
	}
	program := func(SymbolFile) int { return 0 }
	if strings.EqualFold(name, "main") {
		program = func(f SymbolFile) int { return programRank(f.Repository, f.Path) }
	}
	places := placesOf(out.Files)
	rank := func(a, b SymbolFile) int {
		return cmp.Or(
			places[keyOf(&a)]-places[keyOf(&b)],
			kind(a.Matches[0], b.Matches[0]),
			program(a)-program(b),
			headerRank(a.Path)-headerRank(b.Path),
		)
	}
	slices.SortStableFunc(out.Files, rank)

	// Uses are looked for only where they decide what comes first. They are no
	// part of the answer: where they cannot be had, it stands as it is.
	if req.Prefix || req.Letters || isPattern(name) || len(out.Files) < 2 || rank(out.Files[0], out.Files[1]) != 0 {
		return
	}
	used, err := s.usesOf(ctx, v, SymbolRequest{Symbol: name, Repo: req.Repo, Revision: req.Revision, bare: true, Paths: paths.Filter{Repos: req.Paths.Repos}}, out.Files)
	if err != nil {
		return
	}
	slices.SortStableFunc(out.Files, func(a, b SymbolFile) int {
		return cmp.Or(rank(a, b), used[keyOf(&b)]-used[keyOf(&a)])
	})
}

// usedBytes is what a node remembers of counted uses. Of a name that is written
// everywhere it takes tens of milliseconds to count them.
const usedBytes = 8 << 20

// usesOf counts the uses of a name that several files define.
func (s *Finder) usesOf(ctx context.Context, v catalog.Viewer, req SymbolRequest, defs []SymbolFile) (map[fileOf]int, error) {
	l, err := req.lookup(wordOf(req.Symbol), maxSymbolMatches)
	if err != nil {
		return nil, err
	}

	// The count is of the index that the viewer may see, and of these definitions in it.
	parts := []string{req.Symbol, req.Revision}
	for i := range defs {
		parts = append(parts, defs[i].Repository, defs[i].Path)
		for _, m := range defs[i].Matches {
			parts = append(parts, m.ParentName, string(m.Line))
		}
	}
	key, err := s.Digest(ctx, v, l, parts...)
	if err != nil {
		return nil, err
	}
	if used, ok := s.used.Get(key); ok {
		return used, nil
	}

	uses, err := s.uses(ctx, v, req)
	if err != nil {
		return nil, err
	}
	used := countUses(defs, uses.Files)

	// What lacks a part may have it the next time.
	if worst := uses.Coverage.Worst(); worst == "" || worst == coverage.Limit {
		s.used.Put(key, used, usedSize(used))
	}
	return used, nil
}

func usedSize(used map[fileOf]int) int64 {
	size := int64(lru.Cost)
	for key := range used {
		size += int64(lru.Cost + len(key.repo) + len(key.path))
	}
	return size
}

// placesOf is the rank of the place of each file: it takes longer to tell than all else
// by which files are compared.
func placesOf(files []SymbolFile) map[fileOf]int {
	places := make(map[fileOf]int, len(files))
	for i := range files {
		places[keyOf(&files[i])] = placeRank(files[i].Path)
	}
	return places
}

func keyOf(f *SymbolFile) fileOf { return fileOf{f.Repository, f.Path} }

// countUses tells how many uses of a name can be of what each file defines, of
// files that all define it. Types are not known: a use is of the file that it
// stands in where that defines the name, else of the scope that is written before
// it, else of its directory. What is left is of all definitions that others see.
func countUses(defs, uses []SymbolFile) map[fileOf]int {
	used := map[fileOf]int{}
	named, beside := map[fileOf][]fileOf{}, map[fileOf][]fileOf{} // by repository, and scope or directory
	defines := map[fileOf]bool{}

	for i := range defs {
		key := keyOf(&defs[i])
		defines[key] = true
		dir := fileOf{key.repo, path.Dir(key.path)}
		beside[dir] = append(beside[dir], key)
		for _, scope := range scopesOf(&defs[i]) {
			at := fileOf{key.repo, scope}
			named[at] = append(named[at], key)
		}
	}

	// A use counts at one place: file before scope before directory before everywhere.
	elsewhere := map[fileOf]int{} // by repository and language
	for i := range uses {
		f := &uses[i]
		key := keyOf(f)
		dir := fileOf{key.repo, path.Dir(key.path)}

		for _, m := range f.Matches {
			if m.Kind != "" || OutsideCode(f.Language, m.Line, m.at) {
				continue
			}

			scope := fileOf{key.repo, scopeBefore(m.Line, m.at)}
			switch {
			case defines[key]:
				used[key]++
			case scope.path != "":
				for _, d := range named[scope] {
					used[d]++
				}

			// Written alone, in the directory of a definition: most languages see it without a name before it.
			case beside[dir] != nil:
				for _, d := range beside[dir] {
					used[d]++
				}
			default:
				elsewhere[fileOf{key.repo, f.Language}]++
			}
		}
	}

	for i := range defs {
		if f := &defs[i]; !hiddenFromOthers(f) {
			used[keyOf(f)] += elsewhere[fileOf{f.Repository, f.Language}]
		}
	}
	return used
}

// scopesOf is what can be written before a name that a file defines, in lower
// case: the types and packages around it, its file and its directory.
func scopesOf(f *SymbolFile) []string {
	stem := strings.TrimSuffix(path.Base(f.Path), path.Ext(f.Path))
	scopes := []string{strings.ToLower(stem), strings.ToLower(path.Base(path.Dir(f.Path)))}
	for i := range f.Matches {
		_, last := qualified(f.Matches[i].ParentName)
		scopes = append(scopes, strings.ToLower(last))
	}
	slices.Sort(scopes)
	scopes = slices.Compact(scopes)
	return slices.DeleteFunc(scopes, func(s string) bool { return s == "" || s == "." })
}

// scopeBefore is what is written before a name, in lower case: a package, a type,
// a variable; "" for nothing.
//
//	store.Open(    db::Shard::open(    p->next
func scopeBefore(line []byte, at int) string {
	before := string(line[:min(max(at, 0), len(line))])
	for _, sep := range []string{"::", "->", "."} {
		scope, ok := strings.CutSuffix(before, sep)
		if !ok {
			continue
		}

		// The word before the separator: "db" of "std::db::".
		end := len(scope)
		for end > 0 && wordByte(scope, end-1) {
			end--
		}
		return cmp.Or(strings.ToLower(scope[end:]), sep) // of a call or an index nothing is known
	}
	return ""
}

// hiddenFromOthers reports whether nothing outside of its directory can use what a
// file defines without saying where it is from.
func hiddenFromOthers(f *SymbolFile) bool {
	switch f.Language {
	case "Go", "Java", "Rust":
		return true
	case "C", "C++", "Objective-C":
		static := func(m SymbolMatch) bool { return strings.HasPrefix(strings.TrimSpace(string(m.Line)), "static ") }
		return headerRank(f.Path) == 0 && !slices.ContainsFunc(f.Matches, func(m SymbolMatch) bool { return !static(m) })
	}
	return false
}
