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

// arrangeDefinitions sorts definitions: by category of the file, then by kind, then programs named
// like their repository, then sources before headers, then by number of uses.
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

	// Count uses only if they decide which definition comes first. Without counts, the order stays
	// as it is.
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

// usedBytes is the size of the cache of counted uses. Counting those of a frequent name takes tens
// of milliseconds.
const usedBytes = 8 << 20

// usesOf counts the uses of a name that several files define.
func (s *Finder) usesOf(ctx context.Context, v catalog.Viewer, req SymbolRequest, defs []SymbolFile) (map[fileOf]int, error) {
	l, err := req.lookup(wordOf(req.Symbol), maxSymbolMatches)
	if err != nil {
		return nil, err
	}

	// The count depends on the index that the viewer may see, and on these definitions in it.
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

	// An incomplete count is not cached, because the next one may be complete.
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

// placesOf returns the category of each file. Computing it takes longer than the rest of a
// comparison.
func placesOf(files []SymbolFile) map[fileOf]int {
	places := make(map[fileOf]int, len(files))
	for i := range files {
		places[keyOf(&files[i])] = placeRank(files[i].Path)
	}
	return places
}

func keyOf(f *SymbolFile) fileOf { return fileOf{f.Repository, f.Path} }

// countUses counts the uses that may belong to the definition in each file. Types are unknown: a
// use belongs to its own file if that defines the name, else to the scope written before it, else
// to its directory. Other uses count for all definitions that are visible elsewhere.
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

	// A use counts once: for the file, else the scope, else the directory, else everywhere.
	elsewhere := map[fileOf]int{} // by repository and language
	for i := range uses {
		f := &uses[i]
		key := keyOf(f)
		dir := fileOf{key.repo, path.Dir(key.path)}

		for _, m := range f.Matches {
			if m.Kind != "" || m.OutsideCode {
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

			// The use has no scope and is in the directory of a definition, where most languages
			// need no qualifier.
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

// scopesOf returns what can be written before a name that a file defines, in lower case: the types
// and packages around it, the file and the directory.
func scopesOf(f *SymbolFile) []string {
	stem := strings.TrimSuffix(path.Base(f.Path), path.Ext(f.Path))
	scopes := []string{strings.ToLower(stem), strings.ToLower(path.Base(path.Dir(f.Path)))}
	for i := range f.Matches {
		_, last := Qualified(f.Matches[i].ParentName)
		scopes = append(scopes, strings.ToLower(last))
	}
	slices.Sort(scopes)
	scopes = slices.Compact(scopes)
	return slices.DeleteFunc(scopes, func(s string) bool { return s == "" || s == "." })
}

// scopeBefore returns the qualifier before a name, in lower case: a package, type or variable; ""
// for none.
//
//	store.Open(    db::Shard::open(    p->next
func scopeBefore(line []byte, at int) string {
	before := string(line[:min(max(at, 0), len(line))])
	for _, sep := range []string{"::", "->", "."} {
		scope, ok := strings.CutSuffix(before, sep)
		if !ok {
			continue
		}

		// Take the word before the separator: "db" of "std::db::".
		end := len(scope)
		for end > 0 && wordByte(scope, end-1) {
			end--
		}
		return cmp.Or(strings.ToLower(scope[end:]), sep) // of a call or an index nothing is known
	}
	return ""
}

// hiddenFromOthers reports whether code outside of its directory needs a qualifier to use what a
// file defines.
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
